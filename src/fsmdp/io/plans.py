"""Plans as files: arrays and one line of JSON in an NPZ, read without pickle."""

import json
import logging
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, Strict, StringConstraints, ValidationError

from fsmdp.bounds.bellman import OF_ACTIONS, VIEWS, Restriction
from fsmdp.bounds.bound import Arrays, Bound, FiledProof, GivenProof, LinearProof, Program
from fsmdp.bounds.certificate import Certificate, Witness
from fsmdp.bounds.clock import Status
from fsmdp.bounds.gap import Candidate, Incumbent, Line
from fsmdp.bounds.plan import Plan, PlannedPolicy, Record
from fsmdp.bounds.proofs import PROOFS, Count, Positions, ReducedProof, filed, finite
from fsmdp.elimination.schedule import Hint
from fsmdp.errors import ModelError, PlanningError
from fsmdp.foundation import disk
from fsmdp.foundation.checks import clip, show
from fsmdp.foundation.kinds import Document, explain
from fsmdp.foundation.numbers import upper
from fsmdp.io.models import ActionsFile, to_dict
from fsmdp.model.actions import ActionSpace, ListedActions
from fsmdp.model.basis import Basis
from fsmdp.model.lookup import Lookup, check_lookup
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.structure import LONGEST_HORIZON
from fsmdp.model.tables import Floats, bound_table
from fsmdp.model.variables import Variable, check_state, positions_by_name, table_size
from fsmdp.policies.arrays import (
    CompiledPolicy,
    array_names,
    check_policy,
    policy_from_arrays,
    policy_to_arrays,
)
from fsmdp.policies.greedy import Greedy
from fsmdp.policies.resolve import ArrayPolicy
from fsmdp.reductions.invariants import Invariant, LocalInvariant, SumInvariant, check_form

log = logging.getLogger(__name__)

FORMAT = "fsmdp-plan"
VERSION = 6
LARGEST_FILE = 2**28
LARGEST_TEXT, MOST_ITEMS = 2**26, 2**22
"""Bytes, and entries of lists and objects, of a description; as the checker has them."""
EXPECTED = "expected a file that Plan.save wrote"
OF_PROGRAM = "objective", "dual_bound", "induced_width", "rows", "columns", "iterations", "view"
"""Fields of the linear program, none of which a bound without one has."""

Name = Annotated[str, StringConstraints(min_length=1)]


class Steps(Document):
    """How variables were eliminated, as `fsmdp.elimination.schedule.Hint` says."""

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
    version: Literal[6]
    method: str
    status: Annotated[Status, Strict(False)]
    variables: Annotated[
        list[
            Annotated[tuple[Name, int], Strict(False)]
            | Annotated[tuple[Name, int, list[Name]], Strict(False)]
        ],
        Field(min_length=1),
    ]  # name, size, and labels where there are some
    actions: Annotated[list[Name], Field(min_length=1)] | ActionsFile
    horizon: Annotated[int, Field(ge=1, le=LONGEST_HORIZON)] | None
    discount: Annotated[float, Field(gt=0, le=1)]
    scopes: Annotated[list[Positions], Field(min_length=1)]
    functions: list[list[float]]  # of each scope, the last axis fastest
    bound_weights: list[list[float]]  # here, and not in an array, where a checker reads them
    objective: float | None  # none without a program, as those below
    dual_bound: float | None  # none, too, if it is not finite
    certified_objective: float | None
    upper_bound: float  # by elimination
    at_start: float | None  # tighter, from the initial distribution only
    proof: Name
    start_proof: dict[str, Any] | None  # why at_start holds, as its kind of proof is written
    policy: str | None  # none: greedy
    incumbent: Incumbent | None
    candidates: list[Candidate]
    log: list[Line]
    witness: Annotated[
        tuple[int, Positions, str, float], Strict(False)
    ]  # step, state, action, violation
    induced_width: Count | None
    rows: Count | None
    columns: Count | None
    iterations: Count | None
    seconds: dict[str, Annotated[float, Field(ge=0)]]
    choices: list[str]
    view: Literal[VIEWS] | None  # type: ignore[valid-type]
    elimination: Steps | None  # where it was not exact: what a checker may try
    invariants: list[LocalFile | SumFile]
    restrictions: list[Annotated[tuple[int, list[Positions]], Strict(False)]]


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan; the file appears whole or not at all.

    What it claims is what its own content proves. So the checker is asked what it proves of the
    bound at the start, and that is written; a bound that it cannot prove is left out, with a
    warning.
    """
    bound, record = _provable(plan.bound), plan.record
    program = bound.values.program
    certificate, witness = bound.certificate, bound.certificate.witness
    about = {
        "format": FORMAT,
        "version": VERSION,
        "method": record.method,
        "status": str(record.status),
        "variables": [[v.name, v.size, *([v.labels] if v.labels else [])] for v in plan.variables],
        "actions": plan.action_names.as_json(),
        "horizon": plan.horizon,
        "discount": bound.discount,
        "scopes": [list(scope) for scope in bound.basis.scopes],
        "functions": [table.values.ravel().tolist() for table in bound.basis],
        "bound_weights": bound.weights.tolist(),
        "certified_objective": None if program is None else program.certified,
        "upper_bound": certificate.upper_bound,
        "at_start": None,
        "proof": bound.values.kind,
        "start_proof": None,
        "policy": None if isinstance(plan.policy, Greedy) else _name(plan.policy),
        "incumbent": None if plan.incumbent is None else _finite_only(plan.incumbent),
        "candidates": [_finite_only(candidate) for candidate in record.candidates],
        "log": [_finite_only(line) for line in record.lines],
        "witness": [witness.step, list(witness.state), witness.action, witness.violation],
        **{name: getattr(program, name, None) for name in OF_PROGRAM},
        "seconds": dict(record.seconds),
        "choices": list(record.choices),
        "elimination": None if bound.values.hint is None else asdict(bound.values.hint),
        "invariants": [_invariant_to_json(one) for one in bound.values.invariants],
        "restrictions": [[one.invariant, one.additions] for one in bound.values.restrictions],
    }
    if program is not None and not math.isfinite(program.dual_bound):
        about["dual_bound"] = None
    arrays: dict[str, Any] = {
        "weights": bound.weights if program is None else program.weights,
        "violations": certificate.violations,
        "lifts": certificate.lifts,
    }
    if isinstance(plan.policy, Greedy):
        arrays["q_entries"] = plan.q_entries
        arrays |= {f"lookup_{name}": array for name, array in plan.lookup._asdict().items()}
    else:
        arrays |= {f"policy/{n}": a for n, a in policy_to_arrays(_compiled(plan)).items()}
    if bound.proof.upper_bound < certificate.upper_bound:
        _add_start(bound, about, arrays)
    disk.write_arrays(path, arrays | {"about": disk.pack_json(about)}, compress=True)


def _provable(bound: Bound) -> Bound:
    """With values of the original model where those of a reduced one prove the bound."""
    proof = bound.proof
    found = proof.in_original() if isinstance(proof, ReducedProof) else None
    if found is None or found.upper_bound >= bound.values.upper_bound:
        return bound
    return replace(bound, values=found)


def _add_start(bound: Bound, about: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Add the tightest bound at the start that fits into a file, as the checker proves it."""
    claimed, kind = upper(bound.upper_bound, 6), bound.proof.kind
    proof = next(filter(None, map(filed, bound.at_start)), None)
    at_start, why = math.inf, "nothing in the plan proves it"
    own: dict[str, Any] = {}
    beside: Arrays = {}
    if proof is not None:
        given, beside = proof.written(bound.variables)
        own = {"at_start": proof.upper_bound, "proof": proof.kind, "start_proof": given}
        at_start, why = proof.upper_bound, "the checker proves less"
        if proof.model is not None:
            at_start, why = _proved_at_start(proof, proof.model, about | own, beside)
    if not at_start < about["upper_bound"]:
        if upper(about["upper_bound"], 6) == claimed:
            return
        log.warning(
            "the plan's bound %s, by %s, is not in the file (%s), which claims %s, by %s",
            *(claimed, kind, why, upper(about["upper_bound"], 6), about["proof"]),
        )
        return
    about.update(own, at_start=at_start)
    arrays.update(beside)
    if (written := upper(at_start, 6)) != claimed:
        log.warning(
            "the plan's bound %s, by %s, cannot be proved by a file, which claims %s, by %s",
            *(claimed, kind, written, about["proof"]),
        )


def _proved_at_start(
    proof: FiledProof, model: FactoredMDP, about: Mapping[str, Any], arrays: Arrays
) -> tuple[float, str]:
    """The least bound at the start, not below the one claimed, that the checker proves; or why not.

    That the weights are a bound is not asked again: elimination has certified it.
    """
    from fsmdp.verification import checker, values

    try:
        mine = checker.read_model(disk.seal(to_dict(model)))
        content = {name: disk.array_bytes(array) for name, array in arrays.items()}
        claim = checker.claim_of(json.loads(json.dumps(about)), content, mine)
        held = checker.prove_invariants(mine, claim.invariants)
        found, rounding = proof.proved(mine, claim, held)
        found += 2 * rounding  # so that it is proved on other machines, too
        return max(about["at_start"], values.above(found)), "the checker proves less"
    except (checker.BadInputError, ModelError, OverflowError) as error:
        return math.inf, str(error)


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
    arrays = disk.read_arrays(path, LARGEST_FILE, "plan", EXPECTED)
    where = show(str(path))
    try:
        read = disk.unpack_json(arrays["about"], LARGEST_TEXT, MOST_ITEMS)
        if not isinstance(read, dict):
            raise ValueError("its description is not an object")
    except (ValueError, KeyError) as error:
        raise ModelError(f"{where} is not a plan: {clip(str(error))}; {EXPECTED}.") from None
    if read.get("format") != FORMAT or read.get("version") != VERSION:
        raise ModelError(
            f"{where}: expected {FORMAT} version {VERSION}, found {show(read.get('format'))} "
            f"version {show(read.get('version'))}; plan again with this release."
        )
    try:
        # What one parser made of the file is what it means: no second one reads its text.
        return _from_parts(About.model_validate_json(json.dumps(read)), arrays)
    except ValidationError as error:
        wrong = explain(error, "description").removesuffix(".")
    except KeyError as error:
        wrong = f"no {error}"
    except (ValueError, TypeError) as error:
        wrong = clip(str(error)).removesuffix(".")
    raise ModelError(f"{where}: a part is missing or wrong ({wrong}); plan again.")


def _from_parts(about: About, arrays: Arrays) -> Plan:
    variables = tuple(Variable(*one) for one in about.variables)
    positions_by_name(variables)
    actions = _actions(about)
    if about.horizon is None and about.discount == 1:
        raise ValueError("discount: expected one below 1 with an infinite horizon")
    n_steps = about.horizon or 1
    basis = _basis(about, variables)
    shape = (n_steps + (about.horizon is not None), len(basis))
    weights = finite(arrays, "weights", shape)
    if [len(row) for row in about.bound_weights] != [shape[1]] * shape[0]:
        raise ValueError(f"bound_weights: expected numbers of shape {shape}")
    violations, lifts = (finite(arrays, name, (n_steps,)) for name in ("violations", "lifts"))
    start_proof = _start_proof(about, arrays, variables)
    _check_names(about, arrays, start_proof, variables)
    values = LinearProof(
        basis,
        np.array(about.bound_weights),
        Certificate(
            violations, lifts, _witness(about, variables, actions, n_steps), about.upper_bound
        ),
        _program(about, weights),
        _hint(about.elimination),
        tuple(_invariant(one, variables) for one in about.invariants),
        _restrictions(about),
    )
    at_start = () if start_proof is None else (start_proof,)
    return Plan(
        _policy(about, variables, actions, arrays),
        Bound(variables, about.horizon, about.discount, values, at_start),
        Record(
            about.method,
            about.status,
            about.seconds,
            tuple(about.choices),
            tuple(about.candidates),
            tuple(about.log),
        ),
        None if about.incumbent is None else about.incumbent.reported(),
    )


def _program(about: About, weights: Floats) -> Program | None:
    """The linear program; none if nothing is said of it."""
    given = {name: getattr(about, name) for name in (*OF_PROGRAM, "certified_objective")}
    dual_bound = given.pop("dual_bound")
    if {value is None for value in given.values()} == {True} and dual_bound is None:
        return None
    if any(value is None for value in given.values()):
        raise ValueError("objective: expected all numbers of a linear program, or none")
    return Program(
        functions=weights.shape[1],
        certified=given.pop("certified_objective"),
        dual_bound=-math.inf if dual_bound is None else dual_bound,
        weights=weights,
        weights_certified=False,  # a file says nothing that its checker does not prove
        **given,
    )


def _check_names(
    about: About, arrays: Arrays, proof: FiledProof | None, variables: tuple[Variable, ...]
) -> None:
    """Refuse arrays that a plan does not have."""
    names = {"about", "weights", "violations", "lifts"}
    if about.policy is None:
        names |= {"q_entries", *(f"lookup_{name}" for name in Lookup._fields)}
    else:
        names |= {f"policy/{name}" for name in array_names()}
    if proof is not None:
        names |= proof.written(variables)[1].keys()
    for name in names ^ arrays.keys():
        raise ValueError(f"array {show(name)}: " + ("missing" if name in names else "unknown"))


def _start_proof(
    about: About, arrays: Arrays, variables: tuple[Variable, ...]
) -> FiledProof | None:
    """What proves a bound at the start; that it does is for a checker to find out."""
    given = about.start_proof
    if given is None or about.at_start is None:
        if given is not None or about.at_start is not None:
            raise ValueError("start_proof: expected one with at_start, and none without")
        return None
    kind = PROOFS.find(about.proof.replace(" ", "-"))
    return kind.read(
        GivenProof(about.proof, about.at_start, given, arrays, variables, about.horizon)
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


def _actions(about: About) -> ActionSpace:
    if isinstance(about.actions, ActionsFile):
        return about.actions.built()
    if len(set(about.actions)) < len(about.actions):
        raise ValueError("actions: expected each name once")
    return ListedActions(about.actions)


def _policy(
    about: About,
    variables: tuple[Variable, ...],
    actions: ActionSpace,
    arrays: Arrays,
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
    entries = arrays["q_entries"]
    shape = n_steps, entries.size // n_steps
    if entries.shape != shape or entries.dtype != np.float64 or not (entries < np.inf).all():
        raise ValueError(f"q_entries: expected numbers below infinity of shape {shape}")
    lookup = Lookup(*(arrays[f"lookup_{name}"] for name in Lookup._fields))
    input_sizes = [variable.size for variable in (*variables, *actions.variables)]
    check_lookup(lookup, input_sizes, actions.n_cases, entries.shape[1])
    return Greedy(variables, actions, about.horizon, lookup, entries)


def _witness(
    about: About, variables: tuple[Variable, ...], actions: ActionSpace, n_steps: int
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
