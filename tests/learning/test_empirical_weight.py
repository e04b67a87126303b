"""What was seen on average decides where optimism hardly tells actions apart."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.learning.learning_models import (
    actions_in,
    assert_same_history,
    planned_values,
    record_plans,
    shop,
)

import fsmdp
from fsmdp import ModelError
from fsmdp.bounds.finish import greedy_policy


@pytest.fixture(scope="module")
def model():
    return shop(horizon=12)


def learner_of(model, basis, episodes, **options):
    """Independence is not used, so that what overlapping blocks were seen to do can disagree."""
    options |= {"known_rewards": model.rewards, "independent": False}
    learner = fsmdp.UCRLFactored(model.structure(basis), **options)
    fsmdp.learn(model, learner, episodes=episodes, seed=3)
    return learner


def weights_of(planner):
    """Weights of every plan that is made from now on, by the planner's own account."""
    made, plan = [], planner.plan

    def recorded(*given):
        found = plan(*given)
        made.append(found.weights)
        return found

    planner.plan = recorded
    return made


@pytest.mark.parametrize("empirical_weight", [0.0, 0.5, 3.0])
def test_actions_have_the_largest_sum_of_hope_and_of_what_was_seen(model, empirical_weight):
    learner = learner_of(model, fsmdp.Basis.singles(model), 40, empirical_weight=empirical_weight)
    bounds = replace(learner.planned_for(learner.bounds()), together=learner.together)
    hopes = weights_of(learner.planner)
    seen = [] if learner.empirical is None else weights_of(learner.empirical)
    policy = learner.replan().acting.policy
    network, steps = learner.network, range(1, model.horizon + 1)
    hoped = greedy_policy(network, bounds, hopes[0])
    share = min(1.0, empirical_weight * math.sqrt(model.horizon / learner.episode))
    states = [tuple(state) for state in np.ndindex(*model.sizes)]
    others = 0
    for step in steps:
        entries = policy.entries[step - 1 : step]
        chosen = actions_of(policy, entries, states, len(model.actions))
        for state, action in zip(states, chosen, strict=True):
            values = np.array(hoped.q_values(state, step))
            total = values.copy()
            if seen:
                means = greedy_policy(network, learner.estimate(), seen[0])
                total += share * np.array(means.q_values(state, step))
            assert total[action] >= total.max() - 1e-7
            others += values[action] < values.max() - 1e-6
    assert (others > 0) == (empirical_weight > 0)


def actions_of(policy, entries, states, n_actions):
    rows = np.array(states, dtype=np.int64)
    return actions_in(policy._replace(entries=entries), rows, n_actions, np.random.default_rng(0))


def test_means_seen_are_distributions_where_nothing_was_seen(model):
    blocks = fsmdp.Basis.blocks(model, [[0, 1], [0, 2]])
    learner = learner_of(model, blocks, 2, empirical_weight=1)
    made = weights_of(learner.empirical)
    learner.replan()
    most = model.structure(blocks).largest_return
    values = planned_values_of(learner, made[0], [tuple(s) for s in np.ndindex(*model.sizes)])
    # With numbers that are no distribution, values of twelve steps were of the order of -1e9.
    assert values.min() >= -1e-6
    assert values.max() <= most + 1e-6
    unseen = learner.statistics.transition_visits == 0
    assert unseen.any()
    shares = learner.sets.shares(learner.statistics.outcomes.astype(float))
    function = learner.cells.function
    alike = np.array([table.values.mean() for table in learner.structure.basis])[function]
    np.testing.assert_allclose(learner.means_of(shares)[unseen], alike[unseen])


def planned_values_of(learner, weights, states):
    total = np.zeros(len(states))
    for function, table in enumerate(learner.structure.basis):
        for row, state in enumerate(states):
            total[row] += weights[0, function] * table.values[tuple(state[p] for p in table.scope)]
    return total


def test_what_leaning_costs_is_part_of_the_slack(model):
    """And so the observable bound holds: it adds up slacks, widths and luck."""
    exact = fsmdp.solve_exactly(model)
    structure = model.structure(fsmdp.Basis.pairs(model))
    slack = {3: 0.0, 0: 0.0}
    for empirical_weight, seed in product(slack, range(4)):
        learner = fsmdp.UCRLFactored(
            structure, known_rewards=model.rewards, empirical_weight=empirical_weight, seed=seed
        )
        plans = record_plans(learner)
        history = fsmdp.learn(model, learner, episodes=150, seed=seed)
        start = [(0, 1, 1)]
        for planned in plans:
            assert planned_values(learner, planned, start)[0] >= exact.start_value - 1e-7
        assert (history.slacks >= -1e-7).all()
        slack[empirical_weight] += history.slacks.sum()
        regret = np.cumsum(exact.start_value - history.returns)
        assert (regret <= history.observable_regret_bound() + 1e-9).all()
    assert slack[3] > 1.2 * slack[0]


def test_a_run_that_leans_resumes_bit_for_bit(tmp_path):
    """The second program too goes on from where it ended: its optima are not unique."""
    ring = fsmdp.domains.sysadmin(8)
    structure = ring.structure(fsmdp.Basis.pairs(ring))

    def run(episodes, **options):
        learner = fsmdp.UCRLFactored(structure, known_rewards=ring.rewards)
        return fsmdp.learn(ring, learner, episodes, seed=0, **options)

    run(25, checkpoint=tmp_path / "run.npz")
    assert_same_history(run(60), run(60, checkpoint=tmp_path / "run.npz"))


def test_presets_lean_as_they_say(model):
    structure = model.structure(fsmdp.Basis.singles(model))
    assert fsmdp.UCRLFactored(structure).empirical_weight == 4
    assert "empirical weight 4" in fsmdp.UCRLFactored(structure).describe()
    assert fsmdp.UCRLFactored(structure, "paper").empirical_weight == 0
    assert "empirical weight" not in fsmdp.UCRLFactored(structure, "paper").describe()
    independent = fsmdp.domains.sysadmin(3)
    told = independent.structure(fsmdp.Basis.singles(independent))
    assert fsmdp.UCRLFactored(told, planner="solver").empirical_weight == 0
    with pytest.raises(ModelError, match="no empirical weight"):
        fsmdp.UCRLFactored(told, planner="solver", empirical_weight=1)
    for wrong in (-1, math.nan, math.inf, "much", True):
        with pytest.raises(ModelError, match="empirical_weight: expected a number from 0"):
            fsmdp.UCRLFactored(structure, empirical_weight=wrong)
