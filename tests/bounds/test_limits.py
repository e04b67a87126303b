"""Limits: whenever a plan is stopped, what is in hand is valid and handed out."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fsmdp
from fsmdp.bounds import planner
from fsmdp.bounds.clock import NO_LIMIT, Clock, Status, Stopped
from fsmdp.bounds.problem import trivial_problem
from fsmdp.errors import TrivialBoundWarning
from fsmdp.foundation.threads import cores
from fsmdp.solver import judge as arena
from fsmdp.solver import parameters
from fsmdp.solver.plan import METHODS

SOLVERS = tuple(METHODS)


class CountingClock(Clock):
    """A clock whose time is up when it has been looked at so many times."""

    looks_left = 0

    @property
    def status(self):
        type(self).looks_left -= 1
        return Status.TIME_LIMIT if type(self).looks_left < 0 else None

    def part(self, reserve):
        return self

    def branch(self, seconds=None):
        return self

    def left(self):
        return 1e6


def exact_trivial(model):
    flat = fsmdp.solve_exactly(model).flat
    steps = model.discount ** np.arange(model.horizon) if model.horizon else None
    worth = 1 / (1 - model.discount) if steps is None else steps.sum()
    return worth * flat.rewards.max()


@pytest.mark.parametrize("method", SOLVERS)
@given(looks=st.integers(0, 400), seed=st.integers(0, 50))
@settings(max_examples=12, deadline=None)
def test_a_plan_stopped_at_any_moment_bounds_and_is_no_worse_than_the_constant(method, looks, seed):
    model = fsmdp.domains.random_model(seed, 3, 3, 3)
    exact = fsmdp.solve_exactly(model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "Clock", CountingClock)
        CountingClock.looks_left = looks
        plan = fsmdp.plan(model, fsmdp.Basis.pairs(model), method=method)
    for state in exact.flat.states:
        for step in range(1, model.horizon + 1):
            assert plan.value(state, step) >= exact.value(state, step) - 1e-9
    trivial = exact_trivial(model)
    assert plan.upper_bound <= trivial + 1e-9 * max(1.0, abs(trivial))
    assert plan.action(exact.flat.states[0], 1) in model.actions


@pytest.mark.parametrize("method", SOLVERS)
@pytest.mark.parametrize("horizon", [4, None])
def test_no_time_at_all_gives_the_trivial_bound_and_says_so(method, horizon):
    if horizon is None and method == "stagewise":
        pytest.skip("stages need a horizon")
    model = fsmdp.domains.sysadmin(5, horizon=horizon, discount=0.9)
    with pytest.warns(TrivialBoundWarning, match="no better than the trivial one"):
        plan = fsmdp.plan(model, method=method, time_limit=0)
    assert plan.status is Status.TIME_LIMIT
    assert plan.upper_bound == pytest.approx(exact_trivial(model))
    assert "no linear program solved (time-limit)" in repr(plan)


@pytest.mark.parametrize("method", SOLVERS)
@pytest.mark.parametrize(("horizon", "discount"), [(100_000, 0.99), (None, 0.9999)])
def test_no_time_for_long_episodes_gives_the_trivial_bound(method, horizon, discount):
    model = fsmdp.domains.sysadmin(4, horizon=horizon, discount=discount)
    with pytest.warns(TrivialBoundWarning):
        plan = fsmdp.plan(model, method=method, time_limit=0)
    assert plan.status is Status.TIME_LIMIT
    assert plan.upper_bound == pytest.approx(1 / (1 - discount))
    assert plan.action((0, 0, 0, 0), 1) in model.actions


@pytest.mark.filterwarnings("ignore::fsmdp.errors.TrivialBoundWarning")
@pytest.mark.parametrize(("method", "looks"), [("fitted", 20), ("auto", 120)])
def test_the_clock_is_looked_at_while_long_episodes_are_simulated(method, looks, monkeypatch):
    """Episodes of 138,000 steps: what is drawn between two looks is counted, not timed."""
    model = fsmdp.domains.sysadmin(4, horizon=None, discount=0.9999)
    since_look, most, usual = [0], [0], arena.simulate

    class Looking(CountingClock):
        @property
        def status(self):
            since_look[0] = 0
            return super().status

    def counted(compiled, *arguments):
        since_look[0] += arguments[5] * len(arguments[7]) * compiled.n_slots
        most[0] = max(most[0], since_look[0])
        return usual(compiled, *arguments)

    monkeypatch.setattr(arena, "simulate", counted)
    monkeypatch.setattr(planner, "Clock", Looking)
    for name in ("SCREENING_EPISODES", "COMPARING_EPISODES"):  # few, so that fits have their turn
        monkeypatch.setattr(f"fsmdp.solver.parameters.{name}", 50)
    Looking.looks_left = looks
    fsmdp.plan(model, method=method, **({"exact": False} if method == "auto" else {}))
    assert Looking.looks_left < 0
    assert 0 < most[0] <= (1 + cores()) * parameters.DRAWS_BETWEEN_CHECKS


@given(seed=st.integers(0, 10_000), scale=st.sampled_from([1e-9, 1.0, 1e9]))
@settings(max_examples=40, deadline=None)
def test_the_trivial_bound_is_the_largest_reward_at_every_step(seed, scale):
    model = fsmdp.domains.random_model(seed, 3, 3, 3)
    rewards = [
        fsmdp.Reward(
            r.name,
            [fsmdp.Case(c.actions, c.parents, scale * c.table, c.drawn) for c in r.cases],
            scale * r.low,
            scale * r.high,
        )
        for r in model.rewards
    ]
    model = fsmdp.FactoredMDP(
        model.variables,
        model.actions,
        model.conditionals,
        rewards,
        model.horizon,
        model.initial,
        latents=model.latents,
    )
    found = trivial_problem(model).trivial
    expected = exact_trivial(model)
    assert found.upper_bound == pytest.approx(expected, rel=1e-9, abs=1e-9 * scale)
    assert found.upper_bound >= expected


def test_rewards_too_wide_to_maximise_are_bounded_term_by_term(monkeypatch):
    model = fsmdp.domains.sysadmin(4)
    monkeypatch.setattr("fsmdp.bounds.problem.REWARDS_LIMIT", 1)
    assert trivial_problem(model).trivial.upper_bound == pytest.approx(10.0)


def test_a_plan_better_than_trivial_does_not_warn(recwarn):
    fsmdp.plan(fsmdp.domains.sysadmin(8), method="programs")
    assert not [one for one in recwarn if issubclass(one.category, TrivialBoundWarning)]


def test_work_that_does_not_look_at_the_clock_is_left_behind():
    clock, gate = Clock(), threading.Event()
    threading.Timer(0.05, clock.interrupt).start()
    with pytest.raises(Stopped):
        clock.run(gate.wait)
    assert clock.status is Status.INTERRUPTED
    gate.set()


def test_errors_of_work_reach_the_caller():
    def fail():
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        Clock().run(fail)
    assert NO_LIMIT.run(threading.current_thread) is threading.current_thread()
    assert Clock().run(threading.current_thread) is not threading.current_thread()


def test_parts_end_earlier_and_share_the_interruption():
    clock = Clock(100.0)
    part, half = clock.part(60.0), clock.share(0.5)
    assert part.left() <= 40.0
    assert half.left() <= 50.0
    assert not part.has(50.0)
    assert clock.has(50.0)
    clock.interrupt()
    assert part.status is half.status is Status.INTERRUPTED
    assert Clock(0.0).part(5.0).status is Status.TIME_LIMIT


LONG = """
import logging, sys
import fsmdp

class Tell(logging.Handler):
    def emit(self, record):
        print("working", flush=True)

log = logging.getLogger("fsmdp")
log.addHandler(Tell())
log.setLevel(logging.INFO)
model = fsmdp.domains.sysadmin(300, horizon=40)
plan = fsmdp.plan(model, fsmdp.Basis.pairs(model), method="joint")
print("status", plan.status, plan.upper_bound, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
def test_an_interrupt_hands_out_what_there_is():
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", LONG], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert "status interrupted" in rest
    assert float(rest.split()[-1]) == pytest.approx(40.0)


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
def test_an_interrupted_command_prints_the_bound_and_ends_with_130():
    command = [sys.executable, "-m", "fsmdp", "plan", "sysadmin:ring:300", "--basis", "pairs"]
    with subprocess.Popen(
        [*command, "--method", "joint"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr.readline().startswith("planning: ")
        process.send_signal(signal.SIGINT)
        out = process.stdout.read()
        process.wait()
    assert process.returncode == 130
    assert "certified upper bound" in out
    assert "Traceback" not in out
