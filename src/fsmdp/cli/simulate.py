"""`fsmdp simulate`."""

import time
from typing import Annotated, Any

import typer

from fsmdp.cli.app import AsJson, BasisName, Model, Quiet, Seed, command, complete, policies
from fsmdp.cli.screen import episodes_bar, print_json, print_lines, working
from fsmdp.foundation.checks import plural, show, show_names
from fsmdp.foundation.numbers import plain, with_error


@command(
    "simulate",
    "fsmdp simulate sysadmin:ring:8",
    "fsmdp simulate sysadmin:ring:8 --policy wait --episodes 100000",
    "fsmdp simulate pump.json --policy plan.npz --json",
    "fsmdp simulate pump.json --policy plan.npz --online 20 --episodes 50",
)
def simulate_command(
    model_text: Model,
    policy: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            help="random, plan (made now), optimal (small models), the name of an action to "
            "repeat, or a plan file written by fsmdp plan --output.",
            autocompletion=complete(policies),
        ),
    ] = "random",
    basis: BasisName = "singles",
    episodes: Annotated[int, typer.Option(help="Episodes to simulate.", min=2)] = 1000,
    online: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Milliseconds of rollouts over the policy before each decision.",
            min=0.1,
        ),
    ] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a policy: mean return, standard error, and speed."""
    from fsmdp.io.readers import read_model
    from fsmdp.simulation.rollout import rollout

    began = time.perf_counter()
    silent = quiet or as_json
    with working("preparing the policy", silent):
        model = read_model(model_text)
        chosen = _read_policy(model, policy, basis)
        if online is not None:
            from fsmdp.online.rollouts import Rollouts

            chosen = Rollouts(model, chosen, milliseconds=online, seed=seed)
        else:
            rollout(model, chosen, 2, seed)  # compiles what is timed below
    prepared = time.perf_counter()
    with episodes_bar("simulating", episodes, silent) as update:
        runs = rollout(model, chosen, episodes, seed, progress=lambda done, _: update(done, ""))
    seconds = time.perf_counter() - prepared
    facts: dict[str, Any] = {
        "model": model_text,
        "seed": seed,
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
    scale = model.largest_size_of_return
    how = (
        policy if online is None else f"{policy}, with {plain(online, 6)} ms of rollouts a decision"
    )
    earned = with_error(runs.mean, runs.standard_error, scale)
    at_most = "at most " if model.terminal else ""
    print_lines(
        f"{model}\n{how}: {earned} (standard error) over "
        f"{episodes:,} episodes of {at_most}{plural(runs.steps, 'step')} (from "
        f"{plain(facts['lowest'], 6, scale)} to "
        f"{plain(facts['highest'], 6, scale)}), "
        f"{facts['steps_per_second']:,.0f} steps/s",
    )


MOST_NAMED = 1000
"""Actions that are named in a message; of more, it is said what they are made of."""


def _read_policy(model: Any, text: str, basis: str) -> Any:
    from pathlib import Path

    from fsmdp.errors import ModelError
    from fsmdp.exact.solve import solve_exactly
    from fsmdp.io.plans import load_plan
    from fsmdp.io.readers import read_basis
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
