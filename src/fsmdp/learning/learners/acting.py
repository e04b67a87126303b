"""What a learner follows between two replans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fsmdp.learning.cells.kernel import Said
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats
from fsmdp.policies.arrays import CompiledPolicy

NEVER = 2**62
"""Visits that no cell will have."""


class Acting(NamedTuple):
    """A policy, and the numbers behind it that are logged along the trajectory (see `Said`)."""

    policy: CompiledPolicy
    values: Floats
    q: Floats
    widths: Floats
    replan_at: Integers
    start_values: Floats = Said._field_defaults["start_values"]
    start_strides: Integers = Said._field_defaults["start_strides"]

    @property
    def said(self) -> Said:
        """The numbers without the policy."""
        # One layout for all learners: for another one the simulator would be compiled again.
        return Said(np.ascontiguousarray(self.values), *self[2:])


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """What a replan found: how to act, and how the plan came about."""

    acting: Acting
    lift: float  # added to V_1 so that it is feasible for certain
    w_norm: float  # largest sum_j |w_j| over the steps
