"""Plans: a policy, judged by simulation, and a bound, judged by elimination."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fsmdp.bounds.bound import Bound, value_of
from fsmdp.bounds.certificate import Certificate
from fsmdp.bounds.clock import Status
from fsmdp.bounds.gap import ROUNDING, Candidate, Incumbent, Line, RelativeGap
from fsmdp.errors import PlanningError
from fsmdp.foundation.checks import plural
from fsmdp.foundation.numbers import bound_text, facts_table, percent_at_most, upper
from fsmdp.model.actions import Actions
from fsmdp.model.basis import Basis
from fsmdp.model.lookup import Integers, Lookup
from fsmdp.model.tables import Floats
from fsmdp.model.variables import State, Variable, check_state
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.policies.greedy import Greedy
from fsmdp.policies.resolve import Described

if TYPE_CHECKING:
    from fsmdp.model.mdp import FactoredMDP
    from fsmdp.online.rollouts import Rollouts


class PlannedPolicy(Described, Protocol):
    """What a plan's policy can do, however it was found; it says what model it is for."""

    def action(self, state: State, step: int = 1) -> str:
        """The action to take."""
        ...

    def compiled(self) -> CompiledPolicy | None:
        """The policy as arrays; None where only Python can follow it."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Effort:
    """What a plan cost: size of its programs, iterations, seconds by phase."""

    rows: int
    columns: int
    iterations: int
    seconds: Mapping[str, float]
    choices: tuple[str, ...] = ()  # what was chosen, and why


@dataclass(frozen=True, slots=True, eq=False)
class Ending:
    """How the linear programs ended.

    `objective` is the solver's, `certified` that of the weights after they were lifted; no weights
    of the basis have an objective below `dual_bound`, as far as the solver's duals reach.
    """

    status: Status
    objective: float
    certified: float
    dual_bound: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan:
    """A policy, and a certified upper bound on what any policy can earn.

    The two come from different places: the policy is the best one found, the bound the tightest.
    `weights` are those of the linear programs, and bound V*, too, where there was time to certify
    them (`weights_certified`); the policy is greedy with respect to them, or to others, or no
    greedy one at all. `status` is how the solver of the linear programs ended, and says nothing
    about the policy. `incumbent` is what the policy earns, where it was judged, and `candidates`
    what others did; `log` tells how both sides improved.
    """

    method: str
    policy: PlannedPolicy
    bound: Bound
    weights: Floats = field(repr=False)  # as those of the bound
    weights_certified: bool
    ended: Ending
    trivial_bound: float  # of the largest reward at every step
    discount: float
    induced_width: int
    effort: Effort
    view: str
    incumbent: Incumbent | None = None
    candidates: tuple[Candidate, ...] = field(default=(), repr=False)
    log: tuple[Line, ...] = field(default=(), repr=False)

    @property
    def gap(self) -> RelativeGap | None:
        """(upper bound - what the policy earns) / |upper bound|; None if it was not judged.

        A number that also has what it rests on: `lower_limit`, `level`, `statement()`.
        """
        known = self.incumbent
        if known is None:
            return None
        return RelativeGap(
            self.upper_bound,
            known.mean,
            known.standard_error,
            known.lower_limit,
            known.level,
            known.exact,
            self.bound.proof,
            known.scale,
            known.span,
        )

    def statement(self) -> str:
        """What is established of the policy, in a sentence."""
        if self.gap is None:
            return "the policy was not judged; see certified_gap"
        return self.gap.statement()

    @property
    def status(self) -> Status:
        """How the linear programs ended."""
        return self.ended.status

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Variables of the model."""
        return self.policy.variables

    @property
    def action_names(self) -> Sequence[str]:
        """Actions of the model."""
        return self.policy.actions

    @property
    def horizon(self) -> int | None:
        """Steps of an episode."""
        return self.policy.horizon

    @property
    def basis(self) -> Basis:
        """Functions of the values."""
        return self.bound.basis

    @property
    def bound_weights(self) -> Floats:
        """Weights of the bound: (horizon + 1, n_functions), last row 0; (1, ...) if infinite."""
        return self.bound.weights

    @property
    def certificate(self) -> Certificate:
        """Why the bound holds."""
        return self.bound.certificate

    @property
    def upper_bound(self) -> float:
        """No policy earns more than this from the initial distribution."""
        return self.bound.upper_bound

    @property
    def objective(self) -> float:
        """The program's value by the solver's word."""
        return self.ended.objective

    @property
    def certified_objective(self) -> float:
        """The program's value at the weights as they were certified."""
        return self.ended.certified

    @property
    def dual_bound(self) -> float:
        """The program's value is not below this, as far as the solver's duals reach."""
        return self.ended.dual_bound

    @property
    def lookup(self) -> Lookup:
        """Where the policy's terms of Q stand."""
        return self._greedy().lookup

    @property
    def q_entries(self) -> Floats:
        """The policy's terms of Q, (n_steps, n_entries)."""
        return self._greedy().entries

    @property
    def rows(self) -> int:
        """Rows of the largest linear program solved."""
        return self.effort.rows

    @property
    def columns(self) -> int:
        """Columns of the largest linear program solved."""
        return self.effort.columns

    @property
    def iterations(self) -> int:
        """Iterations of all solves together."""
        return self.effort.iterations

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds by phase."""
        return self.effort.seconds

    def value(self, state: State, step: int = 1) -> float:
        """An upper bound on the optimal value of a state at a step.

        Infinite where an invariant that the bound uses does not hold. Of a plan from a file it is
        the bound's value alone, which `fsmdp verify` proves.
        """
        bound = self.bound.value(state, step)
        if not self.weights_certified or math.isinf(bound):
            return bound
        values = check_state(state, self.variables)
        return min(bound, value_of(self.basis, self.weights, values, step))

    def q_values(self, state: State, step: int = 1) -> Floats:
        """R(s, a) + discount * backup of the policy's weights, for every action.

        The policy takes the largest. They are estimates, not bounds: the policy's weights need not
        be the bound's, so that a Q-value may lie above `plan.value(state)`, or below the truth; and
        above `upper_bound`, which is about the start and not about every state.
        """
        return self._greedy().q_values(state, step)

    def _greedy(self) -> Greedy:
        if not isinstance(self.policy, Greedy):
            raise PlanningError(
                f"the plan's policy, {self.policy!r}, is not greedy in a linear value function, so "
                "there is no Q to look at; use plan.action, or method='programs'."
            )
        return self.policy

    def action(self, state: State, step: int = 1) -> str:
        """The policy's action; of several equal ones the first in the model's order."""
        return self.policy.action(state, step)

    def actions(
        self, states: Sequence[State] | Integers, step: int = 1, *, positions: bool = False
    ) -> NDArray[Any]:
        """The policy's actions in many states, one a row: names, or positions in the model's list.

        Of actions that are made of variables, names, or in place of positions a row of values.
        Far faster than asking for one after another: decisions are compiled, on all cores.
        """
        from fsmdp.policies.resolve import actions_in

        chosen = actions_in(self.policy, self.policy, states, step)
        if positions:
            return chosen
        if isinstance(self.action_names, Actions):
            return np.array([self.action_names.name(row) for row in chosen])
        return np.array(self.action_names)[chosen]

    def compiled(self) -> CompiledPolicy | None:
        """The policy as arrays."""
        return self.policy.compiled()

    def online(self, model: FactoredMDP, **options: Any) -> Rollouts:
        """A policy that simulates before it acts: rollouts over this plan's policy.

        Options: `simulations` of a decision (the same seed then gives the same actions) or
        `milliseconds`, and `seed`; see `fsmdp.Rollouts`.
        """
        from fsmdp.online.rollouts import Rollouts

        return Rollouts(model, self, **options)

    def plot(self, ax: Any = None) -> Any:
        """Draw policy and bound over time; see `fsmdp.plot.plan`."""
        from fsmdp.report.plot.plans import plan

        return plan(self, ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file that `load_plan` reads."""
        from fsmdp.io.plans import save_plan

        save_plan(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Plan:
        """Read a plan that `save` wrote."""
        from fsmdp.io.plans import load_plan

        return load_plan(path)

    def require_optimal(self) -> Plan:
        """The plan itself if its programs were solved to the end; a PlanningError otherwise."""
        if self.status is not Status.OPTIMAL:
            raise PlanningError(
                f"the plan's linear programs: {self.status}. Its bound {self._most} is "
                "certified but may not be the tightest of its basis; give more time "
                "(time_limit=...) or a looser tolerance."
            )
        return self

    @property
    def outcome(self) -> str:
        """What was established: which program, and how close to its optimum."""
        program = f"linear program of {plural(len(self.basis), 'function')}"
        solved = self.status is Status.OPTIMAL
        if not self.rows and len(self.basis) == 1:
            return "no linear program" if solved else f"no linear program solved ({self.status})"
        if not solved:
            return f"{program} not solved ({self.status})"
        left = max(0.0, self.certified_objective - self.dual_bound)
        size = max(self.scale, abs(self.dual_bound))
        if left <= ROUNDING * size:
            return f"{program} solved"
        return (
            f"{program} solved to {percent_at_most(left / size) if left < size else upper(left, 1)}"
        )

    @property
    def scale(self) -> float:
        """What rounding is relative to: the largest return, or the sizes of the bound's terms."""
        if self.incumbent is not None and self.incumbent.scale:
            return self.incumbent.scale
        sizes = np.array([np.abs(function.values).max() for function in self.basis])
        return float((np.abs(self.bound_weights) @ sizes).max())

    @property
    def _most(self) -> str:
        attained = self.gap is not None and self.gap.attained
        return bound_text(self.upper_bound, attained, self.scale)

    def _repr_html_(self) -> str:
        by_elimination = self.bound.proof == "elimination"
        return facts_table(
            f"Plan ({self.method})",
            (
                ("no policy earns more than", f"{self._most}, by {self.bound.proof}"),
                ("policy", self.incumbent and self.incumbent.name),
                ("policy earns", self.incumbent),
                ("gap", self.statement()),
                ("linear programs", self.outcome if by_elimination else None),
                ("induced width", self.induced_width if by_elimination else None),
                ("seconds", f"{sum(self.seconds.values()):.2f}"),
            ),
        )

    def __repr__(self) -> str:
        total = sum(self.seconds.values())
        if self.incumbent is not None:
            return (
                f"Plan({self.method}: policy earns {self.incumbent}, no policy more than "
                f"{self._most}, certified by {self.bound.proof}; {total:.2f} s)"
            )
        return (
            f"Plan({self.method}: no policy earns more than {self._most}, certified; "
            f"{self.outcome}, induced width {self.induced_width}, {plural(self.rows, 'row')}, "
            f"{total:.2f} s)"
        )
