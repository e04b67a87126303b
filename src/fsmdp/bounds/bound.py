"""Bounds: value functions that are certified to lie above V*, each with its proof."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from fsmdp.bounds.bellman import BellmanNetwork, Restriction
from fsmdp.bounds.certificate import Certificate
from fsmdp.elimination.schedule import Hint, hint_of
from fsmdp.foundation.checks import as_step
from fsmdp.model.basis import Basis
from fsmdp.model.marginals import EPSILON, UNDERFLOW
from fsmdp.model.tables import Floats
from fsmdp.model.variables import State, Variable, check_state
from fsmdp.reductions.invariants import Invariant

if TYPE_CHECKING:
    from fractions import Fraction

    from fsmdp.bounds.normalise import Normalised
    from fsmdp.model.mdp import FactoredMDP
    from fsmdp.verification import checker

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The linear program behind a bound: its size, and what its solver reported.

    `objective` is the solver's, `certified` that of the weights after they were lifted; no weights
    of the basis have an objective below `dual_bound`, as far as the solver's duals reach.
    `weights` are those that the policy is greedy for; they bound V*, too, where there was time to
    certify them (`weights_certified`).
    """

    functions: int
    induced_width: int
    rows: int
    columns: int
    iterations: int
    objective: float
    certified: float
    dual_bound: float
    weights: Floats = field(repr=False)  # (horizon + 1, n_functions), last row 0; (1, ...) infinite
    weights_certified: bool
    view: str

    def moved(self, units: Normalised) -> Program:
        """The same in the user's unit of rewards."""
        return replace(
            self,
            objective=units.value(self.objective),
            certified=units.upper(self.certified),
            dual_bound=units.lower(self.dual_bound),
            weights=units.weights(self.weights)[0],
        )


class Proof(Protocol):
    """Why no policy earns more than `upper_bound` from the initial distribution."""

    @property
    def kind(self) -> str:
        """What proves the bound, as in "certified by exact values"."""
        ...

    @property
    def upper_bound(self) -> float:
        """No policy earns more than this from the initial distribution."""
        ...

    @property
    def program(self) -> Program | None:
        """The linear program that was solved for it; None if there was none."""
        ...

    def moved(self, units: Normalised) -> Self:
        """The same for the original of a model with normalised rewards."""
        ...


class StartProof(Proof, Protocol):
    """A proof of a bound at the start alone, beside linear values."""

    @property
    def model(self) -> FactoredMDP | None:
        """The model that it is about; None for a plan from a file."""
        ...

    @property
    def fits(self) -> bool:
        """Whether a file and its checker can take it."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class GivenProof:
    """What a plan file says of a proof: what it calls it, its bound, JSON and arrays."""

    kind: str
    upper_bound: float
    json: Mapping[str, Any]
    arrays: Arrays
    variables: Sequence[Variable]
    horizon: int | None


class FiledProof(StartProof, Protocol):
    """A proof of a bound at the start that a file can hold, and its checker proves again.

    A kind of it is a class in the registry `PROOFS` (`fsmdp.bounds.proofs`).
    """

    def written(self, variables: Sequence[Variable]) -> tuple[dict[str, Any], Arrays]:
        """What a file that it fits into says of it: JSON, and arrays."""
        ...

    @classmethod
    def read(cls, given: GivenProof) -> Self:
        """The proof that a file has; a ValueError if it is none. It is not checked here."""
        ...

    @staticmethod
    def proved(
        model: checker.Model, claim: checker.Claim, held: Sequence[bool]
    ) -> tuple[Fraction, Fraction]:
        """The least bound that the checker proves from a file, and how much rounding is in it."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LinearProof:
    """V_l(s) = sum_j w_j h_j(s) >= V*_l(s) at every state and step, certified by elimination.

    With `invariants`, at every state in which they hold, which are all that can be reached;
    `restrictions` say which of them were used, and how, to a checker. `hint` tells a checker how it
    was eliminated, where that is not exact and another way may prove less. Without a `program` V
    is the constant, and the bound the trivial one: the largest reward at every step.
    """

    basis: Basis = field(repr=False)
    weights: Floats = field(repr=False)  # (horizon + 1, n_functions), last row 0; (1, ...) infinite
    certificate: Certificate
    program: Program | None = field(default=None, repr=False)
    hint: Hint | None = field(default=None, repr=False)
    invariants: tuple[Invariant, ...] = field(default=(), repr=False)
    restrictions: tuple[Restriction, ...] = field(default=(), repr=False)

    @property
    def kind(self) -> str:
        """By elimination, or the trivial bound."""
        return "the largest rewards" if self.program is None else "elimination"

    @property
    def upper_bound(self) -> float:
        """The mean of V_1 at the start, rounded up."""
        return self.certificate.upper_bound

    def moved(self, units: Normalised) -> LinearProof:
        """Constants take up the offset of rewards; what rounds is added to them."""
        weights, excess = units.weights(self.weights)
        return replace(
            self,
            weights=weights,
            certificate=self.certificate.moved(units.factor, units.upper(self.upper_bound, excess)),
            program=None if self.program is None else self.program.moved(units),
        )


def linear_proof(
    network: BellmanNetwork, weights: Floats, certificate: Certificate, program: Program | None
) -> LinearProof:
    """The proof of weights (with a last row of 0) that were certified on a network."""
    elimination = network.elimination
    return LinearProof(
        network.basis,
        weights,
        certificate,
        program,
        None if elimination.is_exact else hint_of(elimination.schedule),
        network.invariants if network.restricts_states else (),
        network.restrictions,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A linear value function above V* everywhere, and what is proved of the start beyond it.

    `at_start` are proofs that no policy earns more than an even smaller number from the initial
    distribution, by a search or by exact values: the tightest first, then those that a file can
    hold where the tightest is too large for one.
    """

    variables: tuple[Variable, ...]
    horizon: int | None
    discount: float
    values: LinearProof
    at_start: tuple[StartProof, ...] = ()
    trivial: float = math.inf  # the bound of the largest reward at every step, for comparison

    @property
    def proof(self) -> Proof:
        """What proves the upper bound."""
        return self.at_start[0] if self.at_start else self.values

    @property
    def upper_bound(self) -> float:
        """No policy earns more than this from the initial distribution."""
        return min(self.values.upper_bound, self.proof.upper_bound)

    @property
    def basis(self) -> Basis:
        """Functions of the values."""
        return self.values.basis

    @property
    def weights(self) -> Floats:
        """Of the values: (horizon + 1, n_functions), last row 0; (1, ...) if infinite."""
        return self.values.weights

    @property
    def certificate(self) -> Certificate:
        """Why the values lie above V*."""
        return self.values.certificate

    def value(self, state: State, step: int = 1) -> float:
        """No policy earns more than this from a state at a step on.

        Infinite for a state in which an invariant does not hold: nothing is known of it.
        """
        values = check_state(state, self.variables)
        found = value_of(self.basis, self.weights, values, step)
        at = np.array([values], dtype=np.int64)
        return found if all(one.holds(at)[0] for one in self.values.invariants) else math.inf


def value_of(basis: Basis, weights: Floats, state: Sequence[int], step: int) -> float:
    """The value of weights with a row for each step, or one for all; not below the exact sum."""
    horizon = None if len(weights) == 1 else len(weights) - 1
    position = as_step(step, horizon) - 1
    terms = (basis.evaluate(state) * weights[0 if horizon is None else position]).tolist()
    try:
        total = math.fsum(terms)  # rounded once
        size = math.fsum(map(abs, terms))
    except OverflowError:
        return math.inf
    return total + EPSILON * size + UNDERFLOW * len(terms) if size else total
