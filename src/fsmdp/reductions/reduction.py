"""Reductions: models rewritten, with the way back for states, policies and bounds."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args
from warnings import warn

import numpy as np

from fsmdp.errors import FsmdpError, FsmdpWarning, ModelError
from fsmdp.foundation.checks import clip, show
from fsmdp.foundation.registry import Registry
from fsmdp.model.mdp import FactoredMDP, backup_rounding
from fsmdp.model.structure import sum_of_discounts
from fsmdp.model.tables import Integers, Rebuilt
from fsmdp.model.variables import Scope

Relation = Literal["equal", "upper", "heuristic"]
"""What the optimal value of a reduced model is to the original's: the same at every state that can
be reached, not below it there, or neither."""


class StateMap(NamedTuple):
    """From states of a model to those of a reduced one, in arrays that compiled code reads.

    A new variable has its default value when all its members are 0, and otherwise the code of the
    last member that is nonzero. No new variables: states stay as they are.
    """

    member_start: Integers  # (n_new + 1,)
    member: Integers  # positions among the original's variables
    code_start: Integers  # (n_members + 1,) of the codes of a member's values
    code: Integers  # the new value for each value of a member; that of 0 is never read
    default: Integers  # (n_new,)

    def members(self, new: int) -> Scope:
        """The original's variables that decide a new one."""
        if not len(self.default):
            return (new,)
        return tuple(self.member[self.member_start[new] : self.member_start[new + 1]].tolist())

    def codes(self, at: int) -> Integers:
        """The new value for each value of a member."""
        return self.code[self.code_start[at] : self.code_start[at + 1]]

    def apply(self, states: Integers) -> Integers:
        """Reduced states of states (..., n_variables). Cost: the members, for each state."""
        if not len(self.default):
            return states
        found = np.empty((*states.shape[:-1], len(self.default)), dtype=np.int64)
        for new, default in enumerate(self.default):
            found[..., new] = default
            for at in range(self.member_start[new], self.member_start[new + 1]):
                values = states[..., self.member[at]]
                np.copyto(found[..., new], self.codes(at)[values], where=values > 0)
        return found


def state_map(variables: Sequence[Sequence[tuple[int, Sequence[int]]]]) -> StateMap:
    """For each new variable its members: a position, and the new value for each of its values.

    Members of one variable agree in the code of 0, which is the default.
    """
    member_start, code_start = [0], [0]
    members: list[int] = []
    codes: list[int] = []
    defaults: list[int] = []
    for own in variables:
        defaults.append(own[0][1][0])
        for position, values in own:
            if values[0] != defaults[-1]:
                raise ModelError(
                    f"state map: variable number {position} has the code {values[0]} at 0, "
                    f"expected {defaults[-1]} as for the others of its group."
                )
            members.append(position)
            codes.extend(values)
            code_start.append(len(codes))
        member_start.append(len(members))
    arrays = (member_start, members, code_start, codes, defaults)
    return StateMap(*(np.array(values, dtype=np.int64) for values in arrays))


def keep_variables(kept: Iterable[int], sizes: Sequence[int]) -> StateMap:
    """Some of the variables as they are, and no others."""
    return state_map([[(position, range(sizes[position]))] for position in kept])


UNCHANGED = state_map(())
"""States stay as they are."""


def compose(first: StateMap, second: StateMap) -> StateMap:
    """The map that applies one after the other; a ModelError if no such map says the same."""
    if not len(first.default) or not len(second.default):
        return second if len(second.default) else first
    found = []
    for new, default in enumerate(second.default.tolist()):
        own: list[tuple[int, list[int]]] = []
        between = range(second.member_start[new], second.member_start[new + 1])
        for at in between:
            middle, codes = int(second.member[at]), second.codes(at).tolist()
            for inner in range(first.member_start[middle], first.member_start[middle + 1]):
                values = first.codes(inner).tolist()
                alone = len(between) == 1 or (first.default[middle] == 0 and 0 not in values[1:])
                if not alone:
                    raise ModelError(
                        "reductions: the second one reads several variables of the first at once "
                        "whose values say nothing of one another; expected reductions that can be "
                        "followed by one map of states, apply one of them alone."
                    )
                middle_default = int(first.default[middle])
                mapped = [codes[value] if value else default for value in values]
                mapped[0] = codes[middle_default] if middle_default else default
                own.append((int(first.member[inner]), mapped))
        found.append(own)
    return state_map(found)


@dataclass(frozen=True, slots=True, eq=False)
class Reduced(Rebuilt):
    """A model, the one that it was reduced to, and the way there and back.

    Actions are those of the original, or the list of its joint actions. `name` is that of the
    reduction, as it stands in logs.
    """

    original: FactoredMDP
    model: FactoredMDP
    state_map: StateMap = field(default=UNCHANGED, repr=False, kw_only=True)
    relation: Relation = field(default="equal", kw_only=True)
    name: str = field(default="reduced", kw_only=True)

    @property
    def rewritten(self) -> bool:
        """Whether it is another model: not the original, and not its list of actions either."""
        return self.model is not self.original

    @property
    def label(self) -> str:
        """What names of results of this model begin with."""
        return f"{self.name} " if self.rewritten else ""

    @property
    def text(self) -> str:
        """How it was reduced, after a comma."""
        return f"reduced by {self.name}"

    @property
    def slack(self) -> float:
        """More than rounding of the tables can change values by."""
        if not self.rewritten:
            return 0.0
        steps = sum_of_discounts(self.model.horizon, self.model.discount)
        return (steps + 1) * backup_rounding(self.model, 0)

    def states(self, states: Integers) -> Integers:
        """Reduced states of the original's, (..., n_variables)."""
        return self.state_map.apply(states)

    def back(self, states: Integers) -> Integers | None:
        """The original's states of reduced ones; None where several have the same reduced one."""
        return None if len(self.state_map.default) else states

    def policy(self, policy: Any) -> Any:
        """A policy of the reduced model as one of the original.

        A plan, a solution, a function (state, step) -> action or a table over the reduced states
        becomes an object with `action(state, step)`; an action's name and "random" are the same in
        both models.
        """
        if isinstance(policy, str) or not len(self.state_map.default):
            return policy
        from fsmdp.policies.resolve import ReducedPolicy

        return ReducedPolicy(self, policy)

    def bound(self, bound: float) -> float:
        """An upper bound on the original's value, from one on that of the reduced model."""
        return np.inf if self.relation == "heuristic" else bound + self.slack


def unchanged(model: FactoredMDP) -> Reduced:
    """The model as it is."""
    return Reduced(model, model, name="")


@dataclass(frozen=True, slots=True, eq=False)
class Chained(Reduced):
    """One reduction after another: each part's model is the next one's original."""

    parts: tuple[Reduced, ...] = field(default=(), repr=False)

    @property
    def rewritten(self) -> bool:
        """Whether some part is another model."""
        return any(part.rewritten for part in self.parts)

    @property
    def slack(self) -> float:
        """More than rounding in all of them can change values by."""
        return sum(part.slack for part in self.parts)

    @property
    def text(self) -> str:
        """How each part that is another model was reduced."""
        return ", ".join(part.text for part in self.parts if part.rewritten)

    def back(self, states: Integers) -> Integers | None:
        """The original's states of reduced ones; None where several have the same reduced one."""
        found: Integers | None = states
        for part in reversed(self.parts):
            found = None if found is None else part.back(found)
        return found

    def policy(self, policy: Any) -> Any:
        """A policy of the last model as one of the first."""
        for part in reversed(self.parts):
            policy = part.policy(policy)
        return policy


def chained(parts: Sequence[Reduced]) -> Reduced:
    """Several reductions as one; what changes nothing is left out."""
    changing = tuple(part for part in parts if part.model is not part.original)
    if len(changing) < 2:
        return (*changing, *parts)[0]
    relations = {part.relation for part in changing}
    relation: Relation = "equal"
    if "heuristic" in relations:
        relation = "heuristic"
    elif "upper" in relations:
        relation = "upper"
    found = UNCHANGED
    for part in changing:
        found = compose(found, part.state_map)
    return Chained(
        changing[0].original,
        changing[-1].model,
        changing,
        state_map=found,
        relation=relation,
        name=" ".join(part.name for part in changing if part.name),
    )


class Reduction(ABC):
    """A way to rewrite models. A subclass has a name and `apply`."""

    __slots__ = ()
    name: str

    @abstractmethod
    def apply(self, model: FactoredMDP) -> Reduced | None:
        """The reduced model with the way back; None where it does not help with this model."""


@dataclass(frozen=True, slots=True)
class Chain(Reduction):
    """Reductions one after another; None where one of them is."""

    name: str
    parts: tuple[Reduction, ...]

    def apply(self, model: FactoredMDP) -> Reduced | None:
        """The model reduced by all of them."""
        found: list[Reduced] = [unchanged(model)]
        for part in self.parts:
            reduced = part.apply(found[-1].model)
            if reduced is None:
                return None
            found.append(reduced)
        return chained(found)


REDUCTIONS: Registry[Reduction] = Registry(
    "reduction", entries=Reduction, import_paths={"joined": "fsmdp.reductions.joining:JOINED"}
)
"""Those that the solver tries on every model, beside the model as it is."""


def reductions_of(model: FactoredMDP) -> tuple[Reduced, ...]:
    """The model by each registered reduction that helps, and last as it is."""
    found = (_applied(reduction, model) for reduction in REDUCTIONS.installed())
    return (*(reduced for reduced in found if reduced is not None), unchanged(model))


def _applied(reduction: Reduction, model: FactoredMDP) -> Reduced | None:
    """The reduced model, checked; None, with a warning, if the reduction fails or gives no such."""
    try:
        reduced = reduction.apply(model)
        if reduced is not None:
            _check_reduced(reduced)
        return reduced
    except FsmdpError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {clip(str(error))}"
        message = f"reduction {getattr(reduction, 'name', reduction)!r} is left out: {text}"
        warn(message, FsmdpWarning, stacklevel=2)
        return None


def _check_reduced(reduced: object) -> None:
    """Refuse, with a ValueError, what would lead to wrong bounds or out of arrays."""
    if not isinstance(reduced, Reduced):
        raise ValueError(f"expected a Reduced or None, found {show(reduced)}")
    if reduced.relation not in get_args(Relation):
        expected = ", ".join(get_args(Relation))
        raise ValueError(f"relation: expected one of {expected}, found {show(reduced.relation)}")
    width = len(reduced.state_map.default) or len(reduced.original.variables)
    if width != len(reduced.model.variables):
        raise ValueError(
            f"state map: it gives {width} variables, and the reduced model has "
            f"{len(reduced.model.variables)}"
        )
