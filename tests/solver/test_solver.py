"""The solver: bounds above V*, policies no better than it, and a log that only improves."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.supply_chain import supply_chain

import fsmdp
from fsmdp import Auto, Basis, Exact, ModelError, domains, evaluate_exactly, solve_exactly
from fsmdp.bounds.clock import Clock
from fsmdp.bounds.normalise import unchanged
from fsmdp.bounds.planner import Request
from fsmdp.policies.resolve import array_policy, resolve
from fsmdp.solver import judge as arena
from fsmdp.solver import state as state_module
from fsmdp.solver.engines import exact as exact_engine
from fsmdp.solver.engines import fits
from fsmdp.solver.engines.programs import Bounding
from fsmdp.solver.judge import Judge
from fsmdp.solver.scheduler import Scheduler
from fsmdp.solver.state import SolverState

FEW = settings(max_examples=12, deadline=None)


def start_value(model, policy):
    flat = solve_exactly(model).flat
    return float(flat.initial() @ evaluate_exactly(model, policy))


def assert_sound(model, plan):
    """What is said of bound and policy holds, by enumeration."""
    best = solve_exactly(model).start_value
    scale = 1e-7 * max(1.0, abs(best))
    assert plan.upper_bound >= best - 1e-12 * max(1.0, abs(best))
    assert plan.upper_bound <= plan.bound.trivial + scale
    known = plan.incumbent
    earned = start_value(model, plan)
    assert earned <= best + scale
    if known.exact:
        assert known.mean == pytest.approx(earned, abs=scale)
        assert plan.gap == pytest.approx(0, abs=1e-6)
    else:
        assert abs(known.mean - earned) <= 6 * known.standard_error + scale
    bounds = [line.upper_bound for line in plan.log]
    assert bounds == sorted(bounds, reverse=True)
    for state in solve_exactly(model).flat.states[::5]:
        exact = solve_exactly(model).value(tuple(state.tolist()))
        assert plan.value(tuple(state.tolist())) >= exact - 1e-9 * max(1.0, abs(exact))


@FEW
@given(st.integers(0, 10**6), st.booleans())
def test_what_is_said_of_random_models_holds(seed, exact):
    model = domains.random_model(seed, variables=3)
    plan = Auto(rounds=1, exact=exact).plan(model)
    assert_sound(model, plan)


@FEW
@given(st.integers(0, 10**6))
def test_what_is_said_of_discounted_models_holds(seed):
    model = domains.random_model(seed, variables=3, horizon=None, discount=0.8)
    plan = Auto(rounds=1, exact=False).plan(model)
    best = solve_exactly(model).start_value
    assert plan.upper_bound >= best - 1e-9 * max(1.0, abs(best))
    assert start_value(model, plan) <= best + 1e-7 * max(1.0, abs(best))


def test_the_policy_is_never_clearly_below_doing_nothing_or_chance():
    for seed in range(6):
        model = domains.random_model(seed, variables=4, horizon=6)
        plan = Auto(rounds=1, exact=False, seed=seed).plan(model)
        earned = start_value(model, plan)
        for other in (model.idle_action(), "random"):
            value = start_value(model, other)
            # Candidates are judged on a thousand episodes.
            error = fsmdp.rollout(model, plan, 1000).standard_error
            assert earned >= value - 4 * error


def test_the_same_seed_gives_the_same_plan():
    model = domains.sysadmin(9, horizon=12)
    one, other = (Auto(rounds=2, exact=False, seed=4).plan(model) for _ in range(2))
    assert one.incumbent == other.incumbent
    assert sorted((c.name, c.mean) for c in one.candidates) == sorted(
        (c.name, c.mean) for c in other.candidates
    )
    assert one.upper_bound == other.upper_bound


def test_with_a_basis_the_solver_stays_within_it():
    model = domains.sysadmin(6)
    basis = Basis.singles(model)
    plan = fsmdp.plan(model, basis)
    program = fsmdp.plan(model, basis, method="programs")
    assert plan.upper_bound == pytest.approx(program.upper_bound, rel=1e-5)
    assert not any("exact" in candidate.name for candidate in plan.candidates)
    assert {c.name.split(",")[0] for c in plan.candidates} == {
        "doing nothing",
        "at random",
        "fit of given functions",
        "policy of program of given functions",
    }


def test_exclusive_variables_are_joined_and_the_policy_acts_in_the_original():
    grid = domains.gridworld(2, 3, horizon=5)
    assert_sound(grid, Auto(rounds=1, exact=False).plan(grid))


def test_a_gap_that_was_asked_for_ends_it():
    model = domains.sysadmin(8)
    plan = Auto(gap=0.9, exact=False).plan(model)
    assert plan.gap <= 0.9
    assert len(plan.candidates) <= 3


def test_the_callback_is_called_with_each_line_of_the_log():
    lines = []
    plan = fsmdp.plan(domains.sysadmin(5), callback=lines.append)
    assert tuple(lines) == plan.log
    assert [line.seconds for line in lines] == sorted(line.seconds for line in lines)
    with pytest.raises(ModelError, match="only the solver keeps a log"):
        fsmdp.plan(domains.sysadmin(3), method="joint", callback=print)


@pytest.mark.parametrize("limit", [0, 0.01, 0.3])
def test_short_limits_hand_out_what_is_there(limit):
    model = domains.sysadmin(14, horizon=20)
    plan = fsmdp.plan(model, time_limit=limit)
    assert plan.status == "time-limit"
    assert plan.upper_bound <= plan.bound.trivial
    assert plan.action((0,) * 14) in model.actions


def test_an_interrupt_hands_out_what_is_there():
    model = domains.sysadmin(12, horizon=20)
    clock, reached = Clock(), threading.Event()

    def callback(line):
        if "fit" in line.what:
            reached.set()
            clock.interrupt()

    request = Request(model, None, "initial", {}, unchanged(model))
    state = SolverState(request, clock, Auto(exact=False), callback)
    plan = Scheduler(state).run()
    assert reached.is_set()
    assert plan.status == "interrupted"
    assert plan.incumbent is not None
    assert plan.action((0,) * 12) in model.actions


def test_plans_of_every_kind_of_policy_are_files(tmp_path):
    chance = np.random.default_rng(0)
    for number, (model, options) in enumerate(
        (
            (domains.sysadmin(4), {}),  # a table
            (domains.gridworld(), {}),  # joined, perhaps by states that can be reached
            (domains.sysadmin(6), {"exact": False, "rounds": 0}),  # fitted
            (domains.sysadmin(8), {"time_limit": 0}),
        )
    ):
        plan = fsmdp.plan(model, **options)
        path = tmp_path / f"{number}.npz"
        plan.save(path)
        again = fsmdp.load_plan(path)
        reported = None if plan.incumbent is None else plan.incumbent.reported()
        assert (again.incumbent, again.candidates) == (reported, plan.candidates)
        assert again.log == plan.log
        assert again.upper_bound == plan.upper_bound
        assert again.bound.proof.kind == plan.bound.proof.kind
        runs = [fsmdp.rollout(model, one, 50, seed=1).returns for one in (plan, again)]
        np.testing.assert_array_equal(*runs)
        state = tuple(int(chance.integers(variable.size)) for variable in model.variables)
        if fsmdp.join(model).allows(state):
            assert plan.action(state) == again.action(state)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gap": -1}, "gap: expected at least 0"),
        ({"gap": "wide"}, "gap"),
        ({"rounds": 1.5}, "rounds"),
        ({"seed": -1}, "seed"),
        ({"time_limit": -2}, "time_limit"),
        ({"nonsense": 1}, "has no option 'nonsense'"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ModelError, match=message):
        fsmdp.plan(domains.sysadmin(3), **options)


def test_the_log_ends_with_what_the_plan_says_of_its_policy():
    plan = fsmdp.plan(domains.sysadmin(12, horizon=5), rounds=1, exact=False)
    assert "in fresh episodes; stopped: " in plan.log[-1].what
    assert plan.log[-1].incumbent == plan.incumbent.mean
    assert plan.log[-1].standard_error == plan.incumbent.standard_error
    assert plan.log[-1].gap == float(plan.gap)


def test_programs_that_are_quickly_solved_by_rows_are():
    """A bundle of cuts was all that was tried: looser, and later."""
    model = domains.sysadmin(8, horizon=5)
    joint = fsmdp.plan(model, fsmdp.Basis.singles(model), method="joint").upper_bound
    plan = fsmdp.plan(model, rounds=0, exact=False)
    singles = [line for line in plan.log if line.what.startswith("program of singles")]
    assert min(line.upper_bound for line in singles) <= joint + 1e-6
    assert any(line.what == "policy of program of singles" for line in plan.log)


def test_pieces_between_looks_at_the_clock_are_the_same_episodes(monkeypatch):
    model = domains.sysadmin(5, horizon=6)
    ring, looks = arena.arena_of(model), []
    policy = resolve(model, "random").arrays
    whole = ring.returns(policy, 100, 3)
    monkeypatch.setattr("fsmdp.solver.parameters.DRAWS_BETWEEN_CHECKS", 100)
    pieces = ring.returns(policy, 100, 3, 0, lambda: looks.append(1))
    assert np.array_equal(whole, pieces)
    assert len(looks) > 20


def test_chunks_that_one_call_runs_are_the_same_episodes(monkeypatch):
    model = domains.sysadmin(5, horizon=6)
    ring, calls = arena.arena_of(model), []
    policy = resolve(model, "random").arrays
    one_by_one = np.concatenate(
        [ring.returns(policy, 50, 3, first) for first in range(0, 2350, 50)]
    )
    several = arena.simulate_each
    monkeypatch.setattr(arena, "cores", lambda: 2)
    monkeypatch.setattr(arena, "simulate_each", lambda *given: calls.append(1) or several(*given))
    assert np.array_equal(ring.returns(policy, 2350, 3), one_by_one)
    assert len(calls) == 5


def test_policies_that_lost_are_freed_while_others_are_tried():
    """Each may be hundreds of megabytes: tables for every step."""
    model = domains.sysadmin(5, horizon=6)
    judge, tables = Judge(arena.arena_of(model), 0), []
    for number, name in enumerate(("random", *model.actions[:4])):
        policy = array_policy(name, model, name)
        arrays = policy.compiled()
        judge.consider(name, policy, arrays, float(number))
        tables.append(weakref.ref(arrays.table))
    del policy, arrays
    gc.collect()
    kept = [one for one, table in zip(judge.tried, tables, strict=True) if table() is not None]
    assert [one.name for one in kept] == [judge.incumbent.name]
    assert [one.seconds for one in judge.tried] == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("limits", [{"rounds": 0}, {"time_limit": 2.0}])
def test_programs_are_freed_when_a_plan_is_there(limits, monkeypatch):
    """They are gigabytes on large models, and must not wait for the garbage collector."""
    made, begin = [], Bounding.__init__

    def noted(self, *given):
        begin(self, *given)
        made.append(weakref.ref(self))

    monkeypatch.setattr(Bounding, "__init__", noted)
    gc.disable()
    try:
        fsmdp.plan(domains.sysadmin(6, horizon=5), exact=False, **limits)
    finally:
        gc.enable()
    (thread,) = made
    if thread() is not None:  # left behind: it ends by itself
        thread().join()
    assert thread() is None


@pytest.mark.parametrize("ends", [{}, {"horizon": None, "discount": 0.9}], ids=["steps", "endless"])
def test_a_supply_chain_with_action_variables_latents_and_wide_tables_is_solved(ends):
    model = supply_chain(**ends)
    assert model.n_states == 32_768
    plan = fsmdp.plan(model, time_limit=30)
    assert plan.incumbent.exact
    assert plan.record.ended == "solved"
    expected = fsmdp.solve_exactly(model).start_value
    assert plan.incumbent.mean == pytest.approx(expected, abs=1e-6)


def slowed(monkeypatch, seconds):
    """Exact values take so long, and are expected to take `seconds`."""
    solve = Exact.solve

    def wait_and_solve(self, model, check):
        ends = time.perf_counter() + seconds
        while time.perf_counter() < ends:
            check()
            time.sleep(0.01)
        return solve(self, model, check)

    monkeypatch.setattr(exact_engine.Exact, "solve", wait_and_solve)
    monkeypatch.setattr(state_module, "expected_seconds", lambda model: seconds)


def test_exact_values_that_take_most_of_the_time_go_on_beside_others_and_end_the_plan(monkeypatch):
    slowed(monkeypatch, 3.0)
    plan = fsmdp.plan(domains.sysadmin(10), time_limit=6)
    assert plan.incumbent.exact
    tried = [line.what for line in plan.log]
    assert any("program of singles" in what for what in tried)  # the others did not wait
    assert tried[-1] == "exact values, solved"
    assert plan.seconds["solver"] < 5.5  # it ends at once, not at the limit


def test_others_wait_for_exact_values_that_are_expected_soon(monkeypatch):
    slowed(monkeypatch, 0.5)
    plan = fsmdp.plan(domains.sysadmin(10), time_limit=10)
    assert plan.incumbent.exact
    assert not any("program" in line.what for line in plan.log)


def test_the_log_says_why_there_are_no_exact_values(monkeypatch):
    large = fsmdp.plan(domains.sysadmin(50, horizon=3), time_limit=1.5)
    assert any("exact values: " in line.what for line in large.log)
    slowed(monkeypatch, 1000.0)
    late = fsmdp.plan(domains.sysadmin(9, horizon=5), time_limit=1.5)
    (said,) = [line.what for line in late.log if line.what.startswith("exact values")]
    assert said == (
        "exact values: not found in time; all states are expected to take 1000 s on one core"
    )


def test_exact_values_that_are_found_end_whatever_else_is_running(monkeypatch):
    slowed(monkeypatch, 2.0)

    def fit(self, check):
        while True:
            check()
            time.sleep(0.01)

    monkeypatch.setattr(fits.Fitting, "fit", fit)
    plan = fsmdp.plan(domains.sysadmin(10), time_limit=5)
    assert plan.incumbent.exact
    assert plan.seconds["solver"] < 4.0


@pytest.mark.parametrize(
    ("machines", "options", "ended"),
    [
        (10, {"exact": False, "gap": 0.9, "time_limit": 20}, "the gap is as small as asked for"),
        (40, {"exact": False, "time_limit": 1}, "time is up"),
        (12, {"exact": False, "rounds": 0}, "nothing is left to try"),
        (10, {}, "solved"),
    ],
)
def test_a_plan_says_why_it_ended(machines, options, ended):
    plan = fsmdp.plan(domains.sysadmin(machines, horizon=12), **options)
    assert plan.record.ended == ended
    assert ended in plan.log[-1].what
