"""Curves of one model over episodes: regret, values, intervals, effort."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from fsmdp.experiments.report.charts import Chart, Line, Panel, Role
from fsmdp.experiments.report.estimates import (
    FIT_POINTS,
    Slope,
    fit_slope,
    moving_mean,
    positive_in_last_half,
    smoothing_window,
    thinned,
)
from fsmdp.experiments.report.trials import Trials
from fsmdp.experiments.store import ModelFacts
from fsmdp.experiments.summary import half_widths
from fsmdp.foundation.checks import plural
from fsmdp.foundation.numbers import plain, upper
from fsmdp.foundation.registry import Registry
from fsmdp.model.tables import Floats

DECADES_SHOWN = 3
"""Curves that start near zero are followed this far down on a log axis."""


CHARTS: Registry[Callable[[Sequence[Trials], ModelFacts], Chart]] = Registry("chart")
"""What draws a chart over episodes from the runs of all learners on a model."""


def model_charts(trials: Sequence[Trials], facts: ModelFacts) -> tuple[Chart, ...]:
    """All charts over episodes for which there is something to draw."""
    charts = (draw(trials, facts) for draw in CHARTS.values())
    return tuple(chart for chart in charts if any(line.learner for line in chart.lines))


def regret_chart(trials: Sequence[Trials], facts: ModelFacts) -> Chart:
    """Regret over episodes where V* is known, else what bounds it."""
    panels = []
    column = regret_column(facts)
    panels.append(_panel(trials, regret_name(facts), lambda t: t.series(column)))
    if facts.start_value_exact is not None:
        best = plain(facts.start_value_exact, 6, facts.scale)
        title, text = "Regret", f"Σ (V* − return), V* = {best} exactly. "
    else:
        title = "Bounds on the regret"
        text = (
            "V* is not known, so regret is not either. Above, the observable bound "
            "Σ (V₁(s₁) − return) plus an allowance for chance, which holds for learners that are "
            "optimistic. "
        )
        if facts.plan_upper_bound is not None:
            bound = facts.plan_upper_bound
            panels.append(
                _panel(
                    trials,
                    "Σ (certified bound − return)",
                    lambda t: np.cumsum(bound - t.required("return"), axis=1),
                )
            )
            shown = upper(bound, 6, facts.scale)
            text += (
                f"Below, Σ ({shown} − return): no policy earns more than that bound, so the "
                "expected regret is at most this, and two curves differ by as much as the regrets. "
            )
    return Chart("regret", title, text + _seeds_text(trials, bands=True), _with_lines(panels))


def log_regret_chart(trials: Sequence[Trials], facts: ModelFacts) -> Chart:
    """The same on log axes, with fitted slopes and the theorem's bound."""
    column = regret_column(facts)
    lines: list[Line] = []
    largest, smallest = 0.0, math.inf
    left_out = []
    for t in trials:
        samples = t.series(column)
        if samples is None:
            continue
        mean = samples.mean(axis=0)
        if not positive_in_last_half(mean):
            left_out.append(t.label)
            continue
        fit = fit_slope(mean)
        lines.append(_mean_line(t, samples, log=True, note=_slope_note(fit)))
        largest = max(largest, float(mean.max()))
        smallest = min(smallest, float(mean[mean > 0].min()))
        if fit is not None:
            ends = np.array([fit.start, fit.end])
            lines.append(Line(t.label, ends, fit.at(ends), t.learner, Role.FIT))
    if not lines:
        return Chart("regret-log", "", "", (), log=True)
    text = (
        "Thin lines: least squares on log axes over the last half of log-time, at "
        f"{FIT_POINTS} log-spaced episodes from √K to K. "
    )
    if left_out:
        text += f"Left out, since the mean is not positive on that stretch: {', '.join(left_out)}. "
    if facts.regret_bound is not None:
        lines.append(_theorem_line(facts))
        text += "The paper's general theorem bounds the regret of UCRL-Factored. "
    least = max(smallest, largest / 10**DECADES_SHOWN)
    panel = Panel(regret_name(facts), tuple(lines), log=True, least=least)
    title = "Regret on log axes" if facts.start_value_exact is not None else "Bound on log axes"
    return Chart("regret-log", title, text + _seeds_text(trials, bands=False), (panel,), log=True)


def value_chart(trials: Sequence[Trials], facts: ModelFacts) -> Chart:
    """What learners believed possible against what they earned."""
    window = _window(trials)
    lines = []
    for t in trials:
        lines.append(_mean_line(t, moving_mean(t.required("return"), window), log=False))
        believed = t.series("optimistic_value")
        if believed is not None:
            smooth = moving_mean(believed, window)
            lines.append(_mean_line(t, smooth, log=False, role=Role.OPTIMISTIC))
    last = float(max((t.n_episodes for t in trials), default=1))
    for label, value in reference_values(facts):
        lines.append(
            Line(label, np.array([1.0, last]), np.array([value, value]), role=Role.REFERENCE)
        )
    text = (
        f"Moving means over {plural(window, 'episode')}. With triangles: V₁(s₁) of the plan that "
        "was followed, for learners that have one; it should come down to the returns. "
    )
    panel = Panel("return and optimistic value", tuple(lines))
    return Chart(
        "values",
        "Optimistic value against return",
        text + _seeds_text(trials, bands=True),
        (panel,),
    )


def interval_chart(trials: Sequence[Trials], _: ModelFacts) -> Chart:
    """What the intervals left open, and what the plans were not tight by."""
    window = _window(trials)

    def smoothed(column: str) -> Callable[[Trials], Floats | None]:
        def samples(t: Trials) -> Floats | None:
            found = t.series(column)
            # Learners without intervals log zeros, which would say that they are certain.
            return moving_mean(found, window) if found is not None and found.any() else None

        return samples

    panels = [
        _panel(trials, "width of the intervals", smoothed("width")),
        _panel(trials, "slack of the policy", smoothed("slack")),
    ]
    text = (
        f"Summed along each episode, moving means over {plural(window, 'episode')}. Width: what "
        "the intervals leave open about the actions taken. Slack: V(s) − max Q(s, a), which is 0 "
        "where the plan is tight. While the truth lies in the intervals, the expected regret of an "
        "episode is at most the mean of their sum. Learners that have neither are left out. "
    )
    return Chart(
        "intervals",
        "Interval widths and slack",
        text + _seeds_text(trials, bands=True),
        _with_lines(panels),
    )


def effort_chart(trials: Sequence[Trials], _: ModelFacts) -> Chart:
    """How often learners planned, and for how long."""
    panels = [
        _panel(
            trials,
            "plans made so far",
            lambda t: np.cumsum(t.required("replan"), axis=1),
            log=True,
        ),
        _panel(
            trials,
            "seconds planning so far",
            lambda t: np.cumsum(t.timing("seconds_planning"), axis=1),
            log=True,
        ),
    ]
    text = "Running totals on log axes; seconds are those of the machine that ran them. "
    return Chart(
        "effort",
        "Replans and time",
        text + _seeds_text(trials, bands=False),
        _with_lines(panels),
        log=True,
    )


CHARTS.register("regret", regret_chart)
CHARTS.register("regret-log", log_regret_chart)
CHARTS.register("values", value_chart)
CHARTS.register("intervals", interval_chart)
CHARTS.register("effort", effort_chart)


def regret_column(facts: ModelFacts) -> str:
    """Which column measures how a learner did."""
    return "regret" if facts.start_value_exact is not None else "observable_regret_bound"


def regret_name(facts: ModelFacts) -> str:
    """What that column is called."""
    return "regret" if facts.start_value_exact is not None else "observable regret bound"


def reference_values(facts: ModelFacts) -> list[tuple[str, float]]:
    """Values that hold for every learner on a model."""
    named = (("V*", facts.start_value_exact), ("certified upper bound", facts.plan_upper_bound))
    return [(label, value) for label, value in named if value is not None]


def _panel(
    trials: Sequence[Trials],
    y_label: str,
    samples_of: Callable[[Trials], Floats | None],
    log: bool = False,
) -> Panel:
    lines = []
    for t in trials:
        samples = samples_of(t)
        if samples is not None:
            lines.append(_mean_line(t, samples, log=log))
    return Panel(y_label, tuple(lines), log=log)


def _with_lines(panels: Sequence[Panel]) -> tuple[Panel, ...]:
    return tuple(panel for panel in panels if panel.lines)


def _mean_line(
    trials: Trials,
    samples: Floats,
    log: bool,
    role: Role = Role.MEASURED,
    note: str = "",
) -> Line:
    """The mean over seeds, with a band on linear axes; on log axes a band has no lower end."""
    at = thinned(samples.shape[1], log)
    y = samples[:, at].mean(axis=0)
    return Line(
        trials.label,
        np.asarray(at + 1, dtype=np.float64),
        np.where(y > 0, y, np.nan) if log else y,
        trials.learner,
        role,
        None if log or role is Role.OPTIMISTIC else half_widths(samples[:, at]),
        note,
    )


def _theorem_line(facts: ModelFacts) -> Line:
    assert facts.regret_bound is not None
    episodes = np.array(facts.regret_bound["episodes"], dtype=np.float64)
    total = np.array(facts.regret_bound["general"]["total"], dtype=np.float64)
    return Line("theorem bound", episodes, total, role=Role.REFERENCE)


def _slope_note(fit: Slope | None) -> str:
    return "" if fit is None else f"slope {fit.slope:z.2f}"


def _window(trials: Sequence[Trials]) -> int:
    return smoothing_window(min((t.n_episodes for t in trials), default=1))


def _seeds_text(trials: Sequence[Trials], bands: bool) -> str:
    seeds = sorted({len(t.runs) for t in trials})
    if not seeds or seeds[-1] < 2:
        return "One seed."
    counts = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    shown = ", with 95 % t intervals as bands" if bands else ""
    return f"Means over {counts} seeds{shown}."
