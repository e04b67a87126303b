"""Lies of environments x commands x when they begin: our errors, and nothing else."""

import sys
from collections import Counter

import gymnasium
import pytest

import fsmdp
from fsmdp import ModelError
from fsmdp.experiments.runner import compare
from fsmdp.experiments.specification import specify
from fsmdp.learning.learners.registry import LEARNERS
from fsmdp.simulation.environment import Absorbing
from tests import lying
from tests.experiments.sweeps import Here

NAMES = ("ucrl", "psrl", "unknown", "rlsvi", "random", "ucbvi", "bonus")

BLIND = ("discover", "learn random")
"""Commands that do not look at rewards by term."""


def learners():
    for name in NAMES:
        if name in LEARNERS:
            yield name


def build(name):
    from fsmdp.experiments.learners import Simulator, build_learner, resolve_options

    options = resolve_options(LEARNERS[name], {}, "options")
    return build_learner(name, Simulator(lying.Lying(), lying.structure()), None, options, 0)


def commands():
    told = lying.structure()
    for name in learners():
        yield f"learn {name}", lambda env, name=name: fsmdp.learn(env, build(name), 4)
    yield "discover", lambda env: fsmdp.discover(env, told.variables, told.actions, episodes=4)
    yield "absorbing", lambda env: fsmdp.learn(Absorbing(env, lying.HORIZON), build("psrl"), 4)
    yield "order", lambda env: fsmdp.learn(ordered(env), build("psrl"), 4)


def ordered(env):
    return gymnasium.wrappers.OrderEnforcing(env)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # of Gymnasium's wrappers
def test_lies_by_command_and_moment(capsys):
    counts, accepted = Counter(), []
    for command, call in commands():
        call(lying.Lying())  # an honest one will do
        for label, env, about_terms in lying.environments():
            for since in (1, 2, 3):
                env.since = since
                try:
                    call(env)
                except ModelError:
                    counts["refused"] += 1
                else:
                    counts["accepted"] += 1
                    if not (about_terms and command in BLIND):
                        accepted.append((command, label, since))
    with capsys.disabled():
        print(f"\nlies of environments: {sum(counts.values())} tried, {dict(counts)}")
    assert accepted == []


@pytest.mark.slow
def test_lies_in_a_sweep_are_failed_runs_with_one_line(tmp_path, monkeypatch, capsys):
    module = type(sys)("lying_now")
    monkeypatch.setitem(sys.modules, "lying_now", module)
    module.__spec__ = lying.__spec__
    module.told = lying.structure
    counts = Counter()
    for number, (_, env, _) in enumerate(lying.environments()):
        module.make = lambda env=env: env
        data = {
            "name": "x",
            "episodes": 3,
            "models": [{"environment": "lying_now:make", "structure": "lying_now:told"}],
            "learners": [{"learner": "psrl"}],
        }
        (run,) = compare(specify(data), tmp_path / str(number), Here()).runs
        assert run.message is not None
        assert run.facts["traceback"] is None
        counts["failed with a message"] += 1
    with capsys.disabled():
        print(f"\nlies of environments in sweeps: {dict(counts)}")
