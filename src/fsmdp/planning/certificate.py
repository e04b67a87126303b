"""Certificates: how far weights are from feasible, by elimination and not by a solver's word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsmdp.elimination import Maximum
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import OPTIMISTIC, BellmanNetwork, Intervals
from fsmdp.planning.oracle import excesses


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


def certify(
    network: BellmanNetwork,
    intervals: Intervals,
    weights: Floats,
    means: Floats,
    view: str = OPTIMISTIC,
) -> tuple[Certificate, Floats]:
    """Certificate of weights (n_steps, n_functions), and the weights lifted to be feasible.

    violation_l = max over (s, a) of R + discount * backup_{l+1} - V_l
    lift_l = violation_l + rounding_l + discount * lift_{l+1}      (finite horizon)
    lift = (violation + rounding) / (1 - discount)                 (infinite horizon)

    Adding lift_l to V_l makes every inequality hold, so by induction V_l >= V*_l. A negative
    violation is slack everywhere, and lowers the bound by as much. The rounding of all sums
    involved is bounded and added, so that the bound holds in floating point too.
    Cost: one max-sum for each step.
    """
    worst = excesses(network, intervals, weights, view)
    violations = np.array([maximum.value for maximum in worst])
    lifts = lifts_of(network, violations + _rounding(network, worst))
    lifted = weights.copy()
    lifted[:, 0] += lifts
    row = int(violations.argmax())
    action = worst[row].action
    witness = Witness(
        row + 1,
        tuple(int(value) for value in worst[row].state(action)),
        network.actions[action],
        float(violations[row]),
    )
    return Certificate(violations, lifts, witness, float(means @ lifted[0])), lifted


def _rounding(network: BellmanNetwork, worst: list[Maximum]) -> Floats:
    """What the sums of a step can be off by: terms times their sizes times the machine's unit.

    Covers both the excess, summed along the elimination, and V itself, summed when it is read.
    """
    factors = network.elimination.network
    starts = np.array([offsets[0] for offsets in factors.offsets])
    unit = 4 * len(starts) * np.finfo(np.float64).eps
    sums = [np.maximum.reduceat(np.abs(maximum.entries), starts).sum() for maximum in worst]
    return unit * np.array(sums)


def lifts_of(network: BellmanNetwork, violations: Floats) -> Floats:
    """What must be added to the constant of each step so that no inequality is violated."""
    if network.horizon is None:
        return violations / (1 - network.discount)
    lifts = np.zeros(len(violations))
    after = 0.0
    for row in reversed(range(len(violations))):
        lifts[row] = after = violations[row] + network.discount * after
    return lifts
