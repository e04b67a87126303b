"""Bundled: a bound by bundles, of coarse blocks of steps first and of every step by itself last."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from fsmdp.bounds.bellman import value_span
from fsmdp.bounds.bundle import Blocks, BundleSolution, coarse_blocks, minimise
from fsmdp.bounds.certificate import seconds_of_excesses
from fsmdp.bounds.clock import CONFIRMED, Clock, Status, Stopped
from fsmdp.bounds.finish import Solved, finish
from fsmdp.bounds.inequalities import Cuts, joined
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.planner import Count, Planner, Seconds, Tolerance
from fsmdp.bounds.problem import Problem
from fsmdp.bounds.stagewise import StagewiseProgram, StagewiseSolution
from fsmdp.errors import ModelError

COARSE = 1e-4
"""Tolerance of blocks that will be divided, in spans of values."""

MOST_STAGE_ROWS = 200_000
"""Rows of a step up to which the stages are solved, for a policy."""

STAGES_SHARE = 0.3
"""Of the time, at most, for the stages that a policy comes from."""


@dataclass(frozen=True, slots=True)
class Bundled(Planner):
    """A known model's tightest bound where rows would be many: an oracle and a stabilised master.

    The policy is greedy in the stages, one program for each step, where their rows are few enough.
    """

    tolerance: Tolerance = 1e-6
    max_rounds: Count = 1000
    time_limit: Seconds = None

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """The joint program of all steps, or the stationary one if the horizon is infinite."""
        clock = clock or self.own_clock
        if not problem.intervals.exact:
            raise ModelError(
                "method 'bundled' plans in known models; this one is known up to intervals, use "
                "method='joint' or 'cutting-planes'."
            )
        solving = clock.part(seconds_of_excesses(problem.network))
        policy = stage_weights(problem, solving.share(STAGES_SHARE))
        blocks, found = tightest(problem, solving, self.tolerance, self.max_rounds)
        return plan_of(problem, blocks, found, clock, policy, self.tolerance)


def plan_of(
    problem: Problem,
    blocks: Blocks,
    found: BundleSolution,
    clock: Clock,
    policy: StagewiseSolution | None = None,
    tolerance: float = CONFIRMED,
) -> Plan:
    """A plan of a bundle's weights, and the policy of others if there are any."""
    lengths = f"{blocks.n_blocks} blocks of steps" if blocks.lengths else "one block"
    seconds = {} if policy is None else {"stages": policy.seconds}
    solved = Solved(
        "bundled",
        found.status,
        found.weights,
        found.value,
        found.lower,
        rows=len(found.cuts),
        columns=found.shared.size,
        iterations=found.rounds,
        seconds=seconds | {"bundle": found.seconds},
        policy_weights=None if policy is None else policy.weights,
        choices=(f"bound: {lengths}, {found.rounds} rounds of cuts",),
        tolerance=tolerance,
    )
    return finish(problem, solved, clock)


def may_go_by_stages(problem: Problem) -> bool:
    """Whether there are stages, and each has few enough rows."""
    rows = problem.network.elimination.n_rows
    return problem.network.horizon is not None and rows <= MOST_STAGE_ROWS


def stage_weights(problem: Problem, clock: Clock) -> StagewiseSolution | None:
    """Weights for a policy, stage by stage, where rows are few enough and time suffices."""
    if not may_go_by_stages(problem):
        return None
    with suppress(Stopped):
        stages = clock.run(lambda: StagewiseProgram(problem.network, problem.uniform))
        found = stages.solve(problem.intervals, problem.view, problem.means, clock)
        if found.status in (Status.OPTIMAL, Status.INACCURATE):
            return found
    return None


def tightest(
    problem: Problem, clock: Clock, tolerance: float = 1e-6, max_rounds: int = 1000
) -> tuple[Blocks, BundleSolution]:
    """The smallest value of every step by itself, or of the finest blocks that time suffices for.

    Blocks are divided in two until none is left; each division starts from the weights and cuts of
    the one before, so that its value is never larger.
    """
    blocks = coarse_blocks(problem.network)
    span = value_span(problem.network, problem.intervals)
    found = None
    rounds = 0
    while True:
        last = blocks.is_finest
        try:
            new = minimise(
                problem.network,
                problem.intervals,
                problem.means,
                blocks,
                None if found is None else found.shared,
                None if found is None else found.cuts,
                enough=span * (tolerance if last else max(tolerance, COARSE)),
                max_rounds=max_rounds,
                clock=clock,
            )
        except Stopped:
            if found is None:
                raise
            return blocks, replace(found, status=clock.status or Status.TIME_LIMIT)
        rounds += new.rounds
        found = (
            new if found is None or new.value <= found.value else replace(found, status=new.status)
        )
        found = replace(found, rounds=rounds)
        if last or new.status is not Status.OPTIMAL:
            return blocks, found
        finer = blocks.divided()
        found, blocks = divided(found, blocks, finer), finer


def divided(found: BundleSolution, blocks: Blocks, finer: Blocks) -> BundleSolution:
    """The same weights and cuts in a finer division."""
    parents, links = blocks.parents(finer)
    held = found.held
    parts, duals = [], []
    for old, new in enumerate(links):
        part = held.at(np.flatnonzero(held.steps == old))
        for number in new:
            parts.append(Cuts(np.full(len(part), number), part.states, part.actions))
            duals.append(np.full(len(part), finer.links[number].weight / max(1, len(part))))
    return replace(
        found,
        shared=found.shared[parents],
        cuts=joined(parts),
        measure=np.concatenate(duals),
    )
