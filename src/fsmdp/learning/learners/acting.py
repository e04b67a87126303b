"""What a learner follows between two replans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats
from fsmdp.policies.arrays import CompiledPolicy

NEVER = 2**62
"""Visits that no cell will have."""


class Acting(NamedTuple):
    """A policy, and the numbers behind it that are logged along the trajectory.

    V_l(s) is a sum of `values`, the backup Q_l(s, a) a sum of `q`, and its uncertainty a sum of
    `widths`, one number for each cell met. Index l belongs to step l + 1.
    """

    policy: CompiledPolicy
    values: Floats  # (horizon, values of all scopes)
    q: Floats  # (horizon, n_cells)
    widths: Floats  # (horizon, n_cells)
    replan_at: Integers  # (n_cells,) visits from which a new plan is due


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """What a replan found: how to act, and how the plan came about."""

    acting: Acting
    lift: float  # added to V_1 so that it is feasible for certain
    w_norm: float  # largest sum_j |w_j| over the steps
