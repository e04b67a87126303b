"""A plan's log: the incumbent and the bound over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from fsmdp.errors import PlanningError
from fsmdp.experiments.report.print_figures import INK, MUTED
from fsmdp.experiments.report.style import BAND_OPACITY, COLORS
from fsmdp.planning.plan import Plan
from fsmdp.plot.axes import axes_for, checked

ERRORS = 2.0
"""Standard errors that the band around the incumbent shows."""


def plan(one: Plan, ax: Any = None) -> Any:
    """Draw what the policy earned and what was certified, over seconds, and return the axes.

    The band around the policy is two standard errors of the episodes that chose it; the point at
    the end is its mean in fresh ones. What lies between both lines is the gap.
    """
    checked(one, Plan)
    if not one.log:
        raise PlanningError(
            f"plot: a plan of method {one.method!r} has no log; only the solver's plans "
            "(method='auto') know how they came about."
        )
    seconds = np.array([line.seconds for line in one.log])
    bound = np.array([line.upper_bound for line in one.log])
    judged = [line for line in one.log if line.incumbent is not None]
    with axes_for(ax, 1, 3.4) as (axes,):
        (policy_color, _), (bound_color, _) = COLORS[:2]
        axes.step(seconds, bound, where="post", color=bound_color, label="certified bound")
        if judged:
            at = np.array([line.seconds for line in judged])
            mean = np.array([line.incumbent for line in judged], dtype=np.float64)
            error = ERRORS * np.array([line.standard_error or 0.0 for line in judged])
            axes.step(at, mean, where="post", color=policy_color, label="policy")
            axes.fill_between(
                at, mean - error, mean + error, step="post", color=policy_color, alpha=BAND_OPACITY
            )
            above = np.interp(at, seconds, bound)
            axes.fill_between(at, mean, above, step="post", color=MUTED, alpha=0.07, linewidth=0)
        if one.incumbent is not None:
            end, spread = seconds[-1], ERRORS * one.incumbent.standard_error
            axes.errorbar(
                [end],
                [one.incumbent.mean],
                [spread],
                fmt="o",
                color=INK,
                capsize=3,
                markersize=4,
                label="in fresh episodes" if one.incumbent.level < 1 else "proved",
            )
        axes.set_xlabel("seconds")
        axes.set_ylabel("return")
        axes.legend()
    return axes
