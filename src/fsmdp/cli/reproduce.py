"""`fsmdp reproduce` and `fsmdp ippc`: the paper, and the scoreboard of the competitions."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from fsmdp.cli.app import (
    Address,
    AsJson,
    ExecutorName,
    Quiet,
    Seed,
    claims,
    command,
    complete,
    complete_problem,
)
from fsmdp.cli.screen import print_json, print_table, resumable, working
from fsmdp.foundation.checks import plural
from fsmdp.foundation.numbers import bound_text, plain, with_error

if TYPE_CHECKING:
    from fsmdp.reproduction.ippc import Problem, Result


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
            autocompletion=complete(claims),
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
    print_table(
        "The paper, claim by claim",
        ("claim", "verdict", "because"),
        [
            (one.claim.title, str(one.judgement.verdict), one.judgement.reason)
            for one in done.findings
        ],
        show_lines=True,
    )
    print(done.page)


@command(
    "ippc",
    "fsmdp ippc Traffic:1 Elevators --seconds 20",
    "fsmdp ippc published --output runs/ippc --page docs/ippc.md",
    "fsmdp ippc published --executor ray --workers 16",
    "fsmdp ippc EarthObservation-2018:1 (2018 is all 140 problems of that year)",
)
def ippc_command(
    problems: Annotated[
        list[str],
        typer.Argument(
            metavar="PROBLEM",
            help="Domains (Traffic), instances (Traffic:[bold]1[/bold]), published, all (of 2011 "
            "and 2014), or 2018.",
            autocompletion=complete_problem,
        ),
    ],
    seconds: Annotated[float, typer.Option(help="Seconds to plan each problem.", min=0)] = 60.0,
    episodes: Annotated[int, typer.Option(help="Episodes to simulate off line.", min=2)] = 1000,
    online_episodes: Annotated[
        int, typer.Option(help="Episodes to simulate on line, with rollouts at every step.", min=0)
    ] = 0,
    milliseconds: Annotated[
        float, typer.Option(help="Milliseconds for each decision on line.", min=0.1)
    ] = 100.0,
    output: Annotated[
        str, typer.Option(metavar="FOLDER", help="Folder for the results.")
    ] = "runs/ippc",
    page: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write all results of the folder to this Markdown page."),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Problems to plan at a time; 1 gives each all cores.", min=1)
    ] = 1,
    executor: ExecutorName = "local",
    address: Address = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Plan problems of the planning competitions and compare with published planners.

    Run again, it does only what is missing; Ctrl-C loses only the problem in progress.
    """
    from dataclasses import asdict

    from fsmdp.reproduction import ippc

    settings = ippc.Settings(seconds, episodes, online_episodes, milliseconds, seed)
    wanted = ippc.read_problems(problems)
    silent = quiet or as_json

    def update(problem: Problem, result: Result) -> None:
        if not silent:
            print(_line(problem, result), file=sys.stderr, flush=True)

    if not silent:
        count = plural(len(wanted), "problem")
        print(f"{count}, {plain(seconds, 6)} s of planning each, in {output}", file=sys.stderr)
    with resumable(output):
        found = ippc.run_problems(wanted, settings, output, executor, workers, address, update)
    if page is not None:
        command = f"fsmdp ippc {' '.join(problems)} --seconds {seconds:g}"
        if online_episodes:
            command += f" --online-episodes {online_episodes}"
        ippc.write_page(ippc.read_results(output), page, f"`{command}`")
    failed = [str(problem) for problem, result in found.items() if "error" in result]
    offline, online = ippc.scores(found, "mean"), ippc.scores(found, "online_mean")
    if as_json:
        rows = [asdict(problem) | dict(result) for problem, result in found.items()]
        print_json(
            {
                "models": [str(problem) for problem in found],
                "seed": seed,
                "results": rows,
                "mean_score": _mean(offline),
                "online": _mean(online),
            }
        )
    else:
        for problem, result in found.items():
            print(_line(problem, result))
        for name, values in (("off line", offline), ("on line", online)):
            if values:
                print(
                    f"mean score {name}: {_mean(values):.3f} over {plural(len(values), 'problem')}"
                )
    if failed:
        print(f"fsmdp: {len(failed)} failed: {', '.join(failed)}", file=sys.stderr)
        raise typer.Exit(1)


def _mean(values: dict[Problem, float]) -> float | None:
    return sum(values.values()) / len(values) if values else None


def _line(problem: Problem, result: Result) -> str:
    from fsmdp.reproduction.ippc import SCALE, known_results

    if "error" in result:
        return f"{problem}: {result['error']}"
    known = known_results().get(problem)
    score = "" if known is None else f", score {known.score(result['mean']):.2f}"
    mean = with_error(result["mean"], result["standard_error"], SCALE)
    bound = bound_text(result["upper_bound"], result["exact"], SCALE, 5)
    line = (
        f"{problem}: {mean}, no policy more than {bound} "
        f"({result['policy']}, {result['seconds']:.0f} s{score})"
    )
    if "online_mean" in result:
        live = "" if known is None else f", score {known.score(result['online_mean']):.2f}"
        played = with_error(result["online_mean"], result["online_standard_error"], SCALE)
        line += f"; on line {played}{live}"
    return line
