"""SysAdmin: machines in a network that fail, drag their dependants down, and can be rebooted."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from fsmdp.domains.registry import Domain, check_whole, register
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import is_whole, show
from fsmdp.foundation.kinds import OneOf, Reading
from fsmdp.model.actions import Actions
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Variable

STAYS_UP = 0.95
COMES_UP = 0.0475
HALVED_BY_EACH_DOWN = 0.5
LARGEST_DEGREE = 16
LARGEST_NETWORK = 100_000

EACH, NO_CREW = "each", "none"
"""One administrator for each machine, and actions that are listed."""

TOPOLOGIES = ("ring", "bidirectional-ring", "star", "three-legs")


def _read_crew(text: str) -> int | str | None:
    return {EACH: EACH, NO_CREW: None}[text] if text in (EACH, NO_CREW) else int(text)


CREW = Reading(f"a whole number, {EACH}, or {NO_CREW} for one reboot at a time", _read_crew)


def sysadmin(
    machines: int = 8,
    topology: Annotated[str | Mapping[int, Iterable[int]] | Any, OneOf(TOPOLOGIES)] = "ring",
    horizon: int | None = 10,
    discount: float = 1.0,
    administrators: Annotated[int | str | None, CREW] = None,
) -> FactoredMDP:
    """Machines that are up (1) or down (0); one may be rebooted at each step.

    P(up next) = (0.95 if up else 0.0475) * 0.5^(number of its dependencies that are down),
    and 1 when rebooted. Actions: `wait`, `reboot-0`, `reboot-1`, ... Reward: 1/machines for each
    machine that is up, so the best return is the horizon. All machines start up.

    Topologies: `ring` (machine i depends on i - 1), `bidirectional-ring` (on both sides), `star`
    (every machine on machine 0), `three-legs` (three chains that start at machine 0), a
    dictionary from each machine to those it depends on, or a networkx graph of machine numbers:
    an edge (u, v) of a DiGraph means that v depends on u, one of a Graph that both do.

    With `administrators`, actions are made of variables `reboot-0`, `reboot-1`, ...: so many
    machines may be rebooted at once, or "each" of them.
    Source: Guestrin, Koller, Parr and Venkataraman, JAIR 2003.
    """
    check_whole("sysadmin", "machines", machines, 1, LARGEST_NETWORK)
    depends_on = dependencies(machines, topology)
    names = [f"machine-{machine}" for machine in range(machines)]
    tables = {len(others): _up_table(len(others)) for others in depends_on}
    reboots = [f"reboot-{machine}" for machine in range(machines)]
    actions = (
        ["wait", *reboots] if administrators is None else _administered(reboots, administrators)
    )

    def cases(machine: int) -> list[Case]:
        parents = [names[machine], *(names[other] for other in depends_on[machine])]
        table = tables[len(depends_on[machine])]
        if administrators is None:
            return [Case([reboots[machine]], [], [0.0, 1.0]), Case(ANY, parents, table)]
        up = np.broadcast_to([0.0, 1.0], table.shape)
        return [Case(ANY, [reboots[machine], *parents], np.stack([table, up]))]

    return FactoredMDP(
        variables=[Variable(name, 2) for name in names],
        actions=actions,
        conditionals=[Conditional(names[machine], cases(machine)) for machine in range(machines)],
        rewards=[
            Reward(f"up-{machine}", [Case(ANY, [name], [0, 1 / machines])], 0, 1 / machines)
            for machine, name in enumerate(names)
        ],
        horizon=horizon,
        discount=discount,
        initial=dict.fromkeys(names, 1),
    )


def _administered(reboots: Sequence[str], administrators: int | str) -> Actions:
    variables = [Variable(name, 2) for name in reboots]
    if isinstance(administrators, str) and administrators == EACH:
        return Actions(variables)
    if isinstance(administrators, str):
        raise ModelError(
            f"sysadmin: administrators is {show(administrators)}, expected {EACH!r} or a number of "
            "machines that may be rebooted at once."
        )
    check_whole("sysadmin", "administrators", administrators, 1, len(reboots))
    return Actions(variables, at_most=administrators)


def dependencies(
    machines: int, topology: str | Mapping[int, Iterable[int]] | Any
) -> list[tuple[int, ...]]:
    """For each machine, the machines it depends on (itself left out)."""
    if isinstance(topology, Mapping):
        return _checked(machines, topology)
    if hasattr(topology, "edges") and hasattr(topology, "is_directed"):
        return _checked(machines, _of_graph(topology))
    name = topology if isinstance(topology, str) else ""
    if name == "ring":
        found: Sequence[set[int]] = [{(i - 1) % machines} for i in range(machines)]
    elif name == "bidirectional-ring":
        found = [{(i - 1) % machines, (i + 1) % machines} for i in range(machines)]
    elif name == "star":
        found = [{0} for _ in range(machines)]
    elif name == "three-legs":
        found = [{max(0, i - 3)} for i in range(machines)]
    else:
        raise ModelError(
            f"sysadmin: unknown topology {show(topology)}; expected one of "
            f"{', '.join(TOPOLOGIES)}, a dictionary from each machine to those it depends on, or a "
            "networkx graph."
        )
    return [tuple(sorted(others - {i})) for i, others in enumerate(found)]


def _of_graph(graph: Any) -> dict[Any, list[Any]]:
    """What each node of a networkx graph depends on."""
    found: dict[Any, list[Any]] = {node: [] for node in graph.nodes}
    for source, target in graph.edges():
        found[target].append(source)
        if not graph.is_directed():
            found[source].append(target)
    return found


def _checked(machines: int, topology: Mapping[Any, Iterable[Any]]) -> list[tuple[int, ...]]:
    by_machine: dict[int, tuple[int, ...]] = {}
    for machine, others in topology.items():
        if isinstance(others, str) or not isinstance(others, Iterable):
            raise ModelError(
                f"sysadmin: machine {show(machine)} depends on {show(others)}, expected a list of "
                "machines; put it in brackets."
            )
        named = (machine, *others)
        for one in named:
            if not is_whole(one) or not 0 <= one < machines:
                raise ModelError(
                    f"sysadmin: the topology names machine {show(one)}, expected 0 to "
                    f"{machines - 1}; rename it or add machines."
                )
        by_machine[int(machine)] = tuple(int(one) for one in named[1:])
    found = [tuple(sorted(set(by_machine.get(i, ())) - {i})) for i in range(machines)]
    largest = max(map(len, found))
    if largest > LARGEST_DEGREE:
        raise ModelError(
            f"sysadmin: a machine depends on {largest} others, expected at most {LARGEST_DEGREE}; "
            f"its table would have 2^{largest + 1} rows, thin the network out."
        )
    return found


def _up_table(n_dependencies: int) -> Floats:
    """P(next | itself, dependencies): axes itself, each dependency, next value."""
    values = np.indices((2,) * (1 + n_dependencies))
    down = (1 - values[1:]).sum(axis=0)
    up = np.where(values[0] == 1, STAYS_UP, COMES_UP) * HALVED_BY_EACH_DOWN**down
    return np.stack([1 - up, up], axis=-1)


register(
    Domain(
        "sysadmin",
        sysadmin,
        "machines in a network that fail and can be rebooted",
        positional=2,
        environment="fsmdp/SysAdmin-v0",
    )
)


GOOD, FAIL, DEAD = range(3)
IDLE, LOADED, DONE = range(3)

FAILS, DIES = 0.1, 0.3
BONUS = np.array([0.0, 0.2, 0.4])
"""What a neighbour's status adds to the chance of failing or dying, if it is the only one."""

ARRIVES = 0.4
FINISHES = np.array([0.4, 0.3, 0.0])
"""Chance that a job gets done, by status."""

MOST_NEIGHBOURS = 8
AGENTS_LARGEST_NETWORK = 20_000

AGENTS_TOPOLOGIES = ("ring", "bidirectional-ring", "star", "bidirectional-star")


def multiagent_sysadmin(
    agents: int = 8,
    topology: Annotated[str, OneOf(AGENTS_TOPOLOGIES)] = "ring",
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
    check_whole("multiagent_sysadmin", "agents", agents, 2, AGENTS_LARGEST_NETWORK)
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
        positional=2,
        environment="fsmdp/MultiagentSysAdmin-v0",
        environment_options={"horizon": 20},
    )
)
