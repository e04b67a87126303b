"""Plans as files: arrays and one line of JSON in an NPZ, read without pickle."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, Strict, StringConstraints, ValidationError

from fsmdp.elimination.hints import Hint
from fsmdp.errors import ModelError, PlanningError
from fsmdp.foundation.arrays import pack_json, read_arrays, write_arrays
from fsmdp.foundation.checks import clip, show
from fsmdp.foundation.documents import Document, explain
from fsmdp.model.actions import inputs_of, n_listed
from fsmdp.model.basis import Basis
from fsmdp.model.files import ActionsFile, actions_to_json
from fsmdp.model.invariants import Invariant, LocalInvariant, SumInvariant, check_form
from fsmdp.model.lookup import Lookup, check_lookup
from fsmdp.model.structure import LONGEST_HORIZON
from fsmdp.model.tables import Floats, bound_table
from fsmdp.model.variables import Variable, check_state, positions_by_name, table_size
from fsmdp.planning.bound import Bound
from fsmdp.planning.certificate import Certificate, Witness
from fsmdp.planning.incumbent import Candidate, Incumbent, Line
from fsmdp.planning.intervals import VIEWS
from fsmdp.planning.plan import Effort, Ending, Plan, PlannedPolicy
from fsmdp.planning.restricting import OF_ACTIONS, Restriction
from fsmdp.planning.solution import Status
from fsmdp.policies.arrays import CompiledPolicy, check_policy
from fsmdp.policies.followed import ArrayPolicy
from fsmdp.policies.greedy import Greedy
from fsmdp.policies.storing import policy_from_arrays, policy_to_arrays

FORMAT = "fsmdp-plan"
VERSION = 4
LARGEST_FILE = 2**30
EXPECTED = "expected a file that Plan.save wrote"

Name = Annotated[str, StringConstraints(min_length=1)]
Count = Annotated[int, Field(ge=0)]
Positions = Annotated[tuple[Count, ...], Strict(False)]  # a list in JSON


class Steps(Document):
    """How variables were eliminated, as `fsmdp.elimination.hints.Hint` says."""

    steps: list[
        Annotated[tuple[list[Annotated[tuple[int, ...], Strict(False)]], Positions], Strict(False)]
    ]
    finals: list[Count]


class LocalFile(Document):
    """What a few variables may be together: 0 or 1 for each assignment, the last axis fastest."""

    scope: Annotated[Positions, Field(min_length=1)]
    allowed: list[Annotated[int, Field(ge=0, le=1)]]


class SumFile(Document):
    """Limits on the sum of what the values of variables count for."""

    scope: Annotated[Positions, Field(min_length=1)]
    counts: list[Annotated[Positions, Field(min_length=1)]]
    least: Count
    most: Count


class About(Document):
    """The header of a plan: every field and its kind."""

    format: Literal["fsmdp-plan"]
    version: Literal[4]
    method: str
    status: Annotated[Status, Strict(False)]
    variables: Annotated[
        list[Annotated[tuple[Name, int], Strict(False)]], Field(min_length=1)
    ]  # name and size
    actions: Annotated[list[Name], Field(min_length=1)] | ActionsFile
    horizon: Annotated[int, Field(ge=1, le=LONGEST_HORIZON)] | None
    discount: Annotated[float, Field(gt=0, le=1)]
    scopes: Annotated[list[Positions], Field(min_length=1)]
    functions: list[list[float]]  # of each scope, the last axis fastest
    bound_weights: list[list[float]]  # here, and not in an array, where a checker reads them
    objective: float
    dual_bound: float | None  # none that is finite
    certified_objective: float
    trivial_bound: float | None
    weights_certified: bool
    upper_bound: float  # by elimination
    at_start: float | None  # tighter, from the initial distribution only
    proof: str
    policy: str | None  # none: greedy
    incumbent: Incumbent | None
    candidates: list[Candidate]
    log: list[Line]
    witness: Annotated[
        tuple[int, Positions, str, float], Strict(False)
    ]  # step, state, action, violation
    induced_width: Count
    rows: Count
    columns: Count
    iterations: Count
    seconds: dict[str, Annotated[float, Field(ge=0)]]
    choices: list[str]
    view: Literal[VIEWS]  # type: ignore[valid-type]
    elimination: Steps | None = None  # where it was not exact: what a checker may try
    invariants: list[LocalFile | SumFile] = Field([])
    restrictions: list[Annotated[tuple[int, list[Positions]], Strict(False)]] = Field([])


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan; the file appears whole or not at all."""
    certificate, witness = plan.certificate, plan.certificate.witness
    about = {
        "format": FORMAT,
        "version": VERSION,
        "method": plan.method,
        "status": str(plan.status),
        "variables": [[v.name, v.size] for v in plan.variables],
        "actions": actions_to_json(plan.action_names),
        "horizon": plan.horizon,
        "discount": plan.discount,
        "scopes": [list(scope) for scope in plan.basis.scopes],
        "functions": [table.values.ravel().tolist() for table in plan.basis],
        "bound_weights": plan.bound_weights.tolist(),
        "objective": plan.objective,
        "dual_bound": plan.dual_bound if math.isfinite(plan.dual_bound) else None,
        "certified_objective": plan.certified_objective,
        "trivial_bound": plan.trivial_bound if math.isfinite(plan.trivial_bound) else None,
        "weights_certified": plan.weights_certified,
        "upper_bound": certificate.upper_bound,
        "at_start": plan.bound.at_start if math.isfinite(plan.bound.at_start) else None,
        "proof": plan.bound.proof,
        "policy": None if isinstance(plan.policy, Greedy) else _name(plan.policy),
        "incumbent": None if plan.incumbent is None else _finite_only(plan.incumbent),
        "candidates": [_finite_only(candidate) for candidate in plan.candidates],
        "log": [_finite_only(line) for line in plan.log],
        "witness": [witness.step, list(witness.state), witness.action, witness.violation],
        "induced_width": plan.induced_width,
        "rows": plan.rows,
        "columns": plan.columns,
        "iterations": plan.iterations,
        "seconds": dict(plan.seconds),
        "choices": list(plan.effort.choices),
        "view": plan.view,
        "elimination": None if plan.bound.hint is None else asdict(plan.bound.hint),
        "invariants": [_invariant_to_json(one) for one in plan.bound.invariants],
        "restrictions": [[one.invariant, one.additions] for one in plan.bound.restrictions],
    }
    arrays: dict[str, Any] = {
        "about": pack_json(about),
        "weights": plan.weights,
        "violations": certificate.violations,
        "lifts": certificate.lifts,
    }
    if isinstance(plan.policy, Greedy):
        arrays["q_entries"] = plan.q_entries
        arrays |= {f"lookup_{name}": array for name, array in plan.lookup._asdict().items()}
    else:
        arrays |= {f"policy/{n}": a for n, a in policy_to_arrays(_compiled(plan)).items()}
    write_arrays(path, arrays, compress=True)


def _compiled(plan: Plan) -> CompiledPolicy:
    found = plan.policy.compiled()
    if found is None:
        raise PlanningError(
            f"the plan's policy, {plan.policy!r}, is followed by Python alone and cannot be saved; "
            "save the plan that it is made from."
        )
    return found


def _name(policy: PlannedPolicy) -> str:
    return policy.name if isinstance(policy, ArrayPolicy) else type(policy).__name__


def _finite_only(one: Candidate | Incumbent | Line) -> dict[str, Any]:
    """Its fields, with None for a number that is not finite."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(one).items()
    }


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan written by `save_plan`; anything else is a ModelError."""
    arrays = read_arrays(path, LARGEST_FILE, "plan", EXPECTED)
    where = show(str(path))
    try:
        header = arrays["about"].tobytes()
        read = json.loads(header)
        if not isinstance(read, dict):
            raise ValueError("its description is not an object")
    except (ValueError, KeyError, RecursionError) as error:
        raise ModelError(f"{where} is not a plan: {clip(str(error))}; {EXPECTED}.") from None
    if read.get("format") != FORMAT or read.get("version") != VERSION:
        raise ModelError(
            f"{where}: expected {FORMAT} version {VERSION}, found {show(read.get('format'))} "
            f"version {show(read.get('version'))}; plan again with this release."
        )
    try:
        return _from_parts(About.model_validate_json(header), arrays)
    except ValidationError as error:
        wrong = explain(error, "description").removesuffix(".")
    except KeyError as error:
        wrong = f"no {error}"
    except (ValueError, TypeError) as error:
        wrong = clip(str(error)).removesuffix(".")
    raise ModelError(f"{where}: a part is missing or wrong ({wrong}); plan again.")


def _from_parts(about: About, arrays: Mapping[str, np.ndarray]) -> Plan:
    variables = tuple(Variable(name, size) for name, size in about.variables)
    positions_by_name(variables)
    actions = _actions(about)
    if about.horizon is None and about.discount == 1:
        raise ValueError("discount: expected one below 1 with an infinite horizon")
    n_steps = about.horizon or 1
    basis = _basis(about, variables)
    shape = (n_steps + (about.horizon is not None), len(basis))
    weights = _finite(arrays, "weights", shape)
    if [len(row) for row in about.bound_weights] != [shape[1]] * shape[0]:
        raise ValueError(f"bound_weights: expected numbers of shape {shape}")
    violations, lifts = (_finite(arrays, name, (n_steps,)) for name in ("violations", "lifts"))
    return Plan(
        method=about.method,
        policy=_policy(about, variables, actions, arrays),
        bound=Bound(
            variables,
            about.horizon,
            basis,
            np.array(about.bound_weights),
            Certificate(
                violations, lifts, _witness(about, variables, actions, n_steps), about.upper_bound
            ),
            math.inf if about.at_start is None else about.at_start,
            about.proof,
            _hint(about.elimination),
            tuple(_invariant(one, variables) for one in about.invariants),
            _restrictions(about),
        ),
        weights=weights,
        weights_certified=about.weights_certified,
        ended=Ending(
            about.status,
            about.objective,
            about.certified_objective,
            -math.inf if about.dual_bound is None else about.dual_bound,
        ),
        trivial_bound=math.inf if about.trivial_bound is None else about.trivial_bound,
        discount=about.discount,
        induced_width=about.induced_width,
        effort=Effort(
            about.rows, about.columns, about.iterations, about.seconds, tuple(about.choices)
        ),
        view=about.view,
        incumbent=about.incumbent,
        candidates=tuple(about.candidates),
        log=tuple(about.log),
    )


def _invariant_to_json(one: Invariant) -> dict[str, Any]:
    if isinstance(one, LocalInvariant):
        return {"scope": one.scope, "allowed": one.allowed.astype(int).ravel().tolist()}
    return asdict(one)


def _invariant(one: LocalFile | SumFile, variables: tuple[Variable, ...]) -> Invariant:
    """An invariant of the right form; that it holds is for a checker to prove."""
    sizes = [variable.size for variable in variables]
    if one.scope[-1] >= len(sizes) or sorted(set(one.scope)) != list(one.scope):
        raise ValueError("invariants: expected positions of variables in order, each once")
    shape = tuple(sizes[position] for position in one.scope)
    found: Invariant
    if isinstance(one, SumFile):
        found = SumInvariant(one.scope, tuple(one.counts), one.least, one.most)
    elif len(one.allowed) == table_size(shape):
        found = LocalInvariant(one.scope, np.array(one.allowed).reshape(shape))
    else:
        raise ValueError("invariants: expected 0 or 1 for each assignment")
    check_form(found, sizes)
    return found


def _restrictions(about: About) -> tuple[Restriction, ...]:
    if not all(OF_ACTIONS <= number < len(about.invariants) for number, _ in about.restrictions):
        raise ValueError("restrictions: expected positions of invariants")
    return tuple(Restriction(number, tuple(rows)) for number, rows in about.restrictions)


def _hint(steps: Steps | None) -> Hint | None:
    """What is said of elimination: only a checker reads it, and does not trust it."""
    if steps is None:
        return None
    return Hint(
        tuple((tuple(terms), eliminated) for terms, eliminated in steps.steps),
        tuple(steps.finals),
    )


def _actions(about: About) -> Sequence[str]:
    if isinstance(about.actions, ActionsFile):
        return about.actions.built()
    if len(set(about.actions)) < len(about.actions):
        raise ValueError("actions: expected each name once")
    return tuple(about.actions)


def _policy(
    about: About,
    variables: tuple[Variable, ...],
    actions: Sequence[str],
    arrays: Mapping[str, np.ndarray],
) -> PlannedPolicy:
    """The policy, with all that compiled code reads checked."""
    sizes = [variable.size for variable in variables]
    if about.policy is not None:
        prefix = "policy/"
        given = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        followed = policy_from_arrays(given, sizes, actions)
        check_policy(followed, sizes, actions)
        return ArrayPolicy(about.policy, variables, actions, about.horizon, followed)
    n_steps = about.horizon or 1
    entries = _finite(arrays, "q_entries", (n_steps, arrays["q_entries"].size // n_steps))
    lookup = Lookup(*(arrays[f"lookup_{name}"] for name in Lookup._fields))
    input_sizes = [variable.size for variable in inputs_of(variables, actions)]
    check_lookup(lookup, input_sizes, n_listed(actions), entries.shape[1])
    return Greedy(variables, actions, about.horizon, lookup, entries)


def _finite(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...]) -> Floats:
    array = arrays[name]
    if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite numbers of shape {shape}")
    return array


def _witness(
    about: About, variables: tuple[Variable, ...], actions: Sequence[str], n_steps: int
) -> Witness:
    step, state, action, violation = about.witness
    if not 1 <= step <= n_steps or action not in actions:
        raise ValueError("witness: expected a step and an action of the plan")
    return Witness(step, check_state(state, variables), action, violation)


def _basis(about: About, variables: tuple[Variable, ...]) -> Basis:
    """The functions, of which the first is the constant 1."""
    tables = []
    if len(about.functions) != len(about.scopes):
        raise ValueError("functions: expected one for each scope")
    for scope, numbers in zip(about.scopes, about.functions, strict=True):
        if sorted(set(scope)) != list(scope) or (scope and scope[-1] >= len(variables)):
            raise ValueError("scopes: expected positions of variables in order, each once")
        shape = tuple(variables[position].size for position in scope)
        if len(numbers) != table_size(shape):
            raise ValueError(f"functions: expected {table_size(shape)} numbers of {scope}")
        tables.append(bound_table(scope, np.array(numbers).reshape(shape)))
    if about.scopes[0] or about.functions[0] != [1]:
        raise ValueError("functions: expected the constant 1 first")
    return Basis(tables[1:])
