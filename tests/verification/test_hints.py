"""A plan may say how its bound can be proved where the checker's own way is too wide."""

import dataclasses
from fractions import Fraction
from itertools import product

import pytest
from checked import lowered, model_bytes, plan_bytes, read
from hypothesis import given, settings
from hypothesis import strategies as st

import fsmdp
from fsmdp.domains import random_model
from fsmdp.io.plans import load_plan
from fsmdp.verification import checker


def wide_plan(seed=0, method="joint", size=4, horizon=2):
    model = random_model(
        seed, variables=5, horizon=horizon, largest_size=2, largest_parents=3, rewards=4
    )
    plan = fsmdp.plan(model, fsmdp.Basis.pairs(model), method=method, mini_bucket=size)
    return model, plan


@pytest.fixture
def narrow(monkeypatch):
    """A checker to which everything is too wide but what the plan says."""

    def refuse(*_):
        raise checker.TooWideError("too wide")

    monkeypatch.setattr(checker, "own_schedule", refuse)


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.sampled_from(["joint", "bundled"]), st.sampled_from([2, 4, 8]))
def test_the_bound_of_mini_buckets_is_proved_the_plans_own_way(seed, method, size):
    model, plan = wide_plan(seed, method, size)
    mine, claim = read(model, plan)
    if plan.bound.values.hint is None:  # exact after all, or some table is that of no action
        assert claim.hint is None
        return
    terms = checker.terms_of(mine, claim)
    hinted = checker.plans_schedule(claim.hint, terms, mine.sizes)
    exact = checker.own_schedule(terms, mine.sizes)
    for step, action in product(range(len(claim.weights)), range(len(terms))):
        found = hinted.maximum(action, step, {})
        assert exact.maximum(action, step, {}) <= found <= 0  # it can only prove less
    assert max(hinted.work) <= max(size, 2**6)


def test_a_network_too_wide_for_the_checker_is_proved_by_the_hint(narrow):
    model, plan = wide_plan()
    assert plan.bound.values.hint is not None
    mine, claim = read(model, plan)
    verdict = checker.check(mine, claim)
    assert verdict.proved
    assert float(verdict.bound) == pytest.approx(plan.upper_bound)
    with pytest.raises(checker.TooWideError):
        checker.check(mine, dataclasses.replace(claim, hint=None))


def test_a_weight_below_what_the_hint_proves_is_not_proved(narrow):
    model, plan = wide_plan()
    mine, claim = read(model, plan)
    room = -checker.check(mine, claim).steps[1]
    good = lowered(claim, 1, 0, room * Fraction(999_999_999, 10**9))
    bad = lowered(claim, 1, 0, room * Fraction(1_000_000_001, 10**9) + Fraction(1, 2**1000))
    assert checker.check(mine, good).steps[1] <= 0
    assert not checker.check(mine, bad).proved


def test_a_hint_of_variables_that_there_are_not_is_refused(narrow):
    model, plan = wide_plan()
    mine, claim = read(model, plan)
    (terms, _), *others = claim.hint["steps"]
    hint = claim.hint | {"steps": [(terms, [99]), *others]}
    with pytest.raises(checker.BadInputError, match="no such variable"):
        checker.check(mine, dataclasses.replace(claim, hint=hint))


def test_a_hint_that_leaves_something_out_is_refused(narrow):
    model, plan = wide_plan()
    mine, claim = read(model, plan)
    refused = 0
    for number, (terms, variables) in enumerate(claim.hint["steps"][::9]):
        for at, term in enumerate(terms[:2]):
            changes = [terms[:at] + terms[at + 1 :], [*terms, term]]
            if len(term) == 3:
                changes.append([*terms[:at], [*term[:2], -term[2]], *terms[at + 1 :]])
            for changed in changes:
                steps = list(claim.hint["steps"])
                steps[9 * number] = (changed, variables)
                hint = claim.hint | {"steps": steps}
                try:
                    verdict = checker.check(mine, dataclasses.replace(claim, hint=hint))
                except checker.BadInputError:
                    refused += 1
                else:  # a term of weight 0, which is nothing
                    assert verdict.steps[0] == checker.check(mine, claim).steps[0]
    assert refused > 5


def test_a_variable_that_is_not_maxed_out_is_in_the_end(narrow):
    model, plan = wide_plan()
    mine, claim = read(model, plan)
    steps, (final, *_) = list(claim.hint["steps"]), claim.hint["finals"]
    assert steps[final][1]
    steps[final] = (steps[final][0], [])
    changed = checker.check(mine, dataclasses.replace(claim, hint=claim.hint | {"steps": steps}))
    assert changed.steps == checker.check(mine, claim).steps


def test_hints_are_in_the_file(tmp_path):
    _, plan = wide_plan()
    plan.save(tmp_path / "plan.npz")
    again = load_plan(tmp_path / "plan.npz")
    assert again.bound.values.hint == plan.bound.values.hint


@pytest.mark.parametrize(
    "steps",
    [
        3,
        [],
        {"steps": []},
        {"steps": [], "finals": [0]},
        {"steps": [[[[0]], []]], "finals": [0]},
        {"steps": [[[[0, 0]], []]], "finals": [0]},
        {"steps": [[[[0, 0, 1]], [-1]]], "finals": [0]},
        {"steps": [[[[0, 0, 1]], [0, 0]]], "finals": [0]},
        {"steps": [[[["a", 0, 1]], []]], "finals": [0]},
        {"steps": [[[[0, 0, 1]]]], "finals": [0]},
        {"steps": [[[[0, 0, 1]], []]], "finals": [1]},
    ],
)
def test_steps_that_are_none_are_refused(steps, narrow):
    model, plan = wide_plan()
    mine = checker.read_model(model_bytes(model))
    with pytest.raises(checker.BadInputError, match="elimination"):
        checker.check(mine, checker.read_claim(plan_bytes(plan, {"elimination": steps}), mine))
