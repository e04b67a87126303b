"""SysAdmin: machines in a network that fail, drag their dependants down, and can be rebooted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fsmdp.domains.arguments import check_whole
from fsmdp.errors import ModelError
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

TOPOLOGIES = ("ring", "bidirectional-ring", "star", "three-legs")


def sysadmin(
    machines: int = 8,
    topology: str | Mapping[int, Iterable[int]] = "ring",
    horizon: int | None = 10,
    discount: float = 1.0,
) -> FactoredMDP:
    """Machines that are up (1) or down (0); one may be rebooted at each step.

    P(up next) = (0.95 if up else 0.0475) * 0.5^(number of its dependencies that are down),
    and 1 when rebooted. Actions: `wait`, `reboot-0`, `reboot-1`, ... Reward: 1/machines for each
    machine that is up, so the best return is the horizon. All machines start up.

    Topologies: `ring` (machine i depends on i - 1), `bidirectional-ring` (on both sides), `star`
    (every machine on machine 0), `three-legs` (three chains that start at machine 0), or a
    dictionary from each machine to those it depends on.
    Source: Guestrin, Koller, Parr and Venkataraman, JAIR 2003.
    """
    check_whole("sysadmin", "machines", machines, 1, LARGEST_NETWORK)
    depends_on = dependencies(machines, topology)
    names = [f"machine-{machine}" for machine in range(machines)]
    tables = {len(others): _up_table(len(others)) for others in depends_on}
    return FactoredMDP(
        variables=[Variable(name, 2) for name in names],
        actions=["wait", *(f"reboot-{machine}" for machine in range(machines))],
        conditionals=[
            Conditional(
                names[machine],
                [
                    Case([f"reboot-{machine}"], [], [0.0, 1.0]),
                    Case(
                        ANY,
                        [names[machine], *(names[other] for other in depends_on[machine])],
                        tables[len(depends_on[machine])],
                    ),
                ],
            )
            for machine in range(machines)
        ],
        rewards=[
            Reward(f"up-{machine}", [Case(ANY, [name], [0, 1 / machines])], 0, 1 / machines)
            for machine, name in enumerate(names)
        ],
        horizon=horizon,
        discount=discount,
        initial=dict.fromkeys(names, 1),
    )


def dependencies(
    machines: int, topology: str | Mapping[int, Iterable[int]]
) -> list[tuple[int, ...]]:
    """For each machine, the machines it depends on (itself left out)."""
    if isinstance(topology, Mapping):
        return _checked(machines, topology)
    if topology == "ring":
        found: Sequence[set[int]] = [{(i - 1) % machines} for i in range(machines)]
    elif topology == "bidirectional-ring":
        found = [{(i - 1) % machines, (i + 1) % machines} for i in range(machines)]
    elif topology == "star":
        found = [{0} for _ in range(machines)]
    elif topology == "three-legs":
        found = [{max(0, i - 3)} for i in range(machines)]
    else:
        raise ModelError(
            f"sysadmin: unknown topology {topology!r}; expected one of {', '.join(TOPOLOGIES)}, "
            "or a dictionary from each machine to those it depends on."
        )
    return [tuple(sorted(others - {i})) for i, others in enumerate(found)]


def _checked(machines: int, topology: Mapping[int, Iterable[int]]) -> list[tuple[int, ...]]:
    known = set(range(machines))
    for machine, others in topology.items():
        if isinstance(others, str) or not isinstance(others, Iterable):
            raise ModelError(
                f"sysadmin: machine {machine!r} depends on {others!r}, expected a list of "
                "machines; put it in brackets."
            )
        unknown = sorted({machine, *others} - known, key=str)
        if unknown:
            raise ModelError(
                f"sysadmin: the topology names machine {unknown[0]!r}, expected 0 to "
                f"{machines - 1}; rename it or add machines."
            )
    found = [tuple(sorted(set(topology.get(i, ())) - {i})) for i in range(machines)]
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
