"""The live planner of a learner: one program, kept between episodes, and its certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.learning.acting import Acting, Planned
from fsmdp.model.cases import Cases
from fsmdp.model.lookup import Inputs, Integers, compile_lookup
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import BellmanNetwork
from fsmdp.planning.certificate import certify
from fsmdp.planning.greedy import q_entries_of
from fsmdp.planning.highs import SIMPLEX
from fsmdp.planning.intervals import PESSIMISTIC, Intervals
from fsmdp.planning.joint import solve_joint
from fsmdp.planning.stagewise import StagewiseProgram
from fsmdp.simulation.policies import GREEDILY, CompiledPolicy

STAGEWISE, JOINT = "stagewise", "joint"

WARM_UP_TO = 6_000
"""Rows up to which warm restarts of the simplex method beat cold interior solves."""

TIE = 1e-9
"""Actions whose values differ by less than this fraction of the largest reward are equal."""


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """What a plan is made from: intervals, the lower ends of rewards, means of h_j at the start."""

    intervals: Intervals
    reward_low: Floats
    starts: Floats
    replan_at: Integers


class LivePlanner:
    """Plans again and again in one network; stages restart from the bases of the last plan."""

    def __init__(self, structure: Structure, network: BellmanNetwork, method: str) -> None:
        if method not in (STAGEWISE, JOINT):
            raise ModelError(f"method: expected 'stagewise' or 'joint', found {method!r}.")
        if structure.horizon is None:
            raise ModelError(
                "a learner works through episodes of a finite horizon and this structure's is "
                "None; give a horizon."
            )
        self.network = network
        self.method = method
        self.uniform = np.array([table.values.mean() for table in network.basis])
        self._program = None
        if method == STAGEWISE:
            is_small = network.elimination.n_rows <= WARM_UP_TO
            solver = SIMPLEX if is_small else "auto"
            self._program = StagewiseProgram(network, self.uniform, solver)
        self._tied = _TieBreaker(network)

    def plan(self, beliefs: Beliefs, epsilon: float, rng: np.random.Generator) -> Planned:
        """Weights, certified and lifted to be feasible, and the greedy policy they make.

        The lift is what the solver fell short by. Above epsilon, stages are solved again from
        nothing by the simplex method.
        """
        intervals, network = beliefs.intervals, self.network
        lift, weights = self._certified(self._solve(beliefs), beliefs)
        if lift > epsilon and self.method == STAGEWISE:
            self._program = StagewiseProgram(network, self.uniform, SIMPLEX)
            lift, weights = self._certified(self._solve(beliefs), beliefs)
        q = q_entries_of(network, intervals, weights)
        lower = Intervals(beliefs.reward_low, intervals.low, intervals.high)
        widths = q - q_entries_of(network, lower, weights, PESSIMISTIC)
        values = weights[:, network.value_columns] * network.values
        scale = max(1e-300, float(np.abs(intervals.rewards).max(initial=0.0)))
        return Planned(
            Acting(self._tied.policy(q, TIE * scale, rng), values, q, widths, beliefs.replan_at),
            lift,
            float(np.abs(weights).sum(axis=1).max()),
        )

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

    def _solve(self, beliefs: Beliefs) -> Floats:
        if self._program is None:
            return solve_joint(self.network, beliefs.intervals, self.uniform).weights
        return self._program.solve(beliefs.intervals, first_means=beliefs.starts).weights

    def _certified(self, weights: Floats, beliefs: Beliefs) -> tuple[float, Floats]:
        if not np.isfinite(weights).all():
            weights = np.zeros(weights.shape)
        certificate, lifted = certify(self.network, beliefs.intervals, weights, beliefs.starts)
        return float(certificate.lifts[0]), lifted


class _TieBreaker:
    """The greedy policy with a term more, which is drawn anew for each plan and decides ties."""

    def __init__(self, network: BellmanNetwork) -> None:
        sizes = tuple(variable.size for variable in network.variables)
        terms: list[Cases[Inputs]] = [
            cases.map(lambda scope: Inputs(scope, tuple(sizes[position] for position in scope)))
            for cases in (*network.reward_scopes, *network.parent_scopes)
        ]
        self._n_actions = len(network.actions)
        by_action = Cases(
            (Inputs((), ()),) * self._n_actions, {a: a for a in range(1, self._n_actions)}
        )
        self._lookup = compile_lookup([*terms, by_action], self._n_actions)
        self._no_strides = np.zeros(len(sizes), dtype=np.int64)

    def policy(self, q: Floats, scale: float, rng: np.random.Generator) -> CompiledPolicy:
        drawn = np.broadcast_to(scale * rng.random(self._n_actions), (len(q), self._n_actions))
        return CompiledPolicy(
            GREEDILY,
            self._no_strides,
            np.zeros((1, 1), dtype=np.int64),
            self._lookup,
            np.hstack([q, drawn]),
        )
