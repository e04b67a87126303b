"""Environments that lie, by every command that plays one: our errors, and nothing else."""

import pytest
from tests.lying import HORIZON, Lying, environments, structure

import fsmdp
from fsmdp import ModelError
from fsmdp.simulation.environment import Absorbing

CASES = {label: (env, about_terms) for label, env, about_terms in environments()}


def learn(env):
    fsmdp.learn(env, fsmdp.PSRLFactored(structure()), 3)


def learn_absorbing(env):
    fsmdp.learn(Absorbing(env, HORIZON), fsmdp.PSRLFactored(structure()), 3)


def discover(env):
    told = structure()
    fsmdp.discover(env, told.variables, told.actions, episodes=3)


COMMANDS = {"learn": learn, "learn, absorbing": learn_absorbing, "discover": discover}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_honest_environment_will_do(command):
    COMMANDS[command](Lying())


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("label", CASES)
def test_a_lie_is_an_error_of_ours(label, command):
    env, about_terms = CASES[label]
    if about_terms and command == "discover":
        COMMANDS[command](env)  # rewards by term are not looked at
        return
    with pytest.raises(ModelError) as caught:
        COMMANDS[command](env)
    for word in ("terminated", "truncated", "reward", "info", "failed"):
        if label.split()[1] == word or (word == "failed" and "raising" in label):
            assert word in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_an_environment_is_no_model():
    for call in (
        lambda: fsmdp.rollout(Lying(), "random"),
        lambda: fsmdp.plan(Lying()),
        lambda: fsmdp.make_env(Lying()),
    ):
        with pytest.raises(ModelError, match="FactoredMDP"):
            call()
