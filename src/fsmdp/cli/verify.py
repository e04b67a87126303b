"""`fsmdp verify`."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsmdp.cli.app import command
from fsmdp.cli.options import AsJson, Model, Quiet
from fsmdp.cli.screen import print_json

if TYPE_CHECKING:
    from fsmdp.verification.checker import Verdict


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
    as_json: AsJson = False,
) -> None:
    """Prove or refute a plan's bound in exact arithmetic, by a checker that shares no code with us.

    The exit code is 0 if the bound is proved, 1 if not, 2 if there is nothing that can be checked.
    """
    from fsmdp.errors import ModelError
    from fsmdp.verification import checker

    tell = (lambda _: None) if quiet or as_json else checker.progress()
    try:
        model = checker.read_model(_model_file(model_text))
        claim = checker.read_claim(checker.read_bytes(plan, checker.LARGEST_PLAN))
        verdict = checker.check(model, claim, tell)
    except checker.BadInputError as error:
        raise ModelError(str(error)) from None
    if as_json:
        print_json({"model": model_text} | _facts(verdict))
    else:
        print("\n".join(verdict.lines()))
    raise typer.Exit(0 if verdict.proved else 1)


def _model_file(text: str) -> bytes:
    """The content of a model file: the one that is named, or what `save` would write."""
    from pathlib import Path

    from fsmdp.verification import checker

    if text.endswith(".json") or Path(text).is_file():
        return checker.read_bytes(text, checker.LARGEST_MODEL)
    from fsmdp.experiments.catalog import read_model
    from fsmdp.foundation.digests import seal
    from fsmdp.model.files import to_dict

    return seal(to_dict(read_model(text)))


def _facts(verdict: Verdict) -> dict[str, Any]:
    claim, tightest = verdict.claim, verdict.tightest
    return {
        "proved": verdict.proved,
        "upper_bound": _above(verdict.best) if verdict.proved else None,
        "by_weights": _above(verdict.bound),
        "claimed_by_weights": float(claim.upper_bound),
        "claimed_at_start": None if claim.at_start is None else float(claim.at_start),
        "proof_at_start": claim.reason,
        "at_start_proved": verdict.tighter,
        "slack": -_above(-verdict.slack),
        "tightest_step": tightest.step,
        "tightest_state": list(tightest.state),
        "tightest_action": tightest.action,
        "largest_table": verdict.largest_table,
        "seconds": verdict.seconds,
    }


def _above(number: Fraction) -> float:
    """The smallest float that is not below."""
    try:
        near = float(number)
    except OverflowError:
        return math.inf if number > 0 else -sys.float_info.max
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)
