"""The scoreboard: problems of the planning competitions, against what other planners published.

Problems are played one file each, and what is there already is not played again; then the page: a
table, a figure, and means by domain.
"""

import csv
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from fsmdp.bounds.gap import WORTH_SAYING, relative_gap
from fsmdp.errors import ExperimentError, FsmdpError, ModelError
from fsmdp.experiments.executors import choose_executor
from fsmdp.foundation.checks import show, show_names
from fsmdp.foundation.disk import DIGEST, check_seal, make_folder, read_file, seal, write_file
from fsmdp.foundation.numbers import bound_text, plain, with_error
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
"""Names of the domains of 2011 and 2014, and of the problems in rddlrepository."""

DOMAINS_2018: Mapping[str, str] = {
    f"{name}-2018": f"{name}_ippc2018"
    for name in (
        "AcademicAdvising",
        "ChromaticDice",
        "CooperativeRecon",
        "EarthObservation",
        "Manufacturer",
        "PushYourLuck",
        "RedFinnedBlueEye",
    )
}
"""Those of 2018, with 20 instances each."""

INSTANCES = range(1, 11)
INSTANCES_2018 = range(1, 21)

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

MEASURED: Mapping[str, str] = {"prost_05s": "PROST, 0.5 s a step, measured"}
"""Whose results were measured by us."""


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
    errors: Mapping[str, float] = field(default_factory=dict)  # standard ones, where they are known

    @property
    def base(self) -> float:
        """The better of doing nothing and acting at random: score 0."""
        return max(self.means[name] for name in BASELINES if name in self.means)

    @property
    def best(self) -> float:
        """The best mean that anyone published: score 1."""
        return self.means[self._best]

    @property
    def best_planner(self) -> str:
        """Whose that is."""
        return {**PLANNERS, **MEASURED}[self._best]

    @property
    def best_error(self) -> float | None:
        """Its standard error, where it is known."""
        return self.errors.get(self._best)

    @property
    def _best(self) -> str:
        present = [name for name in (*PLANNERS, *MEASURED) if name in self.means]
        return max(present, key=lambda name: self.means[name])

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


@cache
def measured_2018() -> Mapping[Problem, Published]:
    """What PROST earned in a run of ours on problems of 2018, with the zero of the score.

    Of 2 to 10 episodes, so that its standard errors matter. No results of the competition by
    instance were published.
    """
    text = files(__package__).joinpath("assets", "measured_2018.csv").read_text(encoding="utf-8")
    found = {}
    for row in csv.DictReader(text.splitlines()):
        if row["prost_05s"]:
            means = {"noop": float(row["base"]), "prost_05s": float(row["prost_05s"])}
            errors = {"prost_05s": float(row["prost_05s_error"])}
            found[Problem(row["domain"], int(row["instance"]))] = Published(means, errors)
    return found


def known_results() -> Mapping[Problem, Published]:
    """What others earned, published or measured."""
    return {**published(), **measured_2018()}


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
    model = load({**DOMAINS, **DOMAINS_2018}[problem.domain], problem.instance)
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
    """Problems as people write them: "Traffic:1", "Traffic", "published", "all", "2018"."""
    found: dict[Problem, None] = {}
    for text in texts:
        name, _, number = text.partition(":")
        instances = INSTANCES_2018 if name in DOMAINS_2018 else INSTANCES
        if text == "2018":
            found |= dict.fromkeys(Problem(d, i) for d in DOMAINS_2018 for i in INSTANCES_2018)
        elif text == "published":
            found |= dict.fromkeys(published())
        elif text == "all":
            found |= dict.fromkeys(Problem(d, i) for d in DOMAINS for i in INSTANCES)
        elif name not in DOMAINS and name not in DOMAINS_2018:
            raise ModelError(
                f"unknown problem {show(text)}; expected published, all, 2018, or one of "
                f"{show_names((*DOMAINS, *DOMAINS_2018))}, perhaps with an instance (Traffic:1)."
            )
        elif not number:
            found |= dict.fromkeys(Problem(name, instance) for instance in instances)
        elif number.isdecimal() and int(number) in instances:
            found[Problem(name, int(number))] = None
        else:
            expected = f"an instance from 1 to {instances[-1]} ({name}:1)"
            raise ModelError(f"{show(text)}: expected {expected}.")
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
    every = read_problems(["all", "2018"])
    found = {problem: read_result(Path(folder), problem) for problem in every}
    return {problem: result for problem, result in found.items() if result is not None}


def _path(folder: Path, problem: Problem) -> Path:
    return folder / f"{problem.domain}-{problem.instance}.json"


SHOWN = ("prost_1s", "prost_5s", "gurobiplan_5s", "jaxplan_5s")
"""Planners that stand beside ours."""

FIGURE = "ippc.svg"

SCALE = 1e6
"""More than an episode of these problems returns: what is rounding beside it is shown as 0."""

INTRODUCTION = """# Scoreboard

The problems of the planning competitions of 2011 and 2014 (IPPC), planned by `fsmdp.plan` and set
against what other planners published. Episodes have 40 steps. *Off line*: the plan's own policy,
which decides in microseconds. *On line*: rollouts over it, with at most {milliseconds:g} ms a
decision. The others plan at every step, for the time that is given with each.

The score of a mean is (mean − base) / (best − base), cut to [0, 1]: base is the better of doing
nothing and acting at random, best is the best mean that anyone published. Published means are of
20 to 30 episodes and noisy: some lie above what is possible, and where a problem was solved
exactly, an optimal policy can score less than 1.

*Bound* is what no policy can exceed, certified; no other planner has that column. *Gap* is how far
our best policy is below it, as a share of the bound, where that says anything. *Closed* is the
share of the way from the trivial bound (the largest reward at every step) to our best policy that
the bound has come. A value marked = is exact.

Made by {command}; {seconds:g} s of planning for each problem, {episodes} episodes off line.{memory}
"""


SECOND_PART = """## The problems of 2018

Most have actions that are possible in some states only, and horizons of their own. No results of
the competition by instance were published. The best known mean is what PROST earned in a run of
ours, with 0.5 s a step and 2 to 10 episodes, so that its standard error matters; the zero of the
score is the competition's, the better of doing nothing and acting at random.
"""


def write_page(results: Mapping[Problem, Result], path: str | Path, command: str) -> Path:
    """Write the page and its figure beside it."""
    target = Path(path)
    earlier = {one: result for one, result in results.items() if not is_of_2018(one)}
    if earlier:
        write_file(target.with_name(FIGURE), draw(earlier))
    write_file(target, page(results, command).encode())
    return target


def page(results: Mapping[Problem, Result], command: str) -> str:
    """The page as Markdown: the problems of 2011 and 2014, and those of 2018 in a second part."""
    played = {problem: result for problem, result in results.items() if "error" not in result}
    later = {problem: result for problem, result in played.items() if is_of_2018(problem)}
    settings = next(iter(played.values()))["settings"]
    parts = [INTRODUCTION.format(command=command, memory=_memory(played), **settings)]
    if len(later) < len(played):
        earlier = {problem: result for problem, result in played.items() if problem not in later}
        parts.append(f"![Mean score by domain, of ours and of published planners]({FIGURE})\n")
        parts.append(_domains(earlier))
        parts.append(_problems(earlier, "Problem by problem"))
    if later:
        parts.append(SECOND_PART)
        parts.append(_problems(later, "Problem by problem, 2018"))
    return "\n".join(parts)


def is_of_2018(problem: Problem) -> bool:
    """Whether a problem is one of the competition of 2018."""
    return problem.domain in DOMAINS_2018


def scores(results: Mapping[Problem, Result], key: str) -> dict[Problem, float]:
    """Scores of a mean, of the problems that have it and of which others' are known."""
    known = known_results()
    return {
        problem: known[problem].score(result[key])
        for problem, result in results.items()
        if problem in known and key in result
    }


def others(planner: str, problems: Sequence[Problem]) -> dict[Problem, float]:
    """Scores of a published planner on these problems."""
    known = known_results()
    return {
        problem: known[problem].score(known[problem].means[planner])
        for problem in problems
        if planner in known[problem].means
    }


def _memory(results: Mapping[Problem, Result]) -> str:
    """Which problem took most memory, where that is known of all."""
    peaks = {problem: result.get("peak_memory") for problem, result in results.items()}
    known = {problem: peak for problem, peak in peaks.items() if peak is not None}
    if len(known) < len(peaks):
        return ""
    largest = max(known, key=known.__getitem__)
    return f"\nPlanning took at most {known[largest] / 1e9:.1f} GB ({largest})."


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.3f}" if values else ""


def _domains(results: Mapping[Problem, Result]) -> str:
    """Mean scores by domain."""
    columns: list[tuple[str, dict[Problem, float]]] = [
        ("off line", scores(results, "mean")),
        ("on line", scores(results, "online_mean")),
    ]
    columns += [(PLANNERS[name], others(name, list(columns[0][1]))) for name in SHOWN]
    columns = [column for column in columns if column[1]]
    lines = [
        "## Mean score by domain\n",
        "| domain | problems | " + " | ".join(name for name, _ in columns) + " |",
        "|---|--:|" + "--:|" * len(columns),
    ]
    problems = columns[0][1]
    rows = {domain: {p for p in problems if p.domain == domain} for domain in DOMAINS}
    rows["**all**"] = set(problems)
    live = set(scores(results, "online_mean"))
    if live and live != set(problems):
        rows["**all with on line**"] = live
    for name, inside in rows.items():
        if inside:
            means = (
                _mean([score for problem, score in column.items() if problem in inside])
                for _, column in columns
            )
            lines.append(f"| {name} | {len(inside)} | " + " | ".join(means) + " |")
    return "\n".join(lines) + "\n"


def _problems(results: Mapping[Problem, Result], title: str) -> str:
    online = any("online_mean" in result for result in results.values())
    heads = ["problem", "states", "off line", *(["on line"] if online else [])]
    heads += ["bound", "gap", "closed", "best published", "score"]
    lines = [
        f"## {title}\n",
        "| " + " | ".join(heads) + " |",
        "|---|" + "--:|" * (len(heads) - 1),
    ]
    for problem, result in sorted(results.items()):
        lines.append("| " + " | ".join(_cells(problem, result, online)) + " |")
    return "\n".join(lines) + "\n"


def _cells(problem: Problem, result: Result, online: bool) -> list[str]:
    known = known_results().get(problem)
    earned = with_error(result["mean"], result["standard_error"], SCALE)
    cells = [str(problem), f"10^{result['log10_states']:.1f}", earned]
    best = result["mean"]
    if online:
        value = ""
        if "online_mean" in result:
            value = with_error(result["online_mean"], result["online_standard_error"], SCALE)
            best = max(best, result["online_mean"])
        cells.append(value)
    bound = bound_text(result["upper_bound"], result["exact"], SCALE, 5)
    cells.append(("= " if result["exact"] else "") + bound)
    # Nobody earns more than an exact value: what episodes say beyond it is chance.
    gap = 0.0 if result["exact"] else relative_gap(result["upper_bound"], best)
    cells.append("" if gap > WORTH_SAYING else f"{plain(100 * gap, 3)} %")
    way = result["trivial_bound"] - best
    closed = (result["trivial_bound"] - result["upper_bound"]) / way if way > 0 else 1.0
    cells.append(f"{100 * min(1.0, max(0.0, closed)):.0f} %")
    best_known = ""
    if known is not None:
        error = known.best_error
        shown = plain(known.best, 5) if error is None else with_error(known.best, error, SCALE)
        best_known = f"{shown} ({known.best_planner})"
    cells.append(best_known)
    cells.append("" if known is None else f"{known.score(best):.2f}")
    return cells


def draw(results: Mapping[Problem, Result]) -> bytes:
    """Mean scores by domain as bars."""
    import io

    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    from fsmdp.report.charts import COLORS

    ours = [("fsmdp, off line", scores(results, "mean"))]
    live = scores(results, "online_mean")
    if live:
        ours.append(("fsmdp, on line", live))
    columns = ours + [(PLANNERS[name], others(name, list(ours[0][1]))) for name in SHOWN]
    present = [d for d in DOMAINS if any(p.domain == d for p in ours[0][1])]
    groups: list[str | None] = [*present, None]
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    FigureCanvasSVG(figure)
    axes: Any = figure.add_subplot()
    width = 0.8 / len(columns)
    for number, (name, column) in enumerate(columns):
        heights = []
        for domain in groups:
            inside = [s for p, s in column.items() if domain in (None, p.domain)]
            heights.append(sum(inside) / len(inside) if inside else 0.0)
        places = [group + (number - (len(columns) - 1) / 2) * width for group in range(len(groups))]
        axes.bar(places, heights, width, label=name, color=COLORS[number][0])
    labels = [domain or "all" for domain in groups]
    axes.set_xticks(range(len(groups)), labels, rotation=30, ha="right")
    axes.set_ylabel("mean score")
    axes.set_ylim(0, 1.02)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(ncols=3, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.25), frameon=False)
    written = io.BytesIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()
