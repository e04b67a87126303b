"""What the engines of the joint program cost, and how large a program each may be.

All that choose between rows of an elimination tree and its max-sum as an oracle (bundles, cutting
planes) ask here. Seconds are rough: they were fitted to runs on one machine of 2024.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fsmdp.bounds.bellman import BellmanNetwork
    from fsmdp.bounds.bundle import Blocks

LARGEST_PROGRAM = 2_000_000
"""Rows of any linear program: a few gigabytes."""

MOST_JOINT_ROWS = 500_000
"""Rows of all steps in one, beyond which the solver leaves it to bundles: a minute."""

MOST_STAGE_ROWS = 200_000
"""Rows of a step up to which the stages are solved, for a policy: some seconds each."""

SECOND_OPINION_UP_TO = 50_000
"""Rows up to which the simplex method decides what the interior-point method left open."""

INTERIOR_FROM = 500
"""Rows from which ten interior solves take less time than a cold and nine warm simplex ones."""

ROUNDS = 40
"""Of a bundle or of cutting planes: solves of the master, and max-sums of all links."""

FEW_SECONDS, MOST_SECONDS = 1.0, 60.0
"""That rows may be expected to take where nothing else is tried: below the first they are always
preferred, above the second never, since they say nothing before they are done."""

CAUTION = 8.0
"""Rows must be so many times faster than an oracle then, by these estimates: where actions are
counted they took fifteen times as long as estimated, and bundles a fifth."""


def seconds_by_rows(network: BellmanNetwork, n_links: int) -> float:
    """By rows, one set for each link of blocks; infinite if they are too many to write down.

    Fill grows with the width of the network.
    """
    rows = n_links * network.elimination.n_rows
    if rows > LARGEST_PROGRAM:
        return math.inf
    return rows * 2e-5 * (1 + 2.0**network.elimination.induced_width / 32)


def seconds_by_oracle(network: BellmanNetwork, blocks: Blocks) -> float:
    """By a master in the weights of all blocks, and a max-sum for each link as its oracle."""
    masters = 4e-7 * blocks.n_blocks * len(network.basis) ** 3
    oracles = 2e-9 * len(blocks.links) * network.elimination.schedule.n_terms
    return ROUNDS * (masters + oracles)


def prefers_rows(network: BellmanNetwork, blocks: Blocks) -> bool:
    """Whether rows are expected to take less time than an oracle."""
    rows = seconds_by_rows(network, len(blocks.links))
    return rows < seconds_by_oracle(network, blocks)


def trusts_rows(network: BellmanNetwork, blocks: Blocks, left: float | None) -> bool:
    """Whether rows are safe to begin with where there is nothing else, with so much time left."""
    oracle = seconds_by_oracle(network, blocks)
    patience = min(MOST_SECONDS, oracle / CAUTION, math.inf if left is None else left / 2)
    return seconds_by_rows(network, len(blocks.links)) <= max(FEW_SECONDS, patience)


def has_stages(network: BellmanNetwork) -> bool:
    """Whether there are stages, and each has few enough rows."""
    return network.horizon is not None and network.elimination.n_rows <= MOST_STAGE_ROWS
