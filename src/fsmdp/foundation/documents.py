"""Documents that users write: read strictly, and one short message for what is wrong."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from fsmdp.foundation.checks import show, show_names


class Document(BaseModel):
    """Keys and kinds as declared, nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        # One message for the first unknown key; pydantic would make one for each of a million.
        if isinstance(data, dict) and cls.model_config.get("extra") == "forbid":
            for key in data:
                if key not in cls.model_fields:
                    known = show_names(cls.model_fields)
                    raise ValueError(f"unknown key {show(key)}; expected {known}")
        return data


def explain(error: ValidationError, nothing: str = "file") -> str:
    """Where a document is wrong, what was expected and what was found."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]
    ).lstrip(".")
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "model_type":
        message = "expected an object"
    shown = "" if first["type"] in ("value_error", "missing") else f", found {show(first['input'])}"
    count = error.error_count() - 1
    more = f" ({count} more)" if count else ""
    return f"{where or nothing}: {message}{shown}{more}."
