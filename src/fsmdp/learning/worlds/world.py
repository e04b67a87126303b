"""A world: where episodes come from, be it a model or any Gymnasium environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show
from fsmdp.learning.cells.kernel import Logs
from fsmdp.learning.learners.acting import Acting
from fsmdp.learning.learners.learner import Learner
from fsmdp.learning.worlds.environment import EnvironmentWorld
from fsmdp.learning.worlds.model import ModelWorld
from fsmdp.model.mdp import FactoredMDP

if TYPE_CHECKING:
    import gymnasium

Source: TypeAlias = "FactoredMDP | gymnasium.Env[Any, Any]"


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


def open_world(source: Source, learner: Learner, rng: np.random.Generator) -> World:
    """The world of a FactoredMDP or of a Gymnasium environment, checked against the Structure."""
    if isinstance(source, type):
        raise ModelError(
            f"learn: expected a FactoredMDP or a Gymnasium environment, found the class "
            f"{source.__name__}; make one."
        )
    if isinstance(source, FactoredMDP):
        return ModelWorld(source, learner, rng)
    if hasattr(source, "reset") and hasattr(source, "observation_space"):
        return EnvironmentWorld(source, learner, rng)
    raise ModelError(
        f"learn: expected a FactoredMDP or a Gymnasium environment, found {show(source)}; load, "
        "build or make one."
    )
