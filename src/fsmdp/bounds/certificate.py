"""Certificates: how far weights are from feasible, by elimination and not by a solver's word."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from fsmdp.bounds.bellman import OPTIMISTIC, BellmanNetwork, Intervals
from fsmdp.bounds.clock import NO_LIMIT, Clock
from fsmdp.bounds.inequalities import Cuts, following_weights, inequalities
from fsmdp.compiled import compiled
from fsmdp.elimination.max_sum import Maximum
from fsmdp.foundation.numbers import facts_table, plain, upper
from fsmdp.foundation.threads import cores
from fsmdp.model.marginals import EPSILON, UNDERFLOW
from fsmdp.model.tables import Floats

SECONDS_PER_TERM = 4e-9
"""Twice what an addition of a max-sum takes on an idle machine of 2024."""

WORTH_A_THREAD = 50_000
"""Table entries from which a step's max-sum takes longer than starting a thread."""


@dataclass(frozen=True, slots=True, eq=False)
class Separation:
    """The most violated inequality `normal @ weights >= reward`, flat over steps and functions."""

    violation: float  # reward - normal @ weights; at most 0 if the weights are feasible
    step: int
    state: tuple[int, ...]
    action: int
    normal: Floats = field(repr=False)  # (n_steps * n_functions,)
    reward: float


def excesses(network: BellmanNetwork, intervals: Intervals, weights: Floats) -> list[Maximum]:
    """All of `each_excess` together, with memory for the messages of all steps."""
    return list(each_excess(network, intervals, weights))


def each_excess(
    network: BellmanNetwork,
    intervals: Intervals,
    weights: Floats,
    view: str = OPTIMISTIC,
    clock: Clock = NO_LIMIT,
) -> Iterator[Maximum]:
    """max over states of R + discount * backup - V, for every action, step after step.

    Raises `Stopped` when the clock says so.
    """
    pairs = [
        (weights[step], following_weights(network, weights, step)) for step in range(len(weights))
    ]
    return excesses_of(network, intervals, pairs, view, clock)


def excesses_of(
    network: BellmanNetwork,
    intervals: Intervals,
    pairs: Sequence[tuple[Floats, Floats]],
    view: str = OPTIMISTIC,
    clock: Clock = NO_LIMIT,
) -> Iterator[Maximum]:
    """The same for pairs of weights: of a step, and of the one after it.

    Cost: one two-pass max-sum for each pair, and memory for the messages of a few.
    """
    check = None if clock is NO_LIMIT else clock.check

    def at(position: int) -> Maximum:
        entries = network.excess(*pairs[position], intervals, view)
        return network.elimination.maximise(entries, check)

    workers = cores()
    if len(pairs) == 1 or workers == 1 or network.elimination.n_rows < WORTH_A_THREAD:
        yield from map(at, range(len(pairs)))
        return
    with ThreadPoolExecutor(workers) as threads:
        waiting: deque[Future[Maximum]] = deque()
        for position in range(len(pairs)):
            waiting.append(threads.submit(at, position))
            if len(waiting) == workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def seconds_of_excesses(network: BellmanNetwork) -> float:
    """What the max-sums of all steps take, roughly: a matter of a machine's memory."""
    terms = network.n_weight_rows * network.elimination.schedule.n_terms
    workers = 1 if network.elimination.n_rows < WORTH_A_THREAD else cores()
    return terms * SECONDS_PER_TERM / workers


def separate(network: BellmanNetwork, intervals: Intervals, weights: Floats) -> Separation:
    """The worst violation over all steps, states and actions, and the hyperplane through it."""
    found = excesses(network, intervals, weights)
    step = int(np.argmax([maximum.value for maximum in found]))
    action = found[step].action
    state = found[step].state(action)[: len(network.inputs)]
    entries = None if found[step].is_exact else found[step].picked([action])
    cut = Cuts(np.array([step]), state[None, :], np.array([action]), entries)
    rows, rewards = inequalities(network, intervals, weights, cut)
    return Separation(
        found[step].value,
        step + 1,
        network.state_of(state),
        action,
        rows.toarray()[0],
        float(rewards[0]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """Where the Bellman inequality is violated most."""

    step: int
    state: tuple[int, ...]
    action: str
    violation: float


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """A bound that holds whatever the solver did.

    `violations` are those of the weights as they were handed in; `lifts` are what was added to
    each step's constant so that none is left. With an infinite horizon there is one step.
    """

    violations: Floats  # (n_steps,)
    lifts: Floats  # (n_steps,)
    witness: Witness
    upper_bound: float

    @property
    def violation(self) -> float:
        """Largest violation over all steps, states and actions; 0 if the weights were feasible."""
        return max(0.0, float(self.violations.max()))

    def moved(self, factor: float, upper_bound: float) -> Certificate:
        """The same with rewards in another unit, and the bound as it is there."""
        witness = replace(self.witness, violation=factor * self.witness.violation)
        return Certificate(factor * self.violations, factor * self.lifts, witness, upper_bound)

    def _repr_html_(self) -> str:
        scale = abs(self.upper_bound)
        return facts_table(
            "Certificate",
            (
                ("no policy earns more than", upper(self.upper_bound, 6)),
                ("largest violation before lifting", plain(self.violation, 2, scale)),
                ("at", f"step {self.witness.step}, action {self.witness.action}"),
                ("lifted by, at the first step", plain(self.lifts[0], 2, scale)),
            ),
        )

    def __repr__(self) -> str:
        return (
            f"Certificate(no policy earns more than {plain(self.upper_bound, 6)}; largest "
            f"violation before lifting {self.violation:.2g}, at step {self.witness.step})"
        )


def certify(
    network: BellmanNetwork,
    intervals: Intervals,
    weights: Floats,
    means: Floats,
    view: str = OPTIMISTIC,
    clock: Clock = NO_LIMIT,
) -> tuple[Certificate, Floats]:
    """Certificate of weights (n_steps, n_functions), and the weights lifted to be feasible.

    violation_l = max over (s, a) of R + discount * backup_{l+1} - V_l
    lift_l = violation_l + rounding_l + discount * lift_{l+1}      (finite horizon)
    lift = (violation + rounding) / (1 - discount)                 (infinite horizon)

    Adding lift_l to V_l makes every inequality hold, so by induction V_l >= V*_l. A negative
    violation is slack everywhere, and lowers the bound by as much. The rounding of all sums and
    products is bounded and added, so that the bound holds for the model's numbers as the rationals
    that they are. Raises `Stopped` when the clock says so.
    Cost: one max-sum for each step whose weights, or whose following ones, are not the same as
    those of the step before.
    """
    allowance = _Allowance(network, intervals)
    violations, roundings = np.zeros(len(weights)), np.zeros(len(weights))
    witness = None
    first = _changes(network, weights)
    pairs = [(weights[step], following_weights(network, weights, step)) for step in first]
    found_excesses = excesses_of(network, intervals, pairs, view, clock)
    ends = [*first[1:], len(weights)]
    for step, end, (_, following), worst in zip(first, ends, pairs, found_excesses, strict=True):
        violations[step:end] = worst.value
        roundings[step:end] = allowance.of_step(worst.entries, following)
        if witness is None or worst.value > witness.violation:
            found = worst.state(worst.action)
            state, action = network.state_of(found), network.action_of(found, worst.action)
            witness = Witness(step + 1, state, action, worst.value)
    assert witness is not None
    lifts = lifts_of(network, violations + roundings, weights[:, 0])
    lifted = weights.copy()
    lifted[:, 0] += lifts
    upper_bound = float(means @ lifted[0]) + allowance.of_mean(lifted[0])
    return Certificate(violations, lifts, witness, upper_bound), lifted


def _changes(network: BellmanNetwork, weights: Floats) -> list[int]:
    """The first of each run of steps with the same weights and the same following ones."""
    if len(weights) == 1:
        return [0]
    last = following_weights(network, weights, len(weights) - 1)
    following = np.vstack([weights[1:], last[None, :]])
    same = (weights[1:] == weights[:-1]).all(axis=1) & (following[1:] == following[:-1]).all(axis=1)
    return [0, *(1 + np.flatnonzero(~same)).tolist()]


class _Allowance:
    """What sums and products of floating-point numbers can be off by: terms times their sizes."""

    def __init__(self, network: BellmanNetwork, intervals: Intervals) -> None:
        factors = network.elimination.network
        self._starts = np.array([offsets[0] for offsets in factors.offsets[: factors.n_terms]])
        # Messages are taken back and added again; a sum of n terms passes through fewer than 4 n
        # partial sums, none larger than three times all its terms.
        self._unit = 16 * (len(self._starts) + 4) * EPSILON
        self._discount = network.discount
        self._functions = np.zeros(len(network.basis))
        if intervals.rounding is not None:
            np.maximum.at(self._functions, network.backup_columns, intervals.rounding)
        self._sizes = network.function_sizes
        self._mean_unit = 4 * (len(network.basis) + sum(factors.sizes) + 4) * EPSILON

    def of_step(self, entries: Floats, following: Floats) -> float:
        """Of the excess, summed along the elimination, and of V itself, summed when it is read."""
        terms = float(np.maximum.reduceat(np.abs(entries), self._starts).sum())
        backups = self._discount * float(np.abs(following) @ self._functions)
        return self._unit * terms + 2 * backups + UNDERFLOW

    def of_mean(self, weights: Floats) -> float:
        """Of E[V] under a distribution in which the variables are independent."""
        return self._mean_unit * float(np.abs(weights) @ self._sizes) + UNDERFLOW


def lifts_of(
    network: BellmanNetwork, violations: Floats, constants: Floats | None = None
) -> Floats:
    """What must be added to the constant of each step so that no inequality is violated.

    Sums with the `constants` to which it is added are rounded up. Where an episode may end early,
    V >= 0 in terminal states is asked for whatever the later steps are lifted by, so that what
    lowers these lowers nothing before.
    """
    sizes = np.abs(violations) if constants is None else np.abs(violations) + np.abs(constants)
    ends = bool(network.conditions.terminal)
    if network.horizon is None and ends and violations[0] <= 0:
        return np.asarray(violations + 8 * EPSILON * sizes)
    if network.horizon is None:
        lift = (violations + 4 * EPSILON * np.abs(violations)) / (1 - network.discount)
        return np.asarray(lift + 8 * EPSILON * (np.abs(lift) + sizes))
    lifts = np.zeros(len(violations))
    _fill_lifts(violations.copy(), sizes, float(network.discount), ends, lifts)
    return lifts


@compiled()
def _fill_lifts(
    violations: Floats, sizes: Floats, discount: float, ends: bool, lifts: Floats
) -> None:
    after = 0.0
    after_size = 0.0
    for step in range(len(lifts) - 1, -1, -1):
        lift = violations[step] + discount * (max(0.0, after) if ends else after)
        size = abs(lift) + sizes[step]
        after = lift + 4 * EPSILON * (size + after_size)
        lifts[step] = after
        after_size = size
