"""A planning problem: what to plan in, and which states count how much."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Unpack

import numpy as np

from fsmdp.bounds.bellman import (
    OPTIMISTIC,
    VIEWS,
    BellmanNetwork,
    EliminationOptions,
    Intervals,
    Weights,
    bellman_network,
    network_of_model,
    read_order,
    state_means,
)
from fsmdp.bounds.certificate import Certificate, certify
from fsmdp.bounds.clock import NO_LIMIT, Clock
from fsmdp.elimination.choose import check_method
from fsmdp.elimination.order import DEFAULT_LIMIT, check_complete
from fsmdp.errors import ModelError, WidthError
from fsmdp.foundation.checks import as_whole
from fsmdp.model.basis import Basis, check_basis
from fsmdp.model.cases import Cases
from fsmdp.model.lookup import flatten_cases
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Table, bound_table
from fsmdp.reductions.invariants import Invariant

LARGEST_LIMIT = 2**33

MOST_INPUTS = 500
"""Of a model whose largest sum of rewards is found by elimination: finding an order for more takes
seconds, and this bound is to be there at once."""

REWARDS_LIMIT = 2**20
"""Entries of a table up to which the largest sum of rewards is found by elimination."""


@dataclass(frozen=True, slots=True, eq=False)
class Trivial:
    """The bound of the constant function: the largest reward, earned at every step.

    No plan's bound is above it.
    """

    certificate: Certificate
    constants: Floats  # (n_steps,), certified values of the constant

    @property
    def upper_bound(self) -> float:
        """No policy earns more than this."""
        return self.certificate.upper_bound

    def weights(self, n_functions: int) -> Floats:
        """The same bound as weights of a basis, all but the constant's 0."""
        weights = np.zeros((len(self.constants), n_functions))
        weights[:, 0] = self.constants
        return weights


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The interval form that every planner takes; a known model has intervals of no width.

    `means` are the objective's means of the basis functions, `start` those at the start of an
    episode (for the bound), `uniform` those over all states (for stages that no state weighs).
    """

    network: BellmanNetwork
    intervals: Intervals = field(repr=False)
    means: Floats = field(repr=False)
    start: Floats = field(repr=False)
    uniform: Floats = field(repr=False)
    trivial: Trivial | None = field(default=None, repr=False)
    view: str = OPTIMISTIC
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.view not in VIEWS:
            raise ModelError(f"view: expected one of {', '.join(VIEWS)}, found {self.view!r}.")


def trivial_problem(model: FactoredMDP) -> Problem:
    """The problem of the constant alone, with its bound: made in no time, for any model.

    Where rewards overlap too much to find the largest sum of them, or variables are many, it is
    bounded by the sum of the largest of each.
    """
    basis = Basis([])
    try:
        if len(model.inputs) > MOST_INPUTS:
            raise WidthError("too many variables for a bound that is made in no time.")
        network, intervals = network_of_model(
            model, basis, limit=REWARDS_LIMIT, elimination="shared"
        )
    except WidthError:
        terms = [means.map(_largest) for means in model.reward_means]
        scopes = [cases.map(lambda table: table.scope) for cases in terms]
        parts = model.variables, model.actions, model.horizon, model.discount, basis
        # A condition that is left out leaves more to maximise over.
        ends = replace(model.conditions, allowed=())
        network = bellman_network(*parts, scopes, [Cases(((),))], ends)
        one = np.ones(1)
        intervals = network.laid_out(Intervals(flatten_cases(terms), one, one))
    means = np.ones(1)
    nothing = np.zeros((network.n_weight_rows, 1))
    certificate, lifted = certify(network, intervals, nothing, means)
    # The constants that were found violate nothing.
    none = np.zeros_like(certificate.violations)
    witness = replace(certificate.witness, violation=0.0)
    certificate = replace(certificate, violations=none, lifts=none, witness=witness)
    trivial = Trivial(certificate, lifted[:, 0])
    return Problem(network, intervals, means, means, means, trivial)


def _largest(table: Table) -> Table:
    return bound_table((), np.asarray(table.values.max()))


def check_options_of_problem(
    model: FactoredMDP,
    basis: Basis | None,
    weights: Weights,
    *,
    limit: int,
    elimination_order: Sequence[str | int] | None,
    elimination: str,
    mini_bucket: int | None,
    invariants: Sequence[Invariant] = (),
) -> None:
    """Refuse what no problem of the model can be made with, before anything is eliminated.

    The basis is `Basis.singles(model)` unless given. Cost: the size of its tables.
    """
    chosen = Basis.singles(model) if basis is None else check_basis(basis)
    state_means(weights, chosen.bind(model.variables), model)
    as_whole(limit, "limit", 1, LARGEST_LIMIT)
    check_method(elimination)
    check_mini_bucket(mini_bucket)
    if elimination_order is not None:
        check_complete(read_order(elimination_order, model.inputs), len(model.inputs))
    check_weights(weights, invariants)


def check_weights(weights: Weights, invariants: Sequence[Invariant]) -> None:
    """Refuse a bound that is to be tight where invariants need not hold: it has no minimum."""
    if invariants and not (isinstance(weights, str) and weights == "initial"):
        raise ModelError(
            "invariants hold from the start on, and a bound that uses them is one of the start's; "
            "use weights='initial', or leave them out."
        )


def check_mini_bucket(size: int | None) -> None:
    """Refuse a size of mini-buckets that is none."""
    if size is not None:
        as_whole(size, "mini_bucket", 2, LARGEST_LIMIT)


def problem_of_model(
    model: FactoredMDP,
    basis: Basis,
    weights: Weights = "initial",
    *,
    trivial: Trivial | None = None,
    clock: Clock = NO_LIMIT,
    **options: Unpack[EliminationOptions],
) -> Problem:
    """The problem of a known model. A WidthError if its network is too wide to eliminate.

    With a `mini_bucket` (entries of a table) or a `budget` (of all tables of a step) none is.
    `invariants` must have been proved. Where they restrict the states, the start stands in for all
    states alike: at others the inequality may not be asked for, and stages would have no minimum.

    Raises `Stopped` when the clock says so.
    """
    began = time.perf_counter()
    as_whole(options.get("limit", DEFAULT_LIMIT), "limit", 1, LARGEST_LIMIT)
    check_mini_bucket(options.get("mini_bucket"))
    check_weights(weights, options.get("invariants", ()))
    network, intervals = clock.run(lambda: network_of_model(model, basis, clock.check, **options))
    bound = network.basis
    # Of states that may allow no action nothing is asked either.
    asks_everywhere = not network.restricts_states and model.conditions.never_stuck
    return Problem(
        network,
        intervals,
        state_means(weights, bound, model),
        state_means("initial", bound, model),
        state_means("uniform" if asks_everywhere else "initial", bound, model),
        trivial,
        seconds=time.perf_counter() - began,
    )
