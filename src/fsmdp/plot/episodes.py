"""Curves over episodes, of one history or of several seeds, as lines of the reports' charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.experiments.report.charts import Line, Panel, Role
from fsmdp.experiments.report.estimates import moving_mean, smoothing_window, thinned
from fsmdp.experiments.report.print_figures import draw_line
from fsmdp.experiments.report.style import learner_styles
from fsmdp.experiments.summary import half_widths
from fsmdp.foundation.checks import show
from fsmdp.learning.run.history import History
from fsmdp.model.tables import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = ("returns", "regret")


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """What is drawn of a learner; one row for each seed, (n_seeds, n_episodes)."""

    label: str
    returns: Floats
    optimistic: Floats | None  # None for learners whose values are no upper bounds
    bound: Floats | None  # on the regret; None likewise

    def regret(self, start_value: float | None) -> Floats | None:
        """Regret where V* is known, else what bounds it."""
        if start_value is None:
            return self.bound
        return np.asarray(np.cumsum(start_value - self.returns, axis=1))


def curves_of(label: str, histories: Sequence[History]) -> Curves:
    """Histories of one learner, cut to the episodes that all of them have."""
    episodes = min(map(len, histories))
    optimistic = all(one.optimistic for one in histories)

    def stack(series: Sequence[Floats]) -> Floats:
        return np.array([one[:episodes] for one in series])

    return Curves(
        label + (" (heuristic)" if any(one.heuristic for one in histories) else ""),
        stack([one.returns for one in histories]),
        stack([one.optimistic_values for one in histories]) if optimistic else None,
        stack([one.observable_regret_bound() for one in histories]) if optimistic else None,
    )


def check_panels(what: str | Sequence[str]) -> tuple[str, ...]:
    """Names of panels, checked."""
    wanted = (what,) if isinstance(what, str) else tuple(what)
    if not wanted or any(one not in PANELS for one in wanted):
        raise ModelError(f"what: expected {' or '.join(map(repr, PANELS))}, found {show(what)}.")
    return wanted


def draw_panel(
    axes: Axes, name: str, curves: Sequence[Curves], start_value: float | None = None
) -> None:
    """Returns with what was believed possible, or regret, of several learners."""
    panel = _returns(curves, start_value) if name == "returns" else _regret(curves, start_value)
    styles = learner_styles([one.label for one in curves])
    for line in panel.lines:
        label = line.label + (f", {line.note}" if line.note else "")
        draw_line(axes, line, styles).set_label(label)
    axes.set_ylabel(panel.y_label)
    axes.set_xlabel("episode")
    if panel.lines:
        axes.legend()
    else:
        text = "no learner here is optimistic, and V* was not given:\nno bound on the regret"
        axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)


def _returns(curves: Sequence[Curves], start_value: float | None) -> Panel:
    window = smoothing_window(min(one.returns.shape[1] for one in curves))
    lines = []
    for one in curves:
        lines.append(_line(one, moving_mean(one.returns, window)))
        if one.optimistic is not None:
            believed = moving_mean(one.optimistic, window)
            lines.append(_line(one, believed, Role.OPTIMISTIC, "optimistic value"))
    if start_value is not None:
        last = float(max(one.returns.shape[1] for one in curves))
        ends = np.array([1.0, last])
        lines.append(Line("V*", ends, np.full(2, start_value), role=Role.REFERENCE))
    name = "return" if window == 1 else f"return, mean of {window} episodes"
    return Panel(name, tuple(lines))


def _regret(curves: Sequence[Curves], start_value: float | None) -> Panel:
    found = [(one, one.regret(start_value)) for one in curves]
    lines = [_line(one, samples) for one, samples in found if samples is not None]
    name = "observable regret bound" if start_value is None else "regret"
    return Panel(name, tuple(lines))


def _line(curves: Curves, samples: Floats, role: Role = Role.MEASURED, note: str = "") -> Line:
    at = thinned(samples.shape[1], log=False)
    half = None if role is Role.OPTIMISTIC else half_widths(samples[:, at])
    x = np.asarray(at + 1, dtype=np.float64)
    return Line(curves.label, x, samples[:, at].mean(axis=0), curves.label, role, half, note)
