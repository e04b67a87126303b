"""About how long exact values take, by each method, on one core.

All that choose between methods, or whether to compute exact values at all, ask here. Constants
are seconds of one machine of 2024; `benchmarks/estimates.py` prints estimates beside what models
took.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fsmdp.model.mdp import FactoredMDP

if TYPE_CHECKING:
    from fsmdp.exact.contraction import Branch
    from fsmdp.exact.row_classes import ClassPlan

ENDLESS_SWEEPS, TERMINAL_SWEEPS = 60, 150
"""Sweeps of value iteration with an infinite horizon, and where episodes may end early: from 3 to
540 were counted, most often between 20 and 130, of whatever discount."""
TOLERANCE = 1e-12
"""Relative accuracy of value iteration, as in `fsmdp.exact.flat`: a discount needs no more sweeps
than reach it."""
CONTRACTION_SECONDS = 1.2e-9
"""For one multiplication of a contraction."""
ACTION_SECONDS = 2e-9
"""To compare an action of a state with the best so far, after a contraction."""
PASS_SECONDS = 1.2e-9
"""For one multiplication of a pass over row classes, or one number of the result."""
LOOK_UP_SECONDS, CLASS_LOOK_UP_SECONDS = 4e-9, 2e-9
"""To look an action's mean up and compare it: of a state, and of classes, which are in order."""
CALL_SECONDS, SHARED_CALL_SECONDS = 5e-6, 3e-5
"""To begin a contraction, a pass or a look-up, alone and on all cores."""
SHARED_STATES = 2**15
"""From which sweeps run on all cores."""
PATH_SECONDS = 3.5e-7
"""To follow one combination of outcomes, and find the state."""
ENTRY_SECONDS = 3e-9
"""To back up one successor."""
MATRIX_SECONDS = 1e-9
"""For one entry of transition matrices, to multiply it."""
WRITING_SECONDS = 2e-8
"""To write such an entry down."""


def sweeps_of(model: FactoredMDP) -> float:
    """Backups of all states: of each step, or until value iteration has converged."""
    if model.horizon is not None:
        return model.horizon
    usual = TERMINAL_SWEEPS if model.terminal else ENDLESS_SWEEPS
    if model.discount <= 0:
        return 2.0
    return 2 + min(usual, math.log(TOLERANCE) / math.log(model.discount))


def _call_seconds(model: FactoredMDP) -> float:
    return CALL_SECONDS if model.n_states < SHARED_STATES else SHARED_CALL_SECONDS


def contraction_seconds(model: FactoredMDP, plan: Branch) -> float:
    """By contraction."""
    compared = len(model.actions) * model.n_states * ACTION_SECONDS
    calls = (plan.n_steps + len(model.actions)) * _call_seconds(model)
    return sweeps_of(model) * (plan.work * CONTRACTION_SECONDS + compared + calls)


def class_seconds(model: FactoredMDP, plan: ClassPlan) -> float:
    """By row classes."""
    look_ups = plan.state_look_ups * LOOK_UP_SECONDS
    look_ups += plan.class_look_ups * CLASS_LOOK_UP_SECONDS
    calls = (len(plan.passes) + 2) * _call_seconds(model)
    return sweeps_of(model) * (plan.pass_work * PASS_SECONDS + look_ups + calls)


def matrix_seconds(model: FactoredMDP) -> float:
    """By transition matrices; few systems of equations are solved if the horizon is infinite."""
    entries = len(model.actions) * model.n_states**2
    return entries * (WRITING_SECONDS + sweeps_of(model) * MATRIX_SECONDS)


def affordable_paths(model: FactoredMDP, seconds: float) -> int:
    """Combinations of outcomes that can be followed and backed up in so many seconds."""
    return int(seconds / (PATH_SECONDS + sweeps_of(model) * ENTRY_SECONDS))
