"""The command line: `fsmdp demo` for now."""

from __future__ import annotations

import json
import sys
import time
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
    machines: Annotated[int, typer.Option(help="Machines in the ring.", min=1)] = 8,
    episodes: Annotated[int, typer.Option(help="Episodes to simulate per policy.", min=2)] = 20_000,
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
        deviation = (row["mean"] - row["exact"]) / row["standard_error"]
        table.add_row(
            row["policy"],
            f"{row['exact']:.4f}",
            f"{row['mean']:.4f} ± {row['standard_error']:.4f}",
            f"{deviation:+.1f}",
        )
    Console().print(table)


def main() -> None:
    """Run the command line; a user's mistake is one message, never a traceback."""
    from fsmdp.errors import FsmdpError, SizeError

    try:
        app()
    except FsmdpError as error:
        print(f"fsmdp: {error}", file=sys.stderr)
        sys.exit(3 if isinstance(error, SizeError) else 2)
    except KeyboardInterrupt:
        sys.exit(130)
