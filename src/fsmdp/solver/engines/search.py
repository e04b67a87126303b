"""Search from the start below a bound: a tighter bound there, and policies."""

from dataclasses import dataclass

from fsmdp.bounds.clock import Clock
from fsmdp.bounds.finish import plan_of_constant
from fsmdp.errors import SizeError
from fsmdp.foundation.checks import plural
from fsmdp.policies.resolve import resolve
from fsmdp.solver import parameters as tuned
from fsmdp.solver.engine import CandidatePolicy, Engine, Findings, Optimal, Stage, UpperBound
from fsmdp.solver.search.search import search
from fsmdp.solver.state import Proved, SolverState, proof_by_search


@dataclass(frozen=True, slots=True)
class Search(Engine):
    """Below the trivial bound, or, if it `needs_bound`, below the tightest of the programs.

    The trivial bound leads a search astray where it says nothing, but there is no waiting for it.
    """

    def applies(self, state: SolverState) -> str | float:
        """If actions are listed, and states have few successors, so that they can be, too."""
        if state.basis is not None:
            return "policies stay within the basis"
        few = state.branching
        if few is None:
            return "too many joint actions"
        if few.largest > tuned.LISTED_SUCCESSORS or few.mean > tuned.MEAN_SUCCESSORS:
            return "too many successors"
        return 0.0

    def run(self, state: SolverState, clock: Clock) -> Findings:
        """A bound at the start, and the policies of both bounds of the search."""
        reduced = state.listed
        assert reduced is not None
        base, below = plan_of_constant(state.alone), "the trivial bound"
        if self.needs_bound:
            if reduced.label not in state.plan_of_model:
                return
            base, below = state.plan_of_model[reduced.label], "the bound"
        _, guide = state.best_of_model.get(reduced.label, (0.0, None))
        if guide is not None and resolve(reduced.model, guide).arrays is None:
            guide = None  # it finds joint actions, and a search lists actions
        try:
            found = search(
                reduced.model,
                base.bound.basis,
                base.bound.weights,
                clock,
                fallback=guide,
                seed=state.seed,
                trials=None if state.timed else tuned.SEARCH_TRIALS,
            )
        except SizeError:
            return
        bound = reduced.bound(found.upper_bound)
        proof = proof_by_search(state.model, reduced, found, bound)
        # The linear bound of a reduced model is none that a file can prove.
        own = None if reduced.rewritten else base
        name = f"{reduced.label}search below {below}, {plural(found.expanded, 'state')}"
        noted = "" if found.solved else name
        yield UpperBound(proof, own, noted, more=True)
        if found.solved:
            least = found.lower_bound - reduced.slack
            yield Optimal(name, found.policy, reduced, Proved(least, least, exact=False))
            return
        two = found.optimistic is not found.policy
        yield CandidatePolicy(name, found.policy, reduced, more=two)
        if two:
            yield CandidatePolicy(f"{name}, optimistic", found.optimistic, reduced)


BELOW_TRIVIAL = Search(
    "search-below-trivial-bound",
    Stage.MAIN,
    "Search from the start between two bounds, where states have few successors: lowers the bound "
    "with every backup, and is exact when both meet.",
    tuned.TRIVIAL_SEARCH_SHARE,
    compiles=("search",),
)
BELOW_BOUND = Search(
    "search-below-bound",
    Stage.LAST,
    "Search from the start below the tightest bound of the linear programs.",
    tuned.SEARCH_SHARE,
    compiles=("search",),
    needs_bound=True,
)
