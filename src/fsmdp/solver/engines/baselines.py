"""Baselines: policies that need no planning."""

from dataclasses import dataclass

from fsmdp.bounds.clock import Clock
from fsmdp.policies.resolve import array_policy, idle_policy
from fsmdp.solver import parameters as tuned
from fsmdp.solver.engine import CandidatePolicy, Engine, Findings, Stage
from fsmdp.solver.state import SolverState


@dataclass(frozen=True, slots=True)
class Baselines(Engine):
    """Doing nothing, and acting at random."""

    long: bool = False
    """Long episodes take longer to simulate than exact values of few states to compute."""

    def applies(self, state: SolverState) -> str | float:
        """Before or after exact values, by the length of episodes."""
        if (state.judge.arena.steps > tuned.LONG_EPISODE_STEPS) is not self.long:
            return "the other one is for episodes of this length"
        return 0.0

    def run(self, state: SolverState, clock: Clock) -> Findings:  # noqa: ARG002
        """Two candidates."""
        model = state.model
        for name, policy in (("doing nothing", idle_policy(model)), ("at random", "random")):
            yield CandidatePolicy(name, array_policy(name, model, policy))


SHORT = Baselines("baselines", Stage.FIRST, "Doing nothing, and acting at random.")
LONG = Baselines(
    "baselines-of-long-episodes",
    Stage.FIRST,
    "Baselines, where episodes are so long that exact values come first.",
    long=True,
)
