"""Optimistic values of all states, in boxes around the law of each independent group."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.learning.learning_models import assert_same_history, coins

import fsmdp
from fsmdp.errors import ModelError
from fsmdp.learning.learners.learner import Acting, check_planned


def three_valued(horizon=4):
    """A pair drawn together, a variable of three values, and one of two; groups of actions."""
    rng = np.random.default_rng(5)

    def law(*shape):
        table = rng.random(shape)
        return table / table.sum(axis=-1, keepdims=True)

    names = ["a", "b", "c", "d"]
    return fsmdp.FactoredMDP(
        variables=[fsmdp.Variable(n, s) for n, s in zip(names, (2, 2, 3, 2), strict=True)],
        actions=["x", "y", "z"],
        conditionals=[
            fsmdp.Conditional(
                ["a", "b"],
                [
                    fsmdp.Case("x", ["d"], law(2, 4).reshape(2, 2, 2)),
                    fsmdp.Case(fsmdp.ANY, [], law(4).reshape(2, 2)),
                ],
            ),
            fsmdp.Conditional("c", [fsmdp.Case(fsmdp.ANY, ["a", "c"], law(2, 3, 3))]),
            fsmdp.Conditional(
                "d", [fsmdp.Case(["y", "z"], ["c"], law(3, 2)), fsmdp.Case("x", ["d"], law(2, 2))]
            ),
        ],
        rewards=[
            fsmdp.Reward("r", [fsmdp.Case(fsmdp.ANY, ["b", "c"], rng.random((2, 3)))], 0, 1),
            fsmdp.Reward("s", [fsmdp.Case(fsmdp.ANY, ["d"], [0.0, 0.5])], 0, 1, 0.1),
        ],
        horizon=horizon,
        initial={"a": [0.5, 0.5], "b": 0, "c": [0.2, 0.3, 0.5], "d": 1},
    )


def hopeful(model, **options):
    options = {"known_rewards": model.rewards} | options
    structure = model.structure(fsmdp.Basis.singles(model))
    return fsmdp.UCRLFactored(structure, planner="solver", **options)


def boxes_of(model, learner, width, rng):
    """Boxes around the true law of every factor, and the law itself."""
    truth = np.zeros(learner.products.n_boxes)
    for number, factor in enumerate(learner.optimistic_sweep.factors):
        cases, rows = model.dynamics.mechanisms[number].cases, []
        parents = learner.structure.group_parents[number]
        for group in range(len(parents)):
            action = next(a for a in range(len(model.actions)) if parents.group(a) == group)
            rows.append(cases.at(action).table.reshape(-1, factor.n_values))
        flat = np.concatenate(rows).ravel()
        truth[factor.first_box : factor.first_box + len(flat)] = flat
    low = np.clip(truth - width * rng.random(len(truth)), 0, 1)
    high = np.clip(truth + width * rng.random(len(truth)), 0, 1)
    for factor in learner.optimistic_sweep.factors:  # with two values, each end belongs to both
        if factor.n_values == 2:
            own = slice(factor.first_box, factor.first_box + 2 * factor.n_cells)
            low[own].reshape(-1, 2)[:, 0] = 1 - high[own].reshape(-1, 2)[:, 1]
            high[own].reshape(-1, 2)[:, 0] = 1 - low[own].reshape(-1, 2)[:, 1]
    return low, high, truth


def solved(learner, low, high):
    return learner.optimistic_sweep.solve(learner.cells, (low, high), learner.known_means)


@pytest.mark.parametrize("model", [three_valued(), coins()], ids=["three-valued", "coins"])
def test_boxes_that_hold_nothing_but_the_truth_give_exact_values(model):
    learner, exact = hopeful(model), fsmdp.solve_exactly(model)
    _, _, truth = boxes_of(model, learner, 0.0, np.random.default_rng(0))
    found = solved(learner, truth, truth)
    np.testing.assert_allclose(found.values[0], exact.values[0], atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "model",
    [three_valued(horizon=2), fsmdp.domains.sysadmin(8, horizon=2)],
    ids=["three-valued", "ring of 8"],  # the ring has blocks that its kernels do not look at
)
def test_one_step_back_is_above_every_product_of_laws_in_the_boxes(model, seed):
    rng = np.random.default_rng(seed)
    learner = hopeful(model)
    low, high, truth = boxes_of(model, learner, 0.3, rng)
    flat = fsmdp.solve_exactly(model).flat
    last = flat.rewards.max(axis=0)  # V_2: what the last step pays
    wide = solved(learner, low, high).values[0]
    drawn = []
    for _ in range(30):
        rows = np.zeros(len(truth))
        for factor in learner.optimistic_sweep.factors:
            n, begin = factor.n_values, factor.first_box
            for cell in range(factor.n_cells):
                own = slice(begin + cell * n, begin + (cell + 1) * n)
                rows[own] = _vertex(low[own], high[own], rng)
        drawn.append(solved(learner, rows, rows).values[0])
    assert (wide >= np.max(drawn, axis=0) - 1e-9).all()
    assert (wide <= flat.rewards.max() + last.max() + 1e-9).all()
    assert (wide > solved(learner, truth, truth).values[0] + 1e-3).any()


def _vertex(low, high, rng):
    """The law of a box that is best for random values."""
    return linprog(
        -rng.random(len(low)),
        A_eq=np.ones((1, len(low))),
        b_eq=[1],
        bounds=list(zip(low, high, strict=True)),
    ).x


def _orders(branch, before=()):
    """In which order the groups of each action are contracted."""
    order = (*before, *(step.mechanism for step in branch.steps))
    found = dict.fromkeys(branch.actions, order)
    for part in branch.branches:
        found |= _orders(part, order)
    return found


def test_one_step_back_takes_the_best_law_of_each_group_by_linear_programs():
    model = three_valued(horizon=2)
    learner, flat = hopeful(model), fsmdp.solve_exactly(model).flat
    low, high, _ = boxes_of(model, learner, 0.3, np.random.default_rng(1))
    found = solved(learner, low, high).values[0]
    orders = _orders(learner.optimistic_sweep.contractions)
    last = flat.rewards.max(axis=0).reshape(4, 3, 2)  # an axis for each group
    for number, state in enumerate(product(range(2), range(2), range(3), range(2))):
        best = -np.inf
        for action in range(3):
            worth = last
            for group in orders[action]:
                own = _row(learner, learner.optimistic_sweep.factors[group], action, state)
                worth = np.apply_along_axis(_most, group, worth, low[own], high[own])
                worth = np.expand_dims(worth, group)
            best = max(best, flat.rewards[action, number] + worth.item())
        assert found[number] == pytest.approx(best, abs=1e-9)


def _most(values, low, high):
    ends = list(zip(low, high, strict=True))
    return -linprog(-values, A_eq=np.ones((1, len(low))), b_eq=[1], bounds=ends).fun


def _row(learner, factor, action, state):
    """Where the box of a factor begins and ends at a state and action."""
    structure = learner.structure
    number = structure.independent.index(factor.scope)
    parents, at = structure.group_parents[number], 0
    sizes = [variable.size for variable in structure.variables]
    for scope in parents.groups[: parents.group(action)]:
        at += int(np.prod([sizes[p] for p in scope], dtype=int))
    scope = parents.at(action)
    if scope:
        shape = [sizes[p] for p in scope]
        at += int(np.ravel_multi_index([state[p] for p in scope], shape))
    begin = factor.first_box + at * factor.n_values
    return slice(begin, begin + factor.n_values)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("model", [three_valued(), coins(sigma=0.2)], ids=["mixed", "coins"])
def test_values_are_above_the_best_at_every_start_and_come_down(model, known):
    exact = fsmdp.solve_exactly(model)
    learner = hopeful(model, known_rewards=model.rewards if known else None, delta=0.01)
    plans, replan = [], learner.replan
    learner.replan = lambda: plans.append(replan()) or plans[-1]
    history = fsmdp.learn(model, learner, episodes=3000, seed=1)
    assert all((p.acting.start_values >= exact.values[0] - 1e-9).all() for p in plans)
    starts = np.unique(np.round(history.optimistic_values[-300:], 12))
    assert len(starts) > 1  # each start has a value of its own
    assert history.optimistic_values[-1] < history.optimistic_values[0] - 0.1
    assert (history.slacks == 0).all()
    assert history.optimistic
    assert not history.heuristic
    assert history.regret(exact.start_value)[-1] <= history.observable_regret_bound()[-1]


def test_it_ends_at_the_optimum_and_a_checkpoint_goes_on(tmp_path):
    model = fsmdp.domains.sysadmin(4, horizon=5)

    def run(episodes, path=None):
        return fsmdp.learn(
            model, hopeful(model), episodes, seed=0, checkpoint=path, checkpoint_every=30
        )

    whole = run(600)
    best = fsmdp.solve_exactly(model).start_value
    assert whole.returns[-300:].mean() > 0.98 * best
    assert "all states in the sets" in whole.learner
    run(60, tmp_path / "run.npz")
    assert_same_history(run(600, tmp_path / "run.npz"), whole)


def test_where_states_are_too_many_the_program_bounds_and_candidates_act(monkeypatch):
    monkeypatch.setattr("fsmdp.learning.sampled.SECONDS", -1.0)
    model = fsmdp.domains.sysadmin(4, horizon=5)
    learner = hopeful(model)
    assert learner.optimistic_sweep is None
    history = fsmdp.learn(model, learner, episodes=300, seed=0)
    best = fsmdp.solve_exactly(model).start_value
    assert (history.optimistic_values >= best - 1e-9).all()
    assert history.returns[-150:].mean() > 0.95 * best
    assert history.replans.sum() < 40
    assert "a model in the sets" in history.learner
    assert history.optimistic


def test_what_a_sweep_takes_is_that_of_contraction_whatever_laws_are_alike(monkeypatch):
    """A skeleton, all of whose laws are alike, would be solved by row classes in no time."""
    model = fsmdp.domains.sysadmin(12, horizon=5)
    assert hopeful(model).optimistic_sweep is not None
    monkeypatch.setattr("fsmdp.exact.costs.CONTRACTION_SECONDS", 1.0)
    assert hopeful(model).optimistic_sweep is None


def test_joint_actions_are_left_to_the_program():
    model = fsmdp.domains.sysadmin(3, horizon=4, administrators=2)
    learner = hopeful(model)
    assert learner.optimistic_sweep is None
    assert (fsmdp.learn(model, learner, episodes=3).optimistic_values >= 0).all()


def test_the_solver_asks_for_stated_independence():
    model = fsmdp.domains.sysadmin(3, horizon=4)
    structure = model.structure(fsmdp.Basis.singles(model))
    with pytest.raises(ModelError, match="leaves groups out"):
        fsmdp.UCRLFactored(structure, independent=False, planner="solver")
    with pytest.raises(ModelError, match="leaves groups out"):
        fsmdp.UCRLFactored(structure, "paper", planner="solver")
    with pytest.raises(ModelError, match="planner"):
        fsmdp.UCRLFactored(structure, planner="oracle")


@pytest.mark.parametrize(
    ("values", "strides"),
    [
        (np.zeros(7), np.array([4, 2, 1])),
        (np.zeros(8, dtype=np.float32), np.array([4, 2, 1])),
        (np.zeros(8), np.array([4, 2])),
        (np.zeros(8), np.array([4, 2, -1])),
    ],
)
def test_values_of_starts_that_lead_out_of_their_table_are_refused(values, strides):
    learner = hopeful(fsmdp.domains.sysadmin(3, horizon=4))
    planned = learner.replan()
    acting: Acting = planned.acting._replace(start_values=values, start_strides=strides)
    with pytest.raises(ModelError, match="start_values"):
        check_planned(type(planned)(acting, 0.0, 0.0), learner)
