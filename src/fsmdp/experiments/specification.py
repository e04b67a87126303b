"""Specifications: which learners run on which models, with which seeds, for how long.

They are read from TOML: every key is checked, and every default filled in.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, ValidationError

from fsmdp.errors import ModelError
from fsmdp.experiments.learners import find_learner, resolve_options
from fsmdp.foundation.checks import clip, is_whole, show
from fsmdp.foundation.disk import read_file
from fsmdp.foundation.kinds import Document, explain
from fsmdp.io.readers import (
    BASES,
    basis_name,
    basis_of_blocks,
    read_basis_file,
    reads_without_code,
    refuse_code,
    search_folder,
)
from fsmdp.learning.learners.registry import LEARNERS, Value, options_in_words


@dataclass(frozen=True, slots=True, eq=False)
class ModelSetting:
    """A model as the user wrote it, and the basis its learners and planners use.

    With a `structure` it is an environment, whose structure has the basis; both are places of
    functions.
    """

    id: str
    model: str
    basis: str
    structure: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LearnerSetting:
    """A learner by name with every option filled in."""

    id: str
    learner: str
    label: str
    options: Mapping[str, Value]

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only view of a dictionary cannot be pickled.
        return LearnerSetting, (self.id, self.learner, self.label, dict(self.options))


@dataclass(frozen=True, slots=True, eq=False)
class RunSetting:
    """One run: a learner on a model with a seed. Small, and all that a worker needs to know."""

    id: str
    model: ModelSetting
    learner: LearnerSetting
    seed: int
    episodes: int
    checkpoint_every: int


@dataclass(frozen=True, slots=True, eq=False)
class Specification:
    """A sweep: every model with every learner and every seed."""

    name: str
    episodes: int
    seeds: tuple[int, ...]
    checkpoint_every: int
    models: tuple[ModelSetting, ...]
    learners: tuple[LearnerSetting, ...]
    runs: tuple[RunSetting, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        made = tuple(
            RunSetting(
                f"{model.id}--{learner.id}--seed-{seed}",
                model,
                learner,
                seed,
                self.episodes,
                self.checkpoint_every,
            )
            for model in self.models
            for learner in self.learners
            for seed in self.seeds
        )
        object.__setattr__(self, "runs", made)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings, as in `specification.json`."""
        return {
            "name": self.name,
            "episodes": self.episodes,
            "seeds": list(self.seeds),
            "checkpoint_every": self.checkpoint_every,
            "models": [
                {"id": m.id, "model": m.model, "basis": m.basis}
                | ({} if m.structure is None else {"structure": m.structure})
                for m in self.models
            ],
            "learners": [
                {"id": one.id, "learner": one.learner, "label": one.label}
                | {"options": dict(one.options)}
                for one in self.learners
            ],
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Specification:
        """The inverse of `to_dict`."""
        try:
            return Specification(
                str(data["name"]),
                int(data["episodes"]),
                tuple(int(seed) for seed in data["seeds"]),
                int(data["checkpoint_every"]),
                tuple(ModelSetting(**one) for one in data["models"]),
                tuple(
                    LearnerSetting(**{**one, "label": str(one["label"])})
                    for one in data["learners"]
                ),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"resolved specification: {clip(f'{type(error).__name__} {error}')} in "
                f"{show(data)}; expected what `compare` wrote, run it again into a new folder."
            ) from None


LARGEST_FILE = 2**20
MOST_RUNS = 100_000
MOST_EPISODES = 10**9
LONGEST_ID = 80
DEFAULT_BASIS = "singles"
OF_STRUCTURE = "of the structure"
CHECKPOINT_EVERY = 100


def _read_seeds(seeds: Any) -> tuple[int, ...]:
    if is_whole(seeds) and 1 <= seeds <= MOST_RUNS:
        return tuple(range(seeds))
    if isinstance(seeds, list) and seeds and all(is_whole(one) and one >= 0 for one in seeds):
        if len(set(seeds)) < len(seeds):
            raise ValueError(f"expected different seeds, found {show(seeds)}; list each once")
        return tuple(seeds)
    raise ValueError(
        f"expected how many (seeds = 5 for 0 to 4) or a list of whole numbers from 0, found "
        f"{show(seeds)}"
    )


Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=1, le=MOST_EPISODES)]


class ModelTable(Document):
    """One of [[models]]: a model with a basis, or an environment with its structure."""

    model: Text | None = None
    basis: Text | None = None
    blocks: list[list[str]] | None = None
    environment: Text | None = None
    structure: Text | None = None


class LearnerTable(Document):
    """One of [[learners]]; its other keys are the learner's options."""

    model_config = ConfigDict(extra="allow")

    learner: Text
    label: Text | None = None


class SpecificationFile(Document):
    """A sweep as it is written down."""

    name: Text
    episodes: Count
    seeds: Annotated[Any, AfterValidator(_read_seeds), Field(validate_default=True)] = 1
    checkpoint_every: Count = CHECKPOINT_EVERY
    models: Annotated[list[ModelTable], Field(min_length=1)]
    learners: Annotated[list[LearnerTable], Field(min_length=1)]


def read_specification(
    path: str | os.PathLike[str], *, allow_code: bool = False
) -> tuple[Specification, str]:
    """A specification and its text, from a TOML file; anything wrong is a ModelError.

    `my_module:make` in it imports a module, which runs its code: such a file is refused unless
    `allow_code` is true.
    """
    content = read_file(path, LARGEST_FILE)
    try:
        text = content.decode()
        return specify(tomllib.loads(text), Path(path).parent, allow_code=allow_code), text
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: expected text in UTF-8, found byte {error.start}.") from None
    except tomllib.TOMLDecodeError as error:
        raise ModelError(f"{path}: not TOML: {clip(str(error))}; correct the line.") from None
    except RecursionError:
        raise ModelError(f"{path}: nested too deeply; expected tables and lists.") from None
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def specify(
    data: Mapping[str, Any], folder: Path | None = None, *, allow_code: bool = True
) -> Specification:
    """A specification from plain data; model files are looked for in the folder first.

    Without `allow_code` nothing is imported that the data name, and naming it is a ModelError.
    """
    try:
        read = SpecificationFile.model_validate(dict(data))
    except ValidationError as error:
        raise ModelError(explain(error, "specification")) from None
    runs = len(read.models) * len(read.learners) * len(read.seeds)
    if runs > MOST_RUNS:
        raise ModelError(
            f"models, learners, seeds: {len(read.models)} x {len(read.learners)} x "
            f"{len(read.seeds)} are {runs} runs, expected at most {MOST_RUNS}; split it."
        )
    if not allow_code:
        _refuse_code(read)
    elif folder is not None:
        search_folder(folder)
    return Specification(
        read.name,
        read.episodes,
        read.seeds,
        read.checkpoint_every,
        _models(read.models, folder),
        _learners(read.learners),
    )


def _refuse_code(read: SpecificationFile) -> None:
    """Refuse whatever would be imported."""
    for position, model in enumerate(read.models):
        where = f"models[{position}]"
        if model.model is not None and not reads_without_code(model.model):
            refuse_code(model.model, (), "model", where)
        refuse_code(model.basis, BASES, "basis", where)
        refuse_code(model.environment, (), "environment", where)
        refuse_code(model.structure, (), "structure", where)
    for position, learner in enumerate(read.learners):
        where = f"learners[{position}]"
        refuse_code(learner.learner, LEARNERS, "learner", where)
        basis = (learner.model_extra or {}).get("basis")
        refuse_code(basis if isinstance(basis, str) else None, BASES, "basis", where)


def _models(tables: Sequence[ModelTable], folder: Path | None) -> tuple[ModelSetting, ...]:
    found: dict[str, ModelSetting] = {}
    seen: dict[tuple[str, str], int] = {}
    for position, table in enumerate(tables):
        where = f"models[{position}]"
        text, basis = _model_and_basis(table, where, folder)
        if (text, basis) in seen:
            raise ModelError(
                f"{where}: {show(text)} with basis {show(basis_name(basis))} is "
                f"models[{seen[text, basis]}] already; list it once."
            )
        seen[text, basis] = position
        name = Path(text).stem if text.endswith(".json") else text
        one = _unused(safe_name(name), safe_name(f"{name}-{basis_name(basis)}"), found)
        found[one.lower()] = ModelSetting(one, text, basis, table.structure)
    return tuple(found.values())


def _model_and_basis(table: ModelTable, where: str, folder: Path | None) -> tuple[str, str]:
    """The texts of a model, or an environment, and of its basis; files are looked for."""
    if table.environment is not None:
        if table.structure is None or table.model or table.basis or table.blocks is not None:
            raise ModelError(
                f"{where}: an environment comes with a structure, which has the basis, and with "
                "neither model nor basis; give environment and structure alone."
            )
        return table.environment, OF_STRUCTURE
    if table.model is None or table.structure is not None:
        raise ModelError(
            f"{where}: expected a model, or an environment with its structure; give model, or "
            "environment and structure."
        )
    if table.basis is not None and table.blocks is not None:
        raise ModelError(f"{where}: expected basis or blocks, found both; leave one out.")
    if table.blocks is not None:
        return _beside(table.model, folder), basis_of_blocks(table.blocks)
    basis = table.basis or DEFAULT_BASIS
    if basis.endswith(".json"):
        basis = read_basis_file(_beside(basis, folder))
    return _beside(table.model, folder), basis


def _beside(text: str, folder: Path | None) -> str:
    """The path of a file beside the specification, if there is one."""
    there = folder is not None and text.endswith(".json") and (folder / text).is_file()
    return str(folder / text) if there and folder is not None else text


def _learners(tables: Sequence[LearnerTable]) -> tuple[LearnerSetting, ...]:
    found: dict[str, LearnerSetting] = {}
    for position, table in enumerate(tables):
        where = f"learners[{position}]"
        entry = find_learner(table.learner, where)
        given = table.model_extra or {}
        options = resolve_options(entry, given, where)
        named = {name: options[name] for name in given}
        label = table.label or entry.label(named)
        for other in found.values():
            if (other.learner, dict(other.options)) == (entry.name, options):
                raise ModelError(f"{where}: the same learner as {other.label!r}; list it once.")
            if other.label == label:
                raise ModelError(
                    f"{where}: label {show(label)} is taken; give each learner its own label."
                )
        name = safe_name(
            "-".join([entry.name, *options_in_words({one: options[one] for one in given}, "-")])
        )
        one = _unused(name, safe_name(f"{name}-{label}"), found)
        found[one.lower()] = LearnerSetting(one, entry.name, label, options)
    return tuple(found.values())


def safe_name(text: str) -> str:
    """A text as part of a file's name, on any system."""
    name = re.sub(r"[^A-Za-z0-9._=-]+", "-", text).strip("-.")
    return name[:LONGEST_ID].rstrip("-.") or "unnamed"


def _unused(name: str, longer: str, taken: Mapping[str, Any]) -> str:
    """The name, or one that is not taken; file systems may not tell capitals from others."""
    candidates = [name, longer, *(f"{name}-{number}" for number in range(2, len(taken) + 3))]
    return next(one for one in candidates if one.lower() not in taken)
