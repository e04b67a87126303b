"""Greedy policies by table look-up: Q(s, a) from the terms in which actions differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fsmdp.foundation.checks import as_step
from fsmdp.model.lookup import Lookup
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Variable, check_state
from fsmdp.policies.advantages import default_total, fill_advantages
from fsmdp.policies.arrays import GREEDILY, CompiledPolicy, no_strides, policy_arrays


@dataclass(frozen=True, slots=True, eq=False)
class Greedy:
    """The action of largest R(s, a) + discount * E[V_{l+1}(s')], the lowest of several equal ones.

    Rewards and backups of V are looked up in tables; no part of a model is kept.
    """

    variables: tuple[Variable, ...]
    actions: tuple[str, ...]
    horizon: int | None
    lookup: Lookup = field(repr=False)
    entries: Floats = field(repr=False)  # (n_steps, n_entries)

    def action(self, state: Sequence[int], step: int = 1) -> str:
        """The greedy action; the first in the model's order where several are equal."""
        values = np.array(check_state(state, self.variables), dtype=np.int64)
        found = np.zeros(len(self.actions))
        fill_advantages(self.lookup, self._entries(step), values, found)
        return self.actions[int(found.argmax())]

    def q_values(self, state: Sequence[int], step: int = 1) -> Floats:
        """R(s, a) + discount * backup of V, for every action."""
        values = np.array(check_state(state, self.variables), dtype=np.int64)
        entries = self._entries(step)
        found = np.zeros(len(self.actions))
        fill_advantages(self.lookup, entries, values, found)
        return np.asarray(found + default_total(self.lookup, entries, values))

    def compiled(self) -> CompiledPolicy:
        """The policy as arrays."""
        nothing = no_strides(len(self.variables))
        return policy_arrays(GREEDILY, nothing, lookup=self.lookup, entries=self.entries)

    def _entries(self, step: int) -> Floats:
        position = as_step(step, self.horizon) - 1
        return np.asarray(self.entries[0 if self.horizon is None else position])
