"""A policy of ours acts in pyRDDLGym's simulator as it does in ours."""

import sys
import warnings

import numpy as np
import pytest

import fsmdp
from fsmdp.reproduction.ippc import DOMAINS

gym = pytest.importorskip("pyRDDLGym")


def _environment(name, instance):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gym.make(name, str(instance))


def _differs_by(name, episodes, policy_of):
    """Standard errors between the means of both simulators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fsmdp.rddl.load(name, 1)
        policy = policy_of(model)
        agent = fsmdp.rddl.agent(policy, model)
        found = agent.evaluate(_environment(name, 1), episodes=episodes, seed=1)
    ours = fsmdp.rollout(model, policy, 4000, seed=2)
    error = np.hypot(found["std"] / np.sqrt(episodes), ours.standard_error)
    return abs(found["mean"] - ours.mean) / max(error, 1e-9 * max(1.0, abs(ours.mean)))


def test_a_plan_earns_the_same_in_both_simulators():
    assert _differs_by("SysAdmin_MDP_ippc2011", 40, lambda m: fsmdp.plan(m, time_limit=20)) < 4.5


def test_steps_are_counted_from_every_reset():
    name = "SysAdmin_MDP_ippc2011"
    model = fsmdp.rddl.load(name, 1)
    steps = []

    def policy(state, step):
        steps.append(step)
        return "noop"

    fsmdp.rddl.agent(policy, model).evaluate(_environment(name, 1), episodes=2)
    assert steps == [*range(1, 41)] * 2


def test_joint_and_negated_actions_and_values_are_set():
    from fsmdp.io.rddl.agent import _their_action
    from fsmdp.io.rddl.translation import ground_action, ground_of

    both = _their_action(ground_action("take(c1)+~open(d1,d2)+go=o1"))
    assert both == {"take___c1": True, "open___d1__d2": False, "go": "o1"}
    assert ground_action("noop") == {}
    assert ground_action("noop", "~noop") == {"noop": True}
    choices = fsmdp.Variable("hire/build", ["none", "hire", "build(x)", "go=o1"])
    actions = fsmdp.Actions([choices, fsmdp.Variable("take(c1)", 2)])
    assert ground_of(actions, (1, 0)) == {"hire": True}
    assert ground_of(actions, (2, 1)) == {"build(x)": True, "take(c1)": True}
    assert ground_of(actions, (3, 0)) == {"go": "o1"}


def test_an_environment_of_another_problem_is_refused():
    agent = fsmdp.rddl.agent("wait", fsmdp.domains.sysadmin(3))
    with pytest.raises(fsmdp.PolicyError, match="has no fluent 'machine-0'"):
        agent.evaluate(_environment("SysAdmin_MDP_ippc2011", 1))
    with pytest.raises(fsmdp.PolicyError, match="does not know its model"):
        fsmdp.rddl.agent("random")


@pytest.mark.slow
@pytest.mark.parametrize("domain", sorted(DOMAINS))
def test_plans_earn_the_same_in_both_simulators_in_every_domain(domain):
    def planned(model):
        return fsmdp.plan(model, time_limit=20)

    assert _differs_by(DOMAINS[domain], 60, planned) < 4.5


def test_without_the_extra_an_agent_is_refused_with_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyRDDLGym.core.policy", None)
    with pytest.raises(
        fsmdp.ModelError, match=r'agent: .* install it with pip install "\.\[rddl\]"'
    ):
        fsmdp.rddl.agent("x")


@pytest.mark.parametrize(
    ("name", "instance"),
    [
        ("EarthObservation_ippc2018", 1),  # enumerated fluents
        ("CooperativeRecon_ippc2018", 9),  # choices, and places that are one variable
        ("Manufacturer_ippc2018", 9),  # choices that are counted
        ("Sudoku_arcade", 0),  # integers
    ],
)
def test_agents_only_take_actions_that_the_environment_allows(name, instance):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fsmdp.rddl.load(name, instance)
        environment = gym.make(name, str(instance), enforce_action_constraints=True)
        state, _ = environment.reset(seed=0)
        agent = fsmdp.rddl.agent("random", model)
        agent.reset()
        acted = 0
        for _ in range(10):
            action = agent.sample_action(state)
            acted += len(action)
            state, *_ = environment.step(action)  # raises where a precondition does not hold
    assert acted


def test_actions_that_are_not_allowed_are_refused_by_the_environment():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        environment = gym.make("EarthObservation_ippc2018", "1", enforce_action_constraints=True)
        environment.reset(seed=0)
        with pytest.raises(Exception, match="not satisfied"):
            environment.step({"take-image": True})
