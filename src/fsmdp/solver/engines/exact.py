"""Exact values of all states, or of those that can be reached: then the model is solved."""

from dataclasses import dataclass

from fsmdp.bounds.clock import Clock
from fsmdp.errors import SizeError
from fsmdp.exact.solve import Exact
from fsmdp.policies.resolve import array_policy
from fsmdp.solver import parameters as tuned
from fsmdp.solver.engine import Engine, Findings, Optimal, Stage, UpperBound
from fsmdp.solver.state import Proved, SolverState, proof_by_values


@dataclass(frozen=True, slots=True)
class ExactValues(Engine):
    """Exact values on the model of fewest states, if they can be had in time."""

    all_states: bool = False
    """Even if that takes long; otherwise those that can be reached, or all if that is quick."""

    def applies(self, state: SolverState) -> str | float:
        """If actions are few enough to be listed; of all states if that was not quick."""
        if state.basis is not None or not state.options.exact:
            return "policies stay within the basis" if state.options.exact else "exact=False"
        if state.listed is None:
            return "too many joint actions"
        if not self.all_states:
            return 0.0
        needed = state.exact_seconds
        if needed is None or needed <= tuned.QUICK_EXACT_SECONDS:
            return "too many states" if needed is None else "all states were tried"
        return needed

    def run(self, state: SolverState, clock: Clock) -> Findings:
        """Bound and policy, both optimal up to rounding."""
        reduced, needed = state.listed, state.exact_seconds
        assert reduced is not None
        of_all = self.all_states or (needed is not None and needed <= tuned.QUICK_EXACT_SECONDS)
        try:
            solution = Exact(reachable="auto" if of_all else True).solve(reduced.model, clock.check)
        except SizeError:
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
    "Exact values of the states that can be reached, or of all if that is quick; if they are "
    "found, the model is solved.",
    tuned.REACHABLE_SHARE,
    compiles=("exact solver",),
)
ALL_STATES = ExactValues(
    "exact-values-of-all-states",
    Stage.LAST,
    "Exact values, if they are expected within its share of the time.",
    tuned.EXACT_SHARE,
    tuned.EXACT_SECONDS,
    compiles=("exact solver",),
    all_states=True,
)
