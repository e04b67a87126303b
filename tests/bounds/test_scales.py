"""Neither the unit of rewards, nor a constant in them, nor rare events decide anything."""

from fractions import Fraction

import numpy as np
import pytest
from tests.rational import RationalModel
from tests.scaled_models import discounted, dyadic, scaled, shifted, with_rewards
from tests.verification.checked import verdict_of

import fsmdp
from fsmdp import ANY, Case, Conditional, FactoredMDP, Reward, Variable
from fsmdp.bounds.normalise import normalise
from fsmdp.domains import random_model, sysadmin
from fsmdp.model.structure import sum_of_discounts
from fsmdp.solver.search.search import search

METHODS = (
    "stagewise",
    "joint",
    "cutting-planes",
    "bundled",
    "programs",
    "fitted",
    "auto",
    "auto, no exact values",
)


def go_or_stay(unit, move=1.0, discount=0.5, horizon=None):
    """`go` costs a little now, and leads where three times as much is earned for ever."""
    return FactoredMDP(
        variables=[Variable("x", 2)],
        actions=["stay", "go"],
        conditionals=[
            Conditional(
                ["x"],
                [
                    Case(["go"], ["x"], [[1 - move, move], [0.0, 1.0]]),
                    Case(ANY, ["x"], [[1.0, 0.0], [0.0, 1.0]]),
                ],
            )
        ],
        rewards=[
            Reward(
                "r",
                [Case(["go"], ["x"], [-unit, 3 * unit]), Case(ANY, ["x"], [0.0, 3 * unit])],
                low=-unit,
                high=3 * unit,
            )
        ],
        horizon=horizon,
        discount=discount,
    )


def models():
    """With a horizon and without; symmetric ones, with ties everywhere, and random ones."""
    ring = dyadic(sysadmin(3, horizon=6))
    return {
        "ring": ring,
        "discounted ring": discounted(ring, 0.875),
        "random": dyadic(random_model(3, 3, 3, 4)),
        "discounted random": dyadic(random_model(5, 3, 3, None, 0.75)),
    }


def some_of(*default):
    """All models, of which only some are tried by default."""
    return [
        name if name in default else pytest.param(name, marks=pytest.mark.slow) for name in models()
    ]


def solved_by(model, method):
    """What must not depend on the unit: bound, policy, status, and what was proved."""
    name, _, rest = method.partition(",")
    if name == "stagewise" and model.horizon is None:
        pytest.skip("stages need a horizon")
    options = {"rounds": 1, "exact": not rest} if name == "auto" else {}
    plan = fsmdp.plan(model, method=name, **options)
    states = np.stack([axis.ravel() for axis in np.indices(model.sizes)], axis=1)
    steps = range(1, (model.horizon or 1) + 1)
    chosen = tuple(tuple(plan.actions(states, step=step)) for step in steps)
    proved = None if plan.gap is None else (plan.gap.optimal, plan.gap.proved, plan.gap.exact)
    return plan.upper_bound, (chosen, plan.status, proved, len(plan.basis), plan.rows)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", some_of("ring", "discounted random"))
def test_the_unit_of_rewards_changes_nothing_but_the_unit(name, method):
    model = models()[name]
    bound, found = solved_by(model, method)
    for exponent in (-60, 37):
        other_bound, other = solved_by(scaled(model, 2.0**exponent), method)
        assert other_bound == bound * 2.0**exponent
        assert other == found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", some_of("random", "discounted ring"))
def test_a_constant_in_a_reward_term_moves_the_bound_and_nothing_else(name, method):
    model = models()[name]
    bound, found = solved_by(model, method)
    for constant in (-3, 1024):
        moved = shifted(model, constant)
        other_bound, other = solved_by(moved, method)
        worth = constant * sum_of_discounts(model.horizon, model.discount)
        size = moved.largest_size_of_return
        assert other_bound == pytest.approx(bound + worth, rel=0, abs=1e-12 * size)
        assert other == found


def test_the_ellipsoid_method_knows_no_unit():
    model = sysadmin(2, horizon=2)
    bound, found = solved_by(model, "ellipsoid")
    assert solved_by(scaled(model, 2.0**-60), "ellipsoid") == (bound * 2.0**-60, found)
    other_bound, other = solved_by(shifted(model, 64), "ellipsoid")
    assert other == found
    assert other_bound == pytest.approx(bound + 128)


@pytest.mark.parametrize("exponent", [-60, -12, 24, 60])
@pytest.mark.parametrize("reachable", [False, True])
@pytest.mark.parametrize("name", models())
def test_exact_values_know_no_unit(name, reachable, exponent):
    model = models()[name]
    first = fsmdp.Exact(reachable=reachable).plan(model)
    other = fsmdp.Exact(reachable=reachable).plan(scaled(model, 2.0**exponent))
    np.testing.assert_array_equal(other.values, first.values * 2.0**exponent)
    np.testing.assert_array_equal(other.actions, first.actions)
    assert (other.error, other.loss) == (
        first.error * 2.0**exponent,
        first.loss * 2.0**exponent,
    )


SMALL = {
    "small rewards": lambda: go_or_stay(3e-13),
    "tiny rewards": lambda: go_or_stay(1e-200),
    "a rare move": lambda: go_or_stay(1.0, move=9e-13),
    "a very rare move": lambda: go_or_stay(1.0, move=1e-15),
    "machines, 1e-13": lambda: with_rewards(
        discounted(sysadmin(4), 0.95), lambda x, _: (x - 0.25) * 4e-13
    ),
    "machines, 1e-11": lambda: with_rewards(
        discounted(sysadmin(4), 0.5), lambda x, _: (x - 0.25) * 4e-11
    ),
    "discount near 1": lambda: go_or_stay(1.0, move=1e-3, discount=1 - 1e-9),
}


@pytest.mark.parametrize("kind", SMALL)
def test_bounds_of_small_rewards_and_rare_events_are_above_the_optimum(kind):
    model = SMALL[kind]()
    best = RationalModel(model).start_value()
    exact = fsmdp.solve_exactly(model)
    assert abs(Fraction(exact.start_value) - best) <= Fraction(exact.error)
    by_sweeps = fsmdp.Exact(reachable=True).plan(model)
    assert abs(Fraction(by_sweeps.start_value) - best) <= Fraction(by_sweeps.error)
    plan = fsmdp.plan(model, method="programs") if "near 1" in kind else fsmdp.plan(model)
    assert Fraction(plan.upper_bound) >= best
    if plan.incumbent is not None:
        assert Fraction(plan.incumbent.lower_limit) <= best
        assert plan.gap.optimal
        assert plan.upper_bound - float(best) <= 1e-6 * model.span_of_return


def test_a_policy_for_small_rewards_is_the_policy_for_large_ones():
    for horizon in (None, 8):
        large = fsmdp.plan(go_or_stay(1.0, discount=0.5, horizon=horizon))
        small = fsmdp.plan(go_or_stay(2.0**-43, discount=0.5, horizon=horizon))
        assert small.action((0,)) == large.action((0,)) == "go"
        runs = fsmdp.rollout(go_or_stay(2.0**-43, horizon=horizon), small, 10)
        assert runs.mean == pytest.approx(small.incumbent.mean, rel=1e-5)


def test_the_error_of_exact_values_is_no_excuse():
    for model in models().values():
        exact = fsmdp.solve_exactly(model)
        assert 0 < exact.error <= 1e-9 * model.span_of_return
        assert 0 < exact.loss <= 1e-8 * model.span_of_return


@pytest.mark.parametrize("unit", [1.0, 2.0**-30])
def test_a_search_is_solved_when_its_bounds_have_met_in_the_models_own_unit(unit):
    model = scaled(sysadmin(4, horizon=6), unit)
    constant = np.zeros((7, 1))
    constant[:, 0] = [unit * (6 - step) for step in range(7)]
    nothing = search(model, fsmdp.Basis([]), constant, trials=0)
    assert not nothing.solved
    found = search(model, fsmdp.Basis([]), constant)
    assert found.solved
    assert found.expanded > 0
    best = fsmdp.solve_exactly(model).start_value
    assert found.lower_bound <= best <= found.upper_bound


def test_what_a_search_proves_is_called_a_lower_bound():
    gap = fsmdp.bounds.gap.RelativeGap
    searched = gap(10.0, 9.0, 0.0, 9.0, 1.0, False, "search from the start", 20.0, 20.0)
    assert "at least 9" in searched.statement()
    assert "exactly" not in searched.statement()
    assert not searched.optimal
    assert gap(10.0, 10 - 1e-6, 0.0, 10 - 1e-6, 1.0, False, "search", 20.0, 20.0).optimal
    assert not gap(10.0, 10.0, 0.0, 9.9, 0.99, False, "search", 20.0, 20.0).optimal


@pytest.mark.parametrize("constant", [0.1, -1e6 / 3, 1e-9])
@pytest.mark.parametrize("method", ["stagewise", "joint", "auto"])
@pytest.mark.parametrize("discount", [None, 0.9])
def test_bounds_are_proved_where_moved_rewards_are_rounded(constant, method, discount):
    model = random_model(7, 3, 2, 5)
    if discount is not None:
        model = discounted(model, discount)
    if discount is not None and method == "stagewise":
        pytest.skip("stages need a horizon")
    moved = shifted(model, constant)
    assert normalise(moved).above[0] > normalise(moved).below[0]
    verdict = verdict_of(moved, fsmdp.plan(moved, method=method))
    assert verdict.slack >= 0
    assert verdict.bound <= verdict.claim.upper_bound


@pytest.mark.parametrize("discount", [1.0, 0.99])
def test_moving_rewards_costs_a_bound_no_more_than_rounding(discount):
    model = shifted(sysadmin(3, horizon=60), 0.1)
    model = FactoredMDP(
        model.variables,
        model.actions,
        model.conditionals,
        model.rewards,
        60,
        dict(zip((v.name for v in model.variables), model.initial, strict=True)),
        discount,
    )
    plan = fsmdp.plan(model, method="joint")
    assert 0 <= plan.upper_bound - plan.program.certified <= 1e-11 * plan.upper_bound
    assert plan.program.certified == pytest.approx(plan.objective, rel=1e-6)


def test_q_values_of_a_plan_are_in_the_unit_of_the_model():
    model = shifted(scaled(sysadmin(3, horizon=5), 8.0), 5.0)
    plan = fsmdp.plan(model, method="stagewise")
    state = (1, 0, 1)
    flat = fsmdp.solve_exactly(model).flat
    later = [plan.weights[1] @ plan.basis.evaluate(other) for other in flat.states.tolist()]
    for position, action in enumerate(model.actions):
        expected = model.mean_reward(state, action)
        expected += flat.transitions[position, flat.index(state)] @ later
        assert plan.q_values(state)[position] == pytest.approx(expected)


def lock(constant):
    """Six bits, opened one after the other, then 1 a step; all numbers are exact in binary."""
    names = [f"bit-{i}" for i in range(6)]
    conditionals = []
    for i, name in enumerate(names):
        open_it = [[1.0, 0.0], [0.0, 1.0]]
        if i:
            table = np.zeros((2, 2, 2))
            table[0] = [[1, 0], [0, 1]]
            table[1] = [[0, 1], [0, 1]]
            push = Case([f"push-{i}"], [names[i - 1], name], table)
        else:
            push = Case(["push-0"], [], [0.0, 1.0])
        conditionals.append(Conditional(name, [push, Case(ANY, [name], open_it)]))
    actions = ["wait", *(f"push-{i}" for i in range(6))]
    cost = [Case(["wait"], [], constant), Case(ANY, [], constant - 2.0**-7)]
    prize = Case(ANY, [names[-1]], [constant, constant + 1])
    rewards = [
        Reward("prize", prize, low=constant, high=constant + 1),
        Reward("cost", cost, low=constant - 1, high=constant),
    ]
    return FactoredMDP([Variable(n, 2) for n in names], actions, conditionals, rewards, 60)


@pytest.mark.parametrize("exact", [True, False])
def test_a_constant_that_dwarfs_all_rewards_does_not_end_planning(exact):
    plain, moved = (fsmdp.plan(lock(c), rounds=1, exact=exact) for c in (0.0, 2.0**44))
    states = np.stack([axis.ravel() for axis in np.indices((2,) * 6)], axis=1)
    np.testing.assert_array_equal(moved.actions(states), plain.actions(states))
    earned = fsmdp.rollout(lock(0.0), moved, 10).mean
    assert earned == pytest.approx(54 - 6 / 128)


def test_exact_values_come_before_long_episodes():
    model = sysadmin(4, horizon=None, discount=0.9999)
    plan = fsmdp.plan(model)
    assert [line.what for line in plan.log] == ["exact values, solved"]


def test_the_log_is_in_the_unit_of_the_model():
    lines = []
    model = shifted(scaled(sysadmin(4, horizon=5), 64.0), 100.0)
    plan = fsmdp.plan(model, callback=lines.append, rounds=1, exact=False)
    assert tuple(lines) == plan.log
    highest = 5 * (64 + 100)
    assert all(500 <= line.incumbent <= line.upper_bound + 30 <= highest + 40 for line in lines)
    assert lines[-1].upper_bound == pytest.approx(plan.upper_bound)


def test_means_that_rounding_put_beyond_their_bounds_widen_them():
    def reward(top):
        return Reward("r", Case(ANY, ["x"], [0.0, top]), low=0.0, high=0.3)

    assert reward(0.1 + 0.2).high == 0.1 + 0.2 > 0.3
    model = go_or_stay(1.0, horizon=3)
    with pytest.raises(fsmdp.errors.ModelError, match="widen low and high"):
        model.with_rewards([reward(0.3 + 1e-6)])
    with pytest.raises(fsmdp.errors.ModelError, match="widen low and high"):
        model.with_rewards([Reward("r", Case(ANY, ["x"], [0.0, 1e-10]), low=0, high=1e-11)])
    structure = model.with_rewards([reward(0.1 + 0.2)]).structure(fsmdp.Basis([]))
    assert structure.rewards[0].high == 0.1 + 0.2
