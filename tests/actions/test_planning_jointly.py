"""Planning with action variables gives what planning with the list of joint actions gives."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.joint_models import all_states, joint_model

import fsmdp
from fsmdp.bounds.bellman import network_of_model
from fsmdp.bounds.certificate import separate
from fsmdp.elimination import build
from fsmdp.elimination.compiled_schedule import flatten
from fsmdp.elimination.rows import sample
from fsmdp.policies.joint import joint_network

SEEDS = st.integers(0, 10**6)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fsmdp.TrivialBoundWarning)
        yield


def with_basis(seed, **options):
    model = joint_model(seed, **options)
    basis = fsmdp.Basis.singles(model) if seed % 2 else fsmdp.Basis.pairs(model)
    return model, basis


@given(SEEDS, st.sampled_from(["shared", "separate"]))
@settings(max_examples=40)
def test_the_largest_excess_is_that_of_all_states_and_allowed_actions(seed, elimination):
    model, basis = with_basis(seed, most=128)
    network, intervals = network_of_model(model, basis, elimination=elimination)
    weights = np.random.default_rng(seed).normal(size=(3, len(network.basis)))
    found = network.elimination.maximise(network.excess(weights[0], weights[1], intervals))
    listed, known = network_of_model(model.listed(), basis)
    expected = listed.elimination.maximise(listed.excess(weights[0], weights[1], known))
    assert found.value == pytest.approx(expected.value, abs=1e-9)
    assignment = found.state(0)
    name = network.action_of(assignment, 0)
    assert name in model.actions
    at = listed.excess(weights[0], weights[1], known)
    state = network.state_of(assignment)
    value = listed.elimination.network.value(at, state, model.actions.index(name))
    assert value == pytest.approx(expected.value, abs=1e-9)


@given(SEEDS, st.sampled_from(["stagewise", "joint", "cutting-planes"]))
@settings(max_examples=40)
def test_bounds_are_those_of_the_list(seed, method):
    model, basis = with_basis(seed)
    found = fsmdp.plan(model, basis, method=method)
    expected = fsmdp.plan(model.listed(), basis, method=method)
    if method == "stagewise":
        # Optimal weights of a stage need not be unique, so later stages may differ; the last not.
        last = [one.weights[-2] for one in (found, expected)]
        means = [table.values.mean() for table in basis]
        assert last[0] @ means == pytest.approx(last[1] @ means, abs=1e-6)
    else:
        assert found.program.certified == pytest.approx(expected.program.certified, abs=2e-5)
    exact = fsmdp.solve_exactly(model.listed())
    assert found.upper_bound >= exact.start_value - 1e-9
    for state in all_states(model):
        assert found.value(state) >= exact.value(state) - 1e-9
    assert found.certificate.witness.action in model.actions


@given(SEEDS)
@settings(max_examples=10)
def test_discounted_bounds_are_those_of_the_list(seed):
    model, basis = with_basis(seed, horizon=None, discount=0.9, most=64)
    found = fsmdp.plan(model, basis, method="joint", weights="uniform")
    expected = fsmdp.plan(model.listed(), basis, method="joint", weights="uniform")
    assert found.objective == pytest.approx(expected.objective, abs=1e-5)


def test_the_ellipsoid_method_agrees():
    model = joint_model(3, horizon=2, most=16)
    basis = fsmdp.Basis.singles(model)
    plan = fsmdp.plan(model, basis, method=fsmdp.Ellipsoid(epsilon=1e-3))
    expected = fsmdp.plan(model.listed(), basis, method="joint")
    assert plan.upper_bound == pytest.approx(expected.upper_bound, abs=5e-3)


@given(SEEDS)
@settings(max_examples=20)
def test_the_separating_hyperplane_is_that_of_its_state_and_action(seed):
    model, basis = with_basis(seed, most=64)
    network, intervals = network_of_model(model, basis)
    weights = np.random.default_rng(seed).normal(size=(3, len(network.basis)))
    found = separate(network, intervals, weights)
    assert found.reward - found.normal @ weights.ravel() == pytest.approx(found.violation, abs=1e-9)


@given(SEEDS)
@settings(max_examples=20)
def test_rows_of_what_is_not_allowed_are_left_out(seed):
    model, basis = with_basis(seed, most=64)
    network, _ = network_of_model(model, basis)
    rows = network.elimination.rows()
    assert rows.n_rows <= network.elimination.n_rows
    assert (np.diff(rows.messages.tocsc().indptr) > 0).all()
    assert np.isfinite(rows.gather.data).all()


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_counting_lets_at_most_so_many_nonzero(most):
    rng = np.random.default_rng(most)
    actions = fsmdp.Actions([fsmdp.Variable(f"a{i}", 2 + i % 2) for i in range(8)], at_most=most)
    scopes = [tuple(sorted(rng.permutation(8)[:2].tolist())) for _ in range(7)]
    factors = [
        fsmdp.Cases((scope,)) for scope in dict.fromkeys([*scopes, *((i,) for i in range(8))])
    ]
    for order in (None, rng.permutation(8).tolist()):
        network, complete, additions = joint_network((), actions, factors, order)
        assert len(additions) == len(network.constraints)
        assert complete is None or sorted(complete) == list(range(network.n_variables))
        elimination = build(network, elimination_order=complete)
        entries = rng.normal(size=network.n_entries)
        rows = actions.rows()
        values = fsmdp.elimination.Network(actions.sizes, 1, tuple(factors)).value(entries, rows, 0)
        found = elimination.maximise(entries)
        assert found.value == pytest.approx(values.max())
        assert actions.allows(found.state(0)[:8])


def test_an_elimination_order_names_action_variables_too():
    model = fsmdp.domains.sysadmin(4, administrators=2)
    basis = fsmdp.Basis.singles(model)
    order = [v.name for v in model.inputs]
    plan = fsmdp.plan(model, basis, method="joint", elimination_order=order)
    expected = fsmdp.plan(model, basis, method="joint")
    assert plan.upper_bound == pytest.approx(expected.upper_bound, abs=1e-6)
    with pytest.raises(fsmdp.ModelError, match="order"):
        fsmdp.plan(model, basis, method="joint", elimination_order=order[:4])


# ---- acting


@given(SEEDS)
@settings(max_examples=40)
def test_greedy_actions_have_the_largest_q_of_all_allowed_ones(seed):
    model, basis = with_basis(seed, most=256)
    plan = fsmdp.plan(model, basis, method="stagewise")
    for state in all_states(model):
        for step in (1, 3):
            values = plan.q_values(state, step)
            chosen = model.actions.index(plan.action(state, step))
            assert values[chosen] == pytest.approx(values.max(), abs=1e-9)


@given(SEEDS)
@settings(max_examples=15)
def test_compiled_and_python_policies_live_through_the_same_episodes(seed):
    model, basis = with_basis(seed, most=64)
    plan = fsmdp.plan(model, basis, method="stagewise")
    compiled = fsmdp.rollout(model, plan, episodes=20, seed=seed)
    python = fsmdp.rollout(model, lambda s, step: plan.action(s, step), episodes=20, seed=seed)
    assert compiled.returns == pytest.approx(python.returns, abs=1e-12)


def test_ties_go_to_the_idle_value():
    model = fsmdp.domains.sysadmin(5, administrators="each")
    plan = fsmdp.plan(model, fsmdp.Basis([]), method="stagewise")
    assert plan.action((0, 1, 0, 1, 0), 1) == "noop"


@pytest.mark.parametrize("seed", range(6))
def test_saved_plans_act_alike(seed, tmp_path):
    model, basis = with_basis(seed, most=64)
    plan = fsmdp.plan(model, basis, method="stagewise")
    path = tmp_path / "plan.npz"
    plan.save(path)
    again = fsmdp.load_plan(path)
    for state in all_states(model):
        assert again.action(state, 1) == plan.action(state, 1)
    assert again.action_names == model.actions


def test_a_plan_of_other_joint_actions_is_refused():
    one, two = (fsmdp.domains.sysadmin(4, administrators=k) for k in (1, 2))
    plan = fsmdp.plan(one, fsmdp.Basis.singles(one), method="stagewise")
    with pytest.raises(fsmdp.PolicyError, match="another model"):
        fsmdp.rollout(two, plan, episodes=2)


@pytest.mark.parametrize("seed", range(4))
def test_duals_of_rows_give_allowed_states_and_actions_of_their_frequencies(seed):
    model, basis = with_basis(seed, most=64)
    network, _ = network_of_model(model, basis)
    schedule, rows = network.elimination.schedule, network.elimination.rows()
    marks = np.arange(1.0, rows.n_rows + 1)
    spread = rows.spread(marks)
    assert len(spread) == schedule.n_rows
    assert np.array_equal(np.sort(spread[spread > 0]), marks)
    # A measure on one assignment: every table of the schedule has it at one entry.
    entries = np.random.default_rng(seed).normal(size=network.elimination.network.n_entries)
    best = network.elimination.maximise(entries).state(0)
    duals = []
    for step in schedule.steps:
        axes = (*step.kept, *step.eliminated)
        sizes = [network.elimination.network.sizes[v] for v in axes]
        table = np.zeros(sizes)
        table[tuple(best[v] for v in axes)] = 1.0
        duals.append(table.ravel())
    whole = np.concatenate(duals)
    kept = whole if rows.kept is None else whole[rows.kept]
    assert kept.sum() == len(schedule.steps)  # nothing of an allowed assignment is ruled out
    states, _ = sample(schedule, flatten(schedule), rows.spread(kept), 3, np.random.default_rng(0))
    assert (states == best).all()


@given(SEEDS, st.sampled_from([4, 8, 32]))
@settings(max_examples=25)
def test_mini_buckets_bound_the_maximum_over_allowed_actions_from_above(seed, most_entries):
    model, basis = with_basis(seed, most=128)
    exact, intervals = network_of_model(model, basis)
    split, known = network_of_model(model, basis, mini_bucket=most_entries)
    weights = np.random.default_rng(seed).normal(size=(2, len(exact.basis)))
    found = split.elimination.maximise(split.excess(*weights, known))
    least = exact.elimination.maximise(exact.excess(*weights, intervals)).value
    assert least - 1e-9 <= found.value < np.inf
    assert float((found.picked([0]) @ found.entries)[0]) == pytest.approx(found.value)
