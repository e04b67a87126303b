"""Blocks of steps by rows: one sparse program in place of an oracle and a master.

Where functions are many and networks narrow, a cut has a number for nearly every function, while a
row has those of a clique: the rows of a ring of a thousand machines are solved in seconds.
"""

from __future__ import annotations

import time

import numpy as np
from scipy import sparse

from fsmdp.elimination.compiled_schedule import flatten
from fsmdp.elimination.rows import sample
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import BellmanNetwork
from fsmdp.planning.blocks import Blocks, pairs_of
from fsmdp.planning.bundle import BundleSolution
from fsmdp.planning.clock import NO_LIMIT, Clock, Stopped
from fsmdp.planning.conditioning import conditioning_of
from fsmdp.planning.inequalities import Cuts, joined
from fsmdp.planning.interior import InteriorProgram
from fsmdp.planning.intervals import Intervals
from fsmdp.planning.oracle import excesses_of
from fsmdp.planning.rows import LARGEST_PROGRAM, bellman_rows, reward_scale

ENOUGH = 1e-6
"""Of gap and rows, relative: elimination adds what is missing, and bases gain more by growing."""

SAMPLES = 600
"""States and actions drawn from the duals of each link, to see which functions are missing."""


def minimise_by_rows(
    network: BellmanNetwork,
    intervals: Intervals,
    means: Floats,
    blocks: Blocks,
    clock: Clock = NO_LIMIT,
    seed: int = 0,
) -> BundleSolution:
    """The weights of smallest f, of a known model; `Stopped` if there was no time to find any.

    What the solver says is not believed: the excesses of its weights are found by elimination.
    Cost: the rows of one step for each link.
    """
    assert intervals.exact
    began = time.perf_counter()
    links, scale = blocks.links, reward_scale(intervals)
    step = bellman_rows(network, len(links))
    matrix = sparse.csr_matrix(conditioning_of(network, intervals).matrix[:, 1:])
    n = int(matrix.shape[1])
    own, after = (
        sparse.csr_matrix((np.ones(len(at)), ([k for k, _ in at], [b for _, b in at])), shape)
        for shape in [(len(links), blocks.n_blocks)]
        for at in (
            [(k, link.own) for k, link in enumerate(links)],
            [(k, link.after) for k, link in enumerate(links) if link.after is not None],
        )
    )
    every = sparse.identity(len(links), format="csr")
    clock.check()
    values = sparse.kron(own, step.values @ matrix)
    backups = sparse.kron(after, step.backups(network, intervals.high) @ matrix)
    rows = sparse.hstack(
        [
            values - network.discount * backups,
            sparse.kron(every, step.values[:, :1]),
            sparse.kron(every, step.rows.messages),
        ],
        format="csr",
    )
    clock.check()
    nothing = np.zeros(len(network.basis))
    rewards = step.rows.gather @ network.right_side(nothing, intervals) / scale
    cost = np.zeros(rows.shape[1])
    cost[:n] = means @ matrix
    n_columns = blocks.n_blocks * n
    cost[n_columns : n_columns + len(links)] = [link.weight for link in links]
    program = InteriorProgram(cost, rows, np.tile(rewards, len(links)), tolerance=ENOUGH)
    found = program.solve(clock)
    if not found.iterations or not np.isfinite(found.values).all():
        raise Stopped
    shared = np.asarray(scale * (matrix @ found.values[:n_columns].reshape(-1, n).T).T)
    pairs = pairs_of(blocks, shared)
    excesses = np.array([w.value for w in excesses_of(network, intervals, pairs, clock=clock)])
    weights = blocks.weights(shared, excesses)
    cuts, measure = _sampled(network, blocks, found.duals, seed)
    return BundleSolution(
        found.status,
        shared,
        weights,
        float(means @ weights[0]),
        scale * program.dual_bound(found),
        found.iterations,
        cuts,
        measure,
        time.perf_counter() - began,
    )


def _sampled(
    network: BellmanNetwork, blocks: Blocks, duals: Floats | None, seed: int
) -> tuple[Cuts, Floats]:
    """A list of states and actions from the duals of all links."""
    assert duals is not None
    rng = generator(seed, Purpose.DUALS)
    parts, measure = [], []
    schedule, rows = network.elimination.schedule, network.elimination.rows()
    flat = flatten(schedule)
    for number, (link, of_link) in enumerate(
        zip(blocks.links, np.split(np.maximum(duals, 0.0), len(blocks.links)), strict=True)
    ):
        states, actions = sample(schedule, flat, rows.spread(of_link), SAMPLES, rng)
        parts.append(Cuts(np.full(SAMPLES, number), states, actions))
        measure.append(np.full(SAMPLES, link.weight / SAMPLES))
    return joined(parts), np.concatenate(measure)


def prefers_rows(network: BellmanNetwork, blocks: Blocks) -> bool:
    """Whether rows are expected to take less time than a bundle; a crude estimate of both."""
    elimination, links = network.elimination, len(blocks.links)
    n_rows = links * elimination.n_rows
    rows = n_rows * 2e-5 * (1 + 2.0**elimination.induced_width / 32)
    functions = len(network.basis)
    masters = 4e-7 * blocks.n_blocks * functions**3
    oracles = 2e-9 * links * elimination.schedule.n_terms
    return n_rows <= LARGEST_PROGRAM and rows < ROUNDS * (masters + oracles)


ROUNDS = 40
"""Of a bundle, roughly."""
