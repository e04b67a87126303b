"""Specifications: which learners run on which models, with which seeds, for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import clip, show

Option = bool | int | float | str | None


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
    options: Mapping[str, Option]

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
