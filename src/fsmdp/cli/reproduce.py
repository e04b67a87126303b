"""`fsmdp reproduce`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from fsmdp.cli import lists
from fsmdp.cli.app import AsJson, Quiet, Seed, command
from fsmdp.cli.screen import print_json, resumable, working


@command(
    "reproduce",
    "fsmdp reproduce",
    "fsmdp reproduce --only oracle --only regret",
    "fsmdp reproduce --full --output reproduction-full",
)
def reproduce_command(
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLAIM",
            help="Only this claim; may be given several times: CLAIMS.",
            autocompletion=lists.complete(lists.claims),
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="The large form: an hour or more.")] = False,
    output: Annotated[
        str, typer.Option(metavar="FOLDER", help="Folder to write into.")
    ] = "reproduction",
    again: Annotated[
        bool, typer.Option("--again", help="Also run claims whose results are there already.")
    ] = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the paper's claims one by one, judge them by their numbers, and write a page."""
    from fsmdp.reproduction.claim import Form
    from fsmdp.reproduction.reproduce import reproduce

    began = time.perf_counter()
    with (
        resumable(output, "finished claims are", "with the next"),
        working("reproducing", quiet or as_json) as update,
    ):
        done = reproduce(
            output,
            form=Form.FULL if full else Form.SMALL,
            only=tuple(only or ()),
            seed=seed,
            again=again,
            progress=lambda number, in_all, text: update(
                f"claim {min(number + 1, in_all)} of {in_all}, {text}, "
                f"{time.perf_counter() - began:.0f} s so far"
            ),
        )
    if as_json:
        facts = {
            "seed": seed,
            "page": str(done.page),
            "claims": [
                {
                    "name": one.claim.name,
                    "verdict": str(one.judgement.verdict),
                    "reason": one.judgement.reason,
                    "seconds": one.seconds,
                }
                for one in done.findings
            ],
            "seconds": time.perf_counter() - began,
        }
        print_json(facts)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="The paper, claim by claim", show_lines=True)
    for heading in ("claim", "verdict", "because"):
        table.add_column(heading)
    for one in done.findings:
        table.add_row(one.claim.title, str(one.judgement.verdict), one.judgement.reason)
    console = Console(emoji=False, markup=False)
    console.print(table)
    print(done.page)
