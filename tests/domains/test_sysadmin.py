"""SysAdmin: the formula of its conditionals, reference values, and what it refuses."""

from __future__ import annotations

import networkx
import pytest

from fsmdp.domains import sysadmin
from fsmdp.domains.sysadmin import TOPOLOGIES, dependencies
from fsmdp.errors import ModelError
from fsmdp.exact.flat import enumerate_states
from fsmdp.exact.solve import solve_exactly
from fsmdp.model.basis import Basis

GRAPH = {0: [1, 2], 1: [], 2: [0, 3, 2]}

# (machines, topology, mean of V* over all states, V* with all machines up), horizon 10
REFERENCE = [
    (4, "ring", 7.710, 9.360),
    (6, "ring", 6.764, 9.184),
    (8, "ring", 5.944, 9.019),
    (8, "star", 7.472, 9.442),
    (8, "bidirectional-ring", 3.280, 7.673),
]


def probability_up(state, machine, others):
    up = 0.95 if state[machine] else 0.0475
    return up * 0.5 ** sum(1 - state[other] for other in others)


@pytest.mark.parametrize("topology", [*TOPOLOGIES, GRAPH], ids=str)
def test_conditionals_are_the_formula(topology):
    model = sysadmin(4, topology)
    marginals = model.marginals(Basis.singles(model))
    states = enumerate_states(model).states
    for machine, others in enumerate(dependencies(4, topology)):
        reboot = model.action_index(f"reboot-{machine}")
        for action in range(len(model.actions)):
            marginal = marginals.cases[1 + machine].at(action)
            for state in states:
                row = marginal.probabilities[tuple(state[p] for p in marginal.parent_scope)]
                expected = 1.0 if action == reboot else probability_up(state, machine, others)
                assert row[1] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        ("ring", [(4,), (0,), (1,), (2,), (3,)]),
        ("bidirectional-ring", [(1, 4), (0, 2), (1, 3), (2, 4), (0, 3)]),
        ("star", [(), (0,), (0,), (0,), (0,)]),
        ("three-legs", [(), (0,), (0,), (0,), (1,)]),
        (GRAPH, [(1, 2), (), (0, 3), (), ()]),
    ],
    ids=str,
)
def test_each_topology_depends_on_whom_it_says(topology, expected):
    assert dependencies(5, topology) == expected


def test_graphs_of_networkx_are_topologies():
    directed = networkx.DiGraph([(0, 1), (1, 2), (2, 0)])
    assert dependencies(3, directed) == dependencies(3, "ring")
    assert dependencies(5, networkx.cycle_graph(5)) == dependencies(5, "bidirectional-ring")
    several = networkx.MultiDiGraph([(0, 1), (0, 1), (1, 1)])
    assert dependencies(3, several) == [(), (0,), ()]


@pytest.mark.parametrize(("machines", "topology", "mean", "all_up"), REFERENCE)
def test_optimal_values_are_the_reference_values(machines, topology, mean, all_up):
    exact = solve_exactly(sysadmin(machines, topology, horizon=10))
    assert exact.uniform_value == pytest.approx(mean, abs=1e-3)
    assert exact.start_value == pytest.approx(all_up, abs=1e-3)


def test_a_machine_has_two_action_groups_however_many_actions():
    model = sysadmin(12)
    assert all(len(mechanism.cases) == 2 for mechanism in model.dynamics.mechanisms)


def test_a_ring_of_a_thousand_machines_builds():
    model = sysadmin(1000)
    assert len(model.variables) == 1000
    assert model.parents(0) == (0, 999)


def test_one_machine_depends_on_nobody():
    for topology in TOPOLOGIES:
        assert dependencies(1, topology) == [()]
    assert sysadmin(1).n_states == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), r"machines is 0, expected a whole number from 1 to \d+; use 1 or more"),
        ((10**9,), r"machines is 1000000000, .* fewer"),
        ((2.5,), r"machines is 2.5, expected a whole number .*; give machines as an integer"),
        ((True,), "machines is True"),
        ((4, "torus"), "unknown topology 'torus'; expected one of ring, bidirectional-ring, star"),
        ((4, {0: [7]}), "names machine 7, expected 0 to 3"),
        ((4, {4: [0]}), "names machine 4, expected 0 to 3"),
        ((4, {0: ["hub"]}), "names machine 'hub', expected 0 to 3"),
        ((4, {0: 1}), "machine 0 depends on 1, expected a list of machines"),
        ((4, {0.0: [1]}), "names machine 0.0, expected 0 to 3"),
        ((4, {0: [[1]]}), r"names machine \[1\], expected 0 to 3"),
        ((4, [[1], [2]]), r"unknown topology \[\[1\], \[2\]\]; expected one of ring"),
        ((4, None), "unknown topology None; expected one of ring"),
        ((4, "r" * 10**6), "unknown topology 'rrr.*; expected one of ring"),
        ((4, networkx.star_graph(4)), "names machine 4, expected 0 to 3"),
        ((4, networkx.Graph([("a", "b")])), "names machine 'a', expected 0 to 3"),
        ((30, {0: range(30)}), "depends on 29 others, expected at most 16"),
    ],
)
def test_bad_arguments_are_refused_with_a_remedy(arguments, message):
    with pytest.raises(ModelError, match=message):
        sysadmin(*arguments)
