"""Bounds beside the search for a policy: linear programs of growing bases, in their own thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fsmdp.errors import FsmdpError
from fsmdp.model.basis import Basis
from fsmdp.planning.bellman import Weights
from fsmdp.planning.clock import Clock, Stopped
from fsmdp.planning.plan import Plan
from fsmdp.planning.problem import Trivial, problem_of_model
from fsmdp.planning.programs import Programs
from fsmdp.solver.view import View

SHARE = 0.5
"""Of the time that is left, for each program but the last."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """What is to be bounded: a view and a basis."""

    name: str
    view: View
    basis: Callable[[], Basis]


class Bounding(threading.Thread):
    """Solves programs one after another; each plan is handed to `offer`, what fails to `skip`."""

    def __init__(
        self,
        programs: Sequence[Program],
        weights: Weights,
        options: Mapping[str, Any],
        trivial: Trivial | None,
        tolerance: float,
        clock: Clock,
        offer: Callable[[Program, Plan], None],
        skip: Callable[[Program, str], None],
    ) -> None:
        super().__init__(name="fsmdp bounds", daemon=False)
        self.clock = clock
        self.first = threading.Event()
        """Set when the first program has been solved, or never will be."""
        self.errors: list[BaseException] = []
        self._work = programs, weights, options, trivial, tolerance, offer, skip
        self._next = 0

    def run(self) -> None:
        """Until all are done or the clock stops."""
        try:
            while self.left():
                self.solve_next()
        except Stopped:
            pass
        except BaseException as error:
            self.errors.append(error)
        finally:
            self.first.set()

    def left(self) -> int:
        """How many programs were not tried yet."""
        return len(self._work[0]) - self._next

    def solve_next(self) -> None:
        """Solve one program. `Stopped` if there is no time for another."""
        programs, weights, options, trivial, tolerance, offer, skip = self._work
        program, self._next = programs[self._next], self._next + 1
        clock = self.clock.share(SHARE) if self.left() else self.clock
        try:
            problem = problem_of_model(
                program.view.model,
                program.basis(),
                weights,
                trivial=None if program.view.joined else trivial,
                clock=clock,
                **options,
            )
            offer(program, Programs(tolerance).solve(problem, clock))
        except Stopped:
            self.clock.check()
        except FsmdpError as error:
            skip(program, str(error))
        finally:
            self.first.set()
