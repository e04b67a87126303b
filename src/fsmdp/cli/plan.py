"""`fsmdp plan`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from fsmdp.cli.app import app
from fsmdp.cli.options import AsJson, BasisName, ListingCommand, Model, Quiet, Seed, check_output
from fsmdp.cli.screen import print_json, told, working

INTERRUPTED = 130

EPISODES_WHEN_INTERRUPTED = 100


@app.command(
    name="plan",
    cls=ListingCommand,
    epilog="Examples:\n\n[bold]fsmdp plan sysadmin:[/bold][bold]ring:40[/bold]\n\n"
    "[bold]fsmdp plan sysadmin:[/bold][bold]star:8 --basis pairs --output plan.npz[/bold]\n\n"
    "[bold]fsmdp plan pump.json --method joint --json[/bold]",
)
def plan_command(
    model_text: Model,
    basis: BasisName = "singles",
    method: Annotated[
        str,
        typer.Option(help="METHODS."),
    ] = "auto",
    weights: Annotated[
        str, typer.Option(help="States where the bound should be tight: initial or uniform.")
    ] = "initial",
    episodes: Annotated[
        int, typer.Option(help="Episodes to simulate the policy for.", min=2)
    ] = 1000,
    seed: Seed = 0,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds after which to stop with the best bound so far.")
    ] = None,
    output: Annotated[str | None, typer.Option(help="Write the plan to this NPZ file.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Plan in a known model: a policy, and a certified bound on how far it is from the best.

    Ctrl-C ends planning and shows the best bound so far; the exit code is then 130.
    """
    from fsmdp.experiments.catalog import read_basis, read_model
    from fsmdp.planning.auto import plan
    from fsmdp.planning.solution import Status
    from fsmdp.simulation.gap import certified_gap

    began = time.perf_counter()
    model = read_model(model_text)
    check_output(output)
    options: dict[str, Any] = {} if time_limit is None else {"time_limit": time_limit}
    with told() as notes, working("planning", quiet or as_json) as tell:
        found = plan(model, read_basis(model, basis), method, weights, **options)
        if found.status is Status.INTERRUPTED:
            episodes = min(episodes, EPISODES_WHEN_INTERRUPTED)
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
        "dual_bound": found.dual_bound,
        "upper_bound": found.upper_bound,
        "trivial_bound": found.trivial_bound,
        "violation": found.certificate.violation,
        "policy_mean": gap.runs.mean,
        "policy_standard_error": gap.runs.standard_error,
        "policy_lower_limit": gap.lower_limit,
        "level": gap.level,
        "baselines": {name: runs.mean for name, runs in gap.baselines.items()},
        "relative_gap": gap.relative,
        "relative_gap_limit": gap.relative_limit,
        "statement": gap.statement(),
        "outcome": found.outcome,
        "notes": notes,
        "seconds": time.perf_counter() - began,
        "seconds_by_phase": dict(found.seconds),
        "choices": list(found.effort.choices),
    }
    if as_json:
        print_json(facts)
    else:
        _show_plan(model, facts, output)
    if found.status is Status.INTERRUPTED:
        raise typer.Exit(INTERRUPTED)


def _show_plan(model: Any, facts: dict[str, Any], output: str | None) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=str(model), show_header=False, min_width=60)
    table.add_column(style="bold")
    table.add_column()
    error = facts["policy_standard_error"]
    for name, text in (
        ("certified upper bound", f"{facts['upper_bound']:.6g}"),
        ("policy earns", f"{facts['policy_mean']:.6g} ± {error:.2g} (standard error)"),
        ("gap", facts["statement"]),
        ("violation", f"{facts['violation']:.1e} (by elimination, over all states)"),
        ("method", f"{facts['method']}; {facts['outcome']}"),
        (
            "size",
            f"{facts['functions']} functions, induced width {facts['induced_width']}, "
            f"{facts['rows']} rows",
        ),
        ("seconds", f"{facts['seconds']:.2f}"),
        ("chosen", "\n".join(facts["choices"])),
        *(("note", note) for note in facts["notes"]),
    ):
        table.add_row(name, escape(text))
    if output is not None:
        table.add_row("plan", escape(output))
    Console(emoji=False).print(table)
