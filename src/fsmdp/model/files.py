"""Model files: JSON with a published schema. Loading runs no code and trusts nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from fsmdp.errors import ModelError
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.variables import LARGEST_VARIABLE, Variable

FORMAT = "fsmdp-model"
VERSION = 1
LARGEST_FILE = 2**28
DEEPEST_NESTING = 64
LARGEST_NUMBER = int(sys.float_info.max)

Name = Annotated[str, StringConstraints(min_length=1)]
Numbers = Annotated[
    Any,
    Field(
        description="A number, or nested lists of numbers of equal length, one level per axis.",
        json_schema_extra={"type": ["number", "array"]},
    ),
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class VariableFile(_Strict):
    """A variable or latent."""

    name: Name
    size: Annotated[int, Field(ge=1, le=LARGEST_VARIABLE)]


class CaseFile(_Strict):
    """What holds under some actions. Axes of the table: parents, drawn, then the children."""

    actions: Literal["any"] | list[Name]
    parents: list[Name] = []
    drawn: list[Name] = []
    table: Numbers


class ConditionalFile(_Strict):
    """How some variables or latents are drawn jointly."""

    children: Annotated[list[Name], Field(min_length=1)]
    cases: Annotated[list[CaseFile], Field(min_length=1)]


class RewardFile(_Strict):
    """A term of the reward."""

    name: str
    cases: Annotated[list[CaseFile], Field(min_length=1)]
    low: float
    high: float
    sigma: Annotated[float, Field(ge=0)] = 0.0


class ModelFile(_Strict):
    """A factored-state MDP."""

    format: Literal["fsmdp-model"]
    version: Literal[1]
    variables: Annotated[list[VariableFile], Field(min_length=1)]
    latents: list[VariableFile] = []
    actions: Annotated[list[Name], Field(min_length=1)]
    conditionals: list[ConditionalFile]
    rewards: list[RewardFile]
    horizon: Annotated[int, Field(ge=1)] | None
    discount: Annotated[float, Field(gt=0, le=1)] = 1.0
    initial: Annotated[
        dict[Name, int | list[float]],
        Field(description="For each variable a value, or one probability per value."),
    ]


def save(model: FactoredMDP, path: str | os.PathLike[str]) -> None:
    """Write a model as JSON; `load` gives back exactly the same numbers.

    The file appears whole or not at all.
    """
    if not isinstance(model, FactoredMDP):
        raise ModelError(f"save: expected a FactoredMDP, found {type(model).__name__}.")
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_text(json.dumps(to_dict(model), separators=(",", ":")) + "\n", encoding="utf-8")
        part.replace(target)
    except OSError as error:
        raise ModelError(f"cannot write {target}: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> FactoredMDP:
    """Read a model written by `save` or by hand; anything wrong is a ModelError.

    Cost: the size of the file. Sizes that only claim to be large allocate nothing.
    """
    source = Path(path)
    try:
        size = source.stat().st_size
        if size > LARGEST_FILE:
            raise ModelError(f"{source}: {size} bytes, expected at most {LARGEST_FILE}.")
        content = source.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {source}: {error.strerror or error}.") from None
    try:
        return from_bytes(content)
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from None


def schema() -> dict[str, Any]:
    """JSON Schema of a model file."""
    return ModelFile.model_json_schema() | {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{FORMAT} version {VERSION}",
    }


def to_dict(model: FactoredMDP) -> dict[str, Any]:
    """The model as plain lists, numbers and strings."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "variables": [{"name": v.name, "size": v.size} for v in model.variables],
        "latents": [{"name": v.name, "size": v.size} for v in model.latents],
        "actions": list(model.actions),
        "conditionals": [
            {"children": list(c.children), "cases": [_case_to_dict(case) for case in c.cases]}
            for c in model.conditionals
        ],
        "rewards": [
            {
                "name": r.name,
                "cases": [_case_to_dict(case) for case in r.cases],
                "low": r.low,
                "high": r.high,
                "sigma": r.sigma,
            }
            for r in model.rewards
        ],
        "horizon": model.horizon,
        "discount": model.discount,
        "initial": {
            v.name: start if isinstance(start, int) else start.tolist()
            for v, start in zip(model.variables, model.initial, strict=True)
        },
    }


def from_bytes(content: bytes) -> FactoredMDP:
    """A model from the bytes of a model file."""
    try:
        read = ModelFile.model_validate_json(content)
    except ValidationError as error:
        raise ModelError(_explain(error)) from None
    return FactoredMDP(
        variables=[Variable(v.name, v.size) for v in read.variables],
        latents=[Variable(v.name, v.size) for v in read.latents],
        actions=read.actions,
        conditionals=[
            Conditional(c.children, _cases(c.cases, f"conditionals[{i}]"))
            for i, c in enumerate(read.conditionals)
        ],
        rewards=[
            Reward(r.name, _cases(r.cases, f"rewards[{i}]"), r.low, r.high, r.sigma)
            for i, r in enumerate(read.rewards)
        ],
        horizon=read.horizon,
        discount=read.discount,
        initial=read.initial,
    )


def _case_to_dict(case: Case) -> dict[str, Any]:
    return {
        "actions": "any" if case.actions is ANY else list(case.actions),  # type: ignore[arg-type]
        "parents": list(case.parents),
        "drawn": list(case.drawn),
        "table": case.table.tolist(),
    }


def _cases(cases: Sequence[CaseFile], where: str) -> list[Case]:
    found = []
    for i, case in enumerate(cases):
        place = f"{where}.cases[{i}]"
        table = _check_numbers(case.table, f"{place}.table")
        actions = ANY if case.actions == "any" else case.actions
        try:
            found.append(Case(actions, case.parents, table, case.drawn))
        except ModelError as error:
            raise ModelError(f"{place}: {error}") from None
    return found


def _check_numbers(table: Any, where: str) -> Any:
    """Refuse what numpy would quietly turn into numbers, and nesting deeper than any array."""
    level = [table]
    for _ in range(DEEPEST_NESTING):
        nested = [item for item in level if isinstance(item, list)]
        for item in level:
            if type(item) not in (int, float, list):
                raise ModelError(
                    f"{where}: expected numbers, found {item!r:.40}; give nested lists of numbers."
                )
            if type(item) is int and abs(item) > LARGEST_NUMBER:
                raise ModelError(f"{where}: a number has {len(str(item))} digits; use fewer.")
        if not nested:
            return table
        level = [item for inner in nested for item in inner]
    raise ModelError(f"{where}: nested deeper than {DEEPEST_NESTING} levels; one level per axis.")


def _explain(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False)
    first = problems[0]
    if first["loc"] == ("version",) and first["type"] == "literal_error":
        return (
            f"version: expected {VERSION}, the one this release reads, found {first['input']!r}; "
            "use the release that wrote the file, or write it again."
        )
    where = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]
    ).lstrip(".")
    found = first.get("input")
    shown = "" if isinstance(found, dict | list | bytes) else f", found {found!r:.60}"
    more = f" ({len(problems) - 1} more problems)" if len(problems) > 1 else ""
    return f"{where or 'file'}: {first['msg']}{shown}{more}."


if __name__ == "__main__":  # pragma: no cover
    print(json.dumps(schema(), indent=2))
