"""Bounds: value functions that are certified to lie above V*."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fsmdp.bounds.certificate import Certificate
from fsmdp.bounds.restricting import Restriction
from fsmdp.elimination.schedule import Hint
from fsmdp.foundation.checks import as_step
from fsmdp.model.basis import Basis
from fsmdp.model.lookup import Integers
from fsmdp.model.marginals import EPSILON, UNDERFLOW
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.model.variables import State, Variable, check_state
from fsmdp.reductions.invariants import Invariant

ELIMINATION = "elimination"


@dataclass(frozen=True, slots=True)
class Box:
    """Values that some variables never leave, and the variables that matter there.

    In a box, rewards and the next values of variables that matter depend on these alone, so that
    states which agree in them have the same value.
    """

    variables: tuple[int, ...]
    values: tuple[tuple[int, ...], ...]  # of each of the variables
    kept: tuple[int, ...]  # that matter, those above included


@dataclass(frozen=True, slots=True, eq=False)
class StartProof:
    """Why a bound at the start holds: states whose values prove it, for a file and its checker.

    With a horizon, values are computed backwards from the last step; otherwise they are given, and
    no action improves on them by more than rounding. States are those of `model`, which is None
    for a plan from a file.
    """

    name: str  # of the method
    model: FactoredMDP | None
    states: Integers | None  # (n_states, n_variables); None: all, the last variable fastest
    values: Floats | None  # (n_states,); None with a horizon
    boxes: tuple[Box, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """V_l(s) = sum_j w_j h_j(s) >= V*_l(s) at every state and step, by elimination.

    With `invariants`, at every state in which they hold, which are all that can be reached;
    `restrictions` say which of them were used, and how, to a checker.
    `at_start` bounds what can be earned from the initial distribution where more is known of it
    than the weights say, by a search or by exact values (`proof`, `start_proof`). `hint` tells a
    checker how it was eliminated, where that is not exact and another way may prove less.
    """

    variables: tuple[Variable, ...]
    horizon: int | None
    basis: Basis = field(repr=False)
    weights: Floats = field(repr=False)  # (horizon + 1, n_functions), last row 0; (1, ...) infinite
    certificate: Certificate
    at_start: float = math.inf
    proof: str = ELIMINATION
    hint: Hint | None = field(default=None, repr=False)
    invariants: tuple[Invariant, ...] = field(default=(), repr=False)
    restrictions: tuple[Restriction, ...] = field(default=(), repr=False)
    start_proof: StartProof | None = field(default=None, repr=False)

    @property
    def upper_bound(self) -> float:
        """No policy earns more than this from the initial distribution."""
        return min(self.certificate.upper_bound, self.at_start)

    def value(self, state: State, step: int = 1) -> float:
        """No policy earns more than this from a state at a step on.

        Infinite for a state in which an invariant does not hold: nothing is known of it.
        """
        values = check_state(state, self.variables)
        found = value_of(self.basis, self.weights, values, step)
        at = np.array([values], dtype=np.int64)
        return found if all(one.holds(at)[0] for one in self.invariants) else math.inf


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
