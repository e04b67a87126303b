"""Plans: weights, the policy they make, and the certificate of the bound they give."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fsmdp.errors import PlanningError
from fsmdp.foundation.checks import as_step, plural
from fsmdp.model.basis import Basis
from fsmdp.model.lookup import Lookup
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Variable, check_state
from fsmdp.planning.bellman import BellmanNetwork
from fsmdp.planning.certificate import Certificate
from fsmdp.planning.greedy import default_total, fill_advantages, greedy_lookup
from fsmdp.planning.intervals import OPTIMISTIC, Intervals
from fsmdp.planning.solution import Status


@dataclass(frozen=True, slots=True, eq=False)
class Effort:
    """What a plan cost: size of its programs, iterations, seconds by phase."""

    rows: int
    columns: int
    iterations: int
    seconds: Mapping[str, float]
    choices: tuple[str, ...] = ()  # what was chosen, and why


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan:
    """A policy and a certified upper bound on what any policy can earn.

    The policy is greedy with respect to `weights`. `bound_weights` are those of the tightest bound
    found, certified: V_l(s) >= V*_l(s) at every state and step. So are `weights`, if there was time
    (`weights_certified`). `status` is how the solver of the linear programs ended; no weights of
    the basis have an objective below `dual_bound`, as far as a solver's duals reach.
    """

    method: str
    status: Status
    variables: tuple[Variable, ...]
    actions: tuple[str, ...]
    horizon: int | None
    discount: float
    basis: Basis = field(repr=False)
    weights: Floats = field(
        repr=False
    )  # (horizon + 1, n_functions), last row 0; (1, ...) if infinite
    bound_weights: Floats = field(repr=False)
    objective: float
    dual_bound: float
    certified_objective: float  # of the bound's weights
    certificate: Certificate
    trivial_bound: float  # of the largest reward at every step
    weights_certified: bool
    induced_width: int
    effort: Effort
    view: str
    lookup: Lookup = field(repr=False)
    q_entries: Floats = field(repr=False)  # (n_steps, n_entries)

    @property
    def upper_bound(self) -> float:
        """No policy earns more than this from the initial distribution."""
        return self.certificate.upper_bound

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
        row, features = self._row(step), self.basis.evaluate(check_state(state, self.variables))
        bound = float(features @ self.bound_weights[row])
        return min(bound, float(features @ self.weights[row])) if self.weights_certified else bound

    def q_values(self, state: Sequence[int], step: int = 1) -> Floats:
        """R(s, a) + discount * backup of the policy's weights, for every action."""
        values = np.array(check_state(state, self.variables), dtype=np.int64)
        entries = self.q_entries[self._row(step)]
        found = np.zeros(len(self.actions))
        fill_advantages(self.lookup, entries, values, found)
        return np.asarray(found + default_total(self.lookup, entries, values))

    def action(self, state: Sequence[int], step: int = 1) -> str:
        """The greedy action; the first in the model's order where several are equal."""
        values = np.array(check_state(state, self.variables), dtype=np.int64)
        found = np.zeros(len(self.actions))
        fill_advantages(self.lookup, self.q_entries[self._row(step)], values, found)
        return self.actions[int(found.argmax())]

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

    def _row(self, step: int) -> int:
        row = as_step(step, self.horizon) - 1
        return 0 if self.horizon is None else row

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


def q_entries_of(
    network: BellmanNetwork, intervals: Intervals, weights: Floats, view: str = OPTIMISTIC
) -> Floats:
    """Reward and backup entries of every step, from weights (n_steps, n_functions).

    Row l belongs to step l + 1 and uses the weights of the step after.
    """
    following = weights if network.horizon is None else [*weights[1:], np.zeros(weights.shape[1])]
    start = network.rewards_at.start
    return np.stack([network.right_side(w, intervals, view)[start:] for w in following])


def finish_plan(
    network: BellmanNetwork,
    intervals: Intervals,
    *,
    method: str,
    status: Status,
    weights: Floats,
    objective: float,
    dual_bound: float,
    certified_objective: float,
    certificate: Certificate,
    trivial_bound: float,
    weights_certified: bool,
    effort: Effort,
    bound_weights: Floats,
    view: str = OPTIMISTIC,
) -> Plan:
    """A plan from weights (n_steps, n_functions)."""

    def with_last_row(rows: Floats) -> Floats:
        if network.horizon is None:
            return rows
        return np.vstack([rows, np.zeros((1, rows.shape[1]))])

    return Plan(
        method=method,
        status=status,
        variables=network.variables,
        actions=network.actions,
        horizon=network.horizon,
        discount=network.discount,
        basis=network.basis,
        weights=with_last_row(weights),
        bound_weights=with_last_row(bound_weights),
        objective=objective,
        dual_bound=dual_bound,
        certified_objective=certified_objective,
        certificate=certificate,
        trivial_bound=trivial_bound,
        weights_certified=weights_certified,
        induced_width=network.elimination.induced_width,
        effort=effort,
        view=view,
        lookup=greedy_lookup(network),
        q_entries=q_entries_of(network, intervals, weights, view),
    )
