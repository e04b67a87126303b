"""Policies: tables by state, and solutions or plans of another model."""

import copy
import json
import pickle

import numba
import numpy as np
import pytest

import fsmdp
from fsmdp import (
    ExactSolution,
    PolicyError,
    domains,
    evaluate_exactly,
    solve_exactly,
)
from fsmdp.io.models import from_bytes, to_dict
from fsmdp.model.actions import ListedActions
from fsmdp.policies.arrays import (
    BY_TABLE,
    given_action,
    no_strides,
    policy_arrays,
    unpacked_table,
)


class TestTables:
    """Policies given as arrays."""

    ring = domains.sysadmin(3, horizon=4)
    exact: ExactSolution = solve_exactly(ring)

    def test_every_shape_is_followed(self):
        by_step = self.exact.actions
        np.testing.assert_allclose(evaluate_exactly(self.ring, by_step), self.exact.values[0])
        shaped = by_step.reshape(4, 2, 2, 2)
        np.testing.assert_allclose(evaluate_exactly(self.ring, shaped), self.exact.values[0])
        always = np.zeros(8, dtype=np.int8)
        waiting = evaluate_exactly(self.ring, "wait")
        for table in (always, always.reshape(2, 2, 2), always.tolist(), always[None, :]):
            np.testing.assert_allclose(evaluate_exactly(self.ring, table), waiting)

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (np.zeros(7, int), r"expected shape \(8,\) or \(4, 8\), .* found \(7,\)"),
            (np.zeros((3, 8), int), r"found \(3, 8\)"),
            (np.zeros((), int), r"found \(\)"),
            (np.zeros((2, 4), int), r"found \(2, 4\)"),
            (np.zeros(8), "expected whole numbers, the positions of actions"),
            (np.zeros(8, bool), "expected whole numbers"),
            (np.ma.masked_array(np.zeros(8, int)), "expected whole numbers"),
            ([["wait"] * 8] * 4, "expected whole numbers"),
            ([[0], [0, 1]], "expected whole numbers"),
            (np.full(8, 4), r"entry \(0,\) is 4, expected the position of an action, 0 to 3"),
            (-np.eye(8, dtype=int)[7], r"entry \(7,\) is -1"),
        ],
    )
    def test_other_tables_are_refused(self, table, message):
        with pytest.raises(PolicyError, match=message):
            evaluate_exactly(self.ring, table)

    def test_a_table_for_a_model_with_too_many_states_is_refused(self):
        with pytest.raises(PolicyError, match=r"expected shape \(2\^1000,\)"):
            fsmdp.rollout(domains.sysadmin(1000), np.zeros(8, int))


def renamed(model, old, new):
    """The same model with one name changed wherever it stands."""
    return from_bytes(json.dumps(to_dict(model)).replace(f'"{old}"', f'"{new}"').encode())


RING = domains.sysadmin(3, horizon=3)
OTHERS = {
    "more variables": (domains.sysadmin(4, horizon=3), "it has 4 variables, expected 3"),
    "fewer variables": (domains.sysadmin(2, horizon=3), "it has 2 variables, expected 3"),
    "other horizon": (domains.sysadmin(3, horizon=2), "its horizon is 2, expected 3"),
    "no horizon": (domains.sysadmin(3, horizon=None, discount=0.9), "its horizon is None"),
    "other names": (
        renamed(RING, "machine-1", "m"),
        "its variable number 1 is Variable.*'m'.*expected Variable",
    ),
    "other actions": (renamed(RING, "wait", "rest"), "its action number 0 is 'rest', exp"),
}


@pytest.mark.parametrize("which", OTHERS)
@pytest.mark.parametrize("solve", [solve_exactly, fsmdp.plan, fsmdp.Programs().plan])
@pytest.mark.parametrize("use", [evaluate_exactly, fsmdp.rollout])
def test_a_solution_or_plan_of_another_model_is_refused(which, solve, use):
    other, message = OTHERS[which]
    with pytest.raises(PolicyError, match=f"of another model: {message}"):
        use(RING, solve(other))


def test_a_solution_of_an_equal_model_is_followed():
    exact = solve_exactly(copy.deepcopy(RING))
    np.testing.assert_allclose(evaluate_exactly(RING, exact), exact.values[0])


@pytest.mark.parametrize("policy", [ExactSolution, dict, None, 3.5, {}, object()])
def test_what_is_no_policy_is_refused(policy):
    with pytest.raises(PolicyError, match="is not a policy; expected a plan, an exact solution"):
        evaluate_exactly(RING, policy)


def test_a_copy_of_a_policy_is_of_the_type_that_code_was_compiled_for():
    table = policy_arrays(BY_TABLE, no_strides(2), np.array([[300]]))
    for made in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        assert numba.typeof(made) == numba.typeof(table)
        assert unpacked_table(made.table).tolist() == [[300]]
    given = given_action(2, ListedActions(["a", "b"]))
    for made in (pickle.loads(pickle.dumps(given)), copy.deepcopy(given)):
        assert numba.typeof(made.policy) == numba.typeof(table)
        made.give(70_000)
        assert unpacked_table(made.policy.table).tolist() == [[70_000]]
    assert unpacked_table(given.policy.table).tolist() == [[0]]
