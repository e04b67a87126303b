"""Plans: a policy, judged by simulation, and a bound, judged by elimination."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fsmdp.errors import PlanningError
from fsmdp.foundation.checks import plural
from fsmdp.model.basis import Basis
from fsmdp.model.lookup import Lookup
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Variable, check_state
from fsmdp.planning.bound import Bound, value_of
from fsmdp.planning.certificate import Certificate
from fsmdp.planning.solution import Status
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.policies.greedy import Greedy


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

    The two come from different places: the policy is greedy with respect to `weights`, the bound is
    the tightest one found. `weights` bound V*, too, where there was time to certify them
    (`weights_certified`). `status` is how the solver of the linear programs ended, and says nothing
    about the policy.
    """

    method: str
    policy: Greedy
    bound: Bound
    weights: Floats = field(repr=False)  # as those of the bound
    weights_certified: bool
    ended: Ending
    trivial_bound: float  # of the largest reward at every step
    discount: float
    induced_width: int
    effort: Effort
    view: str

    @property
    def status(self) -> Status:
        """How the linear programs ended."""
        return self.ended.status

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Variables of the model."""
        return self.policy.variables

    @property
    def actions(self) -> tuple[str, ...]:
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
        return self.policy.lookup

    @property
    def q_entries(self) -> Floats:
        """The policy's terms of Q, (n_steps, n_entries)."""
        return self.policy.entries

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

    def value(self, state: Sequence[int], step: int = 1) -> float:
        """An upper bound on the optimal value of a state at a step."""
        bound = self.bound.value(state, step)
        if not self.weights_certified:
            return bound
        values = check_state(state, self.variables)
        return min(bound, value_of(self.basis, self.weights, values, step))

    def q_values(self, state: Sequence[int], step: int = 1) -> Floats:
        """R(s, a) + discount * backup of the policy's weights, for every action."""
        return self.policy.q_values(state, step)

    def action(self, state: Sequence[int], step: int = 1) -> str:
        """The greedy action; the first in the model's order where several are equal."""
        return self.policy.action(state, step)

    def compiled(self) -> CompiledPolicy | None:
        """The policy as arrays."""
        return self.policy.compiled()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file that `load_plan` reads."""
        from fsmdp.planning.files import save_plan

        save_plan(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Plan:
        """Read a plan that `save` wrote."""
        from fsmdp.planning.files import load_plan

        return load_plan(path)

    def require_optimal(self) -> Plan:
        """The plan itself if its programs were solved to the end; a PlanningError otherwise."""
        if self.status is not Status.OPTIMAL:
            raise PlanningError(
                f"the plan's linear programs: {self.status}. Its bound {self.upper_bound:.6g} is "
                "certified but may not be the tightest of its basis; give more time "
                "(time_limit=...) or a looser tolerance."
            )
        return self

    @property
    def outcome(self) -> str:
        """What was established: which program, and how close to its optimum."""
        program = f"linear program of {plural(len(self.basis), 'function')}"
        if self.status is Status.OPTIMAL:
            left = max(0.0, self.certified_objective - self.dual_bound)
            return f"{program} solved to {left:.1g}"
        return f"{program} not solved ({self.status})"

    def __repr__(self) -> str:
        total = sum(self.seconds.values())
        return (
            f"Plan({self.method}: no policy earns more than {self.upper_bound:.6g}, certified; "
            f"{self.outcome}, induced width {self.induced_width}, {self.rows} rows, {total:.2f} s)"
        )
