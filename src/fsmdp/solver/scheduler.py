"""The scheduler: engines in turn, some beside the others, until the gap is closed or time is up."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar
from warnings import warn

from fsmdp.bounds.clock import Clock, Stopped
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.planner import (
    Callback,
    Fraction,
    OnOff,
    Planner,
    Request,
    Rounds,
    Seconds,
    Seed,
)
from fsmdp.bounds.problem import check_options_of_problem
from fsmdp.errors import FsmdpError, FsmdpWarning, ModelError
from fsmdp.foundation.checks import clip
from fsmdp.model.mdp import FactoredMDP
from fsmdp.simulation.rollout import LONGEST_EPISODE, steps_that_count
from fsmdp.solver import parameters as tuned
from fsmdp.solver.engine import ENGINES, Engine, Finding, Findings, Stage
from fsmdp.solver.engines.given import given_policies
from fsmdp.solver.judge import Judged
from fsmdp.solver.state import SolverState
from fsmdp.solver.warmup import warm_up

log = logging.getLogger("fsmdp")


@dataclass(frozen=True, slots=True)
class Auto(Planner):
    """Several engines for a policy, linear programs for the bound, and a gap that closes.

    Stops at a relative `gap`, at the time limit, after `rounds` rounds in which bases grow, or when
    nothing is left to try. With a basis given, policies and bounds stay within it. Without `exact`
    no model is solved by its states, however few. The same seed gives the same plan unless time
    decides.
    """

    keeps_log: ClassVar[bool] = True
    judges_policies: ClassVar[bool] = True
    gap: Fraction = None
    time_limit: Seconds = None
    rounds: Rounds = None
    seed: Seed = 0
    exact: OnOff = True

    def prepare(self, request: Request) -> None:
        """Refuse mistakes of the caller, and compile what is needed at once."""
        # A program that is refused is only noted in the log: a mistake is found here.
        _check_episodes(request.model)
        check_options_of_problem(request.model, request.basis, request.weights, **request.options)
        warm_up("simulator")
        given_policies(request.model, request.policies)

    def respond(self, request: Request, clock: Clock, callback: Callback | None) -> Plan:
        """The best policy and bound that were found."""
        return Scheduler(SolverState(request, clock, self, callback)).run()


def _check_episodes(model: FactoredMDP) -> None:
    """Refuse a discount so near 1 that policies cannot be judged by episodes."""
    if model.horizon is None and steps_that_count(model.discount) > LONGEST_EPISODE:
        raise ModelError(
            f"plan: with discount {model.discount!r} policies cannot be judged by simulation, "
            f"since an episode counts for {steps_that_count(model.discount)} steps; use "
            "method='programs', or solve_exactly for a small model."
        )


class Scheduler:
    """One call of the solver: engines stage by stage, and what they find written into the state."""

    def __init__(self, state: SolverState) -> None:
        self.state = state
        self._waiting = sorted(ENGINES.installed(), key=lambda engine: engine.stage)
        self._beside: list[_Beside] = []

    def run(self) -> Plan:
        """Run engines until the gap is closed, time is up, or nothing is left."""
        stopped = None
        try:
            for _ in self._steps():
                if self.state.closed:
                    break
        except Stopped:
            stopped = self.state.searching.status
        finally:
            for one in self._beside:
                one.end()
        for one in self._beside:
            if one.raised is not None:
                raise one.raised
            self._report(one)
            self._record_solution(one)
        return self.state.plan(None if self.state.proved else stopped)

    def _steps(self) -> Iterator[None]:
        """After each step the gap is checked."""
        state = self.state
        for stage in Stage:
            while self._waiting and self._waiting[0].stage == stage:
                yield from self._run(self._waiting.pop(0))
            if not state.timed:
                for one in self._beside:
                    yield from self._turn(one)
        while any(one.is_alive(0.1) for one in self._beside):
            state.searching.check()
            self._judge_waiting()
            yield
        self._judge_waiting()
        yield

    def _run(self, engine: Engine) -> Iterator[None]:
        """Run an engine if it applies, or start it if it runs beside the others."""
        state = self.state
        if not self._applies(engine):
            return
        state.compile(*engine.compiles)
        if engine.beside:
            yield from self._start(engine)
            return
        if engine.needs_bound:
            while (
                state.timed
                and not state.plan_of_model
                and not all(one.has_spoken.wait(0.1) for one in self._beside)
            ):
                state.searching.check()
        clock = state.searching if engine.share is None else state.searching.share(engine.share)
        findings, reply = engine.run(state, clock), None
        while (finding := self._next(engine, findings, reply)) is not None:
            reply = self._recorded(engine, finding)
            if not finding.more:
                self._judge_waiting()
                yield

    def _start(self, engine: Engine) -> Iterator[None]:
        """Start an engine beside the others, which wait for it if it is soon done."""
        state = self.state
        waits = engine.head_start(state) if state.timed else 0.0
        if not waits:
            # Compiled before anything runs beside it, and only what is used.
            self._compile_all()
        beside = _Beside(engine, state)
        self._beside.append(beside)
        clock = state.searching.branch(waits)
        while waits and clock.status is None and beside.is_alive(0.01):
            pass
        self._record_solution(beside)
        yield
        if waits:
            self._compile_all()
        if not state.timed and engine.stage is Stage.FIRST:
            yield from self._turn(beside)  # before anything else, as with a time limit

    def _compile_all(self) -> None:
        for later in list(self._waiting):
            if self._applies(later):
                self.state.compile(*later.compiles)

    def _record_solution(self, beside: _Beside) -> None:
        """Record what solves the model, if that is among what was found beside the others."""
        for finding in beside.waiting:
            if finding.solves and self.state.proved is None:
                self._recorded(beside.engine, finding)

    def _turn(self, beside: _Beside) -> Iterator[None]:
        """Until an engine beside the others says that its turn is over."""
        while (finding := beside.next()) is not None:
            beside.take(finding)
            if not finding.more:
                self._judge_waiting()
                yield
            if finding.ends_turn:
                break
        self.state.searching.check()

    def _applies(self, engine: Engine) -> bool:
        """Whether an engine applies, and is expected in time."""
        try:
            found = engine.applies(self.state)
        except Stopped:
            raise
        except Exception as error:
            self._failed(engine, error)
            return False
        if isinstance(found, str):
            log.debug("%s: %s", engine.name, found)
            return False
        left = self.state.searching.left()
        if left is None or engine.share is None:
            return found <= engine.untimed_seconds
        return found <= engine.share * left

    def _next(self, engine: Engine, findings: Findings, reply: Judged | None) -> Finding | None:
        """What an engine finds next; None if it has ended, or failed, or its time is up."""
        try:
            return findings.send(reply)
        except StopIteration:
            pass
        except Stopped:
            self.state.searching.check()
        except Exception as error:
            self._failed(engine, error)
        return None

    def _judge_waiting(self) -> None:
        """Judge the policies that were found beside the others meanwhile."""
        for one in self._beside:
            self._report(one)
            while one.waiting and self.state.proved is None:  # else nothing is left to judge
                self._recorded(one.engine, one.waiting.popleft())

    def _recorded(self, engine: Engine, finding: Finding) -> Judged | None:
        try:
            return finding.record(self.state)
        except FsmdpError as error:
            self._failed(engine, error)
            return None

    def _report(self, beside: _Beside) -> None:
        error, beside.error = beside.error, None
        if error is not None:
            self._failed(beside.engine, error)

    def _failed(self, engine: Engine, error: Exception) -> None:
        """Write into the log that an engine has failed; what others find still holds."""
        self._waiting = [one for one in self._waiting if one is not engine]
        text = f"{engine.name}: {type(error).__name__}: {clip(str(error).partition(';')[0])}"
        self.state.note(text)
        if not isinstance(error, FsmdpError):
            message = f"plan: engine {text}; the plan is of what the others found."
            warn(message, FsmdpWarning, stacklevel=2)


class _Beside:
    """An engine beside the others: in a thread if there is a time limit, otherwise in turns.

    Bounds are written down as they are found; policies wait until they are judged.
    """

    def __init__(self, engine: Engine, state: SolverState) -> None:
        self.engine, self._state = engine, state
        self._clock = state.searching.branch()
        self._findings = engine.run(state, self._clock)
        self.waiting: deque[Finding] = deque()
        self.error: Exception | None = None
        self.raised: BaseException | None = None
        """By the caller's function, which hears of lines of the log."""
        self.has_spoken = threading.Event()
        """Something was found, or nothing ever will be."""
        self._over = False
        self._thread: threading.Thread | None = None
        if state.timed:
            self._thread = threading.Thread(target=self._run, name=f"fsmdp {engine.name}")
            self._thread.start()

    def next(self) -> Finding | None:
        """What is found next; None at the end."""
        try:
            return next(self._findings, None)
        except Stopped:
            return None
        except Exception as error:
            self.error = error
            return None

    def take(self, finding: Finding) -> None:
        """Write a finding down, or keep it until it is judged."""
        if finding.is_judged:
            self.waiting.append(finding)
            if finding.solves and self._thread is not None:
                self._state.searching.interrupt()  # what the others do has become useless
        else:
            finding.record(self._state)
        self.has_spoken.set()

    def is_alive(self, seconds: float) -> bool:
        """Whether the thread still runs after so many seconds."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is not None and self._thread.is_alive()

    def end(self) -> None:
        """Stop it, or leave the thread behind: nobody waits for what it finds."""
        self._clock.interrupt()
        if not self.is_alive(tuned.ENDING_SECONDS):
            self._findings.close()
        self._over = True

    def _run(self) -> None:
        try:
            while (finding := self.next()) is not None and not self._over:
                self.take(finding)
        except BaseException as error:
            self.raised = error
        finally:
            self._findings.close()
            self.has_spoken.set()
