"""Joining exclusive variables leaves the same problem, and no pair is called exclusive in error."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.planted import WAYS, planted_model

import fsmdp
from fsmdp import (
    ANY,
    Case,
    Conditional,
    FactoredMDP,
    ModelError,
    PolicyError,
    Reward,
    Variable,
    domains,
    evaluate_exactly,
    join,
    solve_exactly,
)
from fsmdp.exact.flat import enumerate_states, solve_flat
from fsmdp.model import projecting, supports
from fsmdp.model import supports as exclusive
from fsmdp.model.supports import Exclusive, cover, exclusive_pairs

SEEDS = st.integers(0, 100_000)


def reachable(flat):
    """Whether each state can be reached, by walking on until nothing new is met."""
    steps = (flat.transitions > 0).any(axis=0)
    found = flat.initial() > 0
    while True:
        new = found | steps[found].any(axis=0)
        if (new == found).all():
            return found
        found = new


def check_pairs(model, pairs):
    """Every pair that is called exclusive is, in every state that can be reached."""
    flat = enumerate_states(model)
    off = flat.states[reachable(flat)] > 0
    together = off.T.astype(int) @ off.astype(int) > 0
    assert not (together & pairs).any()


def check_same_problem(model, joined):
    """Rewards, laws, optimal values and starts agree wherever a state has a joined one."""
    flat, small = enumerate_states(model), enumerate_states(joined.model)
    allowed = joined.allows(flat.states)
    assert allowed[reachable(flat)].all()
    assert not flat.transitions[:, allowed][:, :, ~allowed].any()
    rows = np.array([small.index(state) for state in joined.to(flat.states[allowed]).tolist()])
    assert len(set(rows.tolist())) == len(rows)
    np.testing.assert_array_equal(joined.back(small.states[rows]), flat.states[allowed])
    np.testing.assert_allclose(small.rewards[:, rows], flat.rewards[:, allowed], atol=1e-12)
    laws = small.transitions[:, rows]
    np.testing.assert_allclose(
        laws[:, :, rows], flat.transitions[:, allowed][:, :, allowed], atol=1e-12
    )
    np.testing.assert_allclose(laws[:, :, rows].sum(axis=-1), 1, atol=1e-12)
    np.testing.assert_allclose(small.initial()[rows], flat.initial()[allowed], atol=1e-12)
    values, small_values = solve_flat(flat)[0], solve_flat(small)[0]
    np.testing.assert_allclose(small_values[:, rows], values[:, allowed], atol=1e-9)


def exclusive_groups(model):
    """The pairs that are proved, and the groups that cover them."""
    listed = model.listed()
    pairs = exclusive_pairs(listed)
    return Exclusive(cover(pairs, listed.variables), pairs)


@given(seed=SEEDS, way=st.sampled_from(WAYS))
@settings(max_examples=60)
def test_planted_groups_are_proved_and_joined_to_the_same_problem(seed, way):
    model, groups = planted_model(seed, [way])
    found = exclusive_groups(model)
    names = [variable.name for variable in model.variables]
    for group in groups:
        positions = [names.index(name) for name in group]
        inside = found.pairs[np.ix_(positions, positions)] | np.eye(len(group), dtype=bool)
        assert inside.all()
    check_pairs(model, found.pairs)
    joined = join(model)
    assert joined.model.n_states < model.n_states
    assert joined.model.actions == model.actions
    check_same_problem(model, joined)


@given(seed=SEEDS)
@settings(max_examples=60)
def test_groups_drawn_in_different_ways_are_joined_side_by_side(seed):
    model, groups = planted_model(seed)
    check_same_problem(model, join(model))
    check_same_problem(model, join(model, groups))
    check_same_problem(model, join(model, groups[:1]))


@given(seed=SEEDS)
@settings(max_examples=60)
def test_no_pair_of_a_random_model_is_called_exclusive_in_error(seed):
    model = domains.random_model(seed)
    check_pairs(model, exclusive_groups(model).pairs)
    check_same_problem(model, join(model))


@given(seed=SEEDS)
@settings(max_examples=25)
def test_what_is_too_large_to_look_at_is_not_called_exclusive(seed):
    model, _ = planted_model(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projecting, "MOST_SUPPORT_ENTRIES", 2 ** (seed % 5))
        patch.setattr(supports, "MOST_CUBES", 1 + seed % 4)
        found = exclusive_groups(model)
        joined = join(model)
    check_pairs(model, found.pairs)
    check_same_problem(model, joined)


@given(seed=SEEDS, entries=st.sampled_from([1, 8, 20, 40, 80]))
@settings(max_examples=25)
def test_tables_stay_within_the_limit_or_as_they_were(seed, entries):
    model, _ = planted_model(seed)
    joined = join(model, most_entries=entries)
    check_same_problem(model, joined)
    before = max(kernel.table.size for one in model.dynamics.mechanisms for kernel in one.cases)
    after = max(
        kernel.table.size for one in joined.model.dynamics.mechanisms for kernel in one.cases
    )
    assert after <= max(entries, before)


@given(seed=SEEDS)
@settings(max_examples=15)
def test_a_policy_of_the_joined_model_earns_the_same_in_the_original(seed):
    model, _ = planted_model(seed)
    joined = join(model)
    solution = solve_exactly(joined.model)
    best = solve_exactly(model)
    flat = enumerate_states(model)
    start = flat.initial() > 0
    cautious = joined.policy(solution)

    def everywhere(state, step):
        # Enumeration asks about every state, also those that cannot be reached.
        return cautious.action(state, step) if joined.allows(state) else 0

    values = evaluate_exactly(model, everywhere)
    values = np.asarray(values).reshape(-1, len(start))[0]
    optimal = np.array([best.value(state) for state in flat.states[start].tolist()])
    np.testing.assert_allclose(values[start], optimal, atol=1e-9)


def walker(places=4, lost=0.0, **changes):
    """Something that walks around a ring of places, and may get lost for ever."""
    names = [f"at({place})" for place in range(places)]
    conditionals = [
        Conditional(
            name,
            [
                Case("stay", [name], [[1, 0], [0, 1]]),
                Case(ANY, [names[place - 1]], [[1, 0], [lost, 1 - lost]]),
            ],
        )
        for place, name in enumerate(names)
    ]
    parts = {
        "variables": [Variable(name, 2) for name in names],
        "actions": ["stay", "walk"],
        "conditionals": conditionals,
        "rewards": [Reward("home", Case(ANY, [names[2]], [0, 1]))],
        "horizon": 6,
        "initial": {names[0]: 1},
    }
    return FactoredMDP(**(parts | changes))


def test_a_place_becomes_one_variable_with_a_value_for_each():
    joined = join(walker())
    (variable,) = joined.model.variables
    assert (variable.name, variable.size) == ("at", 4)
    assert joined.model.initial == (0,)
    assert joined.meaning("at", 2) == {"at(0)": 0, "at(1)": 0, "at(2)": 1, "at(3)": 0}
    assert solve_exactly(joined.model).start_value == pytest.approx(4)


def test_nowhere_is_a_value_where_it_can_be_reached():
    joined = join(walker(lost=0.25))
    assert joined.model.sizes == (5,)
    assert joined.to((0, 0, 0, 0)) == (0,)
    assert not join(walker()).allows((0, 0, 0, 0))


def test_a_state_that_cannot_be_reached_has_no_joined_one():
    joined = join(walker(lost=0.25))
    assert not joined.allows((1, 1, 0, 0))
    with pytest.raises(ModelError, match=r"at\(0\)=1, at\(1\)=1 among"):
        joined.to((1, 1, 0, 0))
    with pytest.raises(ModelError, match="no state that can be reached"):
        joined.to(np.array([[1, 0, 0, 0], [0, 1, 1, 0]]))
    with pytest.raises(ModelError, match="expected whole numbers of shape"):
        joined.to(np.zeros((2, 3), dtype=int))
    with pytest.raises(ModelError, match="is 2, expected"):
        joined.to(np.array([[2, 0, 0, 0]]))


def test_arrays_of_states_go_there_and_back():
    joined = join(walker(places=6, lost=0.5))
    states = np.vstack([np.zeros(6, dtype=int), np.eye(6, dtype=int)])
    assert joined.to(states)[:, 0].tolist() == list(range(7))
    np.testing.assert_array_equal(joined.back(joined.to(states)), states)
    assert joined.allows(states).all()
    np.testing.assert_array_equal(joined.to(states[3]), [3])
    stacked = np.stack([states, states[::-1]])
    np.testing.assert_array_equal(joined.back(joined.to(stacked)), stacked)
    assert joined.allows(stacked).shape == (2, 7)


def test_policies_of_every_kind_act_in_the_original():
    model = walker()
    joined = join(model)
    table = np.array([1, 1, 0, 1])
    for policy in (table, table[None], lambda state, step: "walk", solve_exactly(joined.model)):
        acting = joined.policy(policy)
        assert model.action_index(acting.action((1, 0, 0, 0), 1)) == 1
    assert joined.policy("walk") == "walk"
    best = joined.policy(solve_exactly(joined.model))
    runs = fsmdp.rollout(model, best, episodes=4, seed=1)
    assert np.asarray(runs.returns).tolist() == [4.0] * 4
    for junk in (3, np.zeros(5, dtype=int), np.zeros(4)):
        with pytest.raises(PolicyError):
            joined.policy(junk)


def test_groups_that_are_not_exclusive_are_refused():
    model = walker(initial={"at(0)": 1, "at(1)": 1})
    with pytest.raises(ModelError, match="could not be proved never to be nonzero together"):
        join(model, [["at(0)", "at(1)"]])
    with pytest.raises(ModelError, match="is in group number 0 too"):
        join(walker(), [["at(0)", "at(1)"], ["at(1)", "at(2)"]])
    with pytest.raises(ModelError, match="unknown variable"):
        join(walker(), [["at(9)", "at(1)"]])
    with pytest.raises(ModelError, match="join: expected a FactoredMDP"):
        join("walker")


def test_a_model_with_nothing_to_join_stays_as_it_is():
    model = domains.sysadmin(3, horizon=4)
    joined = join(model)
    assert joined.model is model
    assert not joined.groups
    assert joined.to((1, 0, 1)) == joined.back((1, 0, 1)) == (1, 0, 1)


def test_a_variable_that_never_changes_costs_no_states():
    ghost = Variable("ghost", 3)
    model = walker()
    haunted = walker(
        variables=[ghost, *model.variables],
        conditionals=[
            Conditional(ghost, Case(ANY, [ghost], [[1, 0, 0], [0, 0.5, 0.5], [0, 0, 1]])),
            *model.conditionals,
        ],
        rewards=[Reward("seen", Case(ANY, [ghost, "at(2)"], [[0, 1], [0.5, 0], [1, 1]]))],
    )
    joined = join(haunted)
    assert joined.model.n_states == 4
    check_same_problem(haunted, joined)


def test_a_rare_event_is_not_taken_for_one_that_never_happens():
    # Both happen together with probability 1e-400, which is 0 in floating point.
    model = FactoredMDP(
        variables=[Variable("a", 2), Variable("b", 2)],
        latents=[Variable("one", 2), Variable("two", 2)],
        actions=["wait"],
        conditionals=[
            Conditional("one", Case(ANY, [], [1 - 1e-200, 1e-200])),
            Conditional("two", Case(ANY, [], [1 - 1e-200, 1e-200], [])),
            *(
                Conditional(
                    name, Case(ANY, [], [[[1, 0], [1, 0]], [[1, 0], [0, 1]]], ["one", "two"])
                )
                for name in "ab"
            ),
        ],
        rewards=[],
        horizon=2,
    )
    assert not exclusive_groups(model).pairs.any()


def test_two_may_depend_together_on_what_neither_depends_on_by_itself():
    # A coin lights a, or else b; with x and y, which come and go, heads lights both.
    coin = Conditional("coin", Case(ANY, [], [0.5, 0.5]))
    lights_b = np.zeros((2, 2, 2, 2))  # x, y, coin, b
    lights_b[:, :, 0, 1] = lights_b[:, :, 1, 0] = 1
    lights_b[1, 1, 1] = [0, 1]
    model = FactoredMDP(
        variables=[Variable(name, 2) for name in "xyab"],
        latents=[Variable("coin", 2)],
        actions=["wait"],
        conditionals=[
            coin,
            Conditional("x", Case(ANY, [], [0.5, 0.5])),
            Conditional("y", Case(ANY, [], [0.5, 0.5])),
            Conditional("a", Case(ANY, [], [[1, 0], [0, 1]], ["coin"])),
            Conditional("b", Case(ANY, ["x", "y"], lights_b, ["coin"])),
        ],
        rewards=[],
        horizon=3,
    )
    assert not exclusive_groups(model).pairs.any()


def test_what_is_drawn_between_two_members_is_drawn_with_them():
    # a is drawn, then the lamp looks at a, then b looks at the lamp: b only if the lamp is off.
    model = FactoredMDP(
        variables=[Variable("a", 2), Variable("lamp", 2), Variable("b", 2)],
        actions=["wait"],
        conditionals=[
            Conditional("a", Case(ANY, ["b"], [[0.5, 0.5], [0.25, 0.75]])),
            Conditional("lamp", Case(ANY, [], [[0.5, 0.5], [0, 1]], ["a"])),
            Conditional(
                "b", Case(ANY, ["a"], [[[0.5, 0.5], [1, 0]], [[0.1, 0.9], [1, 0]]], "lamp")
            ),
        ],
        rewards=[Reward("b", Case(ANY, ["b", "lamp"], [[0, 0.5], [1, 1]]))],
        horizon=4,
    )
    joined = join(model, [["a", "b"]])
    assert joined.groups == {"a | b": ("a", "b")}
    assert joined.model.conditionals[0].children == ("a | b", "lamp")
    check_same_problem(model, joined)


def test_a_proof_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(exclusive, "MOST_COMPARISONS", 0)
    assert exclusive_groups(walker()).groups == ()


def test_names_say_what_was_joined():
    names = [v.name for v in join(_two_walkers()).model.variables]
    assert names == ["at(x)", "at(y)"]


def _two_walkers():
    names = [[f"at({who},{place})" for place in range(2)] for who in "xy"]
    return FactoredMDP(
        variables=[Variable(name, 2) for pair in names for name in pair],
        actions=["swap"],
        conditionals=[
            Conditional(pair[one], Case(ANY, [pair[1 - one]], [[1, 0], [0.5, 0.5]]))
            for pair in names
            for one in range(2)
        ],
        rewards=[],
        horizon=3,
        initial={names[0][0]: 1, names[1][1]: [0.5, 0.5]},
    )


def test_joined_models_can_be_copied_and_pickled():
    joined = join(walker(lost=0.5))
    for other in (copy.deepcopy(joined), pickle.loads(pickle.dumps(joined))):
        assert other.to((0, 1, 0, 0)) == joined.to((0, 1, 0, 0))
        assert other.groups == joined.groups
    assert "at of 4" in repr(joined)


def test_variables_that_exclude_none_are_not_looked_at_again(monkeypatch):
    """A thousand variables without an exclusive pair took seconds, in which no clock was read."""

    def no_clique(*_):
        raise AssertionError

    monkeypatch.setattr("fsmdp.model.supports._clique", no_clique)
    variables = [fsmdp.Variable(f"x{i}", 2) for i in range(1000)]
    assert cover(np.zeros((1000, 1000), dtype=bool), variables) == ()
