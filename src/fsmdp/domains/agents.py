"""Multi-agent SysAdmin: machines with a status and a load, and an administrator at each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsmdp.domains.arguments import check_whole
from fsmdp.domains.registry import Domain, register
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show
from fsmdp.foundation.kinds import OneOf
from fsmdp.model.actions import Actions
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Variable

GOOD, FAIL, DEAD = range(3)
IDLE, LOADED, DONE = range(3)

FAILS, DIES = 0.1, 0.3
BONUS = np.array([0.0, 0.2, 0.4])
"""What a neighbour's status adds to the chance of failing or dying, if it is the only one."""

ARRIVES = 0.4
FINISHES = np.array([0.4, 0.3, 0.0])
"""Chance that a job gets done, by status."""

MOST_NEIGHBOURS = 8
LARGEST_NETWORK = 20_000

TOPOLOGIES = ("ring", "bidirectional-ring", "star", "bidirectional-star")


def multiagent_sysadmin(
    agents: int = 8,
    topology: str = "ring",
    horizon: int | None = None,
    discount: float = 0.95,
) -> FactoredMDP:
    """Agents on a network; each may reboot its machine at every step, all at once.

    `status-i` is good (0), fail (1) or dead (2), `load-i` idle (0), loaded (1) or done (2), and the
    action variable `reboot-i` makes the machine good and idle, which loses its job. Failing and
    dead neighbours make a machine fail and die sooner. Reward: the expected number of jobs done.

    Topologies: `ring` (the neighbour of i is i - 1), `bidirectional-ring` (both sides), `star`
    (agent 0 is everybody's neighbour and has none), `bidirectional-star` (all are its neighbours).
    Source: Guestrin, Koller and Parr, Multiagent planning with factored MDPs (2001), with the
    numbers that AI-Toolbox uses.
    """
    check_whole("multiagent_sysadmin", "agents", agents, 2, LARGEST_NETWORK)
    neighbours = _neighbours(agents, topology)
    statuses = [f"status-{agent}" for agent in range(agents)]
    loads = [f"load-{agent}" for agent in range(agents)]
    reboots = [f"reboot-{agent}" for agent in range(agents)]
    rewards = np.zeros((3, 3, 2))
    rewards[:, LOADED, 0] = FINISHES
    conditionals = []
    for agent in range(agents):
        status, load, reboot = statuses[agent], loads[agent], reboots[agent]
        near = [statuses[other] for other in neighbours[agent]]
        conditionals += [
            Conditional(status, Case(ANY, [reboot, status, *near], _status_table(len(near)))),
            Conditional(load, Case(ANY, [reboot, status, load], _load_table())),
        ]
    return FactoredMDP(
        variables=[
            Variable(name, 3) for pair in zip(statuses, loads, strict=True) for name in pair
        ],
        actions=Actions([Variable(name, 2) for name in reboots]),
        conditionals=conditionals,
        rewards=[
            Reward(
                f"done-{agent}",
                Case(ANY, [statuses[agent], loads[agent], reboots[agent]], rewards),
                0.0,
                float(FINISHES.max()),
            )
            for agent in range(agents)
        ],
        horizon=horizon,
        discount=discount,
    )


def _neighbours(agents: int, topology: str) -> Sequence[tuple[int, ...]]:
    name = topology if isinstance(topology, str) else ""
    if name == "ring":
        return [((i - 1) % agents,) for i in range(agents)]
    if name == "bidirectional-ring":
        return [tuple(sorted({(i - 1) % agents, (i + 1) % agents})) for i in range(agents)]
    if name == "star":
        return [(), *((0,) for _ in range(1, agents))]
    if name == "bidirectional-star":
        if agents > MOST_NEIGHBOURS + 1:
            raise ModelError(
                f"multiagent_sysadmin: the middle of a star of {agents} has {agents - 1} "
                f"neighbours, expected at most {MOST_NEIGHBOURS}: its table would have "
                f"3^{agents} rows; use fewer agents, or 'star'."
            )
        return [tuple(range(1, agents)), *((0,) for _ in range(1, agents))]
    raise ModelError(
        f"multiagent_sysadmin: unknown topology {show(topology)}; expected one of "
        f"{', '.join(TOPOLOGIES)}."
    )


def _status_table(n_neighbours: int) -> Floats:
    """P(next status | reboot, status, status of each neighbour)."""
    near = (3,) * n_neighbours
    bonus = np.zeros(near)
    for axis in range(n_neighbours):
        shape = [1] * n_neighbours
        shape[axis] = 3
        bonus = bonus + BONUS.reshape(shape) / n_neighbours
    table = np.zeros((2, 3, *near, 3))
    table[0, GOOD, ..., FAIL] = FAILS + bonus
    table[0, FAIL, ..., DEAD] = DIES + bonus
    for status in (GOOD, FAIL):
        table[0, status, ..., status] = 1 - table[0, status].sum(axis=-1)
    table[0, DEAD, ..., DEAD] = 1.0
    table[1, ..., GOOD] = 1.0
    return table


def _load_table() -> Floats:
    """P(next load | reboot, status, load): jobs arrive, are done, and make room for others."""
    table = np.zeros((2, 3, 3, 3))
    table[0, :, :, IDLE] = 1.0
    for status in (GOOD, FAIL):
        table[0, status, IDLE] = [1 - ARRIVES, ARRIVES, 0.0]
        table[0, status, LOADED] = [0.0, 1 - FINISHES[status], FINISHES[status]]
    table[1, :, :, IDLE] = 1.0
    return table


register(
    Domain(
        "multiagent-sysadmin",
        multiagent_sysadmin,
        "machines with a status and a load, and an administrator at each of them",
        {"topology": OneOf(TOPOLOGIES)},
        positional=2,
        environment="fsmdp/MultiagentSysAdmin-v0",
        environment_options={"horizon": 20},
    )
)
