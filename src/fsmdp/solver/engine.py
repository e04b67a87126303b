"""Engines: ways to find policies and bounds, behind one interface; what they find; their registry.

The scheduler knows no more of an engine than this: when its turn is (`stage`), what share of the
time it has, whether it applies, and the findings that `run` yields.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

from fsmdp.bounds.bound import StartProof
from fsmdp.bounds.clock import Clock
from fsmdp.bounds.plan import Plan, PlannedPolicy
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import plural, show
from fsmdp.foundation.registry import Registry
from fsmdp.reductions.reduction import Reduced
from fsmdp.solver.judge import Judged

if TYPE_CHECKING:
    from fsmdp.solver.state import Proved, SolverState


class Stage(IntEnum):
    """When engines are run; those of one stage in the order of the registry."""

    FIRST = 1
    """Before anything else is compiled, and while nothing runs beside it."""
    QUICK = 2
    """First policies, within seconds; engines that run beside the others are started."""
    MAIN = 3
    LAST = 4
    """What takes the rest of the time."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Finding:
    """What an engine has found; by itself it is nothing but a pause."""

    more: bool = False
    """More follows that belongs to it; otherwise the scheduler may stop here."""
    ends_turn: bool = False
    """Of an engine that runs beside others: where its turn ends if there is no time limit."""
    is_judged: ClassVar[bool] = False
    """Whether recording changes the incumbent, which the thread of the scheduler alone does."""
    solves: ClassVar[bool] = False
    """Whether nothing is left to do once it is recorded."""

    def record(self, state: SolverState) -> Judged | None:
        """Write it into the state; what is handed back is what `yield` returns to the engine."""


@dataclass(frozen=True, slots=True, eq=False)
class CandidatePolicy(Finding):
    """A policy to be judged, which may become the incumbent; of a reduced model or of the model."""

    name: str
    policy: PlannedPolicy = field(repr=False)
    reduced: Reduced | None = None
    shared: bool = False
    """The states that it visits are added to the pools of all fits."""
    is_judged: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (hasattr(self.policy, "action") and hasattr(self.policy, "compiled")):
            raise ModelError(
                f"candidate {show(self.name)}: expected a policy with action and compiled, found "
                f"{show(self.policy)}; make it with array_policy(name, model, policy)."
            )

    def record(self, state: SolverState) -> Judged:
        """Judge it."""
        judged = state.consider(self.name, self.reduced or state.plain, self.policy)
        if self.shared:
            state.share_visited(judged.arrays)
        return judged


@dataclass(frozen=True, slots=True, eq=False)
class Note(Finding):
    """A line of the log, of what was tried and came to nothing."""

    text: str

    def record(self, state: SolverState) -> None:
        """Write the line."""
        state.note(self.text)


@dataclass(frozen=True, slots=True, eq=False)
class UpperBound(Finding):
    """A proved bound on what any policy earns from the start."""

    proof: StartProof
    base: Plan | None = field(default=None, repr=False)
    """The plan whose linear values the proof uses; None: any."""
    name: str = ""
    """Of the line in the log; none is written without it."""

    def __post_init__(self) -> None:
        parts = (name for name in dir(StartProof) if not name.startswith("_"))
        missing = [name for name in parts if not hasattr(self.proof, name)]
        if missing:
            raise ModelError(
                f"upper bound: {show(self.proof)} is no proof, it has no {missing[0]}; give one of "
                "fsmdp.bounds.proofs, or an object with what StartProof lists."
            )

    def record(self, state: SolverState) -> None:
        """Keep it if it is the tightest."""
        improved = state.lower(self.proof, self.base)
        if self.name:
            state.note(self.name, "bound" if improved else "")


@dataclass(frozen=True, slots=True, eq=False)
class LinearBound(Finding):
    """A plan whose certified values bound those of a reduced model everywhere."""

    name: str
    plan: Plan = field(repr=False)
    reduced: Reduced

    def record(self, state: SolverState) -> None:
        """Keep it if it is the tightest, of all and of the reduced model."""
        improved = state.take_plan(self.plan, self.reduced)
        functions = plural(len(self.plan.basis), "function")
        state.note(f"{self.name}, {functions}", "bound" if improved else "")


@dataclass(frozen=True, slots=True, eq=False)
class Optimal(Finding):
    """A policy that is proved to be optimal: the model is solved."""

    name: str
    policy: PlannedPolicy = field(repr=False)
    reduced: Reduced
    proved: Proved
    is_judged: ClassVar[bool] = True
    solves: ClassVar[bool] = True

    def record(self, state: SolverState) -> None:
        """Make it the incumbent."""
        state.solved(self.name, self.reduced, self.policy, self.proved)


Findings = Generator[Finding, Judged | None, None]


@dataclass(frozen=True, slots=True)
class Engine(ABC):
    """One way to find policies or bounds, which is its options."""

    name: str
    stage: Stage
    summary: str = ""
    """One line of what it does, for the documentation."""
    share: float | None = None
    """Of the time that is left, which it ends after; None: as long as it takes."""
    untimed_seconds: float = math.inf
    """That it may be expected to take to be tried where there is no time limit."""
    compiles: tuple[str, ...] = ()
    """Parts of `fsmdp.solver.warmup` that it uses; they are compiled before its time is counted."""
    beside: bool = False
    """Runs beside the others from its stage on: in a thread of its own, or, without a time limit,
    in turns at the end of each stage. `yield` returns nothing then."""
    needs_bound: bool = False
    """Waits until engines that run beside the others have found a first bound, or failed to."""

    @abstractmethod
    def applies(self, state: SolverState) -> str | float:
        """A reason why it is not to be tried, or the seconds that it may take (0 if unknown)."""

    def head_start(self, state: SolverState) -> float:  # noqa: ARG002
        """Seconds that the others wait for an engine that runs beside them."""
        return 0.0

    @abstractmethod
    def run(self, state: SolverState, clock: Clock) -> Findings:
        """Yield what is found, as it is found. `clock.check()` ends it when its time is up.

        `judged = yield CandidatePolicy(...)`: what the episodes of the scheduler say of the policy;
        None if it could not be judged, for want of time.
        """


ENGINES: Registry[Engine] = Registry(
    "engine",
    entries=Engine,
    import_paths={
        "baselines": "fsmdp.solver.engines.baselines:SHORT",
        "given-policies": "fsmdp.solver.engines.given:GIVEN",
        "exact-values": "fsmdp.solver.engines.exact:REACHABLE",
        "baselines-of-long-episodes": "fsmdp.solver.engines.baselines:LONG",
        "linear-programs": "fsmdp.solver.engines.programs:PROGRAMS",
        "regions-with-prices": "fsmdp.solver.engines.regions:REGIONS",
        "fits-of-singles": "fsmdp.solver.engines.fits:SINGLES",
        "search-below-trivial-bound": "fsmdp.solver.engines.search:BELOW_TRIVIAL",
        "projections": "fsmdp.solver.engines.projections:PROJECTIONS",
        "fits-of-pairs": "fsmdp.solver.engines.fits:PAIRS",
        "search-below-bound": "fsmdp.solver.engines.search:BELOW_BOUND",
        "exact-values-of-all-states": "fsmdp.solver.engines.exact:ALL_STATES",
        "growth": "fsmdp.solver.engines.fits:GROWTH",
    },
)
"""Engines in the order in which they are run within a stage; `ENGINES.add` adds one of your own."""
