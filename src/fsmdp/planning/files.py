"""Plans as files: arrays and one line of JSON in an NPZ, read without pickle."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.model.basis import Basis
from fsmdp.model.lookup import Lookup
from fsmdp.model.tables import bound_table
from fsmdp.model.variables import Variable, table_size
from fsmdp.planning.certificate import Certificate, Witness
from fsmdp.planning.highs import Status
from fsmdp.planning.plan import Effort, Plan

FORMAT = "fsmdp-plan"
VERSION = 1


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan; the file appears whole or not at all."""
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
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
    try:
        with part.open("wb") as file:
            np.savez_compressed(file, **arrays)
        part.replace(target)
    except OSError as error:
        raise ModelError(f"cannot write {target}: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan written by `save_plan`; anything else is a ModelError."""
    source = Path(path)
    try:
        with np.load(source, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        about = json.loads(arrays["about"].tobytes())
    except OSError as error:
        raise ModelError(f"cannot read {source}: {error.strerror or error}.") from None
    except (ValueError, KeyError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise ModelError(f"{source} is no plan: {error}; expected a file of save_plan.") from None
    if about.get("format") != FORMAT or about.get("version") != VERSION:
        raise ModelError(
            f"{source}: expected {FORMAT} version {VERSION}, found {about.get('format')} version "
            f"{about.get('version')}; plan again with this release."
        )
    try:
        return _from_parts(about, arrays)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise ModelError(f"{source}: a part is missing or wrong ({error}); plan again.") from None


def _from_parts(about: Mapping[str, Any], arrays: Mapping[str, Any]) -> Plan:
    variables = tuple(Variable(name, size) for name, size in about["variables"])
    step, state, action, violation = about["witness"]
    return Plan(
        method=about["method"],
        status=Status(about["status"]),
        variables=variables,
        actions=tuple(about["actions"]),
        horizon=about["horizon"],
        discount=about["discount"],
        basis=_basis(about["scopes"], arrays["functions"], variables),
        weights=arrays["weights"],
        bound_weights=arrays["bound_weights"],
        objective=about["objective"],
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
            about["seconds"],
            tuple(about["choices"]),
        ),
        view=about["view"],
        lookup=Lookup(*(arrays[f"lookup_{name}"] for name in Lookup._fields)),
        q_entries=arrays["q_entries"],
    )


def _basis(scopes: Any, functions: Any, variables: tuple[Variable, ...]) -> Basis:
    tables = []
    end = 0
    for scope in scopes:
        shape = tuple(variables[position].size for position in scope)
        begin, end = end, end + table_size(shape)
        tables.append(bound_table(tuple(scope), functions[begin:end].reshape(shape)))
    return Basis(tables[1:])
