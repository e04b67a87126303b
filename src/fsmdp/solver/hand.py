"""What is in hand while a model is being solved: incumbent, bound, log, and the plan of them."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np

from fsmdp.model.marginals import EPSILON
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.structure import sum_of_discounts
from fsmdp.planning.clock import Clock
from fsmdp.planning.finish import plan_of_constant
from fsmdp.planning.gap import relative_gap
from fsmdp.planning.incumbent import Incumbent, Line
from fsmdp.planning.plan import Effort, Plan, PlannedPolicy
from fsmdp.planning.planner import Tell
from fsmdp.planning.problem import trivial_problem
from fsmdp.planning.solution import Status
from fsmdp.policies.greedy import Greedy
from fsmdp.simulation.gap import LEVEL, limit_of_mean
from fsmdp.simulation.rollout import Runs
from fsmdp.solver.arena import arena_of
from fsmdp.solver.judge import Judge, Judged
from fsmdp.solver.view import View
from fsmdp.solver.warm import warm

RESERVE, ENOUGH = 0.1, 2.0
"""Of the time limit, and in seconds, at most: for judging the winner again."""

FRESH_EPISODES = 1000

MOST_SUMMED = 2**12
"""Products that a backup adds up, at most, beside those of states that are fewer."""


class Hand:
    """The best policy and the tightest bound so far, and how they came."""

    def __init__(self, model: FactoredMDP, clock: Clock, seed: int, tell: Tell | None) -> None:
        self.model, self.clock, self.tell = model, clock, tell
        self.began = time.perf_counter()
        left = clock.left()
        self.timed = left is not None
        """Bounds come from a thread then; otherwise in turn, so that a seed decides all."""
        self.searching = clock if left is None else clock.part(min(RESERVE * left, ENOUGH))
        self.judge = Judge(arena_of(model), seed)
        self.alone = trivial_problem(model)
        self.bound_plan = plan_of_constant(self.alone)
        self.at_start, self.proof = np.inf, "elimination"
        self.scale = model.largest_size_of_return
        self.exact: float | None = None
        self.best_of_view: dict[str, tuple[float, Greedy]] = {}
        self.log: list[Line] = []
        self.lock = threading.RLock()

    @property
    def upper_bound(self) -> float:
        """The tightest bound so far."""
        return min(self.bound_plan.upper_bound, self.at_start)

    @property
    def gap(self) -> float | None:
        """How far the incumbent is from the bound, by the episodes that chose it."""
        best = self.judge.incumbent
        if best is None:
            return None
        mean = best.mean if self.exact is None else self.exact
        return relative_gap(self.upper_bound, mean, self.scale)

    def seconds(self) -> float:
        """Since the call."""
        return time.perf_counter() - self.began

    def note(self, tried: str, improved: str = "", again: Incumbent | None = None) -> None:
        """Write a line of the log, with what the incumbent earned when it was judged `again`."""
        mean = error = None
        if best := again or self.judge.incumbent:
            exact = self.exact is not None
            mean, error = (self.exact, 0.0) if exact else (best.mean, best.standard_error)
        with self.lock:
            gap = None if mean is None else relative_gap(self.upper_bound, mean, self.scale)
            line = Line(self.seconds(), tried, mean, error, self.upper_bound, gap, improved)
            self.log.append(line)
        if self.tell is not None:
            self.tell(line)

    def compile(self, engine: str) -> None:
        """Compile an engine before it is used, which does not count."""
        seconds = warm(engine)
        for clock in {self.clock, self.searching}:  # one and the same without a limit
            clock.forgive(seconds)
        self.began += seconds

    def lower(self, bound: float, proof: str) -> bool:
        """Take a bound at the start; True if it is the tightest."""
        with self.lock:
            better = bound < self.upper_bound
            if better:
                self.at_start, self.proof = bound, proof
        return better

    def consider(self, name: str, view: View, policy: PlannedPolicy) -> Judged:
        """Judge a candidate of a view, which may become the incumbent."""
        own = view.policy(policy)
        arrays = own.compiled()
        assert arrays is not None
        found = self.judge.consider(name, own, arrays, self.seconds(), self.searching.check)
        known = self.best_of_view.get(view.name)
        if isinstance(policy, Greedy) and (known is None or found.mean > known[0]):
            self.best_of_view[view.name] = found.mean, policy
        self.note(name, "policy" if found is self.judge.incumbent else "")
        return found

    def closed(self, wanted: float | None) -> bool:
        """Whether the gap is as small as was asked for."""
        if self.exact is not None:
            return True
        gap = self.gap
        return gap is not None and gap <= (wanted or 0.0)

    def solved(self, name: str, view: View, policy: PlannedPolicy, value: float) -> None:
        """Take a policy whose value is known and optimal."""
        self.exact = value
        self.judge.take(name, view.policy(policy))
        self.note(f"{name}, solved", "policy, bound")

    def plan(self, stopped: Status | None) -> Plan:
        """A plan of what is in hand, the incumbent judged once more."""
        base = self.bound_plan
        best = self.judge.incumbent
        incumbent = None if best is None else self._judged_again(best)
        bound = replace(base.bound, at_start=float(self.at_start), proof=self.proof)
        if base.upper_bound <= self.at_start:
            bound = base.bound
        status = self.clock.status or stopped or base.status
        name = "greedy for the moment" if best is None else best.name
        if self.exact is None and incumbent is not None:
            self.note(f"{name}, in fresh episodes", again=incumbent)
        return replace(
            base,
            method="auto",
            policy=base.policy if best is None else best.policy,
            bound=bound,
            ended=replace(base.ended, status=status),
            effort=Effort(
                base.rows,
                base.columns,
                base.iterations,
                {"solver": self.seconds()},
                (*base.effort.choices, f"policy: {name}"),
            ),
            incumbent=incumbent,
            candidates=tuple(self.judge.tried),
            log=tuple(self.log),
        )

    def _judged_again(self, best: Judged) -> Incumbent:
        if self.exact is not None:
            value = self.exact
            return Incumbent(best.name, value, 0.0, 0, value, 1.0, exact=True, scale=self.scale)
        returns = self.judge.judge_again(FRESH_EPISODES, self.clock)
        runs = Runs(returns, self.judge.arena.steps)
        limit = limit_of_mean(self.model, runs, LEVEL)
        judged = runs.mean, runs.standard_error, len(returns), limit, LEVEL
        return Incumbent(best.name, *judged, scale=self.scale)


def rounding(model: FactoredMDP) -> float:
    """More than values that are backed up step by step can be off by.

    A backup adds up products of kernels, and rewards; each sum and product is off by less than a
    relative EPSILON of the largest return, and errors of all steps add up.
    """
    drawn = sum(model.dynamics.drawn_sizes)
    terms = drawn + len(model.reward_means) + min(model.n_states, MOST_SUMMED) + 8
    steps = sum_of_discounts(model.horizon, model.discount)
    return float(8 * EPSILON * terms * (steps + 1) * model.largest_size_of_return)
