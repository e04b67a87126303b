"""Where episodes come from: a model simulated by compiled code, or any Gymnasium environment."""

from __future__ import annotations

from itertools import chain
from typing import Any, Protocol

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show
from fsmdp.learning.acting import Acting, Learner, Logs, counts_of, run_until_grown
from fsmdp.learning.checkpoint import digest
from fsmdp.learning.matching import check_model_fits
from fsmdp.learning.stepping import EnvironmentWorld
from fsmdp.simulation.compiled import compile_model
from fsmdp.simulation.simulate import new_record


class World(Protocol):
    """Runs episodes for a learner, which sees nothing but what is recorded."""

    def run(self, acting: Acting, logs: Logs, first: int, last: int) -> tuple[int, bool]:
        """Run episodes from `first` on; the one that comes next, and whether a plan is due."""
        ...

    def identity(self) -> str:
        """What tells this world from others, as far as can be seen."""
        ...

    def random_state(self) -> dict[str, Any]:
        """State of the random generator between two episodes."""
        ...

    def set_random_state(self, state: dict[str, Any]) -> None:
        """Go on from a random state."""
        ...


def open_world(source: Any, learner: Learner, rng: np.random.Generator) -> World:
    """The world of a FactoredMDP or of a Gymnasium environment, checked against the Structure."""
    if isinstance(source, type):
        raise ModelError(
            f"learn: expected a FactoredMDP or a Gymnasium environment, found the class "
            f"{source.__name__}; make one."
        )
    if hasattr(source, "dynamics") and hasattr(source, "reward_means"):
        return ModelWorld(source, learner, rng)
    if hasattr(source, "reset") and hasattr(source, "observation_space"):
        return EnvironmentWorld(source, learner, rng)
    raise ModelError(
        f"learn: expected a FactoredMDP or a Gymnasium environment, found {show(source)}; load, "
        "build or make one."
    )


class ModelWorld:
    """Whole episodes by compiled code; the learner is handed what happened, not the model."""

    def __init__(self, model: Any, learner: Learner, rng: np.random.Generator) -> None:
        check_model_fits(model, learner.structure)
        self._learner = learner
        self._rng = rng
        self._model = compile_model(model)
        self._slots = np.zeros(self._model.n_slots, dtype=np.int64)
        self._record = new_record(self._model, 1, model.horizon)

    def run(self, acting: Acting, logs: Logs, first: int, last: int) -> tuple[int, bool]:
        """One call for all episodes up to the next plan."""
        learner = self._learner
        reached, due = run_until_grown(
            self._model,
            self._rng,
            learner.structure.discount,
            self._record.actions.shape[1],
            learner.cells.layout,
            acting.policy,
            acting.values,
            acting.q,
            acting.widths,
            acting.replan_at,
            counts_of(learner.statistics),
            learner.term_known,
            self._slots,
            self._record,
            logs,
            first,
            last,
        )
        learner.statistics.episodes += reached - first
        return reached, due

    def identity(self) -> str:
        """Everything that the simulator draws from."""
        parts = (part if isinstance(part, tuple) else (part,) for part in self._model)
        return f"FactoredMDP {digest(chain.from_iterable(parts))}"

    def random_state(self) -> dict[str, Any]:
        """State of the simulator's generator."""
        return dict(self._rng.bit_generator.state)

    def set_random_state(self, state: dict[str, Any]) -> None:
        """Go on from a random state."""
        self._rng.bit_generator.state = state
