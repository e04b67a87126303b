"""Exact solutions: optimal values and actions by state and step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import PolicyError, SizeError
from fsmdp.exact.flat import FlatMDP, enumerate_states
from fsmdp.foundation.checks import as_step, plural, show
from fsmdp.foundation.numbers import plain
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Rebuilt, read_only
from fsmdp.model.variables import State, state_strides

if TYPE_CHECKING:
    from fsmdp.exact.reachable import ReachedStates
    from fsmdp.policies.arrays import CompiledPolicy


@dataclass(frozen=True, slots=True, eq=False)
class ExactSolution(Rebuilt):
    """Optimal values and actions of every state and step (one step stands for all if infinite).

    With `reached`, of every state that can be met by that step; columns are numbers of states
    there, otherwise numbers of states with the last variable fastest. `values` has the first row
    alone where those of all steps were too many to keep.
    """

    model: FactoredMDP
    values: Floats  # (horizon + 1, n_states), last row 0; (1, n_states) if infinite
    actions: NDArray[Any]  # (horizon, n_states), integers; (1, n_states) if infinite
    reached: ReachedStates | None = None
    error: float = 0.0
    """How far values may be from the optimum, rounding included."""
    loss: float = 0.0
    """How much less than the optimum the policy may earn from any state, rounding included."""
    _enumerated: list[FlatMDP] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        for name in ("values", "actions"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def flat(self) -> FlatMDP:
        """Every state written out, made when it is first asked for; for small models only."""
        if not self._enumerated:
            self._enumerated.append(enumerate_states(self.model))
        return self._enumerated[0]

    def value(self, state: State, step: int = 1) -> float:
        """Expected return from a state at a step, acting optimally."""
        row = self._row(step)
        if row >= len(self.values):
            raise SizeError(
                f"value at step {step}: only those of step 1 were kept, since those of all steps "
                "would not fit; solve with a larger limit=."
            )
        return float(self.values[row, self._column(state, row)])

    def action(self, state: State, step: int = 1) -> str:
        """An optimal action; the first in the model's order where several are, up to rounding."""
        row = self._row(step)
        return self.model.actions[int(self.actions[row, self._column(state, row)])]

    def compiled(self) -> CompiledPolicy | None:
        """The policy as arrays. Cost: the states that can be reached, if it is only of those."""
        if self.reached is not None:
            return self._hashed()
        # What is compiled takes long to import, and a solution can be looked at without it.
        from fsmdp.policies.arrays import BY_TABLE, policy_arrays
        from fsmdp.policies.resolve import policy_table

        table = policy_table(self.model, self.actions)
        return policy_arrays(BY_TABLE, state_strides(self.model.sizes), table)

    def _hashed(self) -> CompiledPolicy:
        """A table of the states that can be reached; elsewhere, the model's first action."""
        from fsmdp.policies.arrays import BY_TABLE, no_strides, policy_arrays
        from fsmdp.policies.hashed import hash_actions, pack_all, pack_states

        assert self.reached is not None
        packing = pack_all(self.model.sizes)
        keys = pack_states(packing, self.reached.states(self.model))
        hashed = hash_actions(packing, False, keys, self.actions)
        strides = no_strides(len(self.model.variables))
        return policy_arrays(BY_TABLE, strides, hashed=hashed)

    @property
    def start_value(self) -> float:
        """Expected return from the initial distribution."""
        first, distributions = self.values[0], self.model.initial_distributions()
        if self.reached is None:
            for distribution in distributions:
                first = distribution @ first.reshape(len(distribution), -1)
            return float(first.item())
        count = self.reached.within(0)
        states = self.reached.states(self.model, count)
        chances = np.ones(count)
        for variable, distribution in enumerate(distributions):
            chances *= distribution[states[:, variable]]
        return float(chances @ first[:count])

    @property
    def uniform_value(self) -> float:
        """Mean over all states of the value at the first step."""
        if self.reached is not None:
            raise SizeError(
                "the mean over all states is not known: only states that can be reached from the "
                "start were solved; solve with reachable=False."
            )
        return float(self.values[0].mean())

    def _row(self, step: int) -> int:
        number = as_step(step, self.model.horizon)
        return 0 if self.model.horizon is None else number - 1

    def _column(self, state: State, row: int) -> int:
        checked = self.model.check_state(state)
        if self.reached is None:
            return int(np.array(checked) @ state_strides(self.model.sizes))
        number = self.reached.find(self.model, checked)
        steps = len(self.reached.ends) if self.model.horizon is None else row
        if not 0 <= number < self.reached.within(steps):
            when = "" if self.model.horizon is None else f" by step {row + 1}"
            raise PolicyError(
                f"state {show(checked)} cannot be reached from the start{when}, and only states "
                "that can were solved; solve with reachable=False, or start there."
            )
        return number

    def __repr__(self) -> str:
        count = self.values.shape[1]
        states = plural(count, "state" if self.reached is None else "reachable state")
        value = plain(self.start_value, 6, self.model.largest_size_of_return)
        return f"ExactSolution({states}, start value {value})"
