"""The command line."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="fsmdp",
    help="Planning and learning in factored-state MDPs.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
)


@app.callback()
def commands() -> None:
    """Planning and learning in factored-state MDPs."""


@app.command(
    epilog="Examples: [bold]fsmdp demo[/bold], [bold]fsmdp demo --machines 6 --json[/bold]"
)
def demo(
    machines: Annotated[int, typer.Option(help="Machines in the ring.", min=1, max=10)] = 8,
    episodes: Annotated[
        int, typer.Option(help="Episodes to simulate per policy.", min=2, max=10_000_000)
    ] = 20_000,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Solve a ring of machines exactly and check the values by simulation."""
    from fsmdp.domains import sysadmin
    from fsmdp.model.flat import evaluate_exactly, solve_exactly
    from fsmdp.simulation.rollout import rollout

    model = sysadmin(machines, topology="ring")
    began = time.perf_counter()
    exact = solve_exactly(model)
    initial = exact.flat.initial()
    rows: list[dict[str, Any]] = []
    for name, policy in (("optimal", exact), ("random", "random"), ("never reboot", "wait")):
        value = float(initial @ evaluate_exactly(model, policy))
        solved = time.perf_counter()
        runs = rollout(model, policy, episodes, seed)
        rows.append(
            {
                "policy": name,
                "exact": value,
                "mean": runs.mean,
                "standard_error": runs.standard_error,
                "steps_per_second": episodes * runs.steps / (time.perf_counter() - solved),
            }
        )
    seconds = time.perf_counter() - began
    if as_json:
        print(json.dumps({"model": repr(model), "policies": rows, "seconds": seconds}))
        return
    _show_demo(model, rows, episodes, seconds)


def _show_demo(model: Any, rows: list[dict[str, Any]], episodes: int, seconds: float) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"A ring of {len(model.variables)} machines over {model.horizon} steps",
        caption=f"{model.n_states} states solved exactly, {episodes:,} episodes each, "
        f"{seconds:.1f} s; the best conceivable return is {model.horizon}",
    )
    table.add_column("policy")
    for heading in ("exact value", "simulated mean", "error in standard errors"):
        table.add_column(heading, justify="right")
    for row in rows:
        error = row["standard_error"]
        deviation = (row["mean"] - row["exact"]) / error if error > 0 else 0.0
        table.add_row(
            row["policy"],
            f"{row['exact']:.4f}",
            f"{row['mean']:.4f} ± {row['standard_error']:.4f}",
            f"{deviation:+.1f}",
        )
    Console(emoji=False).print(table)


@app.command(
    name="plan",
    epilog="Examples: [bold]fsmdp plan sysadmin:[/bold][bold]ring:40[/bold], "
    "[bold]fsmdp plan sysadmin:[/bold][bold]star:8 --basis pairs --output plan.npz[/bold], "
    "[bold]fsmdp plan pump.json --method joint --json[/bold]",
)
def plan_command(
    model_text: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A domain with options (sysadmin:[bold]ring[/bold]:8) or a JSON model file.",
        ),
    ],
    basis: Annotated[str, typer.Option(help="Basis: singles or pairs.")] = "singles",
    method: Annotated[
        str,
        typer.Option(help="auto, stagewise, joint, cutting-planes or ellipsoid."),
    ] = "auto",
    weights: Annotated[
        str, typer.Option(help="States the bound should be tight at: initial or uniform.")
    ] = "initial",
    episodes: Annotated[
        int, typer.Option(help="Episodes to simulate the policy for.", min=2)
    ] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.", min=0)] = 0,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds after which the best bound so far is reported.")
    ] = None,
    output: Annotated[str | None, typer.Option(help="Write the plan to this NPZ file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Plan in a known model: a policy, and a certified bound on how far it is from the best."""
    from fsmdp.planning.auto import plan
    from fsmdp.simulation.gap import certified_gap

    began = time.perf_counter()
    model = read_model(model_text)
    _check_output(output)
    options: dict[str, Any] = {} if time_limit is None else {"time_limit": time_limit}
    with _working("planning", quiet or as_json) as tell:
        found = plan(model, read_basis(model, basis), method, weights, **options)
        tell("simulating the policy")
        gap = certified_gap(model, found, episodes, seed)
    if output is not None:
        found.save(output)
    facts = {
        "status": str(found.status),
        "method": found.method,
        "variables": len(model.variables),
        "actions": len(model.actions),
        "log10_states": model.log10_states,
        "functions": len(found.basis),
        "induced_width": found.induced_width,
        "rows": found.rows,
        "columns": found.columns,
        "iterations": found.iterations,
        "objective": found.objective,
        "upper_bound": found.upper_bound,
        "violation": found.certificate.violation,
        "policy_mean": gap.runs.mean,
        "policy_standard_error": gap.runs.standard_error,
        "relative_gap": gap.relative,
        "seconds": time.perf_counter() - began,
        "seconds_by_phase": dict(found.seconds),
        "choices": list(found.effort.choices),
    }
    if as_json:
        print(json.dumps(facts))
    else:
        _show_plan(model, facts, output)


def _check_output(path: str | None) -> None:
    """Refuse, before hours of work, a path that cannot be written in the end."""
    from pathlib import Path

    from fsmdp.errors import ModelError

    if path is None:
        return
    if not Path(path).parent.is_dir() or Path(path).is_dir():
        raise ModelError(f"cannot write {path!r}: expected a file in a folder that exists.")


def _show_plan(model: Any, facts: dict[str, Any], output: str | None) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=str(model), show_header=False, min_width=60)
    table.add_column(style="bold")
    table.add_column()
    error = facts["policy_standard_error"]
    for name, text in (
        ("certified upper bound", f"{facts['upper_bound']:.6g}"),
        ("policy earns", f"{facts['policy_mean']:.6g} ± {error:.2g}"),
        ("gap", f"{100 * facts['relative_gap']:.3g} % of the bound"),
        ("violation", f"{facts['violation']:.1e} (by elimination, over all states)"),
        ("method", f"{facts['method']}, {facts['status']}"),
        (
            "size",
            f"{facts['functions']} functions, induced width {facts['induced_width']}, "
            f"{facts['rows']} rows",
        ),
        ("seconds", f"{facts['seconds']:.2f}"),
        ("chosen", "\n".join(facts["choices"])),
    ):
        table.add_row(name, text)
    if output is not None:
        table.add_row("plan", output)
    Console(emoji=False).print(table)


def read_model(text: str) -> Any:
    """A model from what a user types: a domain with options, or a file."""
    from pathlib import Path

    from fsmdp.domains import build_domain
    from fsmdp.model.files import load

    if text.endswith(".json") or Path(text).is_file():
        return load(text)
    return build_domain(text)


def read_basis(model: Any, text: str) -> Any:
    """One of the ready-made bases by name."""
    from fsmdp.errors import ModelError
    from fsmdp.model.basis import Basis

    made = {"singles": Basis.singles, "pairs": Basis.pairs}
    if text not in made:
        raise ModelError(f"unknown basis {text!r}; expected {' or '.join(made)}.")
    return made[text](model)


@contextmanager
def _working(text: str, silent: bool) -> Iterator[Callable[[str], None]]:
    """A spinner on the error stream that shows what the library logs while it works."""
    from rich.console import Console

    console = Console(stderr=True)
    if silent or not console.is_terminal:
        yield lambda _: None
        return
    with console.status(text) as status:

        class Show(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                status.update(f"{text}: {record.getMessage()}")

        log, show = logging.getLogger("fsmdp"), Show()
        level = log.level
        log.addHandler(show)
        log.setLevel(logging.INFO)
        try:
            yield status.update
        finally:
            log.removeHandler(show)
            log.setLevel(level)


def main() -> None:
    """Run the command line; a user's mistake is one message, never a traceback."""
    from fsmdp.errors import FsmdpError, SizeError

    try:
        app()
    except FsmdpError as error:
        print(f"fsmdp: {error}", file=sys.stderr)
        sys.exit(3 if isinstance(error, SizeError) else 2)
    except KeyboardInterrupt:
        print("fsmdp: interrupted", file=sys.stderr)
        sys.exit(130)
