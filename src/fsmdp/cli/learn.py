"""`fsmdp learn`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsmdp.cli.app import (
    OF_LEARNERS,
    AsJson,
    BasisName,
    Model,
    Quiet,
    Seed,
    check_output,
    command,
    complete,
    learners,
)
from fsmdp.cli.screen import episodes_bar, print_facts, print_json, print_lines
from fsmdp.errors import ModelError
from fsmdp.foundation.numbers import plain, upper, with_error

if TYPE_CHECKING:
    import polars

    from fsmdp.experiments.specification import Specification
    from fsmdp.learning.learners.registry import LearnerEntry


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
    """Run a learner, which is given the structure but no probabilities, on episodes of a model."""
    from fsmdp.experiments.local import use_one_thread

    use_one_thread()
    from fsmdp.experiments.learners import find_learner, resolve_options

    began = time.perf_counter()
    if checkpoint is not None and output is not None:
        raise ModelError(
            "--checkpoint and --output: expected one of them, since a folder keeps the checkpoint "
            "of its own run; leave one out."
        )
    check_output(checkpoint)
    given = _given(option or [])
    entry = find_learner(learner, "--learner")
    options = resolve_options(entry, given, "--option")
    try:
        with episodes_bar("learning", episodes, quiet or as_json) as show:
            if output is None:
                found = _learn(
                    model_text, entry, options, basis, episodes, seed, checkpoint, _noting(show)
                )
            else:
                asked = _specify(model_text, learner, given, basis, episodes, seed)
                found = _learn_in_folder(asked, output, _noting(show))
    except KeyboardInterrupt:
        kept = checkpoint or output
        remedy = f"the same command continues from {kept}" if kept else "nothing was kept"
        print(f"fsmdp: interrupted; {remedy}.", file=sys.stderr)
        raise typer.Exit(130) from None
    named = {name: options[name] for name in given}
    asked_for = {"model": model_text, "label": entry.label(named), "options": options, "seed": seed}
    figures = asked_for | found | {"seconds": time.perf_counter() - began}
    if as_json:
        print_json(figures)
    else:
        _show_run(figures, output)


def _given(options: list[str]) -> dict[str, str]:
    """Options of the learner by name."""

    given: dict[str, str] = {}
    for one in options:
        name, separator, value = one.partition("=")
        if not separator or name in ("learner", "label") or name in given:
            raise ModelError(
                f"--option {one!r}: expected key=value with each of the learner's options at most "
                "once, such as preset=paper."
            )
        given[name] = value
    return given


def _learn(
    model_text: str,
    entry: LearnerEntry,
    options: dict[str, Any],
    basis: str,
    episodes: int,
    seed: int,
    checkpoint: str | None,
    watch: Any,
) -> dict[str, Any]:
    """Figures of a run in this process."""
    from fsmdp.experiments.folder import check_horizon, exact_start_value
    from fsmdp.experiments.learners import build_learner
    from fsmdp.io.readers import read_basis, read_model
    from fsmdp.learning.run import learn

    model = read_model(model_text)
    check_horizon(model, model_text, "model")
    best = exact_start_value(model_text, model)
    made = build_learner(entry.name, model, read_basis(model, basis), options, seed)
    history = learn(
        model,
        made,
        episodes,
        seed,
        checkpoint=checkpoint,
        watch=lambda returns: watch(returns, best),
    )
    planning = float(history.seconds_planning.sum())
    frame = history.frame(best).fill_nan(None)
    return _figures(frame, best, history.learner, history.heuristic, planning)


def _specify(
    model_text: str, learner: str, given: dict[str, str], basis: str, episodes: int, seed: int
) -> Specification:
    """The run as a sweep of one."""
    from fsmdp.experiments.specification import specify

    return specify(
        {
            "name": model_text,
            "episodes": episodes,
            "seeds": [seed],
            "models": [{"model": model_text, "basis": basis}],
            "learners": [{"learner": learner, **given}],
        }
    )


def _learn_in_folder(asked: Specification, output: str, watch: Any) -> dict[str, Any]:
    """Figures of a run that is kept as `compare` would keep it."""
    from fsmdp.experiments.runner import learn_in_folder

    best, run = learn_in_folder(asked, output, watch)
    facts = run.facts
    return _figures(run.episodes, best, facts["describe"], run.heuristic, facts["seconds_planning"])


def _noting(show: Any) -> Any:
    """What is seen of a run under way: episodes, and the regret so far where V* is known."""

    def watch(returns: Any, start_value: float | None) -> None:
        note = f"mean return {plain(returns[-100:].mean(), 4)}"
        if start_value is not None:
            note = f"regret {plain(start_value * len(returns) - returns.sum(), 4)}, {note}"
        show(len(returns), note)

    return watch


def _figures(
    frame: polars.DataFrame, best: float | None, learner: str, heuristic: bool, planning: float
) -> dict[str, Any]:
    from fsmdp.report.curves import chance_of_regret, mean_return_last

    last = frame[-1].row(0, named=True)
    returns = frame["returns"].to_numpy()
    return {
        "learner": learner,
        "heuristic": heuristic,
        "episodes": len(frame),
        "replans": int(frame["replans"].sum()),
        "mean_return_last": mean_return_last(returns),
        "start_value_exact": best,
        "regret": last["regret"],
        "regret_half_width": None if last["regret"] is None else chance_of_regret(returns),
        "observable_regret_bound": last["observable_regret_bound"],
        "seconds_planning": planning,
    }


def _regret(figures: dict[str, Any]) -> str:
    regret, half = figures["regret"], figures["regret_half_width"]
    if regret is None:
        return "not known without V*"
    if half is None:
        return plain(regret, 6)
    return f"{with_error(regret, half)} (chance in the returns, 95 %)"


def _show_run(figures: dict[str, Any], output: str | None) -> None:
    best, most = figures["start_value_exact"], figures["observable_regret_bound"]
    heuristic = " (heuristic: no guarantee)" if figures["heuristic"] else ""
    facts = (
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
    )
    print_facts(figures["model"], facts)
    if output is not None:
        print_lines(f"for figures: fsmdp report {output}", soft_wrap=True)
