"""A plan may say how its bound can be proved where the checker's own way is too wide."""

import dataclasses
from fractions import Fraction

import pytest
from checked import lowered, read
from hypothesis import given, settings
from hypothesis import strategies as st

import fsmdp
from fsmdp.domains import random_model
from fsmdp.planning.files import load_plan
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

    monkeypatch.setattr(checker, "make_networks", refuse)


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.sampled_from(["joint", "bundled"]), st.sampled_from([2, 4, 8]))
def test_the_bound_of_mini_buckets_is_proved_the_plans_own_way(seed, method, size):
    model, plan = wide_plan(seed, method, size)
    mine, claim = read(model, plan)
    if plan.bound.hint is None:  # exact after all, or some table is that of no action
        assert claim.hint is None
        return
    terms = checker.bellman_terms(mine, claim, checker.Places(mine.sizes), lambda _: None)
    places = checker.Places(mine.sizes)
    steps, largest = checker.by_hint(mine, claim, claim.hint, terms, places, lambda _: None)
    assert all(one.most <= 0 for one in steps)
    exact, _ = checker.by_elimination(mine, claim, terms, places, lambda _: None)
    for found, true in zip(steps, exact, strict=True):
        assert found.most >= true.most  # it can only prove less
    assert largest <= max(size, 2**6)


def test_a_network_too_wide_for_the_checker_is_proved_by_the_hint(narrow):
    model, plan = wide_plan()
    assert plan.bound.hint is not None
    mine, claim = read(model, plan)
    verdict = checker.check(mine, claim)
    assert verdict.proved
    assert float(verdict.bound) == pytest.approx(plan.upper_bound)
    with pytest.raises(checker.TooWideError):
        checker.check(mine, dataclasses.replace(claim, hint=None))


def test_a_weight_below_what_the_hint_proves_is_not_proved(narrow):
    model, plan = wide_plan()
    mine, claim = read(model, plan)
    room = -checker.check(mine, claim).steps[1].most
    good = lowered(claim, 1, 0, room * Fraction(999_999_999, 10**9))
    bad = lowered(claim, 1, 0, room * Fraction(1_000_000_001, 10**9) + Fraction(1, 2**1000))
    assert checker.check(mine, good).steps[1].most <= 0
    assert not checker.check(mine, bad).proved


def test_a_hint_of_variables_that_there_are_not_is_refused(narrow):
    model, plan = wide_plan()
    mine, claim = read(model, plan)
    (terms, _), *others = claim.hint.steps
    hint = dataclasses.replace(claim.hint, steps=((terms, (99,)), *others))
    with pytest.raises(checker.BadInputError, match="no such variable"):
        checker.check(mine, dataclasses.replace(claim, hint=hint))


def test_a_hint_that_leaves_something_out_is_refused(narrow):
    model, plan = wide_plan()
    mine, claim = read(model, plan)
    refused = 0
    for number, (terms, variables) in enumerate(claim.hint.steps[::9]):
        for at, term in enumerate(terms[:2]):
            changes = [terms[:at] + terms[at + 1 :], (*terms, term)]
            if len(term) == 3:
                changes.append((*terms[:at], (*term[:2], -term[2]), *terms[at + 1 :]))
            for changed in changes:
                steps = list(claim.hint.steps)
                steps[9 * number] = (changed, variables)
                hint = dataclasses.replace(claim.hint, steps=tuple(steps))
                try:
                    verdict = checker.check(mine, dataclasses.replace(claim, hint=hint))
                except checker.BadInputError:
                    refused += 1
                else:  # a term of weight 0, which is nothing
                    assert verdict.steps[0].most == checker.check(mine, claim).steps[0].most
    assert refused > 5


def test_a_variable_that_is_not_maxed_out_leaves_no_number(narrow):
    model, plan = wide_plan()
    mine, claim = read(model, plan)
    steps = list(claim.hint.steps)
    final = claim.hint.finals[0]
    steps[final] = (steps[final][0], ())
    changed = dataclasses.replace(claim.hint, steps=tuple(steps))
    with pytest.raises(checker.BadInputError, match="something else"):
        checker.check(mine, dataclasses.replace(claim, hint=changed))


def test_hints_are_in_the_file(tmp_path):
    _, plan = wide_plan()
    plan.save(tmp_path / "plan.npz")
    again = load_plan(tmp_path / "plan.npz")
    assert again.bound.hint == plan.bound.hint


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
def test_steps_that_are_none_are_refused(steps):
    with pytest.raises(checker.BadInputError, match="elimination"):
        checker.read_hint(steps)
