"""Plans as files: arrays and one line of JSON in an NPZ, read without pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.model.arrays import read_arrays, write_arrays
from fsmdp.model.basis import Basis
from fsmdp.model.checks import as_number, clip
from fsmdp.model.lookup import Lookup, check_lookup
from fsmdp.model.tables import bound_table
from fsmdp.model.variables import Variable, positions_by_name, table_size
from fsmdp.planning.certificate import Certificate, Witness
from fsmdp.planning.plan import Effort, Plan
from fsmdp.planning.solution import Status

FORMAT = "fsmdp-plan"
VERSION = 1
LARGEST_FILE = 2**30
EXPECTED = "expected a file that Plan.save wrote"


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan; the file appears whole or not at all."""
    certificate, witness = plan.certificate, plan.certificate.witness
    about = {
        "format": FORMAT,
        "version": VERSION,
        "method": plan.method,
        "status": str(plan.status),
        "variables": [[v.name, v.size] for v in plan.variables],
        "actions": list(plan.actions),
        "horizon": plan.horizon,
        "discount": plan.discount,
        "scopes": [list(scope) for scope in plan.basis.scopes],
        "objective": plan.objective,
        "dual_bound": plan.dual_bound,
        "certified_objective": plan.certified_objective,
        "trivial_bound": plan.trivial_bound,
        "weights_certified": plan.weights_certified,
        "upper_bound": plan.upper_bound,
        "witness": [witness.step, list(witness.state), witness.action, witness.violation],
        "induced_width": plan.induced_width,
        "rows": plan.rows,
        "columns": plan.columns,
        "iterations": plan.iterations,
        "seconds": dict(plan.seconds),
        "choices": list(plan.effort.choices),
        "view": plan.view,
    }
    arrays: dict[str, Any] = {
        "about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
        "weights": plan.weights,
        "bound_weights": plan.bound_weights,
        "q_entries": plan.q_entries,
        "functions": np.concatenate([table.values.ravel() for table in plan.basis]),
        "violations": certificate.violations,
        "lifts": certificate.lifts,
    }
    arrays |= {f"lookup_{name}": array for name, array in plan.lookup._asdict().items()}
    write_arrays(path, arrays, compress=True)


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan written by `save_plan`; anything else is a ModelError."""
    arrays = read_arrays(path, LARGEST_FILE, "plan", EXPECTED)
    try:
        about = json.loads(arrays["about"].tobytes())
        if not isinstance(about, dict):
            raise ValueError("its description is no object")
    except (ValueError, KeyError, RecursionError) as error:
        raise ModelError(f"{path} is no plan: {clip(str(error))}; {EXPECTED}.") from None
    if about.get("format") != FORMAT or about.get("version") != VERSION:
        raise ModelError(
            f"{path}: expected {FORMAT} version {VERSION}, found {about.get('format')} version "
            f"{about.get('version')}; plan again with this release."
        )
    try:
        return _checked(_from_parts(about, arrays))
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise ModelError(
            f"{path}: a part is missing or wrong ({clip(str(error))}); plan again."
        ) from None


def _from_parts(about: Mapping[str, Any], arrays: Mapping[str, Any]) -> Plan:
    variables = tuple(Variable(name, size) for name, size in about["variables"])
    positions_by_name(variables)
    step, state, action, violation = about["witness"]
    for name in ("upper_bound", "objective", "discount"):
        as_number(about[name], name, "plan again")
    return Plan(
        method=str(about["method"]),
        status=Status(about["status"]),
        variables=variables,
        actions=tuple(about["actions"]),
        horizon=about["horizon"],
        discount=about["discount"],
        basis=_basis(about["scopes"], arrays["functions"], variables),
        weights=arrays["weights"],
        bound_weights=arrays["bound_weights"],
        objective=about["objective"],
        dual_bound=about["dual_bound"],
        certified_objective=about["certified_objective"],
        trivial_bound=about["trivial_bound"],
        weights_certified=about["weights_certified"],
        certificate=Certificate(
            arrays["violations"],
            arrays["lifts"],
            Witness(step, tuple(state), action, violation),
            about["upper_bound"],
        ),
        induced_width=about["induced_width"],
        effort=Effort(
            about["rows"],
            about["columns"],
            about["iterations"],
            {str(name): float(value) for name, value in about["seconds"].items()},
            tuple(about["choices"]),
        ),
        view=about["view"],
        lookup=Lookup(*(arrays[f"lookup_{name}"] for name in Lookup._fields)),
        q_entries=arrays["q_entries"],
    )


def _checked(plan: Plan) -> Plan:
    """Refuse numbers that compiled code would follow out of its arrays."""
    n_steps = plan.horizon or 1
    shape = (n_steps + (plan.horizon is not None), len(plan.basis))
    for name, array, expected in (
        ("weights", plan.weights, shape),
        ("bound_weights", plan.bound_weights, shape),
        ("q_entries", plan.q_entries, (n_steps, int(plan.lookup.offset[-1]))),
        ("violations", plan.certificate.violations, (n_steps,)),
        ("lifts", plan.certificate.lifts, (n_steps,)),
    ):
        if array.shape != expected or array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"{name}: expected finite numbers of shape {expected}")
    if not all(np.isfinite(table.values).all() for table in plan.basis):
        raise ValueError("functions: expected finite numbers")
    sizes = [variable.size for variable in plan.variables]
    check_lookup(plan.lookup, sizes, len(plan.actions))
    return plan


def _basis(scopes: Any, functions: Any, variables: tuple[Variable, ...]) -> Basis:
    tables = []
    end = 0
    for scope in scopes:
        if not all(0 <= position < len(variables) for position in scope):
            raise ValueError("scopes: expected positions of variables")
        shape = tuple(variables[position].size for position in scope)
        begin, end = end, end + table_size(shape)
        tables.append(bound_table(tuple(scope), functions[begin:end].reshape(shape)))
    return Basis(tables[1:])
