"""`fsmdp demo`: learning on a small ring and on one far beyond enumeration, with a report."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsmdp.cli.app import AsJson, Quiet, Seed, command
from fsmdp.cli.screen import (
    collect_warnings,
    print_json,
    print_lines,
    print_table,
    resumable,
    run_bars,
    working,
)
from fsmdp.foundation.checks import plural
from fsmdp.foundation.numbers import count_of_states, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsmdp.experiments.runner import Seen
    from fsmdp.experiments.specification import Specification
    from fsmdp.experiments.store import Results

LEARNERS = (
    {"learner": "ucrl", "label": "UCRL-Factored", "known_rewards": True},
    {"learner": "psrl", "label": "PSRL-Factored", "replan": 0.5, "known_rewards": True},
    {"learner": "plan", "label": "known-model plan"},
    {"learner": "tabular-psrl", "label": "tabular PSRL", "known_rewards": True},
)


PLAN_SECONDS = 3.0


@command(
    "demo",
    "fsmdp demo",
    "fsmdp demo --episodes 1000 --seeds 5 --output runs/longer",
    "fsmdp demo --json --quiet",
)
def demo_command(
    machines: Annotated[int, typer.Option(help="Machines in the small ring.", min=2, max=10)] = 8,
    large: Annotated[int, typer.Option(help="Machines in the large ring.", min=2, max=400)] = 60,
    episodes: Annotated[int, typer.Option(help="Episodes of each run.", min=2)] = 80,
    seeds: Annotated[int, typer.Option(help="Runs of each learner.", min=1, max=100)] = 3,
    workers: Annotated[int, typer.Option(help="How many runs at a time.", min=1)] = 2,
    output: Annotated[
        str, typer.Option(metavar="FOLDER", help="Folder for the runs and the report.")
    ] = "runs/demo",
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Plan a ring of machines, run four learners on two of them, and write a report."""
    from fsmdp.experiments.runner import compare
    from fsmdp.report import write_report

    began = time.perf_counter()
    asked = _specify(machines, large, episodes, range(seed, seed + seeds))
    silent = quiet or as_json
    if not silent:
        print(
            f"Rings of {machines} and of {large} machines that fail and can be rebooted, one at a "
            f"time; {episodes} episodes of 10 steps, {plural(seeds, 'seed')}."
        )
    planned = _plan(large, seed, silent)
    best = _best_values(machines, seeds)
    with (
        resumable(output),
        run_bars([_name(asked, run) for run in asked.runs], episodes, silent) as show,
    ):
        results = compare(
            asked, output, workers=workers, progress=lambda seen: show(_progress(best, seen))
        )
    with working("writing the report", silent):
        report = write_report(output, figures=False)
    rows = [row for model in asked.models for row in _rows(results, model.id)]
    seconds = time.perf_counter() - began
    if as_json:
        asked_for = {"models": list(report.models), "seed": seed}
        found = {"plan": planned, "rows": rows, "report": str(report.path)}
        print_json(asked_for | found | {"seconds": seconds})
        return
    _show(rows, seconds)
    print(f"figures for papers: fsmdp report {output}")
    print(report.path)


def _plan(machines: int, seed: int, silent: bool) -> dict[str, Any]:
    """The known model's plan of the large ring, with the solver's log on screen."""
    from fsmdp.cli.plan import log_shown
    from fsmdp.domains import sysadmin
    from fsmdp.solver.plan import plan

    model = sysadmin(machines)
    with collect_warnings(), log_shown(model, PLAN_SECONDS, silent) as callback:
        found = plan(model, time_limit=PLAN_SECONDS, seed=seed, callback=callback)
    if not silent:
        print(f"The model known, planned: {found.statement()}.\n")
    return {
        "upper_bound": found.upper_bound,
        "policy_mean": None if found.incumbent is None else found.incumbent.mean,
        "gap": found.gap,
        "statement": found.statement(),
    }


def _specify(machines: int, large: int, episodes: int, seeds: range) -> Specification:
    from fsmdp.experiments.specification import specify

    return specify(
        {
            "name": "demo",
            "episodes": episodes,
            "seeds": list(seeds),
            "models": [
                {"model": f"sysadmin:ring:{machines}", "basis": "pairs"},
                {"model": f"sysadmin:ring:{large}", "basis": "singles"},
            ],
            "learners": [dict(learner) for learner in LEARNERS],
        }
    )


def _name(asked: Specification, run: Any) -> str:
    number = f", seed {run.seed}" if len(asked.seeds) > 1 else ""
    return f"{run.model.model}: {run.learner.label}{number}"


def _best_values(machines: int, seeds: int) -> list[float | None]:
    """V* for each run: the small ring's is computed, the large one's is out of reach."""
    from fsmdp.domains import sysadmin
    from fsmdp.exact.solve import solve_exactly

    exact = solve_exactly(sysadmin(machines)).start_value
    runs = len(LEARNERS) * seeds
    return [exact] * runs + [None] * runs


def _progress(best: Sequence[float | None], seen: Sequence[Seen]) -> list[tuple[int, str]]:
    """Episodes done by every run, with its regret so far, or else its mean return."""

    def note(value: float | None, one: Seen) -> str:
        if one.total == 0:
            return ""
        if value is None:
            return f"mean return {one.total / one.episodes:.3f}"
        return f"regret {value * one.episodes - one.total:.1f}"

    return [(one.episodes, note(value, one)) for value, one in zip(best, seen, strict=True)]


def _rows(results: Results, model: str) -> list[dict[str, Any]]:
    """A row for each learner: regret against V*, or at most that against the certified bound."""
    from fsmdp.report.curves import Interval, summarise

    facts = results.models[model]
    rows = []
    for row in summarise(results):
        if row.model != model:
            continue
        runs = [
            one for one in results.runs if (one.model, one.learner) == (model, row.trials.learner)
        ]
        best = facts.start_value_exact
        if best is None:
            best = facts.plan_upper_bound
        lost = [
            best * len(one.episodes) - float(one.episodes["returns"].sum())
            for one in runs
            if best is not None and one.message is None
        ]
        rows.append(
            {
                "model": facts.text,
                "basis": facts.basis,
                "learner": row.trials.name,
                "log10_states": facts.log10_states,
                "induced_width": facts.induced_width,
                "replans": row.mean("replans"),
                "mean_return_last": row.mean("return_last_tenth"),
                "regret": Interval.of(lost).mean if lost else None,
                "regret_half_width": Interval.of(lost).half_width if lost else None,
                "regret_is_bound": facts.start_value_exact is None,
                "certified_gap": facts.plan_gap,
                "message": row.message,
            }
        )
    return rows


def _with_interval(row: dict[str, Any]) -> str:
    """A regret and half its interval over seeds; chance alone may take one below 0."""
    from fsmdp.report.curves import Interval

    return str(Interval(row["regret"], row["regret_half_width"]))


def _show(rows: list[dict[str, Any]], seconds: float) -> None:
    from rich.box import SIMPLE_HEAD

    several = any(row["regret_half_width"] is not None for row in rows)
    spread = "means over seeds, ± half a 95 % interval" if several else "one seed"
    shown = []
    last = None
    for row in rows:
        first = row["model"] != last
        last = row["model"]
        gap = row["certified_gap"]
        shown.append(
            (
                f"ring {row['model'].rpartition(':')[2]}" if first else "",
                count_of_states(row["log10_states"]) if first else "",
                f"{row['induced_width']}" if first else "",
                row["learner"],
                "" if row["replans"] is None else f"{row['replans']:.0f}",
                "refused"
                if row["regret"] is None
                else ("≤ " if row["regret_is_bound"] else "") + _with_interval(row),
                "" if gap is None or not first else percent(gap),
            )
        )
    print_table(
        "Regret: how much less a run earned than the best policy would have",
        ("model", "states", "width", "learner", "replans", "regret", "gap"),
        shown,
        right=("states", "width", "replans", "regret", "gap"),
        no_wrap=True,
        box=SIMPLE_HEAD,
        caption=f"{spread}; bases: pairs, and singles for the "
        "large ring; ≤: against the certified bound, since V* is not known at that "
        f"size; gap: the certified gap of the known model's plan; {seconds:.0f} s in all",
    )
    print_lines(*(f"{row['learner']}: {row['message']}" for row in rows if row["message"]))
