"""Blocks: steps that share their weights, and so their inequalities, but for the constant.

Within a block V_l(s) = x(s) + c_l, and all its steps ask for the same:

    c_l - discount * c_{l+1} >= max over (s, a) of R(s, a) + discount * E[x(s') | s, a] - x(s).

So a block of many steps is one set of inequalities, with another where it meets the next block. The
constants add up to E[V_1] = E[x_1] + sum over links k of m_k e_k, where m_k is the sum of the
discounts of the steps of link k and e_k its largest excess. That is convex in the weights,
piecewise linear, and an upper bound on V* at any: nothing has to be solved to the end. Every step a
block of its own is the joint program; one block that follows itself is the program of an infinite
horizon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from fsmdp.model.structure import sum_of_discounts
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import BellmanNetwork

FINEST = 2
"""Blocks of each length at the end of the horizon, where values change most."""


@dataclass(frozen=True, slots=True)
class Link:
    """Steps of one block that are followed by one block: a single set of inequalities."""

    own: int
    after: int | None  # None: the end
    weight: float  # sum of the discounts of its steps
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The lengths of the blocks of a horizon, first step first; none if it is infinite."""

    lengths: tuple[int, ...]
    discount: float
    links: tuple[Link, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", tuple(self._links()))

    @property
    def n_blocks(self) -> int:
        """Sets of weights."""
        return len(self.lengths) or 1

    @property
    def is_finest(self) -> bool:
        """Whether no block can be divided."""
        return all(length == 1 for length in self.lengths)

    def divided(self) -> Blocks:
        """Every block in two halves."""
        halves = [part for one in self.lengths for part in (one // 2, one - one // 2) if part]
        return Blocks(tuple(halves), self.discount)

    def parents(self, finer: Blocks) -> tuple[list[int], list[list[int]]]:
        """For each block of a finer division, its own here; for each link here, those of it there.

        Weights that are the same in all parts of a block have the same value there as here.
        """
        if not self.lengths:
            return [0], [[0]]
        here = self.block_of_step()
        starts = np.cumsum([0, *finer.lengths[:-1]])
        links: list[list[int]] = [[] for _ in self.links]
        link_of_step = {step: k for k, link in enumerate(self.links) for step in link.steps}
        for number, link in enumerate(finer.links):
            for old in sorted({link_of_step[step] for step in link.steps}):
                links[old].append(number)
        return [here[start] for start in starts], links

    def block_of_step(self) -> list[int]:
        """The block of every step."""
        return [block for block, length in enumerate(self.lengths) for _ in range(length)]

    def weights(self, shared: Floats, excesses: Floats) -> Floats:
        """Weights of every step: those of its block, the constant raised by what it must be.

        c_l = e_l + discount * c_{l+1}
        """
        if not self.lengths:
            found = shared.copy()
            found[:, 0] += excesses[0] * self.links[0].weight
            return found
        found = shared[self.block_of_step()]
        constant = 0.0
        for number in reversed(range(len(self.links))):
            for step in reversed(self.links[number].steps):
                constant = excesses[number] + self.discount * constant
                found[step, 0] += constant
        return found

    def _links(self) -> Sequence[Link]:
        if not self.lengths:
            return [Link(0, 0, sum_of_discounts(None, self.discount), (0,))]
        of_step = self.block_of_step()
        after = [*of_step[1:], None]
        found = []
        for (own, following), steps in groupby(
            range(len(of_step)), key=lambda step: (of_step[step], after[step])
        ):
            members = tuple(steps)
            weight = sum(self.discount**step for step in members)
            found.append(Link(own, following, weight, members))
        return found


def coarse_blocks(network: BellmanNetwork) -> Blocks:
    """Blocks that double in length from the end of the horizon to its start."""
    lengths: list[int] = []
    left = network.horizon or 0
    while left:
        length = min(left, 2 ** (len(lengths) // FINEST))
        lengths.append(length)
        left -= length
    return Blocks(tuple(reversed(lengths)), network.discount)


def finest_blocks(network: BellmanNetwork) -> Blocks:
    """Every step by itself."""
    return Blocks((1,) * (network.horizon or 0), network.discount)


def pairs_of(blocks: Blocks, shared: Floats) -> list[tuple[Floats, Floats]]:
    """For each link, weights of its own block and of the block after."""
    nothing = np.zeros(shared.shape[1])
    return [
        (shared[link.own], nothing if link.after is None else shared[link.after])
        for link in blocks.links
    ]
