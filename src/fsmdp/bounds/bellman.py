"""The Bellman inequality as a cost network: R(s, a) + discount * backup(s, a) - V(s).

Its scopes are those of the rewards, the parents of the basis functions, and the basis functions
themselves: h_j depends on Z_j, which need not lie among the parents of Z_j.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Protocol, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from fsmdp.bounds.costs import LARGEST_PROGRAM
from fsmdp.elimination import Constraint, Elimination, Network, Rows, build, build_within
from fsmdp.elimination.counting import Addition, count_along
from fsmdp.elimination.order import DEFAULT_LIMIT, Order, best_order, given_order
from fsmdp.errors import ModelError, WidthError
from fsmdp.foundation.checks import as_items
from fsmdp.model.actions import ActionSpace
from fsmdp.model.basis import Basis, check_basis
from fsmdp.model.cases import Cases
from fsmdp.model.conditions import Conditions
from fsmdp.model.lookup import flatten_cases, scopes_of
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.structure import Structure, sum_of_discounts
from fsmdp.model.tables import Floats, read_only_array
from fsmdp.model.variables import Scope, Variable, find_positions, positions_by_name
from fsmdp.policies.joint import joint_network
from fsmdp.reductions.invariants import Invariant, LocalInvariant, SumInvariant

OPTIMISTIC, POINT, PESSIMISTIC = "optimistic", "point", "pessimistic"
VIEWS = (OPTIMISTIC, POINT, PESSIMISTIC)


ROOM, FEW = 2, 2**12
"""A restriction that no table of the network holds may cost so many times the entries of all
tables, or so many entries."""

END = "end of the episode"
"""In place of an action: where an episode is over, values may not be below 0."""

OF_ACTIONS = -1
"""In place of an invariant: the limit on joint actions."""

QUICK = 1
"""Orders that are tried to tell what a restriction costs."""


@dataclass(frozen=True, slots=True)
class Restriction:
    """An invariant that restricts a network, and for a sum how it is counted there."""

    invariant: int
    additions: tuple[Addition, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Restricted:
    """A network with constraints for some invariants, and which."""

    network: Network
    order: Sequence[int] | None = field(repr=False)
    restrictions: tuple[Restriction, ...]


def restrict(
    network: Network, order: Sequence[int] | None, invariants: Sequence[Invariant]
) -> Restricted:
    """Add what restricts a network without making it much wider.

    Tables over variables that some table of the network depends on cost nothing. Others, and sums,
    are taken one kind after another as long as elimination stays within its room. Positions of
    counters stand after those of all other variables.
    Cost: an order of elimination for each sum, and two more.
    """
    found = Restricted(network, order, ())
    if not invariants:
        return found
    holding: dict[int, list[set[int]]] = {}
    for scope in set(network.all_scopes):
        for position in scope:
            holding.setdefault(position, []).append(set(scope))
    free, others, sums = [], [], []
    for number, one in enumerate(invariants):
        if isinstance(one, SumInvariant):
            sums.append(number)
        elif any(scope.issuperset(one.scope) for scope in holding.get(one.scope[0], ())):
            free.append(number)
        elif all(position in holding for position in one.scope):
            others.append(number)
    found = _with_tables(found, invariants, free)
    if others or sums:
        most = max(FEW, ROOM * _order_of(found).total_entries)
        steps = [partial(_with_tables, invariants=invariants, chosen=others)]
        steps += [partial(_with_sum, invariants=invariants, number=number) for number in sums]
        for widened in steps:
            tried = widened(found)
            if _order_of(tried).total_entries <= most:
                found = tried
    return found


def _order_of(found: Restricted) -> Order:
    network = found.network
    if found.order is not None:
        return given_order(found.order, network.all_scopes, network.sizes)
    return best_order(network.all_scopes, network.sizes, QUICK)


def _with_tables(
    before: Restricted, invariants: Sequence[Invariant], chosen: Sequence[int]
) -> Restricted:
    tables = []
    for number in chosen:
        one = invariants[number]
        assert isinstance(one, LocalInvariant)
        tables.append((one.scope, one.allowed))
    added = tuple(Restriction(number) for number in chosen)
    network = before.network.with_constraints(tables)
    return replace(before, network=network, restrictions=(*before.restrictions, *added))


def _with_sum(before: Restricted, invariants: Sequence[Invariant], number: int) -> Restricted:
    one, network = invariants[number], before.network
    assert isinstance(one, SumInvariant)
    counts = dict(zip(one.scope, one.counts, strict=True))
    counters = count_along(_order_of(before), network.sizes, counts, one.least, one.most)
    if not counters.constraints:
        return before
    return Restricted(
        network.with_constraints(counters.constraints, counters.sizes),
        None if before.order is None else counters.order,
        (*before.restrictions, Restriction(number, counters.additions)),
    )


class Together(Protocol):
    """Sets of several functions' means at once, inside the product of their intervals."""

    def means(self, weights: Floats, low: Floats, high: Floats, sign: float) -> Floats:
        """The means in the set that are best for `sign` times the weights, (n_backup_entries,)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Both ends of mean rewards, and of each basis function's mean after one step.

    Flat vectors in the layout of a `BellmanNetwork`. A known model has low = high, up to
    `rounding`; a learner's confidence set has intervals of some width.
    """

    rewards: Floats  # (n_reward_entries,) upper ends
    low: Floats  # (n_backup_entries,)
    high: Floats  # (n_backup_entries,)
    reward_low: Floats | None = None  # (n_reward_entries,) lower ends; None if they are the same
    rounding: Floats | None = None  # (n_backup_entries,) error of low and high, if any
    together: Together | None = None  # what means of several functions cannot be at once
    exact: bool = field(init=False)  # whether the ends of all functions' means agree

    def __post_init__(self) -> None:
        agree = self.low is self.high or bool((self.low == self.high).all())
        object.__setattr__(self, "exact", agree)

    def with_lowest_rewards(self) -> Intervals:
        """The same with rewards at their lower ends."""
        return self if self.reward_low is None else replace(self, rewards=self.reward_low)


@dataclass(frozen=True, slots=True, eq=False)
class BellmanNetwork:
    """Structure only: which numbers of the network's `entries` are values, rewards, backups.

    Where actions are made of variables, these stand after the state variables and are maximised
    like them: assignments of the network are then a state, a joint action, and counters. With
    invariants, maxima are over states that satisfy those among the `restrictions`.
    """

    variables: tuple[Variable, ...]
    actions: ActionSpace
    horizon: int | None
    discount: float
    basis: Basis
    reward_scopes: tuple[Cases[Scope], ...]
    parent_scopes: tuple[Cases[Scope], ...]
    elimination: Elimination = field(repr=False)
    values: Floats = field(repr=False)  # h_j at each value entry
    value_columns: NDArray[np.int64] = field(repr=False)  # its j
    backup_columns: NDArray[np.int64] = field(repr=False)  # j of each backup entry
    function_sizes: Floats = field(repr=False)  # largest |h_j|
    n_rewards: int
    invariants: tuple[Invariant, ...]
    restrictions: tuple[Restriction, ...] = field(repr=False)
    conditions: Conditions = field(repr=False)
    given: NDArray[np.int64] | None = field(repr=False)
    """Entries of rewards and backups without those of the ends of an episode; None if it has none.
    """

    @property
    def restricts_states(self) -> bool:
        """Whether some states are left out, because invariants say that they cannot be reached."""
        return any(one.invariant != OF_ACTIONS for one in self.restrictions)

    @property
    def rewards_at(self) -> slice:
        """Where the reward entries stand."""
        return slice(len(self.values), len(self.values) + self.n_rewards)

    @property
    def backups_at(self) -> slice:
        """Where the backup entries stand."""
        return slice(len(self.values) + self.n_rewards, self.elimination.network.n_entries)

    @property
    def inputs(self) -> tuple[Variable, ...]:
        """State variables, then action variables."""
        return (*self.variables, *self.actions.variables)

    def state_of(self, assignment: NDArray[np.int64]) -> tuple[int, ...]:
        """The state in an assignment of the network."""
        return tuple(assignment[: len(self.variables)].tolist())

    @property
    def given_backups(self) -> NDArray[np.int64]:
        """Positions among the backup entries, without those of the ends of an episode."""
        if self.given is None:
            return np.arange(len(self.backup_columns))
        start = self.backups_at.start
        return np.asarray(self.given[self.given >= start] - start)

    def laid_out(self, intervals: Intervals) -> Intervals:
        """Intervals of the given scopes in the layout of the network, where episodes end early.

        After the end nothing is earned and no function counts: both ends of its entries are 0. Sets
        of several functions' means at once, which do not know of them, are left out.
        """
        if self.given is None:
            return intervals
        given = self.given

        def spread(numbers: Floats, at: slice) -> Floats:
            found = np.zeros(at.stop - at.start)
            found[given[(given >= at.start) & (given < at.stop)] - at.start] = numbers
            return found

        low, reward_low, rounding = intervals.low, intervals.reward_low, intervals.rounding
        lowest = spread(low, self.backups_at)
        return Intervals(
            spread(intervals.rewards, self.rewards_at),
            lowest,
            lowest if intervals.high is low else spread(intervals.high, self.backups_at),
            None if reward_low is None else spread(reward_low, self.rewards_at),
            None if rounding is None else spread(rounding, self.backups_at),
        )

    def q_entries(self, entries: Floats) -> Floats:
        """Entries of R + discount * backup, (..., n_entries), as terms of Q: see `q_scopes`."""
        start = self.rewards_at.start
        chosen = entries[..., start:] if self.given is None else entries[..., self.given]
        fixed = self.conditions.entries
        if not len(fixed):
            return chosen
        every = np.broadcast_to(fixed, (*chosen.shape[:-1], len(fixed)))
        return np.concatenate([chosen, every], axis=-1)

    @property
    def q_scopes(self) -> tuple[Cases[Scope], ...]:
        """Scopes of the terms of Q: rewards, backups, and what is allowed."""
        return (*self.reward_scopes, *self.parent_scopes, *self.conditions.scopes)

    def action_of(self, assignment: NDArray[np.int64], action: int) -> str:
        """The action of an assignment that maximises one of the network's sums.

        Mini-buckets may leave values that no joint action has; the idle one stands in for them.
        """
        if action >= self.actions.n_cases:
            return END
        values = assignment[len(self.variables) : len(self.inputs)]
        choice = self.actions.choice(action, values)
        if self.actions.allows(choice):
            return self.actions.name(choice)
        idle = self.actions.idle()
        assert idle is not None  # every position of a list is an action
        return idle

    @property
    def n_weight_rows(self) -> int:
        """Steps that have weights of their own: the horizon, or one if it is infinite."""
        return self.horizon or 1

    def backup(self, weights: Floats, intervals: Intervals, view: str = OPTIMISTIC) -> Floats:
        """w_j times the mean of h_j after a step, at the end of its interval that the view takes.

        optimistic: max(w hi, w lo); pessimistic: min(w hi, w lo); point: w times the middle. Where
        intervals know what cannot be at once, the extremes are taken over what can.
        """
        w = weights[self.backup_columns]
        if intervals.exact:
            return np.asarray(w * intervals.high)
        if view == POINT:
            return np.asarray(w * (intervals.low + intervals.high) / 2)
        if intervals.together is not None:
            sign = 1.0 if view == OPTIMISTIC else -1.0
            return w * intervals.together.means(weights, intervals.low, intervals.high, sign)
        one, other = w * intervals.high, w * intervals.low
        return np.maximum(one, other) if view == OPTIMISTIC else np.minimum(one, other)

    def right_side(self, following: Floats, intervals: Intervals, view: str = OPTIMISTIC) -> Floats:
        """Entries of R + discount * backup of the following step's weights; values are zero."""
        entries = np.zeros(self.elimination.network.n_entries)
        entries[self.rewards_at] = intervals.rewards
        entries[self.backups_at] = self.discount * self.backup(following, intervals, view)
        return entries

    def excess(
        self, weights: Floats, following: Floats, intervals: Intervals, view: str = OPTIMISTIC
    ) -> Floats:
        """Entries of R + discount * backup - V."""
        entries = self.right_side(following, intervals, view)
        entries[: len(self.values)] = -weights[self.value_columns] * self.values
        return entries


class EliminationOptions(TypedDict, total=False):
    """How a network is eliminated: options of `bellman_network`."""

    limit: int
    elimination_order: Sequence[str | int] | None
    elimination: str
    mini_bucket: int | None
    budget: int | None
    invariants: Sequence[Invariant]


def _with_ends(cases: Cases[Scope], first: int, n_ends: int) -> Cases[Scope]:
    """One group more, of what depends on nothing, for the ends of an episode."""
    if not n_ends:
        return cases
    ends = dict.fromkeys(range(first, first + n_ends), len(cases))
    return Cases((*cases.groups, ()), {**cases.exceptions, **ends})


def _constraints(conditions: Conditions) -> tuple[Cases[Constraint], ...]:
    """What is allowed, by action; what is not terminal, for all actions; each table of what is.

    The ends of an episode come after the actions, one for each table of terminal states.
    """
    first, terminal = conditions.actions.n_cases, conditions.terminal
    free: Constraint = ((), np.asarray(True))
    found = []
    for cases in conditions.allowed:
        group = len(cases)
        listed = cases.map(lambda table: (table.scope, np.asarray(table.values == 0)))
        ends = dict.fromkeys(range(first, first + len(terminal)), group)
        found.append(Cases((*listed.groups, free), {**cases.exceptions, **ends}))
    for number, table in enumerate(terminal):
        over = np.asarray(table.values != 0)
        ends = dict.fromkeys(range(first, first + len(terminal)), 2) | {first + number: 1}
        found.append(Cases(((table.scope, ~over), (table.scope, over), free), ends))
    return tuple(found)


def bellman_network(
    variables: Sequence[Variable],
    actions: ActionSpace,
    horizon: int | None,
    discount: float,
    basis: Basis,
    reward_scopes: Sequence[Cases[Scope]],
    parent_scopes: Sequence[Cases[Scope]],
    conditions: Conditions,
    *,
    limit: int = DEFAULT_LIMIT,
    elimination_order: Sequence[str | int] | None = None,
    elimination: str = "auto",
    mini_bucket: int | None = None,
    budget: int | None = None,
    invariants: Sequence[Invariant] = (),
) -> BellmanNetwork:
    """Lay the terms out and choose how to eliminate them; a WidthError if nothing fits.

    With a `mini_bucket`, the entries of a table at most, or a `budget`, those of all tables of a
    step, buckets are split: everything fits, and maxima are bounded from above. `invariants`, which
    are taken to be proved, restrict the states where that costs little.

    Inequalities are asked for of actions that are allowed in states that are not terminal, and
    0 - V(s) <= 0 in those that are: as of further actions, which earn nothing and lead nowhere.
    """
    n_ends = len(conditions.terminal)
    values = [Cases((scope,)) for scope in basis.scopes]
    given = (*reward_scopes, *parent_scopes)
    ended = [_with_ends(cases, actions.n_cases, n_ends) for cases in given]
    factors = (*values, *ended)
    order: Sequence[int] | None = None
    if elimination_order is not None:
        order = read_order(elimination_order, (*variables, *actions.variables))
    limits: tuple[Restriction, ...] = ()
    if actions.variables:
        parts = variables, actions, factors, order, n_ends, _constraints(conditions)
        network, order, additions = joint_network(*parts)
        if additions:
            limits = (Restriction(OF_ACTIONS, additions),)
    else:
        sizes, names = zip(*((v.size, v.name) for v in variables), strict=True)
        allowed = _constraints(conditions)
        network = Network(sizes, len(actions) + n_ends, factors, names, (), allowed)
    restricted = restrict(network, order, invariants)
    network, order = restricted.network, restricted.order

    def columns(cases: Sequence[Cases[Scope]]) -> NDArray[np.int64]:
        counts = [sum(network.table_size(scope) for scope in one) for one in cases]
        return np.repeat(np.arange(len(counts)), counts)

    if budget is None:
        eliminated = build(network, limit, order, elimination, mini_bucket=mini_bucket)
    else:
        eliminated = build_within(network, budget, limit, order, elimination)
    return BellmanNetwork(
        tuple(variables),
        actions,
        horizon,
        discount,
        basis,
        tuple(reward_scopes),
        tuple(parent_scopes),
        eliminated,
        np.concatenate([table.values.ravel() for table in basis]),
        columns(values),
        columns(ended[len(reward_scopes) :]),
        np.array([float(np.abs(table.values).max()) for table in basis]),
        len(columns(ended[: len(reward_scopes)])),
        tuple(invariants),
        (*limits, *restricted.restrictions),
        conditions,
        _given_entries(network, len(values)) if n_ends else None,
    )


def _given_entries(network: Network, first: int) -> NDArray[np.int64]:
    """Positions of the entries of terms of Q, without those of the ends of an episode."""
    found = []
    for factor in range(first, network.n_terms):
        cases, offsets = network.factors[factor], network.offsets[factor]
        found.append(np.arange(offsets[0], offsets[len(cases) - 1]))
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def read_order(order: Sequence[str | int], variables: Sequence[Variable]) -> tuple[int, ...]:
    """Positions of the variables in the order given."""
    given = as_items(order, "elimination_order", "a list of variables", "list each once")
    return find_positions(given, positions_by_name(variables), "elimination_order")


def network_of_model(
    model: FactoredMDP,
    basis: Basis,
    check: Callable[[], None] | None = None,
    **options: Unpack[EliminationOptions],
) -> tuple[BellmanNetwork, Intervals]:
    """A known model: minimal scopes, and intervals of no width; `check` may raise to end it."""
    marginals = model.marginals(check_basis(basis), check)
    backprojections = marginals.backprojections()
    network = bellman_network(
        model.variables,
        model.actions,
        model.horizon,
        model.discount,
        marginals.basis,
        scopes_of(model.reward_means),
        scopes_of(backprojections),
        model.conditions,
        **options,
    )
    means, roundings = flatten_cases(backprojections), flatten_cases(marginals.roundings())
    found = Intervals(flatten_cases(model.reward_means), means, means, rounding=roundings)
    return network, network.laid_out(found)


def network_of_structure(structure: Structure, **options: object) -> BellmanNetwork:
    """What a learner plans in: scopes as given, numbers to come."""
    return bellman_network(
        structure.variables,
        structure.actions,
        structure.horizon,
        structure.discount,
        structure.basis,
        [term.parents for term in structure.rewards],
        structure.parents,
        structure.conditions,
        **options,  # type: ignore[arg-type]
    )


Weights = str | Mapping[str, ArrayLike] | Floats


def state_means(weights: Weights, basis: Basis, model: FactoredMDP) -> Floats:
    """E[h_j] for each j when states are drawn with the given weights.

    "initial": the model's initial distribution; "uniform": all states alike; a dictionary: a
    distribution or value for each variable; a vector: the means themselves. Means and not sums,
    which would overflow. Cost: the size of the tables.
    """
    if isinstance(weights, str):
        if weights == "uniform":
            return np.array([table.values.mean() for table in basis])
        if weights == "initial":
            return _factored_means(basis, model.initial_distributions())
        raise ModelError(
            f"weights: expected 'initial', 'uniform', a distribution for each variable, or a "
            f"vector of {len(basis)} means, found {weights!r}."
        )
    if isinstance(weights, Mapping):
        given = model.replace(rewards=(), initial=weights, terminal=())
        return _factored_means(basis, given.initial_distributions())
    means = read_only_array(weights, "weights")
    if means.shape != (len(basis),) or abs(means[0] - 1) > 1e-9:
        raise ModelError(
            f"weights: expected a vector of {len(basis)} means that begins with 1, the mean of "
            f"the constant, found shape {means.shape}; use 'initial', 'uniform', or a "
            "distribution for each variable."
        )
    return means


def _factored_means(basis: Basis, distributions: Sequence[Floats]) -> Floats:
    means = []
    for table in basis:
        values = table.values
        for position in reversed(table.scope):
            values = values @ distributions[position]
        means.append(float(values))
    return np.array(means)


def constant_value(network: BellmanNetwork, intervals: Intervals) -> float:
    """A value that no state exceeds: the largest reward, earned at every step.

    Its weights are feasible and their 1-norm is at most this, so that a bound W of as much
    always leaves a solution.
    """
    nothing = np.zeros(len(network.basis))
    largest = network.elimination.maximise(network.right_side(nothing, intervals)).value
    return abs(largest) * sum_of_discounts(network.horizon, network.discount)


def largest_value(network: BellmanNetwork, intervals: Intervals) -> float:
    """No value is further from zero than this: every reward term at its largest, at every step."""
    largest = sum(float(np.abs(term).max()) for term in _terms(network, intervals))
    return largest * sum_of_discounts(network.horizon, network.discount)


def value_span(network: BellmanNetwork, intervals: Intervals) -> float:
    """No two values differ by more: the spans of all reward terms, at every step.

    The largest value itself if no reward depends on anything, and 1 a step if none is given.
    """
    span = sum(float(np.ptp(term)) for term in _terms(network, intervals))
    steps = sum_of_discounts(network.horizon, network.discount)
    return span * steps or largest_value(network, intervals) or steps


def _terms(network: BellmanNetwork, intervals: Intervals) -> list[Floats]:
    """The means of each reward term, in all groups together."""
    factors, first = network.elimination.network, len(network.basis)
    found = []
    for factor in range(first, first + len(network.reward_scopes)):
        begin, cases = factors.offsets[factor][0], factors.factors[factor]
        end = begin + sum(factors.table_size(scope) for scope in cases)
        found.append(intervals.rewards[begin - len(network.values) : end - len(network.values)])
    return found


@dataclass(frozen=True, slots=True, eq=False)
class BellmanRows:
    """Matrices of one step: how values, backups and messages enter its rows."""

    rows: Rows = field(repr=False)
    values: sparse.csr_matrix = field(repr=False)  # (n_rows, n_functions)

    @property
    def n_rows(self) -> int:
        """Rows of one step."""
        return self.rows.n_rows

    def backups(self, network: BellmanNetwork, means: Floats) -> sparse.csr_matrix:
        """Rows times functions: how w_{l+1} enters when its next means are these."""
        at = np.arange(network.backups_at.start, network.backups_at.stop)
        return _gathered(self.rows, network, means, at, network.backup_columns)


def bellman_rows(network: BellmanNetwork, n_steps: int = 1) -> BellmanRows:
    """Rows of one step, refused if so many steps together have too many.

    Cost: one non-zero for each term of each row.
    """
    n_rows = n_steps * network.elimination.n_rows
    if n_rows > LARGEST_PROGRAM:
        raise WidthError(
            f"the linear program would have {n_rows:,} rows (induced width "
            f"{network.elimination.induced_width}, limit {LARGEST_PROGRAM:,}); use "
            "method='cutting-planes', which needs no rows, or a smaller basis."
        )
    rows = network.elimination.rows()
    at = np.arange(len(network.values))
    return BellmanRows(rows, _gathered(rows, network, network.values, at, network.value_columns))


def _gathered(
    rows: Rows,
    network: BellmanNetwork,
    coefficients: Floats,
    entries: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> sparse.csr_matrix:
    shape = (network.elimination.network.n_entries, len(network.basis))
    by_entry = sparse.csr_matrix((coefficients, (entries, columns)), shape=shape)
    product = sparse.csr_matrix(rows.gather @ by_entry)
    product.eliminate_zeros()
    return product


def reward_scale(intervals: Intervals) -> float:
    """Divides right-hand sides so that a solver's absolute tolerances mean what they say."""
    largest = float(np.abs(intervals.rewards).max(initial=0.0))
    return largest if largest > 0 else 1.0


CHOICES = ("shared", "separate")


@dataclass(frozen=True, slots=True, eq=False)
class NetworkSize:
    """One way to eliminate: its sizes, or why it is refused."""

    elimination: str  # "shared" messages, or a "separate" network for each class of actions
    induced_width: int | None
    largest_table: int | None
    rows: int | None
    refused: str | None


def network_sizes(
    model: FactoredMDP, basis: Basis, limit: int = DEFAULT_LIMIT
) -> tuple[NetworkSize, ...]:
    """Sizes under every choice of elimination; nothing of the size of a table is made.

    Cost: the marginals of the basis, and a few elimination orders for each choice.
    """
    return tuple(_size(model, basis, choice, limit) for choice in CHOICES)


def _size(model: FactoredMDP, basis: Basis, choice: str, limit: int) -> NetworkSize:
    try:
        network, _ = network_of_model(model, basis, elimination=choice, limit=limit)
    except WidthError as error:
        return NetworkSize(choice, None, None, None, str(error))
    found = network.elimination
    return NetworkSize(choice, found.induced_width, found.largest_table, found.n_rows, None)


def joined_variables(scopes: Sequence[Scope]) -> tuple[tuple[int, int], ...]:
    """Edges of a cost network: pairs of variables that stand together in some scope."""
    return tuple(sorted({pair for scope in set(scopes) for pair in combinations(scope, 2)}))
