"""OLIVE on classes that can be written out: what is kept, what is dropped, how soon it ends."""

import math

import numpy as np
import pytest
from tests.learning.baselines.baseline_models import policy_value, structure_of, switch
from tests.learning.learning_models import assert_same_history, record_plans

import fsmdp
from fsmdp import ModelError, SizeError, domains
from fsmdp.learning.learners.baselines.olive import grid_values


def true_values(model):
    exact = fsmdp.solve_exactly(model)
    flat = exact.flat
    return flat.rewards + np.einsum("ast,lt->las", flat.transitions, exact.values[1:])


def class_of(model, levels=11):
    return grid_values(structure_of(model), model.rewards, levels)


def make(model, functions, **options):
    options = {"accuracy": 0.4, "batch": 4000} | options
    return fsmdp.OLIVE(structure_of(model), functions, known_rewards=model.rewards, **options)


def test_a_grid_of_models_holds_the_truth_and_models_that_are_worse_and_better():
    model = switch(horizon=2)
    functions, truth = class_of(model), true_values(model)
    assert len(functions) == 11**3
    far = np.abs(functions - truth).max(axis=(1, 2, 3))
    assert far.min() < 1e-12
    first = functions[:, 0].max(axis=1)[:, 0]
    assert first.min() < truth[0].max(axis=0)[0] < first.max()


def test_the_optimum_is_found_and_the_truth_is_never_dropped():
    model = switch(horizon=2)
    exact = fsmdp.solve_exactly(model)
    functions = class_of(model, 6)
    at = int(np.abs(functions - true_values(model)).max(axis=(1, 2, 3)).argmin())
    # The truth itself is not on this grid, so it takes the place of what is nearest.
    functions[at] = true_values(model)
    learner = make(model, functions)
    plans = record_plans(learner)
    fsmdp.learn(model, learner, episodes=30_000, seed=1)
    assert learner.alive[at]
    assert learner.left < len(functions) / 2
    assert policy_value(exact, plans[-1]) >= exact.start_value - learner.epsilon
    assert plans[-1].acting.replan_at.min() > 10**9, "it must have come to an end"
    # Theorem 1 of the source: rank of at most 2 states, logarithm of the range over phi.
    phi = learner.epsilon / (12 * 2)
    assert 1 <= learner.iterations <= 2 * 2 * math.log(2.2 / phi) / math.log(5 / 3)


def test_a_promise_that_is_kept_ends_the_search_at_once():
    model = switch(horizon=2)
    learner = make(model, true_values(model)[None], batch=500)
    fsmdp.learn(model, learner, episodes=600)
    assert (learner.iterations, learner.left) == (0, 1)


def test_a_class_without_the_truth_can_lose_all_its_members():
    model = switch(horizon=2)
    wrong = true_values(model) + 1.0
    learner = make(model, wrong[None], batch=500)
    fsmdp.learn(model, learner, episodes=2000)
    assert learner.left == 0


def test_average_errors_are_those_of_what_was_seen():
    model = switch(horizon=3)
    functions = class_of(model, 3)
    learner = make(model, functions, batch=50)
    fsmdp.learn(model, learner, episodes=20)
    flat, seen = fsmdp.solve_exactly(model).flat, learner.seen
    for step in range(3):
        rows = np.flatnonzero(seen.steps == step)
        for member in (0, 7):
            f, expected = functions[member], []
            for row in rows:
                s, a, following = seen.states[row, 0], seen.actions[row], seen.following[row, 0]
                after = f[step + 1, :, following].max() if step < 2 else 0.0
                expected.append(f[step, a, s] - flat.rewards[a, s] - after)
            found = learner.bellman_errors(functions, step)[member]
            np.testing.assert_allclose(found, expected)


def test_a_run_that_was_cut_off_resumes_bit_for_bit(tmp_path):
    model, path = switch(horizon=2), tmp_path / "run.npz"
    functions = class_of(model, 3)

    def run(episodes, checkpoint=None):
        learner = make(model, functions, batch=20)
        return fsmdp.learn(model, learner, episodes, checkpoint=checkpoint, checkpoint_every=50)

    whole = run(150)
    run(70, path)
    assert_same_history(whole, run(150, path))


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("alive", lambda a: a[:-1]),
        ("at", lambda a: a.astype(float)),
        ("at", lambda a: a + 10**6),
    ],
)
def test_a_state_that_cannot_be_is_not_taken_back(part, wrong):
    model = switch(horizon=2)
    learner = make(model, class_of(model, 3), batch=20)
    fsmdp.learn(model, learner, episodes=30)
    state = learner.state()
    learner.restore(state)
    with pytest.raises(ValueError, match=part):
        learner.restore(state | {part: wrong(state[part])})


def test_what_cannot_be_written_out_is_refused_with_its_count():
    ring = domains.sysadmin(6, horizon=3)
    with pytest.raises(SizeError, match=r"30 cells with 5 levels are .* hypotheses"):
        grid_values(structure_of(ring), ring.rewards, 5)
    with pytest.raises(ModelError, match="known_rewards"):
        grid_values(structure_of(switch()), None, 3)
    with pytest.raises(ModelError, match="functions: expected shape"):
        make(switch(), np.zeros((2, 2)))
