"""A model and a plan through their files, as the checker reads them."""

import dataclasses
import json
import tempfile
from fractions import Fraction
from pathlib import Path

from fsmdp.foundation.disk import pack_json, read_arrays, seal, write_arrays
from fsmdp.io.models import to_dict
from fsmdp.verification.checker import check, read_claim, read_model

ORDINARY = Fraction(1, 2**1100)
"""More than what rounding up in units of 2^-1200 adds to any small sum."""


def model_bytes(model):
    """What `save` writes."""
    return seal(to_dict(model))


def plan_bytes(plan, changes=None):
    """What `Plan.save` writes, with some entries of its description replaced."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.npz"
        plan.save(path)
        if changes:
            arrays = read_arrays(path, 2**26, "plan", "none")
            about = json.loads(arrays["about"].tobytes()) | changes
            write_arrays(path, arrays | {"about": pack_json(about)})
        return path.read_bytes()


def read(model, plan):
    """Both as the checker has them."""
    mine = read_model(model_bytes(model))
    return mine, read_claim(plan_bytes(plan), mine)


def verdict_of(model, plan):
    return check(*read(model, plan))


def lowered(claim, step, function, amount):
    """The claim with one weight lowered."""
    row = list(claim.weights[step])
    row[function] -= amount
    rows = (*claim.weights[:step], tuple(row), *claim.weights[step + 1 :])
    return dataclasses.replace(claim, weights=rows)
