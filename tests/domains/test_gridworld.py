"""Gridworld: occupancies exclude one another, hiding is safe, carelessness costs."""

from __future__ import annotations

import numpy as np
import pytest

from fsmdp.domains import gridworld
from fsmdp.errors import ModelError
from fsmdp.exact.evaluation import evaluate_exactly
from fsmdp.exact.flat import enumerate_states
from fsmdp.exact.solve import solve_exactly
from fsmdp.simulation.rollout import rollout


@pytest.fixture(scope="module")
def flat():
    return enumerate_states(gridworld(2, 3, horizon=4))


def lanes(states, rows, columns):
    """Number of objects in each lane of each state: (n_states, rows)."""
    return states[..., 2:].reshape(*states.shape[:-1], rows, columns).sum(axis=-1)


def test_occupancies_of_a_lane_are_negatively_correlated(flat):
    next_state = flat.transitions[
        :, flat.index((0, 0, 0, 1, 0, 0, 0, 1))
    ]  # one object in each lane
    chances = next_state @ flat.states
    for lane in (2, 5):
        for one in range(lane, lane + 3):
            for other in range(one + 1, lane + 3):
                both = next_state @ (flat.states[:, one] * flat.states[:, other])
                np.testing.assert_allclose(both, 0.0, atol=1e-15)
                assert (chances[:, one] * chances[:, other] > 0.01).all()


def test_objects_of_different_lanes_move_independently(flat):
    next_state = flat.transitions[:, flat.index((0, 0, 0, 1, 0, 0, 0, 1))]
    chances = next_state @ flat.states
    both = next_state @ (flat.states[:, 2] * flat.states[:, 5])
    np.testing.assert_allclose(both, chances[:, 2] * chances[:, 5], atol=1e-15)


def test_every_lane_keeps_its_number_of_objects_in_every_transition(flat):
    objects = lanes(flat.states, 2, 3)
    _, before, after = np.nonzero(flat.transitions)
    np.testing.assert_array_equal(objects[before], objects[after])


def test_every_lane_keeps_its_one_object_under_simulation():
    model = gridworld(4, 5)
    seen = []

    def wander(state, step):
        seen.append(state)
        return (len(seen) + step) % len(model.actions)

    rollout(model, wander, episodes=20, seed=0)
    visited = np.array(seen)
    assert (lanes(visited, 4, 5) == 1).all()
    assert len(np.unique(visited, axis=0)) > 50


def test_optimal_value_is_zero_in_every_state_at_every_step(flat):
    exact = solve_exactly(flat.model)
    assert not exact.values.any()


@pytest.mark.parametrize("options", [{}, {"horizon": None, "discount": 0.9}])
def test_hiding_earns_exactly_zero_everywhere(options):
    assert not evaluate_exactly(gridworld(2, 3, **options), "hide").any()


@pytest.mark.parametrize("policy", ["random", "north", "south", "west", "east"])
def test_careless_policies_collide(flat, policy):
    values = evaluate_exactly(flat.model, policy)
    assert flat.initial() @ values < -0.1
    assert (values <= 0).all()


def test_a_move_costs_one_exactly_when_its_target_is_occupied_now(flat):
    moves = {"north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1)}
    for action, (down, right) in moves.items():
        rows = np.clip(flat.states[:, 0] + down, 0, 1)
        columns = np.clip(flat.states[:, 1] + right, 0, 2)
        occupied = flat.states[np.arange(len(flat.states)), 2 + 3 * rows + columns]
        np.testing.assert_array_equal(
            flat.rewards[flat.model.action_index(action)], -occupied.astype(float)
        )


def test_the_agent_moves_as_told_and_stays_within_the_grid(flat):
    position = flat.transitions @ flat.states[:, :2]
    for action, (down, right) in enumerate([(-1, 0), (1, 0), (0, -1), (0, 1), (0, 0)]):
        expected = np.clip(flat.states[:, :2] + (down, right), 0, (1, 2))
        np.testing.assert_allclose(position[action], expected, atol=1e-12)


@pytest.mark.parametrize(("rows", "columns"), [(5, 6), (3, 2), (1, 4), (2, 3)])
def test_a_cell_depends_on_itself_and_its_lane_neighbours_only(rows, columns):
    model = gridworld(rows, columns)
    for row in range(rows):
        for column in range(columns):
            lane = {2 + row * columns + (column + shift) % columns for shift in (-1, 0, 1)}
            assert set(model.parents(f"cell-{row}-{column}")) == lane


def test_reward_terms_look_at_the_agent_and_one_cell_and_at_nothing_when_it_hides():
    model = gridworld(3, 4)
    hide = model.action_index("hide")
    for cell, means in enumerate(model.reward_means):
        assert means.at(hide).scope == ()
        assert {table.scope for table in means} <= {(), (0, 1, 2 + cell)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 3), "rows is 0, expected a whole number from 1 to 1024; use 1 or more"),
        ((3, 1), "columns is 1, expected a whole number from 2 to 1024"),
        ((100, 100), "make 10000 cells, expected at most 1024; use a smaller grid"),
        ((2, 3, 10, 2.0), "drift is 2.0, expected a probability"),
    ],
)
def test_bad_arguments_are_refused_with_a_remedy(arguments, message):
    with pytest.raises(ModelError, match=message):
        gridworld(*arguments)
