"""Exact values: of all states by contraction, or of those that can be reached from the start."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fsmdp.errors import ModelError, PlanningError, SizeError
from fsmdp.exact.contraction import Branch, plan_contractions
from fsmdp.exact.flat import ENTRY_LIMIT, can_enumerate, enumerate_states, solve_flat
from fsmdp.exact.induction import (
    Actions,
    action_type,
    backup_rounding,
    induct_backward,
    iterate_values,
)
from fsmdp.exact.solutions import ExactSolution
from fsmdp.foundation.checks import as_number, as_whole, plural, show, show_count, show_memory
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.tables import Floats

if TYPE_CHECKING:
    from fsmdp.exact.sweeps import Boxes

DENSE_LIMIT = 2**22
"""Entries of transition matrices up to which writing them out is the quickest."""
CHEAP_WORK, CHEAP_SECONDS = 2**34, 20.0
"""Multiplications, and about how long one core takes for them, up to which all states are solved.
"""
PATH_COST = 2**8
"""About how many multiplications following one combination of outcomes takes."""
FEWER = 4
"""How many times fewer than all states the reachable ones must be where both can be solved."""
ENDLESS_SWEEPS = 100
"""Sweeps that an infinite horizon is taken to need when costs are compared."""


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
        if self.reachable is True:
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
            plan, keep_all = fit(model, self.limit)
        except SizeError as refused:
            if self.reachable is False:
                raise
            return self._reachable_only(model, refused, check)
        sweeps = ENDLESS_SWEEPS if model.horizon is None else model.horizon
        if self.reachable == "auto" and plan.work * sweeps > CHEAP_WORK:
            try:
                paths = min(plan.work, plan.work * sweeps // PATH_COST)
                return _over_reachable(model, check, self.limit, paths, model.n_states // FEWER)
            except SizeError:
                pass  # not few enough to be worth it
        return sweep_back(model, plan, keep_all, check)

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


def expected_seconds(model: FactoredMDP, limit: int = ENTRY_LIMIT) -> float | None:
    """About how long all states take on one core; None where they do not fit."""
    if can_enumerate(model, min(limit, DENSE_LIMIT)):
        return 0.0
    try:
        plan, _ = fit(model, limit)
    except SizeError:
        return None
    sweeps = ENDLESS_SWEEPS if model.horizon is None else model.horizon
    return CHEAP_SECONDS * plan.work * sweeps / CHEAP_WORK


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
    tables = -(-(horizon or 1) * n_states * action_type(model).itemsize // 8)
    needed = sweep_entries(model, plan) + 2 * n_states + tables
    if needed > limit:
        steps = "1 step" if horizon is None else f"{horizon} steps"
        what = (
            f"{plan.arrays(given_up=True)} arrays of up to {show_count(plan.largest)} entries, "
            f"rewards, and {steps} x {show_count(n_states)} states of actions = "
            f"{show_count(needed)} numbers"
        )
        raise _too_large(where, what, needed, limit)
    return plan, horizon is None or needed + (horizon - 1) * n_states <= limit


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

    rounding = backup_rounding(model, 0)
    if model.horizon is None:
        values, actions, accuracy = iterate_values(model, model.n_states, back_up, rounding)
    else:
        parts = model, model.n_states, keep_all, back_up, rounding
        values, actions, accuracy = induct_backward(*parts)
    return ExactSolution(model, values, actions, None, accuracy.error, accuracy.loss)


def _over_reachable(model: FactoredMDP, check: Callable[[], None], *room: int) -> ExactSolution:
    from fsmdp.exact.reachable import Room, explore

    reached, successors = explore(model, Room(*room), check)

    def back_up(later: Floats, values: Floats, actions: Actions, tie: float, row: int) -> None:
        check()
        count = len(reached) if model.horizon is None else reached.within(row)
        successors.back_up(later, values, actions, model.discount, tie, count)

    rounding = backup_rounding(model, successors.most)
    if model.horizon is None:
        values, actions, accuracy = iterate_values(model, len(reached), back_up, rounding)
    else:
        parts = model, len(reached), True, back_up, rounding
        values, actions, accuracy = induct_backward(*parts)
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
