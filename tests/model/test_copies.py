"""Pickled and copied models are equal to the originals, and as read-only."""

import copy
import pickle

import numpy as np
import pytest

import fsmdp
from fsmdp import ANY, Basis, Case, domains, solve_exactly
from fsmdp.io.models import to_dict
from fsmdp.model.cases import Cases

FAIR = [0.5, 0.5]

COPIES = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.mark.parametrize("how", COPIES)
class TestCopies:
    def test_of_a_model_are_equal_and_read_only(self, how):
        original = domains.random_model(7)
        copied = COPIES[how](original)
        assert to_dict(copied) == to_dict(original)
        with pytest.raises(ValueError, match="read-only"):
            copied.conditionals[0].cases[0].table[...] = 0.0

    def test_of_any_are_any(self, how):
        assert COPIES[how](ANY) is ANY
        assert COPIES[how](Case(ANY, ["x"], FAIR)).actions is ANY

    def test_of_cases_keep_their_exceptions(self, how):
        copied = COPIES[how](Cases(("a", "b"), {2: 1}))
        assert (copied.at(0), copied.at(2)) == ("a", "b")

    def test_of_a_solution_act_alike(self, how):
        exact = solve_exactly(domains.sysadmin(3))
        copied = COPIES[how](exact)
        np.testing.assert_array_equal(copied.values, exact.values)
        np.testing.assert_array_equal(copied.actions, exact.actions)
        assert copied.action((0, 1, 1)) == exact.action((0, 1, 1))
        with pytest.raises(ValueError, match="read-only"):
            copied.values[0] = 0.0

    def test_of_structures_and_marginals_are_faithful(self, how):
        ring = domains.sysadmin(4)
        basis = Basis.pairs(ring)
        told = COPIES[how](ring.structure(basis))
        assert told.cells == ring.structure(basis).cells
        assert told.basis.scopes == basis.scopes
        copied, original = COPIES[how](ring.marginals(basis)), ring.marginals(basis)
        for one, other in zip(copied.cases, original.cases, strict=True):
            for found, expected in zip(one, other, strict=True):
                np.testing.assert_array_equal(found.probabilities, expected.probabilities)
                assert not found.probabilities.flags.writeable

    def test_of_an_environment_go_on_alike(self, how):
        env = fsmdp.make_env(domains.sysadmin(4))
        env.reset(seed=3)
        env.step("wait")
        copied = COPIES[how](env)
        if how != "copy":  # a shallow copy shares its generator, as in the rest of Python
            rewards = [env.step("reboot-0")[1] for _ in range(5)]
            assert [copied.step("reboot-0")[1] for _ in range(5)] == rewards


def test_replaced_parts_are_all_that_differs():
    model = domains.random_model(3, latents=1, horizon=None, discount=0.9)
    assert model.replace() == model
    other = model.replace(horizon=4, discount=1.0, initial=[0] * len(model.variables))
    assert (other.horizon, other.discount) == (4, 1.0)
    assert set(other.initial) == {0}
    assert other.conditionals == model.conditionals
    assert other.replace(horizon=None, discount=model.discount, initial=model.initial) == model
    with pytest.raises(fsmdp.ModelError, match="values, one per variable"):
        model.replace(initial=[0])
    with pytest.raises(TypeError, match="initials"):
        model.replace(initials=[0])
