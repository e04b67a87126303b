"""Episodes of a model, simulated and counted by compiled code."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.foundation.disk import digest_of
from fsmdp.learning.cells.kernel import Counts, Logs, Said, count_episode, counts_of, episode_of
from fsmdp.learning.cells.layout import CellLayout
from fsmdp.learning.learners.acting import Acting
from fsmdp.learning.learners.learner import Learner
from fsmdp.learning.learners.memory import memory_of
from fsmdp.learning.worlds.matching import check_model_fits
from fsmdp.model.lookup import Integers
from fsmdp.model.mdp import FactoredMDP
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.simulation.simulate import CompiledModel, Record, compile_model, new_record, simulate

MOST_AT_ONCE, ROOM = 256, 2**20
"""Episodes, and numbers of their states, that are written down before they are remembered."""


class ModelWorld:
    """Whole episodes by compiled code; the learner is handed what happened, not the model."""

    def __init__(self, model: FactoredMDP, learner: Learner, rng: np.random.Generator) -> None:
        check_model_fits(model, learner.structure)
        self._learner = learner
        self._rng = rng
        self._model = compile_model(model)
        self._slots = np.zeros(self._model.n_slots, dtype=np.int64)
        assert model.horizon is not None  # the structure's is not, and they agree
        numbers = (model.horizon + 1) * self._model.n_inputs
        room = max(1, min(MOST_AT_ONCE, ROOM // numbers))
        self._record = new_record(self._model, room if memory_of(learner) else 1, model.horizon)

    def run(self, acting: Acting, logs: Logs, first: int, last: int) -> tuple[int, bool]:
        """One call for all episodes up to the next plan, or to when they have to be remembered."""
        learner, remember = self._learner, memory_of(self._learner)
        if remember is not None:
            last = min(last, first + len(self._record.actions))
        reached, due = run_until_grown(
            self._model,
            self._rng,
            learner.structure.discount,
            self._record.actions.shape[1],
            learner.cells.layout,
            acting.policy,
            acting.said,
            counts_of(learner.statistics),
            learner.term_known,
            self._slots,
            self._record,
            logs,
            first,
            last,
        )
        learner.statistics.episodes += reached - first
        if remember is not None:
            for at in range(reached - first):
                remember(episode_of(self._record, at), self._record.actions.shape[1])
        return reached, due

    def identity(self) -> str:
        """Everything that the simulator draws from."""
        parts = (part if isinstance(part, tuple) else (part,) for part in self._model)
        return f"FactoredMDP {digest_of(chain.from_iterable(parts))}"

    def random_state(self) -> dict[str, Any]:
        """State of the simulator's generator."""
        return dict(self._rng.bit_generator.state)

    def set_random_state(self, state: dict[str, Any]) -> None:
        """Go on from a random state."""
        self._rng.bit_generator.state = state


@compiled()
def run_until_grown(
    model: CompiledModel,
    rng: np.random.Generator,
    discount: float,
    steps: int,
    layout: CellLayout,
    policy: CompiledPolicy,
    said: Said,
    counts: Counts,
    term_known: NDArray[np.bool_],
    slots: Integers,
    record: Record,
    logs: Logs,
    first: int,
    last: int,
) -> tuple[int, bool]:
    """Simulate, count and log episodes first, first + 1, ... until a plan is due or `last` comes.

    They are written down one after another, and over the first ones when there is no more room.
    Returns the number of the episode that comes next, and whether a plan is due before it.
    """
    tables = layout.lookup.defaults.copy()
    episode = first
    grown = False
    while episode < last and not grown:
        returns = logs.returns[episode : episode + 1]
        at = (episode - first) % len(record.actions)
        one = episode_of(record, at)
        simulate(model, policy, rng, discount, True, 0, steps, slots, returns, one)
        grown = count_episode(layout, said, counts, term_known, tables, one, steps, logs, episode)
        episode += 1
    return episode, grown
