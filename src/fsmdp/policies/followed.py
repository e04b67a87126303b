"""A policy that is its arrays: a fixed action, chance, a table, whatever compiled code follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fsmdp.foundation.checks import as_step
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.actions import Actions, n_listed
from fsmdp.model.variables import State, Variable, check_state
from fsmdp.policies.arrays import CompiledPolicy, act
from fsmdp.policies.resolve import Described, Policy, resolve


@dataclass(frozen=True, slots=True, eq=False)
class ArrayPolicy:
    """Acts as its arrays say; one that acts by chance draws with a generator of its own."""

    name: str
    variables: tuple[Variable, ...]
    actions: Sequence[str]
    horizon: int | None
    arrays: CompiledPolicy = field(repr=False)
    _rng: np.random.Generator = field(
        init=False, repr=False, default_factory=lambda: generator(0, Purpose.CHOICES)
    )

    def action(self, state: State, step: int = 1) -> str:
        """The action to take."""
        slots = [*check_state(state, self.variables), *(0 for _ in self.arrays.joint.slots)]
        values = np.array(slots, dtype=np.int64)
        row = as_step(step, self.horizon) - 1
        chosen = act(self.arrays, values, row, n_listed(self.actions), self._rng)
        if isinstance(self.actions, Actions):
            return self.actions.name(values[len(self.variables) :])
        return self.actions[chosen]

    def compiled(self) -> CompiledPolicy:
        """The policy as arrays."""
        return self.arrays

    def __repr__(self) -> str:
        return f"ArrayPolicy({self.name})"


def array_policy(name: str, model: Described, policy: Policy) -> ArrayPolicy:
    """Anything that compiled code can follow, by itself."""
    arrays = resolve(model, policy).arrays
    assert arrays is not None, "only for policies that can be compiled"
    return ArrayPolicy(name, model.variables, model.actions, model.horizon, arrays)
