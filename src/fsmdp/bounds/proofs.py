"""Proofs of bounds at the start, which plan files hold and the checker proves again.

A kind of proof is a class and a line in `PROOFS`: what it is called, how it is moved to the user's
unit, what it writes to a plan file (`written`, `read`), and what the checker proves of that
(`proved`). Linear values (`fsmdp.bounds.bound.LinearProof`) stand in every file; these add to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, Strict

from fsmdp.bounds.bound import (
    Arrays,
    FiledProof,
    GivenProof,
    LinearProof,
    Program,
    StartProof,
    linear_proof,
)
from fsmdp.bounds.certificate import certify
from fsmdp.bounds.problem import problem_of_model
from fsmdp.bounds.regions.proof import REGIONS, RegionProof
from fsmdp.errors import WidthError
from fsmdp.foundation.kinds import Document
from fsmdp.foundation.registry import Registry
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Integers, Table, bound_table
from fsmdp.model.variables import Variable, table_size
from fsmdp.reductions.invariants import SumInvariant, count_each_nonzero, prove
from fsmdp.reductions.reduction import Reduced, StateMap

if TYPE_CHECKING:
    from fractions import Fraction

    from fsmdp.bounds.normalise import Normalised
    from fsmdp.verification import checker

Count = Annotated[int, Field(ge=0)]
Positions = Annotated[tuple[Count, ...], Strict(False)]  # a list in JSON


@dataclass(frozen=True, slots=True)
class Box:
    """Values that some variables never leave, and the variables that matter there.

    In a box, rewards and the next values of variables that matter depend on these alone, so that
    states which agree in them have the same value.
    """

    variables: tuple[int, ...]
    values: tuple[tuple[int, ...], ...]  # of each of the variables
    kept: tuple[int, ...]  # that matter, those above included


class BoxFile(Document):
    """A box as a file has it."""

    variables: Annotated[Positions, Field(min_length=1)]
    values: list[Annotated[Positions, Field(min_length=1)]]
    kept: Positions


class StatesFile(Document):
    """The states whose values prove a bound at the start; listed ones are in an array."""

    states: Literal["all", "listed"]
    boxes: list[BoxFile]


@dataclass(frozen=True, slots=True, eq=False)
class StateValues:
    """States whose values prove a bound at the start, by exact values or by a search.

    With a horizon, values are computed backwards from the last step; otherwise they are given, and
    no action improves on them by more than rounding. States are those of `model`. `fits`: whether
    a file and its checker can take them; where they cannot, they are left out.
    """

    kind: str
    upper_bound: float
    model: FactoredMDP | None = field(default=None, repr=False)
    states: Integers | None = field(default=None, repr=False)
    """(n_states, n_variables); None: all, the last variable fastest."""
    values: Floats | None = field(default=None, repr=False)  # (n_states,); None with a horizon
    boxes: tuple[Box, ...] = field(default=(), repr=False)
    fits: bool = True

    @property
    def program(self) -> None:
        """States' values come from no linear program."""

    def moved(self, units: Normalised) -> StateValues:
        """The same states, with values of the original, whose rounding its checker pays for."""
        values = self.values
        return replace(
            self,
            upper_bound=units.upper(self.upper_bound),
            model=units.original,
            values=None if values is None else units.factor * values + units.above[0],
        )

    def written(self, variables: Sequence[Variable]) -> tuple[dict[str, Any], Arrays]:
        """States and boxes; values without a horizon."""
        arrays = {} if self.values is None else {"values": self.values}
        if self.states is not None:
            arrays["states"] = self.states.astype(_kind_of_states(variables))
        boxes = [
            {"variables": box.variables, "values": box.values, "kept": box.kept}
            for box in self.boxes
        ]
        return {"states": "all" if self.states is None else "listed", "boxes": boxes}, arrays

    @classmethod
    def read(cls, given: GivenProof) -> StateValues:
        """States and boxes of the model's variables, and finite values where there are any."""
        found, arrays = StatesFile.model_validate(given.json), given.arrays
        sizes = np.array([variable.size for variable in given.variables])
        number, states = table_size(sizes.tolist()), None
        if found.states == "listed":
            states = arrays["states"]
            kind_of = _kind_of_states(given.variables)
            if (
                states.dtype != kind_of
                or states.shape[1:] != sizes.shape
                or (states >= sizes).any()
            ):
                raise ValueError("states: expected a row of values of variables for each state")
            number = len(states)
        values = None if given.horizon is not None else finite(arrays, "values", (number,))
        for box in found.boxes:
            used = {*box.variables, *box.kept}
            distinct = all(
                len({*one}) == len(one) for one in (box.variables, box.kept, *box.values)
            )
            if not distinct or len(box.values) != len(box.variables) or max(used) >= len(sizes):
                raise ValueError("start_proof: boxes: expected variables and values, each once")
            if any(max(row) >= sizes[v] for v, row in zip(box.variables, box.values, strict=True)):
                raise ValueError("start_proof: boxes: expected values of variables")
            if states is None:
                raise ValueError("start_proof: boxes: expected none with all states")
        boxes = tuple(Box(box.variables, tuple(box.values), box.kept) for box in found.boxes)
        return cls(given.kind, given.upper_bound, None, states, values, boxes)

    @staticmethod
    def proved(
        model: checker.Model, claim: checker.Claim, held: Sequence[bool]
    ) -> tuple[Fraction, Fraction]:
        """Values of the states, computed again."""
        from fsmdp.verification.values import start_bounds

        _, found, rounding = start_bounds(model, claim, held)
        return found, rounding


def finite(arrays: Arrays, name: str, shape: tuple[int, ...]) -> Floats:
    """An array of a file, which must be of finite numbers and of a shape."""
    array = arrays[name]
    if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite numbers of shape {shape}")
    return array


def _kind_of_states(variables: Sequence[Variable]) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if max(variable.size for variable in variables) <= 2**8 else np.uint16


EXACT_VALUES, SEARCH = "exact values", "search from the start"


@dataclass(frozen=True, slots=True, eq=False)
class ReducedProof:
    """Linear values of a reduced model, by elimination there.

    A file does not hold it: its checker knows the original model alone. It can hold the same values
    as functions of the original's variables, as far as they are certified there (`in_original`).
    """

    reduced: Reduced
    linear: LinearProof  # of the reduced model
    upper_bound: float
    model: FactoredMDP = field(repr=False)
    fits: bool = False

    @classmethod
    def of(cls, reduced: Reduced, linear: LinearProof) -> ReducedProof:
        """The bound on the original's value that linear values of the reduced model are."""
        return cls(reduced, linear, reduced.bound(linear.upper_bound), reduced.original)

    @property
    def kind(self) -> str:
        """By elimination, but in another model."""
        return f"elimination, {self.reduced.text}"

    @property
    def program(self) -> Program | None:
        """The program of the reduced model."""
        return self.linear.program

    def moved(self, units: Normalised) -> ReducedProof:
        """The same in the user's unit."""
        upper_bound, linear = units.upper(self.upper_bound), self.linear.moved(units)
        return replace(self, linear=linear, upper_bound=upper_bound, model=units.original)

    def in_original(self) -> LinearProof | None:
        """The same values over the original's variables, certified there; None if that fails.

        Where at most one member of a new variable x is nonzero, a function of x is one of members:

            f(x) = f(default) + sum over members m and values v > 0 of
                   (f(code of v) - f(default)) * [m = v]

        and a function of several new variables is a sum of products of these. That members exclude
        one another is proved once more, as invariants.
        Cost: an elimination of the original for each step.
        """
        reduced, model = self.reduced, self.model
        if reduced.relation != "equal" or not len(reduced.state_map.default):
            return None
        groups = [
            tuple(sorted(reduced.state_map.members(new)))
            for new in range(len(reduced.state_map.default))
        ]
        sums = [
            SumInvariant(group, count_each_nonzero(group, model.sizes), 0, 1)
            for group in groups
            if len(group) > 1
        ]
        tables, weights = _in_members(self.linear, reduced.state_map, model)
        try:
            problem = problem_of_model(
                model, Basis(tables), budget=BUDGET, invariants=prove(model, {}, sums)
            )
        except WidthError:
            return None
        network = problem.network
        steps = len(weights) if network.horizon is None else len(weights) - 1
        parts = network, problem.intervals, weights[:steps], problem.start
        certificate, lifted = certify(*parts)
        weights = weights.copy()
        weights[:steps] = lifted
        program = self.linear.program
        if program is not None:
            program = replace(
                program, functions=len(network.basis), weights=weights, weights_certified=False
            )
        return linear_proof(network, weights, certificate, program)


def _in_members(
    linear: LinearProof, states: StateMap, model: FactoredMDP
) -> tuple[list[Table], Floats]:
    """Indicators of members' values, and weights (n_rows, 1 + n_indicators) of the same values."""
    rows: dict[tuple[tuple[int, int], ...], Floats] = {}  # by members and their values
    for table, own in zip(linear.basis, linear.weights.T, strict=True):
        terms: dict[tuple[tuple[int, int], ...], Floats] = {(): np.asarray(table.values)}
        for new in table.scope:  # the first axis that is left
            default = int(states.default[new])
            split: dict[tuple[tuple[int, int], ...], Floats] = {}
            for chosen, values in terms.items():
                split[chosen] = values[default]
                for at in range(states.member_start[new], states.member_start[new + 1]):
                    for value, code in enumerate(states.codes(at).tolist()):
                        if value:
                            key = tuple(sorted((*chosen, (int(states.member[at]), value))))
                            split[key] = values[code] - values[default]
            terms = split
        for chosen, number in terms.items():
            if number or not chosen:
                rows[chosen] = rows.get(chosen, 0.0) + float(number) * own
    constant = rows.pop((), np.zeros(len(linear.weights)))
    tables = []
    for chosen in rows:
        indicator = np.zeros([model.sizes[member] for member, _ in chosen])
        indicator[tuple(value for _, value in chosen)] = 1.0
        tables.append(bound_table(tuple(member for member, _ in chosen), indicator))
    return tables, np.stack([constant, *rows.values()], axis=1)


BUDGET = 2**20
"""Table entries of a step, up to which values are certified exactly in the original model."""


PROOFS: Registry[type[FiledProof]] = Registry("proof")
"""Proofs of bounds at the start by kind, with "-" for " ": those that plan files hold."""


def filed(proof: StartProof) -> FiledProof | None:
    """The proof itself if it is of a kind that files hold, and fits into one."""
    known = tuple(PROOFS.values())
    return proof if proof.fits and isinstance(proof, known) else None


for _kind in (EXACT_VALUES, SEARCH):
    PROOFS.register(_kind.replace(" ", "-"), StateValues)
PROOFS.register(REGIONS.replace(" ", "-"), RegionProof)
