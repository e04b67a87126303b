"""Plans: a policy, judged by simulation, and a bound, judged by elimination."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fsmdp.bounds.bound import Bound, Program, value_of
from fsmdp.bounds.certificate import Certificate
from fsmdp.bounds.clock import Status
from fsmdp.bounds.gap import ROUNDING, Candidate, Incumbent, Line, RelativeGap
from fsmdp.errors import PlanningError
from fsmdp.foundation.checks import plural, sound
from fsmdp.foundation.numbers import bound_text, facts_table, percent_at_most, upper
from fsmdp.model.actions import ActionSpace
from fsmdp.model.basis import Basis
from fsmdp.model.lookup import Lookup
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import State, Variable, check_state
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.policies.greedy import Greedy
from fsmdp.policies.resolve import Described, actions_in

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
class Record:
    """How a plan was made: by which method, how that ended, what it took, chose and tried."""

    method: str
    status: Status
    seconds: Mapping[str, float]  # by phase
    choices: tuple[str, ...] = ()  # what was chosen, and why
    candidates: tuple[Candidate, ...] = ()  # for the policy
    lines: tuple[Line, ...] = ()  # one an improvement of the policy or the bound
    ended: str = ""  # why planning ended, where the planner says so


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan:
    """A policy, what it is known to earn, and a certified upper bound on what any policy can.

    The two come from different places: the policy is the best one found, the bound the tightest.
    `incumbent` is what the policy earns, where it was judged. Numbers of a linear program (`rows`,
    `objective`, ...) are those of the program that proves the bound, and None where none does.
    """

    policy: PlannedPolicy
    bound: Bound
    record: Record = field(repr=False)
    incumbent: Incumbent | None = None

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
            self.bound.proof.kind,
            known.scale,
            known.span,
        )

    def statement(self) -> str:
        """What is established of the policy, in a sentence."""
        if self.gap is None:
            return "the policy was not judged; see certified_gap"
        return self.gap.statement()

    @property
    def method(self) -> str:
        """The planner."""
        return self.record.method

    @property
    def status(self) -> Status:
        """How the planner's linear programs ended, which says nothing about the policy."""
        return self.record.status

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds by phase."""
        return self.record.seconds

    @property
    def log(self) -> tuple[Line, ...]:
        """How policy and bound improved, where the planner keeps a log."""
        return self.record.lines

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Policies that were tried."""
        return self.record.candidates

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Variables of the model."""
        return self.policy.variables

    @property
    def action_names(self) -> ActionSpace:
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
    def certificate(self) -> Certificate:
        """Why the values lie above V*."""
        return self.bound.certificate

    @property
    def upper_bound(self) -> float:
        """No policy earns more than this from the initial distribution."""
        return self.bound.upper_bound

    @property
    def program(self) -> Program | None:
        """The linear program that proves the bound; None if something else does."""
        return self.bound.proof.program

    @property
    def objective(self) -> float | None:
        """The program's value by the solver's word."""
        return None if self.program is None else self.program.objective

    @property
    def induced_width(self) -> int | None:
        """Of the order in which the program's variables were eliminated."""
        return None if self.program is None else self.program.induced_width

    @property
    def rows(self) -> int | None:
        """Rows of the largest linear program solved."""
        return None if self.program is None else self.program.rows

    @property
    def weights(self) -> Floats:
        """Weights that the programs' policy is greedy for: (horizon + 1, n_functions), last row 0.

        (1, n_functions) if the horizon is infinite; those of the bound where no program was solved.
        """
        program = self.bound.values.program
        return self.bound.weights if program is None else program.weights

    @property
    def lookup(self) -> Lookup:
        """Where the policy's terms of Q stand."""
        return self._greedy().lookup

    @property
    def q_entries(self) -> Floats:
        """The policy's terms of Q, (n_steps, n_entries)."""
        return self._greedy().entries

    def value(self, state: State, step: int = 1) -> float:
        """An upper bound on the optimal value of a state at a step.

        Infinite where an invariant that the bound uses does not hold. Of a plan from a file it is
        the bound's value alone, which `fsmdp verify` proves.
        """
        bound = self.bound.value(state, step)
        program = self.bound.values.program
        if program is None or not program.weights_certified or math.isinf(bound):
            return bound
        values = check_state(state, self.variables)
        return min(bound, value_of(self.basis, program.weights, values, step))

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
                "there are no Q-values; use plan.action, or method='programs'."
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
        chosen = actions_in(self.policy, self.policy, states, step)
        if positions:
            return chosen
        return self.action_names.names(chosen)

    @sound
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
        from fsmdp.report.plot import plan

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
        solved, program = self.status is Status.OPTIMAL, self.bound.values.program
        if program is None:
            return "no linear program" if solved else f"no linear program solved ({self.status})"
        text = f"linear program of {plural(program.functions, 'function')}"
        if not solved:
            return f"{text} not solved ({self.status})"
        left = max(0.0, program.certified - program.dual_bound)
        size = max(self.scale, abs(program.dual_bound))
        if left <= ROUNDING * size:
            return f"{text} solved"
        return f"{text} solved to {percent_at_most(left / size) if left < size else upper(left, 1)}"

    @property
    def scale(self) -> float:
        """What rounding is relative to: the largest return, or the sizes of the bound's terms."""
        if self.incumbent is not None and self.incumbent.scale:
            return self.incumbent.scale
        sizes = np.array([np.abs(function.values).max() for function in self.basis])
        return float((np.abs(self.bound.weights) @ sizes).max())

    @property
    def _most(self) -> str:
        attained = self.gap is not None and self.gap.attained
        return bound_text(self.upper_bound, attained, self.scale)

    def _repr_html_(self) -> str:
        program = self.program
        return facts_table(
            f"Plan ({self.method})",
            (
                ("no policy earns more than", f"{self._most}, by {self.bound.proof.kind}"),
                ("policy", self.incumbent and self.incumbent.name),
                ("policy earns", self.incumbent),
                ("gap", self.statement()),
                ("linear programs", None if program is None else self.outcome),
                ("induced width", None if program is None else program.induced_width),
                ("seconds", f"{sum(self.seconds.values()):.2f}"),
            ),
        )

    def __repr__(self) -> str:
        earned = "" if self.incumbent is None else f"policy earns {self.incumbent}, "
        most = f"no policy {'more' if earned else 'earns more'} than {self._most}"
        program, kind = self.program, self.bound.proof.kind
        how = f"certified by {kind}"
        if program is not None and not earned:
            how = (
                f"certified; {self.outcome}, induced width {program.induced_width}, "
                f"{plural(program.rows, 'row')}"
            )
        elif not earned:
            how = f"certified by {kind}; {self.outcome}"
        return f"Plan({self.method}: {earned}{most}, {how}; {sum(self.seconds.values()):.2f} s)"
