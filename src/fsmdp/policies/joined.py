"""A policy of a joined model that acts in the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fsmdp.model.actions import Actions
from fsmdp.model.lookup import Integers
from fsmdp.model.variables import State, Variable, check_state
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.policies.resolve import Followed, Policy, resolve
from fsmdp.policies.views import Seeing, see

if TYPE_CHECKING:
    from fsmdp.model.joined import Joined
    from fsmdp.model.mdp import FactoredMDP


@dataclass(frozen=True, slots=True, eq=False)
class JoinedPolicy:
    """Sees states as the joined model does, and acts as its policy says."""

    joined: Joined = field(repr=False)
    joined_policy: Policy
    _followed: Followed = field(init=False, repr=False)
    _seeing: Seeing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_followed", resolve(self.joined.model, self.joined_policy))
        object.__setattr__(self, "_seeing", seeing_of(self.joined))

    @property
    def model(self) -> FactoredMDP:
        """The model in whose states it acts."""
        return self.joined.original

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Variables of the model in which it acts."""
        return self.model.variables

    @property
    def actions(self) -> Sequence[str]:
        """Actions, the same in both models."""
        return self.model.actions

    @property
    def horizon(self) -> int | None:
        """Steps of an episode."""
        return self.model.horizon

    def action(self, state: State, step: int = 1) -> str:
        """The action that the joined model's policy takes in the joined state.

        In a state that cannot be reached, with several members of a group off 0, the last counts.
        """
        act = self._followed.act
        assert act is not None  # chance alone has no function, and it is the same in both models
        values = np.array(check_state(state, self.variables), dtype=np.int64)
        seen = np.zeros(len(self._seeing.usual), dtype=np.int64)
        see(self._seeing, values, seen)
        chosen = act(tuple(seen.tolist()), step)
        if isinstance(self.actions, Actions):
            return self.actions.name(self.actions.read(chosen))
        assert isinstance(chosen, int)
        return self.actions[chosen]

    def compiled(self) -> CompiledPolicy | None:
        """The policy as arrays; None where only Python can follow it."""
        arrays = self._followed.arrays
        return None if arrays is None else arrays._replace(seeing=self._seeing)


def seeing_of(joined: Joined) -> Seeing:
    """How compiled code sees a joined state. Cost: the values of all variables."""
    member_start, members, code_start, codes, usual = [0], [], [0], [], []
    for group, decoded in zip(joined.members, joined.decoded, strict=True):
        zeros = np.flatnonzero(~decoded.any(axis=1))
        base = int(zeros[0]) if len(zeros) else 0
        usual.append(base)
        for column, position in enumerate(group):
            table = np.full(joined.original.variables[position].size, base, dtype=np.int64)
            rows = np.flatnonzero(decoded[:, column])
            table[decoded[rows, column]] = rows
            members.append(position)
            codes += table.tolist()
            code_start.append(len(codes))
        member_start.append(len(members))

    def integers(values: list[int]) -> Integers:
        return np.array(values, dtype=np.int64)

    return Seeing(*map(integers, (member_start, members, code_start, codes, usual)))
