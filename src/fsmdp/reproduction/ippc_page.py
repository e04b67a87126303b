"""The scoreboard as a page: a table, a figure, and means by domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fsmdp.bounds.gap import WORTH_SAYING, relative_gap
from fsmdp.foundation.disk import write_file
from fsmdp.foundation.numbers import bound_text, plain, with_error
from fsmdp.reproduction.ippc import DOMAINS, PLANNERS, Problem, Result, published

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


def write_page(results: Mapping[Problem, Result], path: str | Path, command: str) -> Path:
    """Write the page and its figure beside it."""
    target = Path(path)
    write_file(target.with_name(FIGURE), draw(results))
    write_file(target, page(results, command).encode())
    return target


def page(results: Mapping[Problem, Result], command: str) -> str:
    """The page as Markdown."""
    played = {problem: result for problem, result in results.items() if "error" not in result}
    settings = next(iter(played.values()))["settings"]
    parts = [INTRODUCTION.format(command=command, memory=_memory(played), **settings)]
    parts.append(f"![Mean score by domain, of ours and of published planners]({FIGURE})\n")
    parts.append(_domains(played))
    parts.append(_problems(played))
    return "\n".join(parts)


def scores(results: Mapping[Problem, Result], key: str) -> dict[Problem, float]:
    """Scores of a mean, of the problems that have it and of which others' are known."""
    known = published()
    return {
        problem: known[problem].score(result[key])
        for problem, result in results.items()
        if problem in known and key in result
    }


def others(planner: str, problems: Sequence[Problem]) -> dict[Problem, float]:
    """Scores of a published planner on these problems."""
    known = published()
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


def _problems(results: Mapping[Problem, Result]) -> str:
    online = any("online_mean" in result for result in results.values())
    heads = ["problem", "states", "off line", *(["on line"] if online else [])]
    heads += ["bound", "gap", "closed", "best published", "score"]
    lines = [
        "## Problem by problem\n",
        "| " + " | ".join(heads) + " |",
        "|---|" + "--:|" * (len(heads) - 1),
    ]
    for problem, result in sorted(results.items()):
        lines.append("| " + " | ".join(_cells(problem, result, online)) + " |")
    return "\n".join(lines) + "\n"


def _cells(problem: Problem, result: Result, online: bool) -> list[str]:
    known = published().get(problem)
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
    cells.append("" if known is None else f"{plain(known.best, 5)} ({known.best_planner})")
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
