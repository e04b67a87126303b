"""Every invariant holds in all states that can be reached, and no step leads out of all of them."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariant_models import one_way, tokens
from tests.joint_models import joint_model
from tests.model.planted import planted_model
from tests.odd_models import odd_model
from tests.reductions.test_joining import reachable

import fsmdp
from fsmdp import LocalInvariant, ModelError, SumInvariant, domains, find_invariants
from fsmdp.exact.flat import enumerate_states
from fsmdp.model import projecting
from fsmdp.reductions.invariants import check_invariants, count_each_nonzero, prove

SEEDS = st.integers(0, 100_000)


def check_by_enumeration(model, invariants):
    """Each holds wherever one can get, and together they are closed under every action."""
    flat = enumerate_states(model.listed())
    inside = np.ones(len(flat.states), dtype=bool)
    for one in invariants:
        holds = one.holds(flat.states)
        assert holds[reachable(flat)].all(), one.text(model.variables)
        inside &= holds
    assert inside[flat.initial() > 0].all()
    assert not flat.transitions[:, inside][:, :, ~inside].any()
    assert len(invariants) == 0 or not inside.all()


@given(seed=SEEDS)
@settings(max_examples=25)
def test_invariants_of_planted_models_hold_by_enumeration(seed):
    model, _ = planted_model(seed)
    found = find_invariants(model, seed)
    assert found
    check_by_enumeration(model, found)
    assert check_invariants(found, model) == found


@given(seed=SEEDS)
@settings(max_examples=25)
def test_invariants_of_random_models_hold_by_enumeration(seed):
    for model in (domains.random_model(seed), odd_model(seed, 3), joint_model(seed, most=64)):
        check_by_enumeration(model, find_invariants(model, seed))


@given(seed=SEEDS, entries=st.sampled_from([1, 4, 16, 64]))
@settings(max_examples=15)
def test_what_is_too_large_to_look_at_is_allowed(seed, entries):
    model, _ = planted_model(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projecting, "MOST_SUPPORT_ENTRIES", entries)
        found = find_invariants(model, seed)
    check_by_enumeration(model, found)


@pytest.mark.parametrize("start", [1, 2, 4])
def test_the_number_of_tokens_is_found_to_be_conserved(start):
    model = tokens(5, start)
    sums = [one for one in find_invariants(model) if isinstance(one, SumInvariant)]
    assert [(one.least, one.most) for one in sums] == [(start, start)]
    assert sums[0].scope == (0, 1, 2, 3, 4)
    check_by_enumeration(model, sums)


def test_limits_that_are_too_tight_grow_to_those_that_hold():
    model = tokens(5, 2)
    scope = (0, 1, 2, 3, 4)
    (found,) = prove(model, {}, [SumInvariant(scope, count_each_nonzero(scope, model.sizes), 2, 2)])
    assert (found.least, found.most) == (2, 2)
    # Two neighbours can hand on one each, and then two: nothing is known of two alone.
    assert (
        prove(model, {}, [SumInvariant((0, 1), count_each_nonzero((0, 1), model.sizes), 1, 1)])
        == ()
    )


def test_one_who_is_inside_came_through_a_door_that_never_closes():
    model = one_way()
    (found,) = find_invariants(model)
    assert isinstance(found, LocalInvariant)
    np.testing.assert_array_equal(found.allowed, [[True, False], [True, True]])
    assert found.text(model.variables) == "open, inside never at (0, 1)"
    check_by_enumeration(model, [found])


def test_false_and_malformed_invariants_are_refused():
    model = one_way()
    false = LocalInvariant((1,), np.array([True, False]))
    with pytest.raises(ModelError, match="inside never at 1: not proved"):
        check_invariants([false], model)
    with pytest.raises(ModelError, match="not proved"):
        check_invariants([SumInvariant((0, 1), ((0, 1), (0, 1)), 0, 1)], model)
    not_at_start = LocalInvariant((0,), np.array([False, True]))
    with pytest.raises(ModelError, match="not proved"):
        check_invariants([not_at_start], model)
    for bad in (
        3,
        false,
        [3],
        [LocalInvariant((1, 0), np.ones((2, 2), dtype=bool))],
        [LocalInvariant((0,), np.ones(3, dtype=bool))],
        [LocalInvariant((5,), np.ones(2, dtype=bool))],
        [SumInvariant((0,), ((0, -1),), 0, 1)],
        [SumInvariant((0,), ((0, 1, 1),), 0, 1)],
    ):
        with pytest.raises(ModelError, match="invariants"):
            check_invariants(bad, model)


def test_a_model_in_which_everything_can_happen_has_no_invariants():
    assert find_invariants(domains.sysadmin(4)) == ()


def test_invariants_can_be_copied_and_pickled():
    (one,) = find_invariants(one_way())
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        np.testing.assert_array_equal(other.allowed, one.allowed)
        assert not other.allowed.flags.writeable


def test_the_time_limit_of_a_proof_is_the_callers():
    def stop():
        raise TimeoutError

    with pytest.raises(TimeoutError):
        fsmdp.find_invariants(one_way(), check=stop)
