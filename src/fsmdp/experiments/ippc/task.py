"""One problem of the scoreboard: plan it, act in it off line and perhaps on line."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

from fsmdp.errors import FsmdpError
from fsmdp.experiments.ippc.published import DOMAINS, Problem
from fsmdp.foundation.streams import Purpose, derived_seed

ONLINE = "online_mean", "online_standard_error", "online_episodes", "online_decision_seconds"
"""What a result says of the policy on line; without the prefix, of the plan's own."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How long to plan, how many episodes to play, and what a decision on line may take."""

    seconds: float = 60.0
    episodes: int = 1000
    online_episodes: int = 0
    milliseconds: float = 100.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """A problem and how to play it."""

    problem: Problem
    settings: Settings


def play(task: Task) -> dict[str, Any]:
    """What came of a problem, as a JSON object; of one that fails, the message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _play(task)
    except FsmdpError as error:
        return {"error": str(error)}


def _play(task: Task) -> dict[str, Any]:
    from fsmdp.foundation.threads import begin_peak, peak_memory
    from fsmdp.interop.rddl.loading import load
    from fsmdp.planning.clock import Status
    from fsmdp.simulation.rollout import rollout
    from fsmdp.solver.plan import plan

    settings, problem = task.settings, task.problem
    model = load(DOMAINS[problem.domain], problem.instance)
    begun = begin_peak()
    began = time.perf_counter()
    found = plan(model, time_limit=settings.seconds, seed=settings.seed)
    seconds = time.perf_counter() - began
    peak = peak_memory() if begun else None
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if found.incumbent is None:
        return {"error": f"nothing was judged in {settings.seconds:g} s; give more time"}
    began = time.perf_counter()
    runs = rollout(model, found, settings.episodes, derived_seed(settings.seed, Purpose.EVALUATION))
    decision = (time.perf_counter() - began) / (settings.episodes * runs.steps)
    solved = found.gap is not None and found.gap.optimal
    result = {
        "log10_states": model.log10_states,
        "actions": model.n_actions,
        "seconds": seconds,
        "peak_memory": peak,
        "policy": found.incumbent.name,
        "mean": runs.mean,
        "standard_error": runs.standard_error,
        "episodes": settings.episodes,
        "decision_seconds": decision,
        "upper_bound": found.upper_bound,
        "trivial_bound": found.trivial_bound,
        "proof": found.bound.proof,
        "exact": solved,
        "statement": found.statement(),
        "candidates": len(found.candidates),
    }
    if settings.online_episodes and solved:
        # Nothing beats a policy that is proved optimal, so nothing is simulated.
        result |= {name: result[name.removeprefix("online_")] for name in ONLINE}
    elif settings.online_episodes:
        began = time.perf_counter()
        online = found.online(model, milliseconds=settings.milliseconds, seed=settings.seed)
        evaluated = derived_seed(settings.seed, Purpose.EVALUATION, 1)
        played = rollout(model, online, settings.online_episodes, evaluated)
        steps = settings.online_episodes * played.steps
        seconds = time.perf_counter() - began
        played_online = (
            played.mean,
            played.standard_error,
            settings.online_episodes,
            seconds / steps,
        )
        result |= dict(zip(ONLINE, played_online, strict=True))
    return result
