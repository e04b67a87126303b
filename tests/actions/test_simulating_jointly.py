"""Simulated laws, environments and learners with action variables against the listed form."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from tests.joint_models import joint_actions, joint_model

import fsmdp
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.actions import ListedActions
from fsmdp.model.conditions import Conditions
from fsmdp.policies.arrays import (
    by_chance,
    check_policy,
    given_action,
    policy_from_arrays,
    policy_to_arrays,
)
from fsmdp.policies.joint import random_actions
from fsmdp.policies.resolve import resolve

SEEDS = st.integers(0, 10**6)


@given(SEEDS)
@settings(max_examples=20)
def test_a_fixed_joint_action_earns_the_same_in_the_same_episodes(seed):
    model = joint_model(seed, most=32)
    listed = model.listed()
    for name in listed.actions[:: max(1, len(listed.actions) // 4)]:
        found = fsmdp.rollout(model, name, episodes=5, seed=seed)
        expected = fsmdp.rollout(listed, name, episodes=5, seed=seed)
        assert found.returns == pytest.approx(expected.returns, abs=1e-12)


@given(SEEDS)
@settings(max_examples=20)
def test_policies_of_the_listed_model_are_followed_alike(seed):
    model = joint_model(seed, most=32)
    listed = model.listed()
    exact = fsmdp.solve_exactly(listed)
    table = np.random.default_rng(seed).integers(len(listed.actions), size=(3, listed.n_states))
    for policy in (exact, table):
        found = fsmdp.rollout(model, policy, episodes=5, seed=seed)
        expected = fsmdp.rollout(listed, policy, episodes=5, seed=seed)
        assert found.returns == pytest.approx(expected.returns, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_chance_takes_every_allowed_joint_action_alike(seed):
    actions = joint_actions(np.random.default_rng(seed), most=32)
    chance = random_actions(Conditions(actions, actions.variables))
    _, drawn = chance.draw(np.zeros((4000, 0), dtype=np.int64), np.random.default_rng(seed))
    positions = [actions.index(tuple(row)) for row in drawn.tolist()]
    counts = np.bincount(positions, minlength=len(actions))
    assert chisquare(counts).pvalue > 1e-4 or len(actions) == 1


def test_chance_needs_no_list():
    model = fsmdp.domains.sysadmin(300, administrators="each", horizon=2)
    states = np.ones((200, 300), dtype=np.int64)
    _, drawn = random_actions(model.conditions).draw(states, np.random.default_rng(0))
    assert abs(drawn.mean() - 0.5) < 0.01
    assert fsmdp.rollout(model, "random", episodes=2).steps == 2


@given(SEEDS)
@settings(max_examples=10)
def test_environments_take_multidiscrete_actions(seed):
    model = joint_model(seed, most=64)
    env = fsmdp.make_env(model)
    assert isinstance(env.action_space, gymnasium.spaces.MultiDiscrete)
    row = model.actions.rows()[-1]
    name = model.actions.name(row)
    rewards = []
    for action in (row, name, tuple(row.tolist())):
        env.reset(seed=seed)
        rewards.append(env.step(action)[1])
    assert rewards[0] == rewards[1] == rewards[2]


def test_an_environment_says_which_joint_actions_are_not_allowed():
    env = fsmdp.make_env(fsmdp.domains.sysadmin(3, administrators=1))
    env.reset(seed=0)
    with pytest.raises(fsmdp.PolicyError, match="not allowed"):
        env.step([1, 1, 0])


def test_arrays_of_policies_are_stored_and_checked():
    model = fsmdp.domains.sysadmin(4, administrators=2)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="stagewise")
    given = given_action(4, model.actions)
    fixed = given.policy
    for policy in (plan.compiled(), by_chance(model.conditions), fixed):
        check_policy(policy, model.sizes, model.actions)
        again = policy_from_arrays(policy_to_arrays(policy), model.sizes, model.actions)
        check_policy(again, model.sizes, model.actions)
        with pytest.raises(ValueError, match="policy"):
            check_policy(policy, model.sizes, ListedActions("wait"))
        other = policy._replace(joint=policy.joint._replace(slots=policy.joint.slots + 1))
        with pytest.raises(ValueError, match="policy"):
            check_policy(other, model.sizes, model.actions)
    given.give((1, 1, 1, 1))
    with pytest.raises(ValueError, match="allowed"):
        check_policy(fixed, model.sizes, model.actions)


# ---- learning


@given(SEEDS)
@settings(max_examples=8)
def test_counts_added_up_over_joint_actions_are_those_of_the_list(seed):
    model = joint_model(seed, most=32)
    basis = fsmdp.Basis.singles(model)
    table = np.random.default_rng(seed).integers(len(model.actions), size=(3, model.n_states))
    (together, learner), (apart, of_list) = (
        _followed(one, basis, table, seed) for one in (model, model.listed())
    )
    assert together.returns == pytest.approx(apart.returns, abs=1e-12)
    expected = _counts(of_list)
    found = dict.fromkeys(expected, 0)
    n, rows = len(model.variables), model.actions.rows().tolist()
    for (function, _, values), outcomes in _counts(learner).items():
        scope = learner.structure.parents[function].groups[0]
        at = dict(zip(scope, values, strict=True))
        action = next(
            (
                a
                for a, row in enumerate(rows)
                if all(at.get(n + i, v) == v for i, v in enumerate(row))
            ),
            None,
        )
        if action is None:
            assert outcomes.sum() == 0
            continue
        cases = of_list.structure.parents[function]
        group = cases.group(action)
        key = (function, group, tuple(at[p] for p in cases.groups[group]))
        found[key] = found[key] + outcomes
    for key, outcomes in expected.items():
        assert np.array_equal(found[key] + 0 * outcomes, outcomes)


def _followed(model, basis, table, seed):
    learner = fsmdp.UCRLFactored(model.structure(basis), seed=0)
    learner._ties.policy = lambda *_: resolve(model, table).arrays
    return fsmdp.learn(model, learner, episodes=30, seed=seed), learner


def _counts(learner):
    """Outcomes by function, group and parent values; of a cell's assignments the first."""
    structure, layout = learner.structure, learner.cells.layout
    sizes = [variable.size for variable in structure.inputs]
    found, seen, entry = {}, set(), layout.n_reward_cells
    for function, cases in enumerate(structure.parents):
        for group, scope in enumerate(cases):
            for values in np.ndindex(*(sizes[p] for p in scope)):
                cell = int(layout.cell_of[entry]) - layout.n_reward_cells
                entry += 1
                if cell not in seen:
                    seen.add(cell)
                    begin = layout.outcome_start[cell]
                    end = begin + learner.cells.n_values[cell]
                    found[function, group, values] = learner.statistics.outcomes[begin:end]
    return found


@pytest.mark.parametrize("kind", ["UCRLFactored", "PSRLFactored"])
def test_learners_of_a_model_and_of_its_environment_count_alike(kind, tmp_path):
    model = fsmdp.domains.sysadmin(4, administrators=2, horizon=4)
    structure = model.structure(fsmdp.Basis.singles(model))
    returns = []
    for world in (model, fsmdp.make_env(model)):
        learner = getattr(fsmdp, kind)(structure, seed=1, known_rewards=model.rewards)
        returns.append(fsmdp.learn(world, learner, episodes=12, seed=3).returns)
    assert np.array_equal(*returns)
    path = tmp_path / "run.npz"
    for episodes in (5, 12):
        learner = getattr(fsmdp, kind)(structure, seed=1, known_rewards=model.rewards)
        history = fsmdp.learn(
            model, learner, episodes=episodes, seed=3, checkpoint=path, checkpoint_every=5
        )
    assert np.array_equal(history.returns, returns[0])


def test_a_learner_tells_apart_what_the_grouped_list_does_and_no_more():
    model = fsmdp.domains.sysadmin(8, administrators=2)
    basis = fsmdp.Basis.singles(model)
    # A machine that is rebooted has one cell, any other four; what others do does not matter.
    assert model.structure(basis).cells == 8 * 5
    assert model.structure(basis).cells == model.listed().structure(basis).cells
    everyone = fsmdp.domains.sysadmin(8, administrators="each")
    assert everyone.structure(basis).cells == 8 * 5


@given(SEEDS)
@settings(max_examples=25)
def test_assignments_of_one_context_have_the_same_expectations(seed):
    rng = np.random.default_rng(seed)
    model = joint_model(seed, most=64)
    tables = []
    for conditional in model.conditionals:  # make parents idle under some values of actions
        case = conditional.cases[0]
        table = case.table.copy()
        for axis, parent in enumerate(case.parents):
            if parent.startswith("x"):
                own = [slice(None)] * table.ndim
                for other, name in enumerate(case.parents):
                    if name.startswith("a") and rng.random() < 0.7:
                        own[other] = slice(0, 1)
                table[tuple(own)] = np.take(table[tuple(own)], [0], axis=axis)
        tables.append(fsmdp.Case(fsmdp.ANY, case.parents, table, case.drawn))
    idle = fsmdp.FactoredMDP(
        model.variables,
        model.actions,
        [
            fsmdp.Conditional(one.children, case)
            for one, case in zip(model.conditionals, tables, strict=True)
        ],
        model.rewards,
        3,
        latents=model.latents,
    )
    structure = idle.structure(fsmdp.Basis.pairs(idle))
    sizes = idle.input_sizes
    means = idle.marginals(structure.basis).backprojections()
    for function, contexts in enumerate(structure.contexts):
        if contexts is None:
            continue
        scope = structure.parents[function].groups[0]
        found = {}
        for cell, values in zip(contexts, np.ndindex(*(sizes[p] for p in scope)), strict=True):
            at = [0] * len(sizes)
            for position, value in zip(scope, values, strict=True):
                at[position] = value
            mean = means[function].groups[0].value(at)
            assert found.setdefault(int(cell), mean) == pytest.approx(mean, abs=1e-12)


def test_a_structure_by_hand_names_action_variables_as_parents():
    model = fsmdp.domains.sysadmin(3, administrators=2)
    by_hand = fsmdp.Structure.from_parents(
        model.variables,
        model.actions,
        parents={
            f"machine-{i}": [
                fsmdp.Case(
                    fsmdp.ANY, parents=[f"machine-{i}", f"machine-{(i - 1) % 3}", f"reboot-{i}"]
                )
            ]
            for i in range(3)
        },
        rewards=model.rewards,
        basis=fsmdp.Basis.singles(model),
        horizon=model.horizon,
    )
    told = model.structure(fsmdp.Basis.singles(model))
    assert [c.groups for c in by_hand.parents] == [c.groups for c in told.parents]


def test_a_structure_of_other_joint_actions_is_refused():
    model = fsmdp.domains.sysadmin(3, administrators=2)
    other = fsmdp.domains.sysadmin(3, administrators=1)
    learner = fsmdp.PSRLFactored(other.structure(fsmdp.Basis.singles(other)), seed=0)
    for world in (model, model.listed()):
        with pytest.raises(fsmdp.ModelError, match="action variables"):
            fsmdp.learn(world, learner, episodes=2, seed=0)
    with pytest.raises(fsmdp.ModelError, match="MultiDiscrete"):
        fsmdp.learn(fsmdp.make_env(model.listed()), learner, episodes=2, seed=0)


def test_learners_that_enumerate_ask_for_the_list():
    model = fsmdp.domains.sysadmin(3, administrators=2)
    with pytest.raises(fsmdp.ModelError, match="listed"):
        fsmdp.UCBVI(model.structure(fsmdp.Basis.singles(model)))


def test_fixed_policies_are_learners_too():
    model = fsmdp.domains.sysadmin(3, administrators=2, horizon=3)
    structure = model.structure(fsmdp.Basis.singles(model))
    for policy in ("reboot-0+reboot-1", lambda state, step: {"reboot-2": 1}, "random"):
        learner = fsmdp.FixedPolicy(structure, policy)
        history = fsmdp.learn(model, learner, episodes=5, seed=2)
        expected = fsmdp.rollout(model, policy, episodes=5, seed=generator(2, Purpose.LEARNING))
        assert history.returns == pytest.approx(expected.returns)
