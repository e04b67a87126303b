"""`fsmdp plan`."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsmdp.cli.app import (
    AsJson,
    Model,
    Quiet,
    Seed,
    bases,
    check_output,
    command,
    complete,
    methods,
)
from fsmdp.cli.screen import collect_warnings, episodes_bar, print_facts, print_json, working
from fsmdp.foundation.checks import plural
from fsmdp.foundation.numbers import bound_text, lower, percent, plain, with_error
from fsmdp.foundation.progress import listening

if TYPE_CHECKING:
    from fsmdp.bounds.gap import Line, RelativeGap
    from fsmdp.bounds.plan import Plan

INTERRUPTED = 130

EPISODES_WHEN_INTERRUPTED = 100

SECONDS = 60.0

GROWN = "grown"

OF_PROGRAM = (
    *("functions", "induced_width", "rows", "columns", "iterations"),
    *("objective", "dual_bound"),
)
"""Of the linear program that proves the bound, if one does."""


@command(
    "plan",
    "fsmdp plan sysadmin:ring:40",
    "fsmdp plan rddl:Traffic_CTM_MDP_ippc2011:1 --time-limit 120",
    "fsmdp plan sysadmin:star:8 --basis pairs --output plan.npz",
    "fsmdp plan pump.json --gap 0.05 --time-limit 20 --online",
    "fsmdp plan pump.json --method joint --json",
)
def plan_command(
    model_text: Model,
    basis: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Basis: BASES, or grown, the solver's own.",
            autocompletion=complete(bases),
        ),
    ] = GROWN,
    method: Annotated[
        str,
        typer.Option(metavar="NAME", help="METHODS.", autocompletion=complete(methods)),
    ] = "auto",
    weights: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="States where the bound should be tight: initial or uniform."
        ),
    ] = "initial",
    gap: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Stop when the policy is within this fraction of the bound.",
            min=0,
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POLICY",
            help="A policy to judge and improve on: an action, a plan file, or a function of state "
            "and step by import path. May be given several times.",
        ),
    ] = None,
    episodes: Annotated[
        int, typer.Option(help="Episodes to simulate the policy of other methods for.", min=2)
    ] = 1000,
    seed: Seed = 0,
    time_limit: Annotated[
        float, typer.Option(help="Seconds after which to stop with the best so far.", min=0)
    ] = SECONDS,
    online: Annotated[
        bool,
        typer.Option(
            "--online", help="Also act with rollouts before each decision and report the result."
        ),
    ] = False,
    online_episodes: Annotated[int, typer.Option(help="Episodes to simulate on line.", min=2)] = 30,
    milliseconds: Annotated[
        float, typer.Option(help="Milliseconds for each decision on line.", min=0.1)
    ] = 20.0,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the plan to this NPZ file.")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Plan in a known model: a policy, and a certified bound on how far it is from the best.

    By default the solver tries several ways to a better policy and a tighter bound, and shows each
    as it goes. Ctrl-C ends it and shows the best plan so far; the exit code is then 130.
    """
    from fsmdp.bounds.bellman import state_means
    from fsmdp.bounds.clock import Status
    from fsmdp.io.readers import read_basis, read_model
    from fsmdp.model.basis import Basis
    from fsmdp.solver.plan import find_planner, plan

    began = time.perf_counter()
    model = read_model(model_text)
    check_output(output)
    # SIGTERM ends planning as Ctrl-C does: with the incumbent and the bound.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    functions = None if basis == GROWN else read_basis(model, basis)
    options: dict[str, Any] = {"time_limit": time_limit}
    silent = quiet or as_json
    # What cannot be asked for is refused before a log begins.
    state_means(weights, Basis.singles(model), model)
    given = [_read_given(model, text) for text in policy or ()]
    if method == "auto":
        planner = find_planner(method, options | {"gap": gap, "seed": seed})
        with collect_warnings() as notes, log_shown(model, time_limit, silent) as callback:
            found = plan(model, functions, planner, weights, callback=callback, policies=given)
        facts = _facts_of_solver(found)
    else:
        planner = find_planner(method, options)
        with collect_warnings() as notes, working("planning", silent) as say:
            found = plan(model, functions, planner, weights, policies=given)
            if found.status is Status.INTERRUPTED:
                episodes = min(episodes, EPISODES_WHEN_INTERRUPTED)
            say("simulating the policy")
            facts = _facts_of_simulation(model, found, episodes, seed)
    if output is not None:
        found.save(output)
    if online and found.status is not Status.INTERRUPTED:
        facts |= _facts_online(model, found, online_episodes, milliseconds, seed, silent)
    facts = {
        "model": model_text,
        "seed": seed,
        "status": str(found.status),
        "method": found.method,
        "variables": len(model.variables),
        "actions": model.n_actions,
        "log10_states": model.log10_states,
        **{name: getattr(found.program, name, None) for name in OF_PROGRAM},
        "upper_bound": found.upper_bound,
        "proof": found.bound.proof.kind,
        "trivial_bound": found.bound.trivial,
        "violation": None if found.program is None else found.certificate.violation,
        **facts,
        "outcome": found.outcome,
        "ended": found.record.ended,
        "notes": notes,
        "seconds": time.perf_counter() - began,
        "seconds_by_phase": dict(found.seconds),
        "choices": list(found.record.choices),
    }
    if as_json:
        print_json(facts)
    else:
        _show_plan(model, facts, output)
    if found.status is Status.INTERRUPTED:
        raise typer.Exit(INTERRUPTED)


def _read_given(model: Any, text: str) -> Any:
    """A policy by name, from a plan file, or by import path."""
    from pathlib import Path

    from fsmdp.io.plans import load_plan
    from fsmdp.io.readers import import_function, is_import_path

    if text in model.actions or text == "random":
        return text
    if text.endswith(".npz") or Path(text).is_file():
        return load_plan(text)
    return import_function(text, "--policy") if is_import_path(text) else text


def _facts_of_solver(found: Plan) -> dict[str, Any]:
    known = found.incumbent
    return {
        "policy": "not judged" if known is None else known.name,
        **_facts_of_gap(found.gap),
        "statement": found.statement(),
        "candidates": [asdict(candidate) for candidate in found.record.candidates],
        "log": [asdict(line) for line in found.log],
    }


def _facts_of_simulation(model: Any, found: Plan, episodes: int, seed: int) -> dict[str, Any]:
    from fsmdp.simulation.gap import certified_gap

    judged = certified_gap(model, found, episodes, seed)
    return {
        "policy": found.method,
        **_facts_of_gap(judged.relative),
        "statement": judged.statement(),
        "baselines": {name: runs.mean for name, runs in judged.baselines.items()},
        "log": [],
    }


def _facts_of_gap(gap: RelativeGap | None) -> dict[str, Any]:
    """What is known of the policy; nothing if there was no time to judge it."""
    names = "mean", "standard_error", "lower_limit"
    return {
        **{f"policy_{name}": getattr(gap, name, None) for name in names},
        "level": getattr(gap, "level", None),
        "policy_is_exact": getattr(gap, "exact", False),
        "policy_is_optimal": getattr(gap, "optimal", False),
        "gap": gap,
        "gap_limit": getattr(gap, "relative_limit", None),
    }


def _facts_online(
    model: Any, found: Plan, episodes: int, milliseconds: float, seed: int, silent: bool
) -> dict[str, Any]:
    """What the policy earns with rollouts before each decision; a solved one needs none."""
    from fsmdp.simulation.rollout import rollout

    if found.gap is not None and found.gap.optimal:
        return {"online_mean": found.gap.mean, "online_standard_error": 0.0, "online_episodes": 0}
    online = found.online(model, milliseconds=milliseconds, seed=seed)
    with episodes_bar("acting on line", episodes, silent) as callback:
        runs = rollout(model, online, episodes, seed, progress=lambda done, _: callback(done, ""))
    return {
        "online_mean": runs.mean,
        "online_standard_error": runs.standard_error,
        "online_episodes": episodes,
    }


HEADING = f"{'seconds':>8}  {'policy':>20}  {'bound':>11}  {'gap':>7}  tried"


@contextmanager
def log_shown(model: Any, time_limit: float, silent: bool) -> Iterator[Callable[[Line], None]]:
    """The solver's log, line by line on the error stream: what improved, and what is tried now."""
    from rich.console import Console
    from rich.markup import escape

    if silent:
        yield lambda _: None
        return
    scale = model.largest_size_of_return
    console = Console(stderr=True, emoji=False, highlight=False)
    console.print(f"{model}, at most {plain(time_limit, 6)} s", markup=False, soft_wrap=True)
    console.print(HEADING, markup=False, style="bold")
    if not console.is_terminal:
        with listening(_compiling(lambda text: console.print(text, markup=False))):
            yield lambda line: console.print(row_of(line, scale), markup=False, soft_wrap=True)
        return
    with (
        console.status("starting") as status,
        listening(_compiling(lambda text: status.update(escape(text)))),
    ):

        def callback(line: Line) -> None:
            if line.improved:
                console.print(row_of(line, scale), markup=False, soft_wrap=True)
            status.update(escape(f"{line.seconds:.0f} s, last tried: {line.what}"))

        yield callback


def _compiling(show: Callable[[str], None]) -> Callable[[str], None]:
    """Of what the library logs, only that something is being compiled."""
    return lambda text: show(text) if text.startswith("compiling") else None


def row_of(line: Line, scale: float = 0.0) -> str:
    """A line of the log as text; `scale` is the largest return, which rounding is relative to."""
    policy = ""
    if line.incumbent is not None:
        policy = plain(line.incumbent, 6, scale)
        if line.standard_error:
            policy = with_error(line.incumbent, line.standard_error, scale)
    marks = ("P" if "policy" in line.improved else " ") + ("B" if "bound" in line.improved else " ")
    bound = bound_text(line.upper_bound, line.attained, scale)
    return (
        f"{line.seconds:8.1f}  {policy:>20}  {bound:>11}  {percent(line.gap):>7}  "
        f"{marks} {line.what}"
    )


def _show_plan(model: Any, facts: dict[str, Any], output: str | None) -> None:
    scale = model.largest_size_of_return
    gap = facts["gap"]
    bound = bound_text(facts["upper_bound"], gap is not None and gap.attained, scale)
    earns = "not judged"
    if facts["policy_is_exact"]:
        earns = plain(facts["policy_mean"], 6, scale)
    elif gap is not None and gap.proved:
        earns = f"at least {lower(gap.lower_limit, 6, scale)}"
    elif facts["policy_mean"] is not None:
        earned = with_error(facts["policy_mean"], facts["policy_standard_error"], scale)
        earns = f"{earned} (standard error)"
    online = []
    if facts.get("online_episodes") == 0:
        online.append(("on line", "the policy is optimal, so nothing is simulated"))
    elif "online_mean" in facts:
        earned = with_error(facts["online_mean"], facts["online_standard_error"], scale)
        online.append(("on line", f"{earned} over {plural(facts['online_episodes'], 'episode')}"))
    facts_shown = (
        ("certified upper bound", f"{bound}, by {facts['proof']}"),
        ("policy", facts["policy"]),
        ("policy earns", earns),
        ("gap", _gap_text(gap, facts["statement"], scale)),
        *((("stopped", facts["ended"]),) if facts["ended"] else ()),
        *online,
        *_rows_of_program(facts, scale),
        ("seconds", f"{facts['seconds']:.2f}"),
        ("chosen", "\n".join(facts["choices"])),
        *(("note", note) for note in facts["notes"]),
        *(() if output is None else (("plan", output),)),
    )
    print_facts(str(model), facts_shown)


def _gap_text(gap: RelativeGap | None, statement: str, scale: float) -> str:
    """The gap that the log ends with, and what is established; one percentage, not two."""
    if gap is None or gap.proved:
        return statement
    if gap.lower_limit is None:
        return f"{percent(gap)}; {statement}"
    if gap.relative_limit is None or gap.relative_limit >= 1:
        return statement  # without a percentage
    earns = f"the policy earns at least {lower(gap.lower_limit, 6, scale)}"
    return f"{percent(gap)}; {earns} with probability at least {plain(100 * gap.level, 4)} %"


def _rows_of_program(facts: dict[str, Any], scale: float) -> list[tuple[str, str]]:
    """How the linear program went, where it is what proves the bound."""
    if facts["rows"] is None:
        return [("method", facts["method"])]
    violation = plain(facts["violation"], 2, scale)
    size = f"{plural(facts['functions'], 'function')}, induced width {facts['induced_width']}"
    if facts["rows"]:
        size += f", {plural(facts['rows'], 'row')}"
    return [
        ("violation", f"{violation} (by elimination, over all states)"),
        ("method", f"{facts['method']}; {facts['outcome']}"),
        ("size", size),
    ]
