"""The checker proves invariants and limits on joint actions again, and trusts none."""

import dataclasses
from itertools import product

import numpy as np
import pytest
from checked import lowered, model_bytes, plan_bytes, read, verdict_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.invariant_models import one_way, tokens
from tests.joint_models import joint_model
from tests.model.planted import planted_model
from tests.reductions.test_joining import reachable

import fsmdp
from fsmdp import find_invariants
from fsmdp.exact.flat import enumerate_states
from fsmdp.verification import checker


def plan_with(model, method="joint", functions_of=None, **options):
    """With functions of all variables, or of one alone."""
    singles = fsmdp.Basis.singles(model)
    return fsmdp.plan(
        model,
        singles if functions_of is None else fsmdp.Basis.blocks(model, [[functions_of]]),
        method=method,
        invariants=find_invariants(model),
        **options,
    )


@pytest.mark.filterwarnings("ignore::fsmdp.TrivialBoundWarning")
@settings(max_examples=10)
@given(st.integers(0, 100_000), st.sampled_from(["joint", "bundled"]), st.sampled_from([None, 4]))
def test_plans_with_invariants_are_proved(seed, method, size):
    model, _ = planted_model(seed)
    plan = plan_with(model, method, mini_bucket=size)
    verdict = verdict_of(model, plan)
    assert verdict.proved
    assert all(verdict.invariants)
    assert len(verdict.invariants) == len(plan.bound.values.invariants)


@pytest.mark.filterwarnings("ignore::fsmdp.TrivialBoundWarning")
@settings(max_examples=10)
@given(st.integers(0, 100_000), st.sampled_from([None, 4]))
def test_plans_of_joint_actions_are_proved_and_refuted(seed, size):
    model = joint_model(seed, most=64)
    plan = plan_with(model, mini_bucket=size)
    mine, claim = read(model, plan)
    verdict = checker.check(mine, claim)
    assert verdict.proved
    listed = fsmdp.solve_exactly(model.listed()).start_value
    assert float(verdict.bound) >= listed - 1e-9
    step = len(claim.weights) - 1
    room = -verdict.steps[step]
    assert not checker.check(
        mine, lowered(claim, step, 0, room + checker.Fraction(1, 10**9))
    ).proved


@pytest.mark.parametrize("administrators", [1, 2, "each"])
def test_rings_with_several_administrators_are_checked(administrators):
    model = fsmdp.domains.sysadmin(8, horizon=4, administrators=administrators)
    plan = fsmdp.plan(model, fsmdp.Basis.pairs(model), method="joint")
    verdict = verdict_of(model, plan)
    assert verdict.proved
    assert float(verdict.bound) == pytest.approx(plan.upper_bound)


def test_a_limit_on_joint_actions_that_the_model_has_not_is_refused():
    model = fsmdp.domains.sysadmin(4, horizon=3, administrators=1)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="joint")
    other = fsmdp.domains.sysadmin(4, horizon=3, administrators=2)
    _, claim = read(model, plan)
    mine = checker.read_model(model_bytes(other))
    with pytest.raises(checker.BadInputError, match="actions differ"):
        checker.read_claim(plan_bytes(plan), mine)
    assert not checker.check(mine, claim).proved


@pytest.mark.parametrize(("model", "at"), [(tokens(5, 2), 4), (one_way(), None)])
def test_a_bound_that_needs_an_invariant_is_not_proved_without(model, at):
    mine, claim = read(model, plan_with(model, functions_of=at))
    assert checker.check(mine, claim).proved
    without = dataclasses.replace(claim, invariants=(), restrictions=())
    assert not checker.check(mine, without).proved


def test_false_invariants_are_left_out_and_do_not_make_a_proof():
    model = tokens(5, 2)
    mine, claim = read(model, plan_with(model, functions_of=4))
    at = next(k for k, one in enumerate(claim.invariants) if isinstance(one, checker.Sum))
    for change in ({"most": 1, "least": 1}, {"most": 1, "least": 0}):
        false = dataclasses.replace(claim.invariants[at], **change)
        invariants = (*claim.invariants[:at], false, *claim.invariants[at + 1 :])
        used = ((at, ()),)
        verdict = checker.check(
            mine, dataclasses.replace(claim, invariants=invariants, restrictions=used)
        )
        assert not verdict.invariants[at]
        assert not verdict.proved


@given(st.integers(0, 100_000))
@settings(max_examples=12)
def test_an_invariant_with_one_more_value_ruled_out_is_never_believed_in_error(seed):
    rng = np.random.default_rng(seed)
    model, _ = planted_model(seed)
    flat = enumerate_states(model)
    states = flat.states[reachable(flat)]
    mine, claim = read(model, plan_with(model))
    local = [k for k, one in enumerate(claim.invariants) if isinstance(one, checker.Table)]
    if not local:
        return
    at = int(rng.choice(local))
    one = claim.invariants[at]
    numbers = np.array(one.numbers, dtype=object)
    numbers[rng.choice(np.flatnonzero(numbers == 0))] = checker.NEVER
    changed = checker.Table(one.axes, numbers.tolist())
    invariants = (*claim.invariants[:at], changed, *claim.invariants[at + 1 :])
    held = checker.prove_invariants(mine, invariants)
    table = (numbers == 0).reshape([model.sizes[axis] for axis in one.axes])
    true = table[tuple(states[:, axis] for axis in one.axes)].all()
    assert true or not held[at]


def test_additions_that_do_not_add_up_are_refused():
    model = tokens(5, 2)
    mine, claim = read(model, plan_with(model, functions_of=4))
    ((number, used),) = [pair for pair in claim.restrictions if pair[1]]
    n = len(model.variables)
    for additions in (
        ((0, 0, n), *used[1:]),
        ((0, 1, n), (0, 2, n + 1), (n, n + 1)),
        ((0, 1, n + 3), (n + 3, 2)),
        ((0, 1), (2, 3)),
        ((7, 1, n), (n, 2)),
        ((0, 1, 99), (99, 2)),
    ):
        changed = dataclasses.replace(claim, restrictions=((number, additions),))
        with pytest.raises(checker.BadInputError, match="additions"):
            checker.check(mine, changed)
    assert checker.check(mine, claim).proved
    # What is not counted is free: less is proved, and nothing in error.
    fewer = dataclasses.replace(claim, restrictions=((number, ((0, 1),)),))
    assert not checker.check(mine, fewer).proved


@given(st.integers(0, 100_000))
@settings(max_examples=40)
def test_counters_allow_what_the_limits_allow_and_no_more_if_all_are_counted(seed):
    """By enumeration of all states and of all values of the counters."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    sizes = {axis: int(rng.integers(1, 4)) for axis in range(n)}
    counts = tuple(tuple(rng.integers(0, 3, size=sizes[axis]).tolist()) for axis in range(n))
    least, most = sorted(rng.integers(0, 6, size=2).tolist())
    limit = checker.Sum(tuple(range(n)), counts, least, most)
    items, additions, counter = rng.permutation(n).tolist(), [], n
    for _ in range(int(rng.integers(0, n))):  # some of them, along any tree
        if len(items) > 2:
            pair = [items.pop(rng.integers(len(items))) for _ in range(2)]
            additions.append((*pair, counter))
            items.append(counter)
            counter += 1
    last = tuple(items[-2:])
    is_whole = len(last) == len(items)
    for holds, taken in ((True, [*additions, last]), (True, ()), (False, ())):
        all_sizes = dict(sizes)
        tables = checker.tables_of(limit, all_sizes, taken, holds)
        counters = [range(all_sizes[axis]) for axis in sorted(all_sizes.keys() - sizes.keys())]
        for state in product(*(range(sizes[axis]) for axis in range(n))):
            assignments = (dict(enumerate((*state, *more))) for more in product(*counters))
            found = any(
                all(checker.entry(table, one, all_sizes) == 0 for table in tables)
                for one in assignments
            )
            total = sum(row[value] for row, value in zip(counts, state, strict=True))
            expected = (least <= total <= most) == holds
            assert found == expected or (found and taken and not is_whole)


@pytest.mark.filterwarnings("ignore::fsmdp.TrivialBoundWarning")
@settings(max_examples=10)
@given(st.integers(0, 100_000), st.booleans())
@example(8212, True)  # all that is counted is in one counter, which no addition without one follows
def test_invariants_and_joint_actions_are_checked_the_plans_own_way_too(seed, joint):
    model = joint_model(seed, most=64) if joint else planted_model(seed)[0]
    plan = plan_with(model, mini_bucket=4)
    if plan.bound.values.hint is None:
        return
    mine, claim = read(model, plan)
    sizes = dict(mine.sizes)
    held = checker.prove_invariants(mine, claim.invariants)
    limits = checker.limits_of(mine, claim, held, sizes)
    terms = [[*own, *limits] for own in checker.terms_of(mine, claim)]
    hinted = checker.plans_schedule(claim.hint, terms, sizes)
    exact = checker.own_schedule(terms, sizes)
    for step, action in product(range(len(claim.weights)), range(len(terms))):
        found = hinted.maximum(action, step, {})
        assert exact.maximum(action, step, {}) <= found <= 0
