"""Play many problems, one file each: what is there already is not played again."""

from __future__ import annotations

import csv
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from fsmdp.errors import ExperimentError, FsmdpError, ModelError
from fsmdp.experiments.executors.protocol import choose_executor
from fsmdp.foundation.checks import show, show_names
from fsmdp.foundation.disk import DIGEST, check_seal, make_folder, read_file, seal, write_file
from fsmdp.foundation.streams import Purpose, derived_seed

DOMAINS: Mapping[str, str] = {
    "AcademicAdvising": "AcademicAdvising_MDP_ippc2014",
    "CooperativeRecon": "CooperativeRecon_MDP_ippc2011",
    "CrossingTraffic": "CrossingTraffic_MDP_ippc2011",
    "Elevators": "Elevators_MDP_ippc2011",
    "GameOfLife": "GameOfLife_MDP_ippc2011",
    "Navigation": "Navigation_MDP_ippc2011",
    "SkillTeaching": "SkillTeaching_MDP_ippc2011",
    "SysAdmin": "SysAdmin_MDP_ippc2011",
    "Tamarisk": "Tamarisk_MDP_ippc2014",
    "Traffic": "Traffic_CTM_MDP_ippc2011",
    "TriangleTireworld": "TriangleTireworld_MDP_ippc2014",
    "Wildfire": "Wildfire_MDP_ippc2014",
}
"""Names of the domains, and of the problems in rddlrepository."""

INSTANCES = range(1, 11)

BASELINES = ("noop", "random", "noop_ippc2014", "random_ippc2014")

PLANNERS: Mapping[str, str] = {
    "prost_1s": "PROST, 1 s a step",
    "prost_3s": "PROST, 3 s a step",
    "prost_5s": "PROST, 5 s a step",
    "gurobiplan_5s": "GurobiPlan, 5 s a step",
    "jaxplan_5s": "JaxPlan, 5 s a step",
    "prost2014_all_runs": "PROST 2014",
    "prost2011_all_runs": "PROST 2011",
    "gpack_all_runs": "Gourmand 2014",
}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """An instance of a domain."""

    domain: str
    instance: int

    def __str__(self) -> str:
        return f"{self.domain} {self.instance}"


@dataclass(frozen=True, slots=True)
class Published:
    """Means of others on one problem."""

    means: Mapping[str, float]

    @property
    def base(self) -> float:
        """The better of doing nothing and acting at random: score 0."""
        return max(self.means[name] for name in BASELINES if name in self.means)

    @property
    def best(self) -> float:
        """The best mean that anyone published: score 1."""
        return max(self.means[name] for name in PLANNERS if name in self.means)

    @property
    def best_planner(self) -> str:
        """Whose that is."""
        present = [name for name in PLANNERS if name in self.means]
        return PLANNERS[max(present, key=lambda name: self.means[name])]

    def score(self, mean: float) -> float:
        """(mean - base) / (best - base), cut to [0, 1]."""
        return min(1.0, max(0.0, (mean - self.base) / (self.best - self.base)))


@cache
def published() -> Mapping[Problem, Published]:
    """All problems of which results were published."""
    text = files(__package__).joinpath("assets", "published.csv").read_text(encoding="utf-8")
    found = {}
    for row in csv.DictReader(text.splitlines()):
        problem = Problem(row.pop("domain"), int(row.pop("instance")))
        found[problem] = Published({name: float(mean) for name, mean in row.items() if mean})
    return found


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
    from fsmdp.bounds.clock import Status
    from fsmdp.foundation.threads import begin_peak, peak_memory
    from fsmdp.io.rddl.loading import load
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
        "trivial_bound": found.bound.trivial,
        "proof": found.bound.proof.kind,
        "exact": solved,
        "statement": found.statement(),
        "candidates": len(found.record.candidates),
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


LARGEST_RESULT = 2**20

Result = Mapping[str, Any]


def read_problems(texts: Sequence[str]) -> list[Problem]:
    """Problems as people write them: "Traffic:1", "Traffic", "published", "all"."""
    found: dict[Problem, None] = {}
    for text in texts:
        name, _, number = text.partition(":")
        if text == "published":
            found |= dict.fromkeys(published())
        elif text == "all":
            found |= dict.fromkeys(Problem(d, i) for d in DOMAINS for i in INSTANCES)
        elif name not in DOMAINS:
            raise ModelError(
                f"unknown problem {show(text)}; expected published, all, or one of "
                f"{show_names(DOMAINS)}, perhaps with an instance from 1 to 10 (Traffic:1)."
            )
        elif not number:
            found |= dict.fromkeys(Problem(name, instance) for instance in INSTANCES)
        elif number.isdecimal() and int(number) in INSTANCES:
            found[Problem(name, int(number))] = None
        else:
            raise ModelError(f"{show(text)}: expected an instance from 1 to 10 (Traffic:1).")
    return sorted(found)


def run_problems(
    problems: Sequence[Problem],
    settings: Settings,
    folder: str | Path,
    executor: str = "local",
    workers: int = 1,
    address: str | None = None,
    callback: Callable[[Problem, Result], None] | None = None,
) -> dict[Problem, Result]:
    """Play the problems that a folder has no result of with these settings; all results."""
    target = make_folder(folder)
    found: dict[Problem, Result] = {}
    for problem in problems:
        result = read_result(target, problem)
        if result is not None and result["settings"] == asdict(settings):
            found[problem] = result
    todo = [problem for problem in problems if problem not in found]

    def keep(problem: Problem, result: Result | ExperimentError) -> None:
        if isinstance(result, ExperimentError):
            result = {"error": str(result)}
        entry = {"problem": asdict(problem), "settings": asdict(settings)} | dict(result)
        if "error" not in entry:
            write_file(_path(target, problem), seal(entry, indent=1))
        found[problem] = entry
        if callback is not None:
            callback(problem, entry)

    tasks = [Task(problem, settings) for problem in todo]
    if executor == "local" and workers == 1:  # one after another, each on all cores
        for task in tasks:
            keep(task.problem, play(task))
    elif tasks:
        with choose_executor(executor, workers, address) as engine:
            for position, played in engine.run(play, tasks):
                keep(todo[position], played)
    return {problem: found[problem] for problem in problems}


def read_result(folder: Path, problem: Problem) -> Result | None:
    """The result of a problem, if there is one."""
    path = _path(folder, problem)
    if not path.exists():
        return None
    content = read_file(path, LARGEST_RESULT)
    remedy = "remove it to play the problem again"
    try:
        read = json.loads(content)
        check_seal(content, read.get(DIGEST), show(str(path)), remedy)
        if not isinstance(read["settings"], dict):
            raise ValueError("no settings")
    except (ValueError, KeyError, AttributeError) as error:
        raise ModelError(f"{show(str(path))} is not a result ({error}); {remedy}.") from None
    return dict(read)


def read_results(folder: str | Path) -> dict[Problem, Result]:
    """All results of a folder."""
    every = [Problem(domain, instance) for domain in DOMAINS for instance in INSTANCES]
    found = {problem: read_result(Path(folder), problem) for problem in every}
    return {problem: result for problem, result in found.items() if result is not None}


def _path(folder: Path, problem: Problem) -> Path:
    return folder / f"{problem.domain}-{problem.instance}.json"
