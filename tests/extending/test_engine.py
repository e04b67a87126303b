"""An engine of one's own, in one class and one registration; its faults do no harm."""

import time
from dataclasses import dataclass

import numpy as np
import pytest

import fsmdp
from fsmdp import Basis, domains
from fsmdp.policies.resolve import array_policy
from fsmdp.solver.engine import ENGINES, CandidatePolicy, Engine, Finding, Stage, UpperBound


@dataclass(frozen=True, slots=True)
class Enumeration(Engine):
    """Optimal policies of models that are small enough to be enumerated."""

    def applies(self, state):
        """Whether there are few states."""
        return 0.1 if state.model.n_states <= 1000 else "too many states"

    def run(self, state, clock):
        """One policy."""
        solution = fsmdp.solve_exactly(state.model)
        clock.check()
        judged = yield CandidatePolicy(self.name, array_policy(self.name, state.model, solution))
        assert judged.name == self.name


@dataclass(frozen=True, slots=True)
class Faulty(Engine):
    """Finds a policy, then does something wrong."""

    fault: str = ""

    def applies(self, state):
        """Always, but for one of them."""
        return 1 / 0 if self.fault == "applies" else 0.0

    def run(self, state, clock):
        """The fault."""
        yield CandidatePolicy("first of faulty", array_policy("", state.model, "random"))
        if self.fault == "raises":
            raise IndexError("nothing there")
        if self.fault == "refuses":
            raise fsmdp.ModelError("this model is odd; use another.")
        if self.fault == "policy":
            yield CandidatePolicy("odd", array_policy("", state.model, "no such action"))
        if self.fault == "no policy":
            yield CandidatePolicy("odd", 5)
        if self.fault == "no proof":
            yield UpperBound(1.0)
        while self.fault == "dawdles":
            time.sleep(0.01)
            clock.check()


@pytest.fixture
def registered():
    names = []

    def register(engine):
        names.append(ENGINES.add(engine).name)

    yield register
    for name in names:
        ENGINES.remove(name)


MODEL, CONSTANT = domains.maintenance(3), Basis([])


def test_the_policy_of_an_engine_from_outside_becomes_the_incumbent(registered):
    before = fsmdp.plan(MODEL, CONSTANT)
    registered(Enumeration("enumeration", Stage.QUICK, "exact values by enumeration"))
    after = fsmdp.plan(MODEL, CONSTANT)
    best = fsmdp.solve_exactly(MODEL).start_value
    assert before.incumbent.mean + 6 * before.incumbent.standard_error < best
    assert after.incumbent.name == "enumeration"
    assert after.incumbent.mean == pytest.approx(best)  # it earns the same in every episode
    np.testing.assert_allclose(fsmdp.evaluate_exactly(MODEL, after)[0], best)
    assert [c.name for c in after.candidates if c.name in {b.name for b in before.candidates}] == [
        c.name for c in before.candidates
    ]


def test_an_engine_that_does_not_apply_is_left_out(registered):
    registered(Enumeration("enumeration", Stage.QUICK))
    plan = fsmdp.plan(domains.sysadmin(10), CONSTANT)
    assert "enumeration" not in {candidate.name for candidate in plan.candidates}


@pytest.mark.parametrize(
    "fault", ["raises", "refuses", "policy", "applies", "no policy", "no proof"]
)
@pytest.mark.parametrize("limit", [None, 20.0])
@pytest.mark.parametrize("beside", [False, True])
def test_an_engine_that_fails_is_a_line_in_the_log(registered, fault, limit, beside):
    registered(Faulty("faulty", Stage.QUICK, beside=beside, fault=fault))
    if fault in ("raises", "applies"):
        with pytest.warns(fsmdp.FsmdpWarning, match="engine faulty: .*Error: .*others found"):
            plan = fsmdp.plan(MODEL, CONSTANT, time_limit=limit)
    else:
        plan = fsmdp.plan(MODEL, CONSTANT, time_limit=limit)
    assert sum(line.what.startswith("faulty: ") for line in plan.log) == 1
    names = {candidate.name for candidate in plan.candidates}
    assert ("first of faulty" in names) == (fault != "applies")
    assert any(name.startswith("fit of given functions") for name in names)
    assert any(line.what.startswith("program of given functions") for line in plan.log)


@pytest.mark.parametrize("share", [0.1, None])
def test_an_engine_that_takes_its_time_is_stopped(registered, share):
    registered(Faulty("faulty", Stage.FIRST, share=share, fault="dawdles"))
    began = time.perf_counter()
    plan = fsmdp.plan(MODEL, CONSTANT, time_limit=2.0)
    assert time.perf_counter() - began < 4.0
    names = {candidate.name for candidate in plan.candidates}
    assert "first of faulty" in names
    # With a share of the time, the others have the rest.
    assert ("fit of given functions, 1 function" in names) == (share is not None)


def test_an_engine_too_slow_for_its_share_is_not_begun(registered):
    @dataclass(frozen=True, slots=True)
    class Slow(Engine):
        """Expected to take an hour."""

        def applies(self, state):
            """An hour."""
            return 3600.0

        def run(self, state, clock):
            """Never called."""
            raise AssertionError
            yield Finding()

    registered(Slow("slow", Stage.FIRST, share=0.5, untimed_seconds=60.0))
    for limit in (5.0, None):
        assert fsmdp.plan(MODEL, CONSTANT, time_limit=limit).incumbent is not None


def test_what_is_no_engine_is_refused():
    with pytest.raises(fsmdp.ModelError, match="engine: expected a Engine to register"):
        ENGINES.add("search")
