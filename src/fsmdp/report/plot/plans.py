"""A plan's log: the incumbent and the bound over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fsmdp.bounds.plan import Plan
from fsmdp.errors import PlanningError
from fsmdp.report.charts import BAND_OPACITY, COLORS, printable
from fsmdp.report.plot.axes import axes_for, checked
from fsmdp.report.print_figures import INK, MUTED
from fsmdp.simulation.rollout import record

if TYPE_CHECKING:
    from fsmdp.model.mdp import FactoredMDP
    from fsmdp.policies.resolve import Policy
    from fsmdp.simulation.simulate import Record


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


MOST_NAMES, MOST_ACTIONS = 40, 60


def trajectories(
    model: FactoredMDP,
    policy: Policy = "random",
    ax: Any = None,
    *,
    episodes: int = 1,
    seed: int = 0,
    steps: int | None = None,
) -> Any:
    """Draw the episodes of a policy as a raster and return the axes.

    Of one episode, values and, below, the actions taken; of several, mean values.
    """
    from matplotlib.ticker import MaxNLocator

    found = record(model, policy, episodes, seed, steps)
    states = found.states[:, :-1, : len(model.variables)]
    values = states.mean(axis=0).T  # (n_variables, steps)
    names = [printable(variable.name, 20) for variable in model.variables]
    with axes_for(ax, 1, float(np.clip(0.25 * len(names), 1.5, 8))) as (axes,):
        image = axes.imshow(
            values,
            aspect="auto",
            interpolation="nearest",
            cmap="cividis",
            vmin=0,
            vmax=max(model.sizes) - 1,
            extent=(0.5, values.shape[1] + 0.5, len(names) - 0.5, -0.5),
        )
        axes.grid(visible=False)
        if len(names) <= MOST_NAMES:
            axes.set_yticks(range(len(names)), names)
        else:
            axes.set_ylabel("variable")
        axes.set_xlabel("step")
        if episodes == 1 and values.shape[1] <= MOST_ACTIONS:
            taken = [printable(name, 20) for name in actions_taken(model, found)]
            steps_of = range(1, len(taken) + 1)
            axes.set_xticks(
                steps_of,
                [f"{step}  {name}" for step, name in zip(steps_of, taken, strict=True)],
                rotation=90,
                color=INK,
                fontsize=7,
            )
            axes.set_xlabel("step and action")
        label = "value" if episodes == 1 else f"mean value of {episodes} episodes"
        whole = MaxNLocator(integer=True, min_n_ticks=1)
        axes.figure.colorbar(image, ax=axes, label=label, fraction=0.04, ticks=whole)
    return axes


def actions_taken(model: FactoredMDP, found: Record) -> list[str]:
    """Names of the actions of the first episode."""
    actions, rows = model.actions, found.states[0, :-1, len(model.variables) :]
    taken = zip(found.actions[0].tolist(), rows, strict=True)
    return [actions.name(actions.choice(case, values)) for case, values in taken]
