"""Certificates: how far weights are from feasible, by elimination and not by a solver's word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import OPTIMISTIC, BellmanNetwork, Intervals


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
    lift_l = violation_l + discount * lift_{l+1}          (finite horizon)
    lift = violation / (1 - discount)                     (infinite horizon)

    Adding lift_l to V_l makes every inequality hold, so by induction V_l >= V*_l. A negative
    violation is slack everywhere, and lowers the bound by as much.
    Cost: one max-sum for each step.
    """
    steps = len(weights)
    violations, lifts = np.zeros(steps), np.zeros(steps)
    worst: tuple[float, int, int, NDArray[np.int64]] | None = None
    following, lift = np.zeros(len(network.basis)), 0.0
    for row in reversed(range(steps)):
        if network.horizon is None:
            following = weights[row]
        entries = network.excess(weights[row], following, intervals, view)
        found = network.elimination.maximise(entries)
        violations[row] = found.value
        if network.horizon is None:
            lift = found.value / (1 - network.discount)
        else:
            lift = found.value + network.discount * lift
        lifts[row] = lift
        if worst is None or found.value >= worst[0]:
            worst = (found.value, row, found.action, found.state(found.action))
        following = weights[row]
    assert worst is not None
    lifted = weights.copy()
    lifted[:, 0] += lifts
    witness = Witness(
        worst[1] + 1,
        tuple(int(value) for value in worst[3]),
        network.actions[worst[2]],
        worst[0],
    )
    return Certificate(violations, lifts, witness, float(means @ lifted[0])), lifted
