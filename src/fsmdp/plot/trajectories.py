"""An episode as a raster: variables down, steps across, values as colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fsmdp.experiments.report.print_figures import INK
from fsmdp.experiments.report.style import printable
from fsmdp.model.actions import Actions
from fsmdp.plot.axes import axes_for
from fsmdp.simulation.rollout import record

if TYPE_CHECKING:
    from fsmdp.model.mdp import FactoredMDP
    from fsmdp.policies.resolve import Policy
    from fsmdp.simulation.simulate import Record

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
    if isinstance(model.actions, Actions):
        rows = found.states[0, :-1, len(model.variables) :]
        return [model.actions.name(row) for row in rows]
    return [model.actions[action] for action in found.actions[0].tolist()]
