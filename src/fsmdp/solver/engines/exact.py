"""Exact values of all states, or of those that can be reached: then the model is solved."""

from dataclasses import dataclass

from fsmdp.bounds.clock import Clock, Status, Stopped
from fsmdp.errors import SizeError
from fsmdp.exact.solve import Exact
from fsmdp.policies.resolve import array_policy
from fsmdp.solver import parameters as tuned
from fsmdp.solver.engine import Engine, Finding, Findings, Note, Optimal, Stage, UpperBound
from fsmdp.solver.state import Proved, SolverState, proof_by_values


@dataclass(frozen=True, slots=True)
class ExactValues(Engine):
    """Exact values on the model of fewest states, if they can be had in time."""

    late: bool = False
    """Of all states, where that takes long and there is no time limit."""

    def applies(self, state: SolverState) -> str | float:
        """If actions are few enough to be listed; late, if all states were not tried before."""
        if state.basis is not None or not state.options.exact:
            return "policies stay within the basis" if state.options.exact else "exact=False"
        if state.listed is None:
            return "too many joint actions"
        if not self.late:
            return 0.0
        needed = state.exact_seconds
        if needed is None:
            return "too many states"
        if state.timed or needed <= tuned.QUICK_EXACT_SECONDS:
            return "all states were tried"
        return needed

    def _of_all(self, state: SolverState) -> bool:
        """Whether values of all states are expected in time, and not only of reachable ones."""
        needed, left = state.exact_seconds, state.searching.left()
        if needed is None:
            return False
        if left is None:
            return self.late or needed <= tuned.QUICK_EXACT_SECONDS
        return needed <= max(tuned.QUICK_EXACT_SECONDS, tuned.EXACT_SHARE * left)

    def head_start(self, state: SolverState) -> float:
        """As long as it is expected to take, or to see whether reachable states are few."""
        needed, left = state.exact_seconds, state.searching.left()
        assert left is not None
        if needed is None or not self._of_all(state):
            return tuned.REACHABLE_SHARE * left
        if needed > tuned.AWAITED_SHARE * left:
            return 0.0
        return min(max(tuned.QUICK_EXACT_SECONDS, tuned.DOUBT * needed), tuned.WAITING_SHARE * left)

    def _expected(self, state: SolverState) -> str:
        needed = state.exact_seconds
        if needed is None:
            return ", and all states need too much memory"
        return f"; all states are expected to take {needed:.0f} s on one core"

    def run(self, state: SolverState, clock: Clock) -> Findings:
        """Bound and policy, both optimal up to rounding."""
        reduced, of_all = state.listed, self._of_all(state)
        assert reduced is not None
        yield Finding(more=True)  # nobody waits for a first bound from here
        if not of_all:
            clock = clock.share(tuned.REACHABLE_SHARE)
        try:
            solution = Exact(reachable="auto" if of_all else True).solve(reduced.model, clock.check)
        except SizeError as error:
            yield Note(f"exact values: {str(error).partition(';')[0]}")
            return
        except Stopped:
            if state.searching.status is Status.INTERRUPTED:
                raise
            yield Note(f"exact values: not found in time{self._expected(state)}")
            return
        value = solution.start_value
        bound = reduced.bound(value + solution.error)
        yield UpperBound(proof_by_values(state.model, reduced, solution, bound), more=True)
        least = value - solution.error - solution.loss - reduced.slack
        policy = array_policy("exact values", reduced.model, solution)
        yield Optimal(
            f"{reduced.label}exact values", policy, reduced, Proved(value, least, exact=True)
        )


REACHABLE = ExactValues(
    "exact-values",
    Stage.FIRST,
    "Exact values of all states if they are expected in time, otherwise of those that can be "
    "reached; if they are found, the model is solved. Others wait if that is soon, and otherwise "
    "run beside it.",
    compiles=("exact solver",),
    beside=True,
)
ALL_STATES = ExactValues(
    "exact-values-of-all-states",
    Stage.LAST,
    "Exact values that take longer, where there is no time limit.",
    untimed_seconds=tuned.EXACT_SECONDS,
    compiles=("exact solver",),
    late=True,
)
