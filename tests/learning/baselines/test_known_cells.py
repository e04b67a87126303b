"""Factored R-max: what is unknown is hoped for, and not for ever."""

import numpy as np
import pytest
from tests.learning.baselines.baseline_models import structure_of, switch
from tests.learning.learning_models import assert_same_history, coins, planned_values

import fsmdp
from fsmdp import ModelError, domains


def chain(places=5):
    """Walk right to the end, which alone pays; every step left pays a little at once."""
    to_left = np.eye(places)[np.maximum(np.arange(places) - 1, 0)]
    to_right = np.eye(places)[np.minimum(np.arange(places) + 1, places - 1)]
    small, large = np.zeros(places), np.zeros(places)
    small[0], large[-1] = 0.01, 1.0
    return fsmdp.FactoredMDP(
        variables=[fsmdp.Variable("place", places)],
        actions=["left", "right"],
        conditionals=[
            fsmdp.Conditional(
                "place",
                [
                    fsmdp.Case("left", parents=["place"], table=to_left),
                    fsmdp.Case("right", parents=["place"], table=to_right),
                ],
            )
        ],
        rewards=[
            fsmdp.Reward(
                "pay",
                [
                    fsmdp.Case("left", parents=["place"], table=small),
                    fsmdp.Case("right", parents=["place"], table=large),
                ],
            )
        ],
        horizon=places,
        initial={"place": 0},
    )


def met_while_unknown(model, learner, episodes):
    """For each episode the visits of cells that were unknown when it began; and the returns."""
    met, returns = [], []
    for _ in range(episodes):
        unknown, before = learner.unknown(), learner.statistics.visits.copy()
        history = fsmdp.learn(model, learner, episodes=1, seed=len(met))
        met.append(np.where(unknown, learner.statistics.visits - before, 0))
        returns.append(history.returns[0])
    return np.array(met), np.array(returns)


def test_an_episode_is_optimal_or_meets_an_unknown_cell_and_these_come_to_an_end():
    model = chain()
    best = fsmdp.solve_exactly(model).start_value
    learner = fsmdp.RMaxFactored(structure_of(model), 3)
    met, returns = met_while_unknown(model, learner, 120)
    explores = met.any(axis=1)
    assert returns[~explores] == pytest.approx(best)
    assert (~explores).sum() > 20
    assert (returns[explores] < best).any()
    # A cell is unknown for m visits, and to the end of the episode in which the last one falls.
    assert (met.sum(axis=0) <= learner.needed() + model.horizon).all()


@pytest.mark.parametrize("known_after", [1, 4])
def test_the_optimum_of_a_chain_is_found_where_a_little_is_paid_at_once(known_after):
    model = chain()
    best = fsmdp.solve_exactly(model).start_value
    learner = fsmdp.RMaxFactored(structure_of(model), known_after)
    history = fsmdp.learn(model, learner, episodes=150)
    assert history.returns[-20:] == pytest.approx(best)
    assert history.returns[:3].min() < best
    assert history.replans.sum() <= 1 + len(learner.statistics.visits)


def test_before_anything_is_known_values_are_all_that_could_be_earned():
    model = switch()
    learner = fsmdp.RMaxFactored(structure_of(model))
    states = fsmdp.solve_exactly(model).flat.states
    first = planned_values(learner, learner.replan(), states)
    np.testing.assert_allclose(first, model.horizon * 1.0, atol=1e-6)


def test_known_cells_are_believed_as_they_were_seen():
    model = coins(sigma=0.2)
    structure = structure_of(model)
    learner = fsmdp.RMaxFactored(structure, 30, seed=1)
    fsmdp.learn(model, learner, episodes=300)
    believed, n = learner.believed(), learner.cells.n_reward_cells
    unknown = learner.unknown()
    np.testing.assert_array_equal((believed.low < believed.high), unknown[n:])
    rows = learner.statistics
    for cell in np.flatnonzero(~unknown[n:]):
        start, size = learner.cells.layout.outcome_start[cell], learner.cells.n_values[cell]
        seen = rows.outcomes[start : start + size]
        first = learner.cells.layout.value_start[learner.cells.function[cell]]
        mean = seen @ learner.cells.values[first : first + size] / seen.sum()
        assert believed.low[cell] == pytest.approx(mean)


def test_losses_end_once_enough_is_known():
    model = domains.sysadmin(4, horizon=6)
    best = fsmdp.solve_exactly(model).start_value
    learner = fsmdp.RMaxFactored(structure_of(model), 40, known_rewards=model.rewards)
    history = fsmdp.learn(model, learner, episodes=1000, seed=3)
    assert best - history.returns[-500:].mean() < 0.02 * best
    assert best - history.returns[:30].mean() > 0.04 * best
    assert history.heuristic
    assert not history.optimistic


def test_many_variables_are_no_obstacle():
    model = domains.sysadmin(40, horizon=5)
    learner = fsmdp.RMaxFactored(structure_of(model), 5, known_rewards=model.rewards)
    assert len(fsmdp.learn(model, learner, episodes=3)) == 3


def test_the_same_seeds_give_the_same_run():
    model = domains.sysadmin(3, horizon=4)
    runs = [
        fsmdp.learn(model, fsmdp.RMaxFactored(structure_of(model), 3, seed=2), episodes=30, seed=5)
        for _ in range(2)
    ]
    assert_same_history(*runs)


def test_a_threshold_that_is_no_number_of_visits_is_refused():
    with pytest.raises(ModelError, match="known_after"):
        fsmdp.RMaxFactored(structure_of(switch()), 0)
