"""`fsmdp report`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from fsmdp.cli.app import AsJson, Quiet, Seed, command
from fsmdp.cli.screen import print_json, working


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
