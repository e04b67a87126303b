"""A policy representation of one's own: a decision list, in one file."""

from dataclasses import dataclass

import numpy as np
import pytest

import fsmdp
from fsmdp.policies.arrays import BY_TABLE, policy_arrays
from fsmdp.policies.resolve import ArrayPolicy, array_policy, resolve

RING = fsmdp.domains.sysadmin(5, horizon=8)


@dataclass(frozen=True)
class DecisionList:
    """Rules "if this variable has this value, take that action": the first that applies is taken.

    `compiled` is optional: with it, compiled code follows the policy, and a run is as fast as of
    any other.
    """

    model: fsmdp.FactoredMDP
    rules: tuple[tuple[str, int, str], ...]
    otherwise: str

    def action(self, state, step=1):
        values = dict(zip((one.name for one in self.model.variables), state, strict=True))
        applies = (action for name, value, action in self.rules if values[name] == value)
        return next(applies, self.otherwise)

    def compiled(self):
        sizes = self.model.sizes
        states = np.indices(sizes).reshape(len(sizes), -1).T
        table = [self.model.actions.index(self.action(state)) for state in states]
        strides = np.cumprod([1, *sizes[:0:-1]])[::-1].astype(np.int64)
        return policy_arrays(BY_TABLE, strides.copy(), np.array([table]))


class InPython(DecisionList):
    """The same rules, followed a state at a time."""

    compiled = None


def rules_of(kind, model=RING):
    reboots = tuple((one.name, 0, f"reboot-{i}") for i, one in enumerate(model.variables))
    return kind(model, reboots, "wait")


def test_compiled_code_takes_the_actions_of_the_rules():
    assert resolve(RING, rules_of(DecisionList)).arrays is not None
    fast = fsmdp.rollout(RING, rules_of(DecisionList), episodes=300, seed=1)
    slow = fsmdp.rollout(RING, rules_of(InPython).action, episodes=300, seed=1)
    np.testing.assert_allclose(fast.returns, slow.returns, rtol=1e-14)  # sums in another order


def test_whatever_takes_a_policy_takes_this_one():
    mine = rules_of(DecisionList)
    values = fsmdp.evaluate_exactly(RING, mine)  # (n_states,)
    exact = float(values[-1])  # of the state in which all machines are up
    assert exact <= fsmdp.solve_exactly(RING).start_value
    runs = fsmdp.rollout(RING, mine, episodes=4000, seed=2)
    assert abs(runs.mean - exact) <= 5 * runs.standard_error
    learner = fsmdp.FixedPolicy(RING.structure(fsmdp.Basis.singles(RING)), mine)
    followed = fsmdp.learn(RING, learner, episodes=500, seed=3).returns
    assert abs(followed.mean() - exact) <= 5 * followed.std() / np.sqrt(500)


def test_an_action_that_the_model_lacks_is_refused():
    with pytest.raises(fsmdp.PolicyError, match="restart"):
        fsmdp.rollout(RING, InPython(RING, (), "restart").action, episodes=1)


@pytest.mark.parametrize("rows", [slice(0, 3), slice(0, 0)])
def test_arrays_that_are_too_short_are_refused(rows):
    class Short(DecisionList):
        def compiled(self):
            whole = super().compiled()
            return whole._replace(table=whole.table[:, rows].copy())

    with pytest.raises(fsmdp.PolicyError, match=r"compiled\(\) is wrong"):
        fsmdp.rollout(RING, rules_of(Short), episodes=1)


def test_arrays_of_a_class_derived_from_ours_are_checked_if_it_makes_its_own():
    class Shorter(ArrayPolicy):
        def compiled(self):
            return self.arrays._replace(table=self.arrays.table[:, :1].copy())

    whole = array_policy("rules", RING, rules_of(DecisionList))
    parts = whole.name, whole.variables, whole.actions, whole.horizon, whole.arrays
    assert fsmdp.rollout(RING, ArrayPolicy(*parts), episodes=1).mean > 0
    with pytest.raises(fsmdp.PolicyError, match=r"compiled\(\) is wrong"):
        fsmdp.rollout(RING, Shorter(*parts), episodes=1)
