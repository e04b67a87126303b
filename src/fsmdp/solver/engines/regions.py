"""Bounds from regions with prices: no elimination, so that wide models have tight bounds, too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fsmdp.bounds.clock import Clock
from fsmdp.bounds.regions.layout import Parts
from fsmdp.bounds.regions.minimise import Minimisation
from fsmdp.bounds.regions.proof import RegionProof
from fsmdp.errors import SizeError, WidthError
from fsmdp.foundation.checks import plural
from fsmdp.reductions.reduction import Reduced
from fsmdp.solver import parameters as tuned
from fsmdp.solver.engine import Engine, Finding, Findings, Note, Stage, UpperBound
from fsmdp.solver.state import SolverState


@dataclass(frozen=True, slots=True)
class Regions(Engine):
    """On the equal model of fewest states; every set of prices is a bound."""

    def applies(self, state: SolverState) -> str | float:
        """If bounds need not stay within a basis, and there are regions smaller than the model."""
        if state.basis is not None:
            return "bounds stay within the basis"
        if len(state.model.variables) < 2:
            return "one variable"
        return 0.0

    def run(self, state: SolverState, clock: Clock) -> Findings:
        """Bounds, each tighter than the one before."""
        reduced = narrowest([one for one in state.models if one.relation == "equal"])
        size: tuple[Any, ...] = (tuned.REGION_ADDITIONS,)
        if not state.timed:
            size = tuned.UNTIMED_REGION_ADDITIONS, tuned.UNTIMED_REGION_STEPS
        try:
            phases = 0
            for found in Minimisation(reduced.model, clock.check, *size).run():
                if found is None:
                    phases += 1
                    yield Finding(ends_turn=True)
                    if not state.timed and phases == tuned.UNTIMED_REGION_PHASES:
                        return
                    continue
                proof = RegionProof.of(state.model, reduced, found)
                count = plural(len(found.regions.layouts), "region")
                yield UpperBound(proof, None, f"{reduced.label}{count} with prices")
        except (SizeError, WidthError) as error:
            yield Note(f"regions: {error}")


def narrowest(models: Sequence[Reduced]) -> Reduced:
    """The model of fewest states of those with fewest variables that are in no interior."""
    wide = {one: len(one.model.variables) - len(Parts(one.model).narrow) for one in models}
    return min(models, key=lambda one: (wide[one], one.model.n_states))


REGIONS = Regions(
    "regions-with-prices",
    Stage.QUICK,
    "Bounds from overlapping parts of the model, each solved exactly, which agree by prices on "
    "what they share; every set of prices is a bound.",
    compiles=("regions",),
    beside=True,
)
