"""Exact values by row classes, against transition matrices written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from tests.conditioned_models import conditioned, optimal_values
from tests.exact.test_exact import models
from tests.joint_models import conditioned_joint_model

import fsmdp
from fsmdp.exact.flat import enumerate_states, solve_flat
from fsmdp.exact.row_classes import plan_classes
from fsmdp.exact.solve import all_states, fit, sweep_back, sweep_classes
from fsmdp.reductions.actions import ListActions

LIMIT = 2**28


def by_classes(model):
    plan = plan_classes(model, LIMIT)
    return plan, sweep_classes(plan, True, lambda: None)


def check_against_matrices(model):
    values, actions, accuracy = solve_flat(enumerate_states(model))
    plan, solution = by_classes(model)
    np.testing.assert_allclose(solution.values, values, rtol=0, atol=1e-9)
    assert np.abs(solution.values - values).max() <= solution.error + accuracy.error
    np.testing.assert_array_equal(solution.actions, actions)
    return plan


@given(model=models())
@settings(max_examples=60, deadline=None)
def test_values_and_actions_are_those_of_the_matrices(model):
    check_against_matrices(model)


@pytest.mark.slow
@given(model=models())
@settings(max_examples=1500, deadline=None)
def test_values_and_actions_are_those_of_the_matrices_in_many_models(model):
    check_against_matrices(model)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("ends", [{}, {"horizon": None, "discount": 0.8}], ids=["steps", "endless"])
def test_allowed_actions_and_terminal_states_are_kept(seed, ends):
    model = conditioned(seed, **ends)
    expected = optimal_values(model, **({"sweeps": 120} if ends else {}))
    _, solution = by_classes(model)
    for state, value in expected.items():
        assert solution.value(state) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_listed_joint_actions_are_solved_like_listed_ones(seed):
    model = ListActions().apply(conditioned_joint_model(seed)).model
    plan, keep_all = fit(model, LIMIT)
    expected = sweep_back(model, plan, keep_all, lambda: None)
    _, solution = by_classes(model)
    np.testing.assert_allclose(solution.values, expected.values, rtol=0, atol=1e-9)


def cells(side, forced, reward_of_action, seed=0, **ends):
    """A grid whose cells follow one of two laws, by their neighbours; actions force a cell's."""
    rng = np.random.default_rng(seed)
    names = [f"cell-{i}" for i in range(side)]
    actions = ["wait", *(f"set-{i}" for i in range(forced))]
    laws = np.array([[0.9, 0.1], [0.2, 0.8]])
    conditionals = []
    for i, name in enumerate(names):
        parents = sorted({name, names[i - 1], names[(i + 1) % side]})
        rule = rng.integers(0, 2, (2,) * len(parents))
        cases = [fsmdp.Case(fsmdp.ANY, parents, laws[rule])]
        if i < forced:
            cases.append(fsmdp.Case(f"set-{i}", [], laws[1]))
        conditionals.append(fsmdp.Conditional(name, cases))
    rewards = [fsmdp.Reward(name, fsmdp.Case(fsmdp.ANY, [name], [0.0, 1.0])) for name in names]
    costs = [fsmdp.Case([action], *reward_of_action(names, action)) for action in actions if forced]
    if costs:
        rewards.append(fsmdp.Reward("cost", costs, low=-1.0, high=0.0))
    return fsmdp.FactoredMDP(
        [fsmdp.Variable(name, 2) for name in names],
        actions,
        conditionals,
        rewards,
        **ends or {"horizon": 6},
    )


def constant_cost(names, action):
    return [], -0.3 * (action != "wait")


def cost_of_state(names, action):
    return [names[0]], [0.0, -0.4 * (action != "wait")]


@pytest.mark.parametrize("ends", [{}, {"horizon": None, "discount": 0.9}], ids=["steps", "endless"])
def test_actions_that_replace_laws_are_compared_over_classes(ends):
    plan = check_against_matrices(cells(7, 7, constant_cost, **ends))
    assert len(plan.over_classes) == 8
    assert not plan.over_states


def test_actions_whose_reward_depends_on_the_state_are_compared_over_states():
    plan = check_against_matrices(cells(6, 4, cost_of_state))
    assert not plan.over_classes
    assert len(plan.over_states) == 5


def test_actions_of_both_kinds_compete_with_one_another():
    """One action costs more in some states; each kind wins somewhere."""

    def mixed(names, action):
        return constant_cost(names, action) if action != "set-1" else cost_of_state(names, action)

    model = cells(6, 4, mixed)
    plan = check_against_matrices(model)
    assert len(plan.over_classes) == 4
    assert len(plan.over_states) == 1
    chosen = set(np.unique(by_classes(model)[1].actions).tolist())
    assert plan.over_states[0].action in chosen
    assert len(chosen) > 2


def test_first_of_equal_actions_is_taken_across_both_kinds():
    """Waiting and an action that changes nothing are equal: the lower number is taken."""
    model = cells(5, 1, cost_of_state, horizon=3)
    equal = model.replace(
        rewards=[fsmdp.Reward("r", fsmdp.Case(fsmdp.ANY, ["cell-1"], [0.0, 1.0]))],
        conditionals=[
            fsmdp.Conditional(one.children, [c for c in one.cases if c.actions is fsmdp.ANY])
            for one in model.conditionals
        ],
    )
    check_against_matrices(equal)


def test_laws_that_are_certain_need_no_pass():
    shift = np.eye(3)[[1, 2, 0]]
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("a", 3), fsmdp.Variable("b", 3), fsmdp.Variable("coin", 2)],
        ["wait", "turn"],
        [
            fsmdp.Conditional(
                "a", [fsmdp.Case("wait", ["a"], np.eye(3)), fsmdp.Case("turn", ["b"], shift)]
            ),
            fsmdp.Conditional("b", fsmdp.Case(fsmdp.ANY, ["a"], shift)),
            fsmdp.Conditional("coin", fsmdp.Case(fsmdp.ANY, [], [0.3, 0.7])),
        ],
        [fsmdp.Reward("r", fsmdp.Case(fsmdp.ANY, ["a", "coin"], [[0, 1], [0.2, 0], [0.1, 0.5]]))],
        horizon=5,
    )
    plan = check_against_matrices(model)
    assert [plan.factors[one.factor].variables for one in plan.passes] == [(2,)]
    assert plan.n_classes == 9  # one law of the coin


def test_the_cheaper_of_contraction_and_row_classes_is_taken():
    few = cells(12, 12, constant_cost)
    assert type(all_states(few, LIMIT).plan).__name__ == "ClassPlan"
    many = fsmdp.domains.sysadmin(12)
    assert type(all_states(many, LIMIT).plan).__name__ == "Branch"


def test_memory_is_counted_before_arrays_are_made():
    model = cells(12, 12, constant_cost)
    plan = plan_classes(model, LIMIT)
    from fsmdp.exact.class_sweeps import ClassSweeper

    sweeper = ClassSweeper(plan, np.dtype(np.uint8))
    held = [sweeper._base, sweeper._places, *sweeper._free, sweeper._best_actions]
    for leaves in (sweeper._of_states, sweeper._of_classes):
        held += [leaves.rewards, leaves.shifts]
    assert sum(array.nbytes for array in held) <= 8 * plan.entries()


def test_a_check_ends_a_sweep():
    class EndedError(Exception):
        pass

    calls = []

    def check():
        calls.append(1)
        if len(calls) > 20:
            raise EndedError

    plan = plan_classes(cells(8, 8, constant_cost, horizon=100), LIMIT)
    with pytest.raises(EndedError):
        sweep_classes(plan, True, check)
    assert len(calls) == 21


PROBLEMS = [
    ("Elevators_MDP_ippc2011", 5, -48.6002),
    ("GameOfLife_MDP_ippc2011", 4, 364.5372),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "instance", "value"),
    [
        *PROBLEMS,
        ("Elevators_MDP_ippc2011", 9, -84.7555),
        ("AcademicAdvising_MDP_ippc2014", 2, -45.6478),
    ],
)
@pytest.mark.filterwarnings("ignore:.*state-action constraints")
def test_competition_problems_have_known_values(domain, instance, value):
    pytest.importorskip("rddlrepository")
    found = fsmdp.plan(fsmdp.rddl.load(domain, instance), time_limit=60)
    assert found.incumbent.exact
    assert found.incumbent.mean == pytest.approx(value, abs=1e-4)
