"""Linear programs: certified bounds, ever tighter, and the policies of their values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from fsmdp.bounds.clock import Clock
from fsmdp.model.basis import Basis
from fsmdp.solver.engine import Engine, Finding, Findings, Stage
from fsmdp.solver.state import SolverState
from fsmdp.solver.tightening import Bounding, BoundingContext, Program

UNTIMED_TURNS = 2
"""Without a time limit: for programs of singles, and of pairs."""

UNTIMED_GROWTH = 2
"""Times that the basis or the steps of a bound are refined without a time limit, in a turn."""


@dataclass(frozen=True, slots=True)
class Programs(Engine):
    """Programs of singles on every model that bounds this one, then of pairs; then refined."""

    def applies(self, state: SolverState) -> str | float:  # noqa: ARG002
        """Always."""
        return 0.0

    def run(self, state: SolverState, clock: Clock) -> Findings:
        """Bounds and policies; without a time limit, as many programs a turn as models."""
        context = BoundingContext(
            state.request.weights,
            state.request.options,
            state.alone.trivial,
            state.seed,
            state.earned,
        )
        bounding = Bounding(self._programs(state), context, clock)
        try:
            if state.timed:
                yield from bounding.run()
                return
            for _ in range(UNTIMED_TURNS if state.basis is None else 1):
                for _ in range(min(bounding.left(), len(state.models))):
                    yield from bounding.solve_next()
                for _ in range(0 if bounding.left() else UNTIMED_GROWTH):
                    yield from bounding.tighten()
                yield Finding(ends_turn=True)
        finally:
            bounding.free()

    def _programs(self, state: SolverState) -> list[Program]:
        """Of a rewritten model before the model itself."""
        models, given = [one for one in state.models if one.relation != "heuristic"], state.basis
        if not isinstance(state.request.weights, str):
            models = models[-1:]  # weights are of the model's own variables
        if given is not None:
            return [Program("given functions", models[-1], lambda: given, grows=False)]
        return [
            Program(f"{one.label}{kind}", one, partial(make, one.model), rich=kind == "pairs")
            for kind, make in (("singles", Basis.singles), ("pairs", Basis.pairs))
            for one in models
        ]


PROGRAMS = Programs("linear-programs", Stage.QUICK, compiles=("linear programs",), beside=True)
