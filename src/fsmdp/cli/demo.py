"""`fsmdp demo`."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer

from fsmdp.cli.app import app
from fsmdp.cli.options import AsJson, Seed


@app.command(
    epilog="Examples: [bold]fsmdp demo[/bold], [bold]fsmdp demo --machines 6 --json[/bold]"
)
def demo(
    machines: Annotated[int, typer.Option(help="Machines in the ring.", min=1, max=10)] = 8,
    episodes: Annotated[
        int, typer.Option(help="Episodes to simulate per policy.", min=2, max=10_000_000)
    ] = 20_000,
    seed: Seed = 0,
    as_json: AsJson = False,
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
