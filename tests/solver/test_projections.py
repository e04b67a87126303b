"""Projections: the model itself where all is kept, averages elsewhere, and a way to far goals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fsmdp
from fsmdp import ANY, Case, Conditional, FactoredMDP, Reward, Variable, domains, solve_exactly
from fsmdp.bounds.clock import Stopped
from fsmdp.errors import SizeError
from fsmdp.exact.flat import enumerate_states
from fsmdp.reductions.projection import Project
from fsmdp.simulation.rollout import rollout
from fsmdp.solver.engines import projections as projecting
from fsmdp.solver.engines.projections import (
    crossed,
    frequencies_of,
    functions_of,
    policy_of,
    projections_of,
)
from fsmdp.solver.fitting import Choices, Fitting, empty_pool, first_basis, with_scopes, with_states

PATIENT = settings(max_examples=25, deadline=None)


def uniform(model):
    return [np.full(size, 1 / size) for size in model.sizes]


def idle():
    """A check that never stops anything."""


@PATIENT
@given(st.integers(0, 10**6), st.booleans())
def test_a_projection_onto_all_variables_is_the_model(seed, endless):
    model = domains.random_model(
        seed, horizon=None if endless else 4, discount=0.8 if endless else 1.0
    )
    everything = range(len(model.variables))
    projected = Project(everything, range(len(model.rewards)), uniform(model)).apply(model).model
    one, other = enumerate_states(model), enumerate_states(projected)
    np.testing.assert_allclose(other.transitions, one.transitions, atol=1e-12)
    np.testing.assert_allclose(other.rewards, one.rewards, atol=1e-12)
    assert projected.horizon == model.horizon
    assert projected.discount == model.discount


@PATIENT
@given(st.integers(0, 10**6))
def test_other_variables_are_averaged_at_their_frequencies(seed):
    model = domains.random_model(seed, latents=0, drawn=False, horizon=3)
    rng = np.random.default_rng(seed)
    frequencies = [rng.dirichlet(np.ones(size)) for size in model.sizes]
    kept = int(rng.integers(len(model.variables)))
    projected = Project([kept], range(len(model.rewards)), frequencies).apply(model)
    found = enumerate_states(projected.model)
    flat = enumerate_states(model)
    chances = np.ones(len(flat.states))
    for variable, frequency in enumerate(frequencies):
        if variable != kept:
            chances = chances * frequency[flat.states[:, variable]]
    size = model.sizes[kept]
    for now in range(size):
        rows = flat.states[:, kept] == now
        rewards = (flat.rewards[:, rows] * chances[rows]).sum(axis=1)
        np.testing.assert_allclose(found.rewards[:, now], rewards, atol=1e-12)
        for later in range(size):
            columns = flat.states[:, kept] == later
            reached = flat.transitions[:, rows][:, :, columns].sum(axis=2)
            wanted = (reached * chances[rows]).sum(axis=1)
            np.testing.assert_allclose(found.transitions[:, now, later], wanted, atol=1e-12)


def corridor(cells=9, lights=12, horizon=20):
    """A walker on exclusive cells, who stands still at a red light and is paid at the far end."""
    names = [f"at-{cell}" for cell in range(cells)]
    variables = [Variable(name, 2) for name in names]
    variables += [Variable(f"light-{light}", 2) for light in range(lights)]
    conditionals = []
    for cell in range(cells):
        stays = Case(ANY, [names[cell]], [[1.0, 0.0], [0.0, 1.0]])
        cases = [stays]
        for action, behind in (("left", cell + 1), ("right", cell - 1)):
            # A step is taken where the light of the cell that is left is green.
            parents = [names[cell], f"light-{cell}"]
            table = np.zeros((2, 2, 2))
            at_end = cell == (0 if action == "left" else cells - 1)
            table[0, :, 0] = 1.0
            table[1, 0, 1 if at_end else 0] = 1.0
            table[1, 1, 1] = 1.0
            if 0 <= behind < cells:
                parents += [names[behind], f"light-{behind}"]
                wide = np.zeros((2, 2, 2, 2, 2))
                wide[:] = table[:, :, None, None, :]
                wide[0, :, 1, 0, :] = [0.0, 1.0]
                table = wide
            cases.append(Case([action], parents, table))
        conditionals.append(Conditional(names[cell], cases))
    for light in range(lights):
        conditionals.append(Conditional(f"light-{light}", Case(ANY, [], [0.5, 0.5])))
    pay = Reward("pay", Case(ANY, [names[-1]], [0.0, 1.0]))
    return FactoredMDP(
        variables, ["wait", "left", "right"], conditionals, [pay], horizon, {"at-0": 1}
    )


def fitting_of(model):
    fitting = Fitting(model, first_basis(model, True), Choices(), idle)
    states = np.zeros((1, model.horizon or 1, len(model.variables)), dtype=np.int64)
    fitting.add_states(states)
    return fitting


def test_a_projection_finds_the_way_to_a_goal_that_no_pool_has_seen():
    joined = fsmdp.join(corridor()).model  # the cells are one variable
    (found,) = projections_of(joined, uniform(joined), idle)
    assert [joined.sizes[position] for position in found.kept] == [9]  # without the lights
    policy = policy_of(fitting_of(joined), [found], 0)
    always_right = rollout(joined, "right", 2000, 1)
    runs = rollout(joined, policy, 2000, 1)
    assert runs.mean == pytest.approx(always_right.mean)  # the best there is
    assert runs.mean > 2.0
    assert rollout(joined, "random", 2000, 1).mean < 0.2


def test_where_all_variables_are_kept_the_policy_is_optimal():
    tried = 0
    for seed in range(40):
        model = domains.random_model(seed, variables=2, rewards=2, horizon=4, random_start=False)
        found = projections_of(model, uniform(model), idle)
        if not found or found[0].kept != (0, 1):
            continue  # no action moves one of them, or no reward comes of it
        tried += 1
        basis = with_scopes(model, fsmdp.Basis([]), [(0,), (1,), (0, 1)])
        policy = policy_of(Fitting(model, basis, Choices(), idle), found, 0)
        start = enumerate_states(model).initial()
        value = float(start @ fsmdp.evaluate_exactly(model, policy))
        assert value == pytest.approx(solve_exactly(model).start_value, abs=1e-4)
    assert tried >= 5


def test_too_many_states_are_halved_until_they_fit_and_terms_stand_alone():
    model = domains.sysadmin(20, "ring", horizon=10)
    found = projections_of(model, uniform(model), idle)
    assert len(found) == 20
    assert all(2 <= len(one.kept) < 20 for one in found)
    tables = functions_of(model, found)
    assert tables
    for table in tables:
        assert 0.0 == table.values.min() < table.values.max() == 1.0
    fitting = fitting_of(model)
    before = len(fitting.basis)
    assert fitting.add_functions(tables, idle) == len(tables)
    assert len(fitting.basis) == before + len(tables)


def test_frequencies_are_those_of_the_pool():
    met = np.array([[[0, 2], [1, 2]], [[0, 0], [1, 2]]])
    pool = with_states(empty_pool(2, 2), met, 100)
    first, second = frequencies_of(pool, (2, 3))
    np.testing.assert_allclose(first, [0.5, 0.5], atol=1e-3)
    np.testing.assert_allclose(second, [0.25, 0.0, 0.75], atol=1e-3)


def test_crossed_states_have_what_is_projected_anywhere_and_the_rest_as_it_was():
    joined = fsmdp.join(corridor()).model
    fitting = fitting_of(joined)  # has seen one state
    (found,) = projections_of(joined, uniform(joined), idle)
    assert found.whole
    states = crossed(fitting.pool, found, 500, np.random.default_rng(0))
    assert states.shape == (500, joined.horizon, len(joined.variables))
    (walker,) = found.kept
    assert set(states[:, 3, walker].tolist()) == set(range(9))
    assert not np.delete(states, walker, axis=2).any()


def test_projecting_stops_when_it_is_told_to():
    model = domains.sysadmin(12, "ring", horizon=5)

    def stop():
        raise Stopped

    with pytest.raises(Stopped):
        projections_of(model, uniform(model), stop)


def test_a_projection_that_does_not_fit_is_none(monkeypatch):
    model = domains.sysadmin(6, "ring", horizon=5)

    class Refusing:
        def __init__(self, **_):
            pass

        def solve(self, *_):
            raise SizeError("no room")

    monkeypatch.setattr(projecting, "Exact", Refusing)
    assert projections_of(model, uniform(model), idle) == []


def test_the_loop_tries_projections():
    planner = fsmdp.Auto(exact=False, rounds=0)
    plan = planner.plan(corridor(cells=6, lights=8, horizon=12))
    assert any("projections onto" in line.what for line in plan.log)
