"""A history: what a learner earned, what it believed possible, and its regret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fsmdp.learning.run.history import History
from fsmdp.plot.axes import axes_for, checked, handed_back
from fsmdp.plot.episodes import PANELS, check_panels, curves_of, draw_panel, short_names


def history(
    one: History,
    ax: Any = None,
    *,
    what: str | Sequence[str] = PANELS,
    start_value: float | None = None,
) -> Any:
    """Draw a history over episodes and return the axes.

    Above, returns and the optimistic value; below, regret if `start_value` (V* at the start) is
    given, else the observable bound on it. `what` picks one of "returns" and "regret"; `ax` is as
    many axes as are drawn, by default new ones.
    """
    checked(one, History)
    wanted = check_panels(what)
    curves = [curves_of(short_names([one.learner])[one.learner], [one])]
    with axes_for(ax, len(wanted)) as axes:
        for each, name in zip(axes, wanted, strict=True):
            draw_panel(each, name, curves, start_value)
    return handed_back(axes)
