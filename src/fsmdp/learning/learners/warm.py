"""The planner of learners: from intervals that change little from call to call to weights.

Its program stays in memory and restarts from where the last call ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fsmdp.learning.options import as_choice
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import BellmanNetwork, Intervals
from fsmdp.planning.certificate import certify
from fsmdp.planning.highs import SIMPLEX
from fsmdp.planning.joint import solve_joint
from fsmdp.planning.stagewise import StagewiseProgram

STAGEWISE, JOINT = "stagewise", "joint"
METHODS = (STAGEWISE, JOINT)

WARM_UP_TO = 6_000
"""Rows up to which warm restarts of the simplex method beat cold interior solves."""


@dataclass(frozen=True, slots=True)
class Warm:
    """A planner is its options: here the program, `stagewise` (warm) or `joint` (cold)."""

    method: str = STAGEWISE
    capped: bool = False  # stages: by what is left to earn

    def __post_init__(self) -> None:
        as_choice(self.method, "method", METHODS)

    def start(self, network: BellmanNetwork) -> WarmPlanner:
        """The planner at work in one network of a finite horizon, with its program built."""
        return WarmPlanner(network, self.method, self.capped)


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """Weights that are feasible for certain, and what it took to make them so."""

    weights: Floats = field(repr=False)  # (horizon, n_functions)
    lift: float  # added to V_1


class WarmPlanner:
    """Plans again and again in one network; stages restart from the bases of the last plan."""

    def __init__(self, network: BellmanNetwork, method: str, capped: bool) -> None:
        self.network = network
        self.method = method
        self._capped = capped
        self.uniform = np.array([table.values.mean() for table in network.basis])
        self._program = None
        if method == STAGEWISE:
            is_small = network.elimination.n_rows <= WARM_UP_TO
            self._program = self._build(SIMPLEX if is_small else "auto")

    def plan(self, intervals: Intervals, start: Floats, epsilon: float) -> Weighed:
        """Weights, certified and lifted to be feasible; `start` are means of h_j at the start.

        The lift is what the solver fell short by. Above epsilon, stages are solved again from
        nothing by the simplex method.
        """
        found = self._certified(intervals, start)
        if found.lift > epsilon and self._program is not None:
            self._program = self._build(SIMPLEX)
            found = self._certified(intervals, start)
        return found

    def bases(self) -> np.ndarray:
        """From where the next plan starts."""
        return np.zeros((0, 0), np.int64) if self._program is None else self._program.stage_bases()

    def restart_from(self, bases: np.ndarray) -> None:
        """Start the next plan from what `bases` gave; a ValueError if it was something else."""
        program = self._program
        if program is None:
            return
        if bases.dtype != np.int64 or bases.ndim != 2:
            raise ValueError("bases: expected rows of whole numbers")
        if len(bases) and bases.shape[1] != 1 + program.n_columns + program.n_rows:
            raise ValueError("bases: expected a step and how each column and row stands")
        program.set_stage_bases(bases)

    def _build(self, solver: str) -> StagewiseProgram:
        return StagewiseProgram(self.network, self.uniform, solver, capped=self._capped)

    def _certified(self, intervals: Intervals, start: Floats) -> Weighed:
        if self._program is None:
            weights = solve_joint(self.network, intervals, self.uniform).weights
        else:
            weights = self._program.solve(intervals, first_means=start).weights
        if not np.isfinite(weights).all():
            weights = np.zeros(weights.shape)
        certificate, lifted = certify(self.network, intervals, weights, start)
        return Weighed(lifted, float(certificate.lifts[0]))
