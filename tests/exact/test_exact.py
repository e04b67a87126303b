"""Contraction and reachable states against transition matrices written out."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fsmdp
from fsmdp import (
    ANY,
    Case,
    Conditional,
    Exact,
    FactoredMDP,
    ModelError,
    PlanningError,
    PolicyError,
    Reward,
    SizeError,
    Variable,
    domains,
    evaluate_exactly,
    rollout,
)
from fsmdp.exact import costs, evaluation
from fsmdp.exact import solve as exact_module
from fsmdp.exact.contraction import plan_contractions
from fsmdp.exact.flat import enumerate_states, solve_flat
from fsmdp.policies.resolve import state_strides

ALL_STATES, REACHABLE = Exact(reachable=False), Exact(reachable=True)


@pytest.fixture(autouse=True)
def _no_matrices(monkeypatch):
    """Small models would be written out, and nothing here be tested."""
    monkeypatch.setattr(exact_module, "DENSE_LIMIT", 0)
    monkeypatch.setattr(evaluation, "DENSE_LIMIT", 0)


@st.composite
def models(draw):
    """Random models of every kind that are small enough to be written out."""
    ends = draw(
        st.sampled_from(
            [
                {"horizon": 1},
                {"horizon": 5},
                {"horizon": 4, "discount": 0.9},
                {"horizon": None, "discount": 0.5},
                {"horizon": None, "discount": 0.97},
            ]
        )
    )
    built = domains.random_model(
        draw(st.integers(0, 10**6)),
        variables=draw(st.integers(1, 6)),
        actions=draw(st.integers(1, 6)),
        latents=draw(st.integers(0, 3)),
        largest_size=draw(st.integers(2, 3)),
        largest_parents=draw(st.integers(0, 4)),
        rewards=draw(st.integers(0, 3)),
        **ends,
    )
    return with_a_constant(built) if draw(st.booleans()) else built


def with_a_constant(built):
    """The same model with a variable of one value, which others look at."""
    constant = Variable("constant", 1)
    first, *others = built.conditionals
    seen = [
        Case(case.actions, ["constant", *case.parents], case.table[None], drawn=case.drawn)
        for case in first.cases
    ]
    return FactoredMDP(
        [*built.variables[:1], constant, *built.variables[1:]],
        built.actions,
        [
            Conditional("constant", Case(ANY, [], [1.0])),
            Conditional(first.children, seen),
            *others,
        ],
        built.rewards,
        built.horizon,
        {v.name: start for v, start in zip(built.variables, built.initial, strict=True)},
        built.discount,
        built.latents,
    )


def check_against_matrices(model):
    flat = enumerate_states(model)
    values, actions, _ = solve_flat(flat)
    everywhere, reached = ALL_STATES.plan(model), REACHABLE.plan(model)
    np.testing.assert_allclose(everywhere.values, values, rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(everywhere.actions, actions)
    start = float(flat.initial() @ values[0])
    assert everywhere.start_value == pytest.approx(start, rel=1e-11, abs=1e-11)
    assert reached.start_value == pytest.approx(start, rel=1e-11, abs=1e-11)
    columns = reached.reached.states(model) @ state_strides(model.sizes)
    for row, count in enumerate(met_within(flat, columns, reached)):
        if row == len(actions):
            break
        np.testing.assert_allclose(
            reached.values[row, :count], values[row, columns[:count]], rtol=1e-11, atol=1e-11
        )
        np.testing.assert_array_equal(reached.actions[row, :count], actions[row, columns[:count]])


def met_within(flat, columns, solution):
    """Numbers of states met within 0, 1, ... steps, checked against the matrices."""
    met, follows = flat.initial() > 0, (flat.transitions > 0).any(axis=0)
    horizon = flat.model.horizon
    counts = []
    for step in range(len(flat.states) if horizon is None else horizon + 1):
        counts.append(solution.reached.within(step))
        assert set(columns[: counts[-1]]) == set(np.flatnonzero(met))
        met = met | follows[met].any(axis=0)
    return [len(columns)] if horizon is None else counts


@given(model=models())
@settings(max_examples=30, deadline=None)
def test_values_and_actions_are_those_of_the_matrices(model):
    check_against_matrices(model)


@pytest.mark.slow
@given(model=models())
@settings(max_examples=1500, deadline=None)
def test_values_and_actions_are_those_of_the_matrices_in_many_models(model):
    check_against_matrices(model)


@given(model=models(), kind=st.sampled_from(["random", "last", "best", "function"]))
@settings(max_examples=20, deadline=None)
def test_a_policy_is_worth_the_same_by_contraction_and_by_matrices(model, kind):
    policy = {
        "random": "random",
        "last": model.actions[-1],
        "best": ALL_STATES.plan(model),
        "function": lambda state, step: (sum(state) + step) % len(model.actions),
    }[kind]
    found = evaluate_exactly(model, policy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "DENSE_LIMIT", 2**22)
        expected = evaluate_exactly(model, policy)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    if kind == "best":
        np.testing.assert_allclose(found, policy.values[0], rtol=1e-10, atol=1e-10)


@given(model=models())
@settings(max_examples=30, deadline=None)
def test_the_plan_of_contractions_says_how_large_arrays_become(model):
    plan = plan_contractions(model, 2**28)

    def check(branch, arrays):
        for step in branch.steps:
            assert step.entries <= plan.largest
        listed = [set(branch.actions), *(check(part, arrays) for part in branch.branches)]
        assert sum(map(len, listed)) == len(set().union(*listed))
        return set().union(*listed)

    assert check(plan, plan.arrays(given_up=True)) == set(range(len(model.actions)))


@pytest.mark.parametrize("planner", [ALL_STATES, REACHABLE], ids=["all", "reachable"])
def test_rollouts_earn_the_start_value(planner):
    model = domains.random_model(3, variables=5, horizon=6, noise=False)
    solution = planner.plan(model)
    runs = rollout(model, solution, episodes=2000 if planner is ALL_STATES else 400, seed=1)
    assert abs(runs.mean - solution.start_value) < 4 * runs.standard_error


@pytest.mark.parametrize("ends", [{"horizon": 4}, {"horizon": None, "discount": 0.9}])
@pytest.mark.parametrize("planner", [ALL_STATES, REACHABLE], ids=["all", "reachable"])
def test_the_first_of_equal_actions_is_taken(planner, ends):
    equal = Reward("r", [Case("a", [], 0.1 + 0.2), Case("b", [], 0.3), Case("c", [], 0.2)])
    coin = Conditional("x", [Case(ANY, [], [0.5, 0.5])])
    model = FactoredMDP([Variable("x", 2)], ["c", "b", "a"], [coin], [equal], **ends)
    solution = planner.plan(model)
    assert solution.action([0]) == "b"  # a is larger by rounding only
    assert {model.actions[action] for action in solution.actions[-1].tolist()} == {"b"}


def corridor(length, *, variables=1, **ends):
    """A walk to the right that may fail, beside variables that never change."""
    place = Variable("place", length)
    walk = np.zeros((length, length))
    for here in range(length):
        walk[here, here] += 0.2
        walk[here, min(here + 1, length - 1)] += 0.8
    still = [Variable(f"still-{i}", 2) for i in range(variables)]
    return FactoredMDP(
        [place, *still],
        ["walk", "stay"],
        [
            Conditional(
                "place",
                [Case("walk", ["place"], walk), Case("stay", ["place"], np.eye(length))],
            ),
            *(Conditional(v, [Case(ANY, [v.name], np.eye(2))]) for v in still),
        ],
        [Reward("r", [Case(ANY, ["place"], np.arange(length) / length)])],
        **({"horizon": 3} | ends),
    )


class TestReachableStates:
    def test_more_states_than_integers_can_number_are_no_obstacle(self):
        model = corridor(6, variables=200)
        solution = fsmdp.solve_exactly(model)
        assert solution.reached.ends == (1, 2, 3, 4)
        assert solution.reached.keys.shape == (4, 4)
        small = ALL_STATES.plan(corridor(6, variables=0))
        assert solution.start_value == pytest.approx(small.start_value)
        for place in range(3):
            state = [place] + [0] * 200
            assert solution.value(state, 3) == pytest.approx(small.value([place], 3))
            assert solution.action(state, 3) == small.action([place], 3)

    def test_a_state_that_is_not_reached_is_refused(self):
        solution = REACHABLE.plan(corridor(6))
        with pytest.raises(PolicyError, match=r"\(2, 0\) cannot be reached .* by step 2"):
            solution.action((2, 0), 2)
        with pytest.raises(PolicyError, match=r"\(0, 1\) cannot be reached"):
            solution.value((0, 1))
        with pytest.raises(SizeError, match="reachable=False"):
            _ = solution.uniform_value

    def test_states_met_late_are_told_from_those_never_met(self):
        solution = REACHABLE.plan(corridor(6, horizon=None, discount=0.9))
        assert len(solution.reached) == 6
        assert solution.value((5, 0)) == pytest.approx(5 / 6 / (1 - 0.9), rel=1e-11)

    def test_copies_act_alike(self):
        solution = REACHABLE.plan(corridor(6))
        for copied in (pickle.loads(pickle.dumps(solution)), copy.deepcopy(solution)):
            assert copied.action((1, 0), 2) == solution.action((1, 0), 2)
            assert copied.start_value == solution.start_value
        assert "4 reachable states" in repr(solution)

    def test_many_states_are_found_again_after_tables_have_grown(self):
        solution = REACHABLE.plan(corridor(5000, horizon=None, discount=0.5))
        assert len(solution.reached) == 5000
        states = solution.reached.states(solution.model)
        assert [solution.reached.find(solution.model, tuple(s)) for s in states.tolist()] == list(
            range(5000)
        )

    def test_latents_that_lead_to_the_same_state_are_added_up(self):
        coins = [Variable(f"z{i}", 2) for i in range(6)]
        table = np.zeros((2,) * 6 + (2,))
        for values in np.ndindex(*table.shape[:-1]):
            table[values] = np.eye(2)[sum(values) % 2]
        model = FactoredMDP(
            [Variable("x", 2)],
            ["throw"],
            [
                *(Conditional(z, [Case(ANY, [], [0.3, 0.7])]) for z in coins),
                Conditional("x", [Case(ANY, [], table, drawn=[z.name for z in coins])]),
            ],
            [Reward("r", [Case(ANY, ["x"], [0, 1])])],
            horizon=2,
            latents=coins,
        )
        odd = (1 - (0.3 - 0.7) ** 6) / 2
        assert REACHABLE.plan(model).start_value == pytest.approx(odd)
        assert ALL_STATES.plan(model).start_value == pytest.approx(odd)


class TestLimits:
    def test_neither_way_fits(self):
        with pytest.raises(
            SizeError,
            match=r"all 10\^301.0 states: .* 2\^1000 numbers .* limit is 2\^28.*"
            r"1 state was found, and more than 2\^28 combinations",
        ):
            fsmdp.solve_exactly(domains.sysadmin(1000))

    def test_wide_kernels_are_refused_before_anything_is_allocated(self):
        size, n = 2, 24
        names = [f"x{i}" for i in range(n)]
        chances = np.random.default_rng(1).random((size,) * 12)  # no two rows alike
        everyone = np.stack([chances, 1 - chances], axis=-1)
        model = FactoredMDP(
            [Variable(name, size) for name in names],
            ["go"],
            [
                Conditional(x, [Case(ANY, names[:12] if i >= 12 else names[12:], everyone)])
                for i, x in enumerate(names)
            ],
            [],
            horizon=2,
        )
        with pytest.raises(SizeError, match=r"arrays of up to 2\^\d+ entries.*GiB.*larger limit="):
            ALL_STATES.plan(model)

    def test_reachable_states_stop_at_the_limit(self):
        model = corridor(5000, horizon=None, discount=0.5)
        with pytest.raises(SizeError, match=r"1024 states and \d+ successors were found.*GiB"):
            Exact(reachable=True, limit=20_000).plan(model)

    def test_a_start_with_too_many_states_is_refused(self):
        coins = [Variable(f"x{i}", 2) for i in range(60)]
        model = FactoredMDP(
            coins,
            ["wait"],
            [Conditional(v, [Case(ANY, [v.name], np.eye(2))]) for v in coins],
            [],
            horizon=2,
            initial={v.name: [0.5, 0.5] for v in coins},
        )
        with pytest.raises(SizeError, match=r"0 states and 0 successors were found.* 2\^60 states"):
            REACHABLE.plan(model)

    def test_values_of_all_steps_are_left_out_where_they_do_not_fit(self):
        model = domains.sysadmin(6, horizon=50)
        whole, short = ALL_STATES.plan(model), Exact(limit=2000, reachable=False).plan(model)
        assert short.start_value == pytest.approx(whole.start_value, abs=whole.error)
        assert len(short.values) == 1
        np.testing.assert_array_equal(short.actions, whole.actions)
        with pytest.raises(SizeError, match="value at step 2: only those of step 1"):
            short.value([1] * 6, 2)

    @pytest.mark.parametrize("horizon", [100_000, None])
    def test_the_time_limit_is_kept_where_states_are_written_out(self, horizon, monkeypatch):
        monkeypatch.setattr(exact_module, "DENSE_LIMIT", 2**22)
        with pytest.raises(PlanningError, match="not solved within 1e-09 s"):
            Exact(time_limit=1e-9).plan(domains.sysadmin(3, horizon=horizon, discount=0.99))

    def test_the_time_limit_is_kept(self):
        model = domains.sysadmin(8, horizon=10**5)
        for planner in (Exact(time_limit=1e-9), Exact(time_limit=1e-9, reachable=True)):
            with pytest.raises(PlanningError, match="not solved within 1e-09 s"):
                planner.plan(model)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"limit": 0}, "limit: expected a whole number"),
            ({"reachable": "always"}, 'reachable: expected True, False or "auto"'),
            ({"time_limit": 0}, "time_limit: expected more than 0 seconds"),
            ({"time_limit": "long"}, "time_limit is 'long'"),
        ],
    )
    def test_wrong_options_are_refused(self, options, message):
        with pytest.raises(ModelError, match=message):
            Exact(**options)


class TestChoosing:
    def test_tiny_models_are_written_out(self, monkeypatch):
        monkeypatch.setattr(exact_module, "DENSE_LIMIT", 2**22)
        model = domains.sysadmin(3)
        solution = Exact().plan(model)
        assert solution.reached is None
        assert solution.flat is solution.flat

    def test_reachable_states_are_solved_where_they_are_fewer_and_all_take_long(self, monkeypatch):
        monkeypatch.setattr(exact_module, "WORTH_EXPLORING", 0.0)
        monkeypatch.setattr(costs, "PATH_SECONDS", 1e-9)
        few = Exact().plan(corridor(6, variables=8, horizon=100))
        assert len(few.reached) == 6
        every = Exact().plan(domains.sysadmin(12))
        assert every.reached is None
        assert every.start_value == pytest.approx(ALL_STATES.plan(domains.sysadmin(12)).start_value)

    def test_more_variables_than_arrays_have_axes(self):
        many = [Variable("x", 2), *(Variable(f"y{i}", 1) for i in range(70))]
        model = FactoredMDP(
            many,
            ["wait"],
            [
                Conditional(
                    "x", [Case(ANY, [f"y{i}" for i in range(29)], np.full((1,) * 29 + (2,), 0.5))]
                ),
                *(Conditional(v, [Case(ANY, [], [[1.0]] * 2, drawn=["x"])]) for v in many[1:]),
            ],
            [Reward("r", [Case(ANY, ["x"], [0, 1])])],
            horizon=3,
        )
        assert ALL_STATES.plan(model).value([1] + [0] * 70) == pytest.approx(2.0)
        assert REACHABLE.plan(model).start_value == pytest.approx(1.0)

    def test_large_policies_are_kept_and_followed_compactly(self):
        model = domains.sysadmin(17, horizon=33)
        solution = Exact().plan(model)
        assert solution.actions.dtype == np.uint8
        assert solution.actions.size > 2**22
        runs = rollout(model, solution, episodes=200, seed=0)
        assert abs(runs.mean - solution.start_value) < 4 * runs.standard_error


def test_an_infinite_horizon_says_how_close_its_values_are():
    model = domains.sysadmin(6, horizon=None, discount=0.999)
    solution = ALL_STATES.plan(model)
    values, actions, _ = solve_flat(enumerate_states(model))
    scale = np.abs(values).max()
    assert 0 < solution.error <= 1e-10 * scale
    # The matrices are only as exact as a linear system with 1 / (1 - discount) in it is.
    np.testing.assert_allclose(solution.values, values, atol=1e-10 * scale)
    np.testing.assert_array_equal(solution.actions, actions)
    assert math.isfinite(solution.uniform_value)
