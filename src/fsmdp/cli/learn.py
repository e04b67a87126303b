"""`fsmdp learn`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsmdp.cli.app import AsJson, BasisName, Model, Quiet, Seed, check_output, command
from fsmdp.cli.lists import OF_LEARNERS, complete, learners
from fsmdp.cli.screen import episodes_bar, print_json
from fsmdp.foundation.numbers import plain, upper, with_error

if TYPE_CHECKING:
    from fsmdp.experiments.specification import Specification
    from fsmdp.experiments.store import Run


@command(
    "learn",
    "fsmdp learn sysadmin:ring:8 --basis pairs",
    "fsmdp learn pump.json --learner psrl --option known_rewards=true --json",
    "fsmdp learn sysadmin:ring:60 --output runs/ring",
    more=f"Learners, with the options that each takes:\n\n{OF_LEARNERS}",
)
def learn_command(
    model_text: Model,
    learner: Annotated[
        str,
        typer.Option(metavar="NAME", help="LEARNERS.", autocompletion=complete(learners)),
    ] = "ucrl",
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="An option of the learner, listed below; may be repeated."
        ),
    ] = None,
    basis: BasisName = "singles",
    episodes: Annotated[int, typer.Option(help="Episodes to learn for.", min=1)] = 300,
    seed: Seed = 0,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="NPZ file to save to, and to resume from if it exists."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Folder for the run's files, for `fsmdp report`."),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a learner, which is told the structure but no probabilities, on episodes of a model."""
    from fsmdp.experiments.executors.local import use_one_thread

    use_one_thread()
    from fsmdp.errors import ModelError
    from fsmdp.experiments.runner import learn_once

    began = time.perf_counter()
    if checkpoint is not None and output is not None:
        raise ModelError(
            "--checkpoint and --output: expected one of them, since a folder keeps the checkpoint "
            "of its own run; leave one out."
        )
    check_output(checkpoint)
    asked = _specify(model_text, learner, option or [], basis, episodes, seed)
    try:
        with episodes_bar("learning", episodes, quiet or as_json) as show:
            best, run = learn_once(asked, output, checkpoint, _noting(show))
    except KeyboardInterrupt:
        kept = checkpoint or output
        remedy = f"the same command continues from {kept}" if kept else "nothing was kept"
        print(f"fsmdp: interrupted; {remedy}.", file=sys.stderr)
        raise typer.Exit(130) from None
    found = _figures(model_text, best, run, time.perf_counter() - began)
    if as_json:
        print_json(found)
    else:
        _show_run(found, output)


def _specify(
    model_text: str, learner: str, options: list[str], basis: str, episodes: int, seed: int
) -> Specification:
    from fsmdp.errors import ModelError
    from fsmdp.experiments.learners import find_learner, resolve_options
    from fsmdp.experiments.reading import specify

    given: dict[str, Any] = {}
    for one in options:
        name, separator, value = one.partition("=")
        if not separator or name in ("learner", "label") or name in given:
            raise ModelError(
                f"--option {one!r}: expected key=value with each of the learner's options at most "
                "once, such as preset=paper."
            )
        given[name] = value
    resolve_options(find_learner(learner, "--learner"), given, "--option")
    return specify(
        {
            "name": model_text,
            "episodes": episodes,
            "seeds": [seed],
            "models": [{"model": model_text, "basis": basis}],
            "learners": [{"learner": learner, **given}],
        }
    )


def _noting(show: Any) -> Any:
    """What is seen of a run under way: episodes, and the regret so far where V* is known."""

    def watch(returns: Any, start_value: float | None) -> None:
        note = f"mean return {plain(returns[-100:].mean(), 4)}"
        if start_value is not None:
            note = f"regret {plain(start_value * len(returns) - returns.sum(), 4)}, {note}"
        show(len(returns), note)

    return watch


def _figures(
    model_text: str, start_value: float | None, run: Run, seconds: float
) -> dict[str, Any]:
    from fsmdp.report.summary import chance_of_regret, mean_return_last

    last = run.episodes[-1].row(0, named=True)
    return {
        "model": model_text,
        "learner": run.facts["describe"],
        "label": run.label,
        "heuristic": run.heuristic,
        "options": run.facts["options"],
        "seed": run.seed,
        "episodes": len(run.episodes),
        "replans": int(run.episodes["replans"].sum()),
        "mean_return_last": mean_return_last(run),
        "start_value_exact": start_value,
        "regret": last["regret"],
        "regret_half_width": None if last["regret"] is None else chance_of_regret(run),
        "observable_regret_bound": last["observable_regret_bound"],
        "seconds_planning": run.facts["seconds_planning"],
        "seconds": seconds,
    }


def _regret(figures: dict[str, Any]) -> str:
    regret, half = figures["regret"], figures["regret_half_width"]
    if regret is None:
        return "not known without V*"
    if half is None:
        return plain(regret, 6)
    return f"{with_error(regret, half)} (chance in the returns, 95 %)"


def _show_run(figures: dict[str, Any], output: str | None) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    best, most = figures["start_value_exact"], figures["observable_regret_bound"]
    table = Table(title=escape(figures["model"]), show_header=False, min_width=60)
    table.add_column(style="bold")
    table.add_column()
    heuristic = " (heuristic: no guarantee)" if figures["heuristic"] else ""
    for name, text in (
        ("learner", figures["learner"] + heuristic),
        ("episodes", f"{figures['episodes']}"),
        ("mean return, last tenth", plain(figures["mean_return_last"], 6)),
        ("best possible, V*", "not known at this size" if best is None else plain(best, 6)),
        ("regret", _regret(figures)),
        (
            "observable regret bound",
            "none: this learner claims no values" if most is None else upper(most, 6),
        ),
        ("replans", f"{figures['replans']}"),
        ("seconds", f"{figures['seconds']:.2f}, planning {figures['seconds_planning']:.2f}"),
    ):
        table.add_row(name, escape(text))
    console = Console(emoji=False)
    console.print(table)
    if output is not None:
        hint = f"for figures: fsmdp report {output}"
        console.print(hint, markup=False, highlight=False, soft_wrap=True)
