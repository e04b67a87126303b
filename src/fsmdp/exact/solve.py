"""Exact values: of all states by contraction, or of those that can be reached from the start."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import ModelError, PlanningError, PolicyError, SizeError
from fsmdp.exact import costs
from fsmdp.exact.contraction import Branch, plan_contractions
from fsmdp.exact.flat import (
    ENTRY_LIMIT,
    Actions,
    FlatMDP,
    action_type,
    back_up_all,
    can_enumerate,
    enumerate_states,
    solve_flat,
)
from fsmdp.exact.row_classes import ClassPlan, plan_classes
from fsmdp.foundation.checks import (
    as_number,
    as_step,
    as_whole,
    plural,
    show,
    show_count,
    show_memory,
    sound,
)
from fsmdp.foundation.numbers import plain
from fsmdp.model.mdp import FactoredMDP, backup_rounding, check_model
from fsmdp.model.tables import Floats, Rebuilt, read_only
from fsmdp.model.variables import State, state_strides

if TYPE_CHECKING:
    from fsmdp.exact.reachable import ReachedStates
    from fsmdp.exact.sweeps import Boxes
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

    @sound
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
        """A table of the states that can be reached; elsewhere, the first action allowed."""
        from fsmdp.policies.arrays import first_allowed
        from fsmdp.policies.hashed import hash_actions, pack_all

        assert self.reached is not None
        keys = self.reached.keys.copy()  # compiled code is compiled for arrays that may be written
        hashed = hash_actions(pack_all(self.model.sizes), False, keys, self.actions)
        return first_allowed(self.model.conditions)._replace(hashed=hashed)

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


DENSE_LIMIT = 2**22
"""Entries of transition matrices up to which writing them out is the quickest."""
WORTH_EXPLORING = 2.0
"""Seconds that all states may take before it is tried whether those that can be reached are fewer.
"""
EXPLORING_SHARE = 0.5
"""Of the seconds that all states may take, for finding out."""
FEWER = 4
"""How many times fewer than all states the reachable ones must be where both can be solved."""


@dataclass(frozen=True, slots=True)
class Exact:
    """Optimal values and a table policy for every step, of models with few enough states.

    Over all states by contraction; over the states that can be reached from the start where that
    would not fit or take long and they are fewer (`reachable="auto"`), or always (True), or never
    (False). `limit` counts numbers of eight bytes held at once; 2^28 are 2 GiB, enough for about
    2^22 states. Sizes are known before anything is allocated; listing reachable states stops when
    it would exceed them. Past `time_limit` seconds a PlanningError is raised.
    """

    limit: int = ENTRY_LIMIT
    reachable: bool | Literal["auto"] = "auto"
    time_limit: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", as_whole(self.limit, "limit", 1))
        named = isinstance(self.reachable, str) and self.reachable == "auto"
        if not named and not isinstance(self.reachable, bool):
            raise ModelError(
                f'reachable: expected True, False or "auto", found {show(self.reachable)}; '
                "give one of them."
            )
        if self.time_limit is not None:
            seconds = as_number(self.time_limit, "time_limit", "give seconds, or None")
            if seconds <= 0:
                raise ModelError(
                    f"time_limit: expected more than 0 seconds, found {seconds!r}; give None for "
                    "no limit."
                )
            object.__setattr__(self, "time_limit", seconds)

    def plan(self, model: FactoredMDP) -> ExactSolution:
        """Optimal values and actions.

        V_l(s) = max_a R(s, a) + discount * E[V_{l+1}(s') | s, a]
        Actions whose values are equal up to rounding are ties, and the first one wins.
        Actions that are made of variables are listed, while they are few.
        With an infinite horizon, values are within 1e-12 of the optimum, relative to the span of
        returns, up to rounding. The solution's `error` and `loss` say how close they and the
        policy are, rounding included.
        Cost: horizon * (multiplications of all contractions), or horizon * (successors of all
        states that can be reached).
        """
        listed = check_model(model, "Exact").listed()
        return self.solve(listed, _clock(self.time_limit))

    def solve(self, model: FactoredMDP, check: Callable[[], None]) -> ExactSolution:
        """As `plan`; `check` is called again and again, and may raise to end it."""
        if self.reachable is True or not model.conditions.never_stuck:
            # States in which nothing is allowed have no value: they must not be reached.
            return _over_reachable(model, check, self.limit, self.limit)
        if self._is_tiny(model):
            check()
            flat = enumerate_states(model, self.limit)
            values, chosen, accuracy = solve_flat(flat, check)
            actions = chosen.astype(action_type(model))
            solution = ExactSolution(model, values, actions, None, accuracy.error, accuracy.loss)
            solution._enumerated.append(flat)
            return solution
        try:
            swept = all_states(model, self.limit, check)
        except SizeError as refused:
            if self.reachable is False:
                raise
            return self._reachable_only(model, refused, check)
        if self.reachable == "auto" and swept.seconds > WORTH_EXPLORING:
            try:
                paths = costs.affordable_paths(model, EXPLORING_SHARE * swept.seconds)
                return _over_reachable(model, check, self.limit, paths, model.n_states // FEWER)
            except SizeError:
                pass  # not few enough to be worth it
        return swept.solve(check)

    def _is_tiny(self, model: FactoredMDP) -> bool:
        rows = 1 if model.horizon is None else 2 * model.horizon + 1
        if rows * model.n_states > self.limit:
            return False
        return can_enumerate(model, min(self.limit, DENSE_LIMIT))

    def _reachable_only(
        self, model: FactoredMDP, refused: SizeError, check: Callable[[], None]
    ) -> ExactSolution:
        try:
            return _over_reachable(model, check, self.limit, self.limit)
        except SizeError as error:
            raise SizeError(f"{refused} As for {error}") from None


def solve_exactly(model: FactoredMDP, limit: int = ENTRY_LIMIT) -> ExactSolution:
    """Optimal values and actions of a model with few enough states: `Exact(limit).plan(model)`."""
    return Exact(limit).plan(check_model(model, "solve_exactly"))


@dataclass(frozen=True, slots=True, eq=False)
class AllStates:
    """How the values of all states are found, and about how long that takes on one core."""

    model: FactoredMDP
    plan: Branch | ClassPlan
    keep_all: bool
    """Whether values of all steps are kept, not of the first alone."""
    seconds: float

    def solve(self, check: Callable[[], None]) -> ExactSolution:
        """Values and actions; `check` is called again and again, and may raise to end it."""
        if isinstance(self.plan, Branch):
            return sweep_back(self.model, self.plan, self.keep_all, check)
        return sweep_classes(self.plan, self.keep_all, check)


def all_states(
    model: FactoredMDP, limit: int, check: Callable[[], None] = lambda: None
) -> AllStates:
    """The cheaper of contraction and row classes that fits; a SizeError if neither does."""
    found: list[AllStates] = []
    refused = None
    try:
        plan, keep_all = fit(model, limit)
        found.append(AllStates(model, plan, keep_all, costs.contraction_seconds(model, plan)))
    except SizeError as error:
        refused = error
    classes = plan_classes(model, limit, check) if model.n_states <= limit else None
    if classes is not None:
        needed = classes.entries() + 2 * model.n_states + _action_entries(model)
        if needed <= limit:
            seconds = costs.class_seconds(model, classes)
            found.append(AllStates(model, classes, _keeps_all(model, needed, limit), seconds))
    if not found:
        assert refused is not None
        raise refused
    return min(found, key=lambda one: one.seconds)


def expected_seconds(model: FactoredMDP, limit: int = ENTRY_LIMIT) -> float | None:
    """About how long all states take on one core; None where they do not fit."""
    if can_enumerate(model, min(limit, DENSE_LIMIT)):
        return costs.matrix_seconds(model)
    try:
        return all_states(model, limit).seconds
    except SizeError:
        return None


def fit(model: FactoredMDP, limit: int) -> tuple[Branch, bool]:
    """How to contract over all states within a limit, and whether values of all steps fit too."""
    n_states, horizon = model.n_states, model.horizon
    where = f"all {_show_states(model)}"
    if n_states > limit:
        raise _too_large(
            where, f"one number a state = {show_count(n_states)} numbers", n_states, limit
        )
    from fsmdp.exact.sweeps import sweep_entries

    plan = plan_contractions(model, limit)
    needed = sweep_entries(model, plan) + 2 * n_states + _action_entries(model)
    if needed > limit:
        steps = "1 step" if horizon is None else f"{horizon} steps"
        what = (
            f"{plan.arrays(given_up=True)} arrays of up to {show_count(plan.largest)} entries, "
            f"rewards, and {steps} x {show_count(n_states)} states of actions = "
            f"{show_count(needed)} numbers"
        )
        raise _too_large(where, what, needed, limit)
    return plan, _keeps_all(model, needed, limit)


def _action_entries(model: FactoredMDP) -> int:
    """Numbers of eight bytes that the actions of all steps take."""
    return -(-(model.horizon or 1) * model.n_states * action_type(model).itemsize // 8)


def _keeps_all(model: FactoredMDP, needed: int, limit: int) -> bool:
    """Whether values of all steps fit beside what is needed, which has those of two."""
    return model.horizon is None or needed + (model.horizon - 1) * model.n_states <= limit


def _too_large(where: str, what: str, needed: int, limit: int) -> SizeError:
    return SizeError(
        f"{where}: contraction needs {what} ({show_memory(needed)}), the limit is "
        f"{show_count(limit)}; use a larger limit=, a smaller model, or a planner that does not "
        "enumerate (fsmdp.plan)."
    )


def _show_states(model: FactoredMDP) -> str:
    many = model.n_states >= 10**7
    return f"10^{model.log10_states:.1f} states" if many else plural(model.n_states, "state")


def sweep_back(
    model: FactoredMDP,
    plan: Branch,
    keep_all: bool,
    check: Callable[[], None],
    boxes: Boxes | None = None,
) -> ExactSolution:
    """Values of all states, by contraction; of the best that boxes allow, if there are any."""
    from fsmdp.exact.sweeps import Sweeper

    sweeper = Sweeper(model, plan, boxes)

    def back_up(later: Floats, values: Floats, actions: Actions, tie: float, row: int) -> None:  # noqa: ARG001
        sweeper.best(later, values, actions, tie, check)

    parts = model, model.n_states, back_up, backup_rounding(model, 0), keep_all
    values, actions, accuracy = back_up_all(*parts)
    return ExactSolution(model, values, actions, None, accuracy.error, accuracy.loss)


def sweep_classes(plan: ClassPlan, keep_all: bool, check: Callable[[], None]) -> ExactSolution:
    """Values of all states, by row classes."""
    from fsmdp.exact.class_sweeps import ClassSweeper

    model = plan.model
    sweeper = ClassSweeper(plan, action_type(model))

    def back_up(later: Floats, values: Floats, actions: Actions, tie: float, row: int) -> None:  # noqa: ARG001
        sweeper.best(later, values, actions, tie, check)

    rounding = backup_rounding(model, 0) + plan.rounding * model.largest_size_of_return
    parts = model, model.n_states, back_up, rounding, keep_all
    values, actions, accuracy = back_up_all(*parts)
    return ExactSolution(model, values, actions, None, accuracy.error, accuracy.loss)


def _over_reachable(model: FactoredMDP, check: Callable[[], None], *room: int) -> ExactSolution:
    from fsmdp.exact.reachable import Room, explore

    reached, successors = explore(model, Room(*room), check)

    def back_up(later: Floats, values: Floats, actions: Actions, tie: float, row: int) -> None:
        check()
        count = len(reached) if model.horizon is None else reached.within(row)
        successors.back_up(later, values, actions, model.discount, tie, count)

    rounding = backup_rounding(model, successors.most)
    values, actions, accuracy = back_up_all(model, len(reached), back_up, rounding)
    return ExactSolution(model, values, actions, reached, accuracy.error, accuracy.loss)


def _clock(seconds: float | None) -> Callable[[], None]:
    """A check that raises once the time is up."""
    if seconds is None:
        return lambda: None
    ends = time.perf_counter() + seconds

    def check() -> None:
        if time.perf_counter() > ends:
            raise PlanningError(
                f"Exact: not solved within {seconds:g} s; values mean nothing until all "
                "steps are done, so use a larger time_limit=, or a planner with a bound "
                "(fsmdp.plan)."
            )

    return check
