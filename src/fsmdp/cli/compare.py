"""`fsmdp compare` and `fsmdp report`."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsmdp.cli.app import Address, AsJson, ExecutorName, Quiet, Seed, command
from fsmdp.cli.screen import print_json, print_lines, print_table, resumable, working
from fsmdp.foundation.checks import plural
from fsmdp.foundation.numbers import plain, upper

if TYPE_CHECKING:
    from fsmdp.experiments.specification import Specification
    from fsmdp.experiments.store import Results
    from fsmdp.report.curves import Row

FIGURES = {
    "mean_return_last": "return_last_tenth",
    "regret": "regret",
    "replans": "replans",
    "seconds": "seconds",
}
"""What the table shows: keys of the JSON object, and figures of a row."""


@command(
    "compare",
    "fsmdp compare ring.toml",
    "fsmdp compare ring.toml --output runs/ring --workers 8",
    "fsmdp compare mine.toml --allow-code",
    "fsmdp compare ring.toml --executor dask --address tcp://host:8786",
)
def compare_command(
    specification: Annotated[
        str,
        typer.Argument(metavar="SPEC", help="A TOML file: models, learners, episodes, seeds."),
    ],
    output: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Folder for the runs; runs/NAME unless given."),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="How many runs at a time, on this machine.", min=1)
    ] = 2,
    executor: ExecutorName = "local",
    address: Address = None,
    seed: Annotated[int, typer.Option(help="Added to every seed.", min=0)] = 0,
    allow_code: Annotated[
        bool,
        typer.Option(
            "--allow-code",
            help="Import what the specification names as my_module:make, which runs its code.",
        ),
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run every learner on every model with every seed; run again, it does only what is missing.

    A specification that names modules (my_module:make) is refused without --allow-code: importing
    them runs their code. The exit code is 1 if runs failed: the last line says how many.
    """
    from fsmdp.experiments.runner import compare, default_folder
    from fsmdp.experiments.specification import read_specification
    from fsmdp.report.curves import summarise

    began = time.perf_counter()
    asked, text = read_specification(specification, allow_code=allow_code)
    asked = replace(asked, seeds=tuple(seed + one for one in asked.seeds))
    folder = default_folder(asked.name) if output is None else output
    with resumable(folder):
        results = compare(
            asked,
            folder,
            executor,
            workers,
            address=address,
            text=text,
            progress=not (quiet or as_json),
        )
    rows = summarise(results)
    seconds = time.perf_counter() - began
    if as_json:
        print_json(_facts(results, rows, str(folder), seconds))
    else:
        _show_rows(results, rows, str(folder), seconds)
    failed = sum(run.message is not None for run in results.runs)
    if failed:
        print(
            f"fsmdp: {failed} of {plural(len(results.runs), 'run')} failed; the same command tries "
            "them again, from their last checkpoints.",
            file=sys.stderr,
        )
        raise typer.Exit(1)


def _facts(results: Results, rows: tuple[Row, ...], folder: str, seconds: float) -> dict[str, Any]:
    return {
        "folder": folder,
        "models": {name: facts.text for name, facts in results.models.items()},
        "seeds": list(results.specification.seeds),
        "runs": len(results.runs),
        "failed": [
            {"id": run.id, "message": run.message}
            for run in results.runs
            if run.message is not None
        ],
        "start_values_exact": {
            name: facts.start_value_exact for name, facts in results.models.items()
        },
        "rows": [_row_facts(row) for row in rows],
        "seconds": seconds,
    }


def _row_facts(row: Row) -> dict[str, Any]:
    figures = {name: row.figures.get(figure) for name, figure in FIGURES.items()}
    return {
        "model": row.model,
        "learner": row.trials.learner,
        "label": row.trials.name,
        "heuristic": row.trials.heuristic,
        "done": row.done,
        "failed": row.failed,
        "message": row.message,
        **{name: None if found is None else asdict(found) for name, found in figures.items()},
    }


def _show_rows(results: Results, rows: tuple[Row, ...], folder: str, seconds: float) -> None:
    specification = results.specification
    one_seed = len(specification.seeds) == 1
    for model in specification.models:
        facts = results.models[model.id]
        best = "V* unknown"
        if facts.start_value_exact is not None:
            best = f"V* = {plain(facts.start_value_exact, 5, facts.scale)}"
        elif facts.plan_upper_bound is not None:
            best = f"V* at most {upper(facts.plan_upper_bound, 5, facts.scale)}"
        headings = ("return, last tenth", "regret", "replans", "seconds")
        print_table(
            f"{model.model}, basis {facts.basis}: {best}",
            ("learner", *headings),
            [
                (
                    row.trials.label
                    + (f" [{row.failed} failed]" if row.done and row.failed else ""),
                    *(
                        "failed" if not row.done else _shown(row, figure, one_seed)
                        for figure in FIGURES.values()
                    ),
                )
                for row in rows
                if row.model == model.id
            ],
            right=headings,
            caption=f"{plural(specification.episodes, 'episode')}, {_spread(specification)}",
        )
    print_lines(
        *(
            f"failed: {row.trials.name} on {row.model}: {row.message}"
            for row in rows
            if row.message is not None
        ),
        f"{plural(len(results.runs), 'run')} in {seconds:.1f} s; for figures:",
    )
    print_lines(f"fsmdp report {folder}", soft_wrap=True)


def _spread(specification: Specification) -> str:
    """What stands behind ± in the table."""
    if len(specification.seeds) > 1:
        return f"{len(specification.seeds)} seeds, means with 95 % intervals"
    return "1 seed; ±: chance in the returns of its run, 95 %"


def _shown(row: Row, name: str, one_seed: bool) -> str:
    """A figure with its interval over seeds; the regret of one seed with the chance in its run."""
    from fsmdp.report.curves import Interval, chance_of_regret, returns_of

    found = row.figures.get(name)
    if found is None:
        return ""
    if name == "regret" and one_seed:
        (run,) = row.trials.runs
        return str(Interval(found.mean, chance_of_regret(returns_of(run))))
    return str(found)


@command(
    "report",
    "fsmdp report runs/ring",
    "fsmdp report runs/ring --output pages/ring --json",
)
def report_command(
    runs: Annotated[str, typer.Argument(metavar="RUNS", help="A folder of runs.")],
    output: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Folder to write into; RUNS/report unless given."),
    ] = None,
    figures: Annotated[
        bool, typer.Option(help="Draw figures for papers too, which takes most of the time.")
    ] = True,
    quiet: Quiet = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Turn a folder of runs into one page, figures for papers and a table."""
    from fsmdp.report import write_report

    began = time.perf_counter()
    with working("reading runs", quiet or as_json) as update:

        def progress(done: int, in_all: int) -> None:
            spent = time.perf_counter() - began
            left = spent * (in_all - done) / done
            update(f"drawing figures: {done} of {in_all}, {left:.0f} s left")

        report = write_report(runs, output, figures=figures, progress=progress)
    if as_json:
        facts = {
            "models": list(report.models),
            "report": str(report.path),
            "summary": str(report.summary),
            "figures": [str(path) for path in report.figures],
            "bytes": report.path.stat().st_size,
            "failed": list(report.failed),
            "missing": list(report.missing),
            "seed": seed,  # taken by every command; nothing here is random
            "seconds": time.perf_counter() - began,
        }
        print_json(facts)
        return
    print(report.path)
    if not quiet:
        for ids, what in ((report.failed, "failed"), (report.missing, "not finished")):
            if ids:
                print(f"{what}: {', '.join(ids)}")
