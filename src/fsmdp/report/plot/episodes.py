"""Curves over episodes, of one history or of several seeds, as lines of the reports' charts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.experiments.store import read_results
from fsmdp.foundation.checks import show, show_names
from fsmdp.learning.run.history import History
from fsmdp.model.tables import Floats
from fsmdp.report.charts import Line, Panel, Role, learner_styles
from fsmdp.report.curves import moving_mean, smoothing_window, thinned, trials_of_model
from fsmdp.report.plot.axes import axes_for, checked, handed_back
from fsmdp.report.print_figures import draw_line
from fsmdp.report.summary import half_widths

if TYPE_CHECKING:
    from matplotlib.axes import Axes


PANELS = ("returns", "regret")

LONGEST_LINE, ROOM_FOR_HANDLE = 88, 8
"""Letters that a line of the legend holds below an axes of the usual width, and beside each."""

BELOW_THE_AXIS = 4.5
"""Where the legend begins, in heights of its letters: below ticks and the axis' name."""

MOST_BEYOND = 0.3
"""How far axes reach beyond the means for the sake of bands, as a fraction of the means' range."""


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


def short_names(learners: Iterable[str]) -> dict[str, str]:
    """Learners without their options, which make legends long, where that tells them apart."""
    whole = dict.fromkeys(learners)
    short = {one: one.partition("(")[0] or one for one in whole}
    return {
        one: name if list(short.values()).count(name) == 1 else one for one, name in short.items()
    }


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
    shared = axes.has_data()
    for line in panel.lines:
        label = line.label + (f", {line.note}" if line.note else "")
        draw_line(axes, line, styles).set_label("\n".join(wrap(label, _letters(axes))))
    axes.set_ylabel(panel.y_label)
    axes.set_xlabel("episode")
    if panel.lines:
        if not shared:
            _limit(axes, panel.lines)
        _legend(axes)
    else:
        text = "no learner here is optimistic, and V* was not given:\nno bound on the regret"
        axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)


def _limit(axes: Axes, lines: Sequence[Line]) -> None:
    """Show all means, and as much of the bands as leaves them room: few seeds have wide bands."""
    means = np.concatenate([line.y for line in lines])
    low, high = float(means.min()), float(means.max())
    most = MOST_BEYOND * (high - low)
    if most:
        shown_low, shown_high = axes.get_ylim()
        axes.set_ylim(max(shown_low, low - most), min(shown_high, high + most))


def _makes_room(axes: Axes) -> bool:
    """Whether the figure is laid out again for what stands beside its axes."""
    figure = axes.get_figure(root=True)
    return figure is not None and figure.get_layout_engine() is not None


def _letters(axes: Axes) -> int:
    """Letters that a line of the legend may have."""
    return LONGEST_LINE if _makes_room(axes) else LONGEST_LINE // 2


def _legend(axes: Axes) -> None:
    """Below the axes, where it covers nothing; inside where the figure makes no room for it."""
    if not _makes_room(axes):
        axes.legend(loc="best")
        return
    labels = axes.get_legend_handles_labels()[1]
    longest = max(len(line) for label in labels for line in label.splitlines())
    columns = max(1, min(len(labels), LONGEST_LINE // (longest + ROOM_FOR_HANDLE)))
    axes.legend(
        loc="upper left", bbox_to_anchor=(0, 0), borderaxespad=BELOW_THE_AXIS, ncols=columns
    )


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


Compared = Sequence[History] | Mapping[str, History | Sequence[History]] | str | os.PathLike[str]
"""Histories (those of one learner are its seeds), histories by label, or a folder of runs."""


def compare(
    histories: Compared,
    ax: Any = None,
    *,
    what: str | Sequence[str] = "returns",
    start_value: float | None = None,
    model: str | None = None,
) -> Any:
    """Draw learners over episodes, means with 95 % t intervals over seeds, and return the axes.

    `histories` is a list, in which those of the same learner are its seeds; a dictionary from
    labels to histories or lists of them; or a folder that `fsmdp compare` wrote (`model` says of
    which model if it has several, and V* is taken from there). `what` is "returns", "regret" or
    both; regret needs `start_value`, else its observable bound is drawn.
    """
    wanted = check_panels(what)
    if isinstance(histories, str | os.PathLike):
        curves, start_value = _of_folder(histories, model, start_value)
    else:
        curves = [curves_of(label, group) for label, group in _grouped(histories).items()]
    with axes_for(ax, len(wanted)) as axes:
        for each, name in zip(axes, wanted, strict=True):
            draw_panel(each, name, curves, start_value)
    return handed_back(axes)


def _grouped(histories: Any) -> dict[str, list[History]]:
    groups: dict[str, list[History]] = {}
    if isinstance(histories, Mapping):
        for label, given in histories.items():
            groups[str(label)] = [given] if isinstance(given, History) else list(given)
    elif isinstance(histories, Sequence):
        names = short_names(str(getattr(one, "learner", "?")) for one in histories)
        for one in histories:
            groups.setdefault(names[str(getattr(one, "learner", "?"))], []).append(one)
    found = [one for group in groups.values() for one in group]
    if not found or not all(groups.values()) or not all(isinstance(one, History) for one in found):
        raise ModelError(
            "histories: expected a list of histories, a dictionary of them by label, or a folder "
            f"of runs, found {show(histories)}; learn() returns a history."
        )
    return groups


def _of_folder(
    folder: str | os.PathLike[str], model: str | None, start_value: float | None
) -> tuple[list[Curves], float | None]:
    results = read_results(folder)
    models = [setting.id for setting in results.specification.models]
    chosen = models[0] if model is None and len(models) == 1 else model
    if chosen not in models:
        raise ModelError(
            f"model: expected one of {show_names(models)}, found {show(model)}; say which to draw."
        )
    trials = trials_of_model(results, chosen)
    if not trials:
        raise ModelError(f"{show(str(folder))}: no run of {show(chosen)} has finished yet.")
    facts = results.models.get(chosen)
    if start_value is None and facts is not None:
        start_value = facts.start_value_exact
    curves = []
    for one in trials:
        bound = one.series("observable_regret_bound")
        optimistic = None if bound is None else one.series("optimistic_values")
        curves.append(Curves(one.label, one.required("returns"), optimistic, bound))
    return curves, start_value
