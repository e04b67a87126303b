"""`fsmdp simulate`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from fsmdp.cli.app import app
from fsmdp.cli.options import AsJson, BasisName, ListingCommand, Model, Quiet, Seed
from fsmdp.cli.screen import episodes_bar, print_json, working


@app.command(
    name="simulate",
    cls=ListingCommand,
    epilog="Examples:\n\n[bold]fsmdp simulate sysadmin:[/bold][bold]ring:8[/bold]\n\n"
    "[bold]fsmdp simulate sysadmin:[/bold][bold]ring:8 --policy wait --episodes 100000[/bold]\n\n"
    "[bold]fsmdp simulate pump.json --policy plan.npz --json[/bold]\n\n"
    "[bold]fsmdp simulate pump.json --policy plan.npz --online 20 --episodes 50[/bold]",
)
def simulate_command(
    model_text: Model,
    policy: Annotated[
        str,
        typer.Option(
            help="random, plan (made now), optimal (small models), the name of an action to "
            "repeat, or a plan file written by fsmdp plan --output."
        ),
    ] = "random",
    basis: BasisName = "singles",
    episodes: Annotated[int, typer.Option(help="Episodes to simulate.", min=2)] = 1000,
    online: Annotated[
        float | None,
        typer.Option(
            help="Milliseconds of rollouts over the policy before each decision.", min=0.1
        ),
    ] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a policy: mean return, standard error, and speed."""
    from fsmdp.experiments.catalog import read_model
    from fsmdp.simulation.rollout import rollout

    began = time.perf_counter()
    silent = quiet or as_json
    with working("preparing the policy", silent):
        model = read_model(model_text)
        chosen = _read_policy(model, policy, basis)
        if online is not None:
            from fsmdp.solver.rollouts import Rollouts

            chosen = Rollouts(model, chosen, milliseconds=online, seed=seed)
        else:
            rollout(model, chosen, 2, seed)  # compiles what is timed below
    prepared = time.perf_counter()
    with episodes_bar("simulating", episodes, silent) as tell:
        runs = rollout(model, chosen, episodes, seed, progress=lambda done, _: tell(done, ""))
    seconds = time.perf_counter() - prepared
    facts: dict[str, Any] = {
        "policy": policy,
        "online_milliseconds": online,
        "episodes": episodes,
        "steps": runs.steps,
        "mean": runs.mean,
        "standard_error": runs.standard_error,
        "lowest": float(runs.returns.min()),
        "highest": float(runs.returns.max()),
        "steps_per_second": episodes * runs.steps / seconds,
        "seconds": time.perf_counter() - began,
    }
    if as_json:
        print_json(facts)
        return
    from rich.console import Console

    how = policy if online is None else f"{policy}, with {online:g} ms of rollouts a decision"
    Console(emoji=False).print(
        f"{model}\n{how}: {runs.mean:.6g} ± {runs.standard_error:.2g} (standard error) over "
        f"{episodes:,} episodes of {runs.steps} steps (from {facts['lowest']:.6g} to "
        f"{facts['highest']:.6g}), "
        f"{facts['steps_per_second']:,.0f} steps/s",
        highlight=False,
        markup=False,
    )


MOST_NAMED = 1000
"""Actions that are named in a message; of more, it is said what they are made of."""


def _read_policy(model: Any, text: str, basis: str) -> Any:
    from pathlib import Path

    from fsmdp.errors import ModelError
    from fsmdp.exact.solve import solve_exactly
    from fsmdp.experiments.catalog import read_basis
    from fsmdp.foundation.checks import show, show_names
    from fsmdp.planning.files import load_plan
    from fsmdp.solver.plan import plan

    if text in model.actions:
        return text
    if text == "plan":
        return plan(model, read_basis(model, basis))
    if text == "optimal":
        return solve_exactly(model)
    if text.endswith(".npz") or Path(text).is_file():
        return load_plan(text)
    if text == "random":
        return text
    raise ModelError(
        f"unknown policy {show(text)}; expected random, plan, optimal, a plan file (.npz), or one "
        f"of {show_names(model.actions) if model.n_actions < MOST_NAMED else show(model.actions)}."
    )
