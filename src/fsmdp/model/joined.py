"""Joined: a model, the one in which exclusive variables are one, and the way there and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show, show_names
from fsmdp.model.layouts import Integers
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.supports import Booleans
from fsmdp.model.tables import Rebuilt, read_only
from fsmdp.model.variables import Scope, Variable, check_state, find_positions, positions_by_name


@dataclass(frozen=True, slots=True, eq=False)
class Joined(Rebuilt):
    """A model and the one in which groups of its exclusive variables are one variable each.

    A joined variable has a value for "none of them is off 0" and one for each value but 0 of each
    member, without those that are never reached. Actions, rewards and steps are the same, and so is
    the optimal value: V*(to(s)) of `model` = V*(s) of `original` for every state s it `allows`,
    which no action leads out of.
    """

    original: FactoredMDP
    model: FactoredMDP
    members: tuple[Scope, ...]  # of each new variable: positions in the original
    decoded: tuple[Integers, ...]  # of each: the members' values at each of its own
    pairs: Booleans  # of original variables: never off 0 together

    def __post_init__(self) -> None:
        object.__setattr__(self, "decoded", tuple(read_only(one) for one in self.decoded))
        object.__setattr__(self, "pairs", read_only(self.pairs))

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Each joined variable with the names of its members."""
        names = [variable.name for variable in self.original.variables]
        return {
            variable.name: tuple(names[position] for position in group)
            for variable, group in zip(self.model.variables, self.members, strict=True)
            if len(group) > 1
        }

    def meaning(self, variable: str, value: int) -> Mapping[str, int]:
        """What a value of a variable of the joined model says about those of the original."""
        (new,) = find_positions([variable], positions_by_name(self.model.variables), "meaning")
        value = check_state([value], [self.model.variables[new]])[0]
        return {
            self.original.variables[position].name: int(self.decoded[new][value, at])
            for at, position in enumerate(self.members[new])
        }

    @overload
    def allows(self, states: Integers) -> Booleans: ...

    @overload
    def allows(self, states: Sequence[int]) -> bool: ...

    def allows(self, states: Integers | Sequence[int]) -> Booleans | bool:
        """Whether a state of the original has a joined one; for arrays, of each row."""
        rows = _as_rows(states, self.original.variables)
        off = rows > 0
        together = (off.astype(np.int64) @ self.pairs.astype(np.int64) > 0) & off
        fine = np.asarray((self._encode(rows) >= 0).all(axis=1) & ~together.any(axis=1))
        if isinstance(states, np.ndarray):
            return np.asarray(fine.reshape(states.shape[:-1]))
        return bool(fine[0])

    @overload
    def to(self, states: Integers) -> Integers: ...

    @overload
    def to(self, states: Sequence[int]) -> tuple[int, ...]: ...

    def to(self, states: Integers | Sequence[int]) -> Integers | tuple[int, ...]:
        """The joined state of one of the original; of an array (..., n_variables), of each row.

        Cost: the variables of the original, for each state.
        """
        rows = _as_rows(states, self.original.variables)
        found = self._encode(rows)
        if (found < 0).any():
            row, new = (int(i) for i in np.argwhere(found < 0)[0])
            names = [self.original.variables[p].name for p in self.members[new]]
            held = [
                f"{name}={int(rows[row, p])}"
                for name, p in zip(names, self.members[new], strict=True)
                if rows[row, p]
            ]
            raise ModelError(
                f"state: {', '.join(held) or 'none off 0'} among {show_names(names)}, which no "
                "state that can be reached has; expected one that the joined model allows."
            )
        return _like(states, found)

    @overload
    def back(self, states: Integers) -> Integers: ...

    @overload
    def back(self, states: Sequence[int]) -> tuple[int, ...]: ...

    def back(self, states: Integers | Sequence[int]) -> Integers | tuple[int, ...]:
        """The original's state of a joined one; of an array (..., n_variables), of each row."""
        rows = _as_rows(states, self.model.variables)
        found = np.zeros((len(rows), len(self.original.variables)), dtype=np.int64)
        for new, (group, decoded) in enumerate(zip(self.members, self.decoded, strict=True)):
            found[:, group] = decoded[rows[:, new]]
        return _like(states, found)

    def policy(self, policy: Any) -> Any:
        """A policy of the joined model as one of the original.

        A plan, a solution, a function (state, step) -> action or a table over the joined states
        becomes an object with `action(state, step)`; an action's name and "random" are the same in
        both models.
        """
        if isinstance(policy, str):
            return policy
        from fsmdp.policies.joined import JoinedPolicy

        return JoinedPolicy(self, policy)

    def _encode(self, array: Integers) -> Integers:
        """Joined states, with -1 where the members' values are none of a variable's."""
        found = np.empty((len(array), len(self.members)), dtype=np.int64)
        for new, (group, decoded) in enumerate(zip(self.members, self.decoded, strict=True)):
            if len(group) == 1:
                found[:, new] = array[:, group[0]]
                continue
            values = array[:, group]
            largest = values.max(axis=1, initial=0)
            code = np.where(largest > 0, values.argmax(axis=1) + largest * len(group), -1) + 1
            known = np.full(int(decoded.max(initial=0) + 2) * len(group) + 1, -1, dtype=np.int64)
            top = decoded.max(axis=1)
            known[np.where(top > 0, decoded.argmax(axis=1) + top * len(group), -1) + 1] = np.arange(
                len(decoded)
            )
            # A value that no joined value has is as unknown as two members off 0 at once.
            inside = (code < len(known)) & ((values > 0).sum(axis=1) <= 1)
            found[:, new] = np.where(inside, known[np.where(inside, code, 0)], -1)
        return found

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} of {len(group)}" for name, group in self.groups.items())
        return f"Joined({shown or 'nothing'}; {self.model!r})"


def _as_rows(states: Integers | Sequence[int], variables: Sequence[Variable]) -> Integers:
    """Checked states, one in each row."""
    if not isinstance(states, np.ndarray):
        return np.array([check_state(states, variables)], dtype=np.int64)
    sizes = np.array([variable.size for variable in variables])
    if states.dtype.kind not in "iu" or states.shape[-1:] != sizes.shape:
        raise ModelError(
            f"states: expected whole numbers of shape (..., {len(sizes)}), a row for each state, "
            f"found shape {show(states.shape)} of {states.dtype}; give values in variable order."
        )
    rows = states.astype(np.int64).reshape(-1, len(sizes))
    wrong = (rows < 0) | (rows >= sizes)
    if wrong.any():
        check_state(rows[np.argwhere(wrong)[0][0]].tolist(), variables)
    return rows


def _like(states: Integers | Sequence[int], rows: Integers) -> Integers | tuple[int, ...]:
    """Rows in the form in which the states were given."""
    if isinstance(states, np.ndarray):
        return rows.reshape(*states.shape[:-1], rows.shape[1])
    return tuple(rows[0].tolist())
