"""`fsmdp verify`."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsmdp.cli.app import AsJson, Model, Quiet, Seed, command
from fsmdp.cli.screen import print_json

if TYPE_CHECKING:
    from fsmdp.verification import checker


@command(
    "verify",
    "fsmdp verify pump.json plan.npz",
    "fsmdp verify sysadmin:ring:40 plan.npz --json",
)
def verify_command(
    model_text: Model,
    plan: Annotated[
        str,
        typer.Argument(metavar="PLAN", help="A plan file written by fsmdp plan --output."),
    ],
    quiet: Quiet = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Prove or refute a plan's bound, by a checker that shares no code with the planners.

    The exit code is 0 if all that the plan claims is proved, 3 if only a part of it is, 1 if its
    bound is not, 2 if there is nothing that can be checked.
    """
    from fsmdp.errors import ModelError
    from fsmdp.foundation.disk import read_file
    from fsmdp.io.plans import LARGEST_FILE
    from fsmdp.io.readers import model_document
    from fsmdp.verification import checker
    from fsmdp.verification.values import start_values

    began = time.perf_counter()
    try:
        model = checker.read_model(model_document(model_text))
        claim = checker.read_claim(read_file(plan, LARGEST_FILE), model)
        update = (lambda _: None) if quiet or as_json else _progress()
        verdict = checker.check(model, claim, update, start_values)
    except checker.BadInputError as error:
        reason = str(error).rstrip(".")
        raise ModelError(
            f"{reason}; give the model and a plan of it that fsmdp plan --output wrote."
        ) from None
    seconds = time.perf_counter() - began
    if as_json:
        asked = {"model": model_text, "seed": seed}  # taken by every command; nothing is random
        print_json(asked | _facts(verdict, model) | {"seconds": seconds})
    else:
        print("\n".join([str(verdict), *_details(verdict, model, seconds)]))
    raise typer.Exit(0 if verdict.proved else 3 if verdict.in_part else 1)


def _progress(every: float = 2.0) -> Callable[[str], None]:
    """Lines on the error stream, some seconds apart."""
    last = began = time.perf_counter()

    def update(text: str) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last >= every:
            last = now
            print(f"{now - began:6.0f} s  {text}", file=sys.stderr, flush=True)

    return update


def _details(verdict: checker.Verdict, model: checker.Model, seconds: float) -> Iterator[str]:
    """More about a verdict, in words."""
    from fsmdp.verification.checker import decimal

    claim, step = verdict.claim, verdict.tightest[0]
    if verdict.slack >= 0:
        spare, action = decimal(verdict.slack, down=True), _action(verdict, model)
        claimed = decimal(claim.upper_bound, down=not verdict.holds)
        yield (
            f"V >= R + E V' at every state and step, {spare} to spare; tightest at step {step}, "
            f"action {action!r}."
        )
        yield f"By weights: {decimal(verdict.bound)}; the plan claims {claimed}."
    if claim.at_start is not None and claim.at_start < verdict.bound:
        start = decimal(claim.at_start, down=verdict.tighter is False)
        unknown = f"not proved ({verdict.open or 'the values of its states prove less'})"
        words = {True: "proved", False: "refuted", None: unknown}
        yield f"By {claim.reason}: the plan claims {start}; {words[verdict.tighter]}."
    if verdict.invariants:
        yield (
            f"That is where invariants hold, which no action leaves: {sum(verdict.invariants)} of "
            f"{len(verdict.invariants)} were proved, and the others not used."
        )
    steps = f"{len(verdict.steps)} step" + "s" * (len(verdict.steps) > 1)
    yield f"{steps}, largest table {verdict.largest_table} entries, {seconds:.1f} s"


def _action(verdict: checker.Verdict, model: checker.Model) -> str:
    """The name of the action where the inequality is tightest."""
    from fsmdp.io.models import actions_from_json

    found, actions = verdict.tightest[2], actions_from_json(model.about["actions"])
    return found if isinstance(found, str) else actions.name(found)


def _facts(verdict: checker.Verdict, model: checker.Model) -> dict[str, Any]:
    claim, (step, state, _) = verdict.claim, verdict.tightest
    return {
        "proved": verdict.proved,
        "proved_in_part": verdict.in_part,
        "upper_bound": _above(verdict.best) if verdict.holds else None,
        "by_weights": _above(verdict.bound),
        "claimed_by_weights": float(claim.upper_bound),
        "claimed_at_start": None if claim.at_start is None else float(claim.at_start),
        "proof_at_start": claim.reason,
        "at_start_proved": verdict.tighter,
        "slack": -_above(-verdict.slack),
        "tightest_step": step,
        "tightest_state": list(state),
        "tightest_action": _action(verdict, model),
        "largest_table": verdict.largest_table,
    }


def _above(number: Fraction) -> float:
    """The smallest float that is not below."""
    try:
        near = float(number)
    except OverflowError:
        return math.inf if number > 0 else -sys.float_info.max
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)
