"""Figures of a sweep: where learners end, and curves over episodes (regret, values, effort)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np

from fsmdp.errors import FsmdpError, FsmdpWarning, ModelError
from fsmdp.experiments.store import (
    EPISODE_COLUMNS,
    TIMING_COLUMNS,
    ModelFacts,
    Results,
    Run,
    RunStatus,
)
from fsmdp.foundation.checks import plural, show, show_names
from fsmdp.foundation.numbers import figures_table, mean_and_error, plain, upper
from fsmdp.foundation.registry import Registry
from fsmdp.model.tables import Floats, Integers
from fsmdp.report.charts import Chart, Dot, DotChart, Line, Panel, Role, printable

if TYPE_CHECKING:
    import polars

CONFIDENCE = 0.95

NORMAL_QUANTILE = 1.959964


def half_widths(samples: Floats) -> Floats | None:
    """Half the t interval of the mean over the first axis; None for one seed, which has none.

    t_{n-1} * s / sqrt(n), s the sample deviation of n seeds.
    """
    from scipy.special import stdtrit

    seeds = len(samples)
    if seeds < 2:
        return None
    quantile = float(stdtrit(seeds - 1, (1 + CONFIDENCE) / 2))
    return np.asarray(quantile * samples.std(axis=0, ddof=1) / math.sqrt(seeds))


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """A mean over seeds, and half the width of its 95 % t interval; None with a single seed."""

    mean: float
    half_width: float | None

    @staticmethod
    def of(values: Sequence[float]) -> Interval:
        """The mean of numbers, one for each seed, and their t interval."""
        samples = np.asarray(values, dtype=np.float64)
        half = half_widths(samples)
        return Interval(float(samples.mean()), None if half is None else float(half))

    def __str__(self) -> str:
        mean, half = mean_and_error(self.mean, self.half_width)
        return f"{mean} ± {half}" if half else mean


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """How the runs of a learner on a model ended; figures that it lacks are left out."""

    model: str
    trials: Trials
    figures: Mapping[str, Interval]
    failed: int = 0
    message: str | None = None  # of the first run that failed

    @property
    def done(self) -> int:
        """Runs that the figures are means of."""
        return len(self.trials.runs)

    def mean(self, figure: str) -> float | None:
        """A figure without its interval; None where there is none."""
        found = self.figures.get(figure)
        return None if found is None else found.mean


def returns_of(run: Run) -> Floats:
    """The returns of a run, by episode."""
    return run.episodes["returns"].to_numpy()


def mean_return_last(returns: Floats) -> float:
    """Mean return of the last tenth of the episodes."""
    return float(returns[-max(1, len(returns) // 10) :].mean())


def chance_of_regret(returns: Floats) -> float | None:
    """Half of a 95 % interval for the sum of the returns' own noise, which regret contains.

    1.96 sqrt(K) s, with s the deviation of K returns; learning moves them too, so it is wide.
    """
    if len(returns) < 2:
        return None
    return NORMAL_QUANTILE * math.sqrt(len(returns)) * float(returns.std(ddof=1))


def final_figures(trials: Trials, facts: ModelFacts) -> dict[str, Interval]:
    """How a learner ended on a model: every figure that it has, as a mean over seeds."""
    late = np.array([mean_return_last(returns_of(run)) for run in trials.runs])  # (n_seeds,)
    samples: dict[str, Floats] = {"return_last_tenth": late}
    for column in ("regret", "observable_regret_bound"):
        found = trials.series(column)
        if found is not None:
            samples[column] = found[:, -1]
    if facts.start_value_exact:
        samples["percent_below_best"] = _percent_below(facts.start_value_exact, late)
    if facts.plan_upper_bound:
        samples["percent_below_bound"] = _percent_below(facts.plan_upper_bound, late)
    samples["replans"] = trials.required("replans").sum(axis=1)
    samples["seconds_planning"] = trials.timing("seconds_planning").sum(axis=1)
    samples["seconds"] = np.array([float(run.facts["seconds"]) for run in trials.runs])
    return {name: Interval.of(values.tolist()) for name, values in samples.items()}


def _percent_below(best: float, returns: Floats) -> Floats:
    return np.asarray(100 * (best - returns) / abs(best))


def rows_of_model(model: str, trials: Iterable[Trials], facts: ModelFacts) -> tuple[Row, ...]:
    """A row for each learner; those without a finished run have no figures."""
    return tuple(Row(model, one, final_figures(one, facts) if one.runs else {}) for one in trials)


def summarise(results: Results) -> tuple[Row, ...]:
    """A row for each model and learner, in the order of the specification."""
    rows = []
    for model in results.specification.models:
        trials = all_trials_of_model(results, model.id)
        for row in rows_of_model(model.id, trials, results.models[model.id]):
            failed = [
                run.message
                for run in results.runs
                if (run.model, run.learner) == (model.id, row.trials.learner)
                and run.status == RunStatus.FAILED
            ]
            rows.append(replace(row, failed=len(failed), message=next(iter(failed), None)))
    return tuple(rows)


HEADINGS = "model", "learner", "mean return, last tenth", "regret", "runs"


def results_table(results: Results) -> str:
    """What a notebook shows of a sweep: a line for each model and learner, means over seeds."""
    described = all(model.id in results.models for model in results.specification.models)
    rows = summarise(results) if described else ()
    lines = (
        (
            row.model,
            row.trials.label,
            row.figures.get("return_last_tenth"),
            _regret(row),
            _ended(row),
        )
        for row in rows
    )
    return figures_table(repr(results), HEADINGS, lines)


def _regret(row: Row) -> str | None:
    """Regret where V* is known, else the bound that the learner claims."""
    known, bound = row.figures.get("regret"), row.figures.get("observable_regret_bound")
    if known is not None:
        return str(known)
    return None if bound is None else f"at most {bound}"


def _ended(row: Row) -> str:
    return f"{row.done} done" + (f", {row.failed} failed: {row.message}" if row.failed else "")


KNOW_THE_MODEL = frozenset({"plan", "optimal"})
"""Learners of the catalogue that do not learn: they are given the model."""


@dataclass(frozen=True, slots=True, eq=False)
class Trials:
    """All finished runs of one learner on one model."""

    learner: str
    name: str  # the label as it was given
    label: str  # and as figures show it
    heuristic: bool
    knows_model: bool  # the model is given to it, so that it is no learner to compare
    runs: tuple[Run, ...]

    @property
    def n_episodes(self) -> int:
        """Episodes that every run has."""
        return min((run.episodes.height for run in self.runs), default=0)

    def series(self, column: str) -> Floats | None:
        """One row of numbers for each seed, (n_seeds, n_episodes); None where there are none."""
        found = self._stack((run.episodes for run in self.runs), column)
        return found if np.isfinite(found).all() else None

    def required(self, column: str) -> Floats:
        """A series that every learner has."""
        found = self._stack((run.episodes for run in self.runs), column)
        return self._checked(found, column)

    def timing(self, column: str) -> Floats:
        """Seconds of every episode, (n_seeds, n_episodes)."""
        return self._checked(self._stack((run.timings for run in self.runs), column), column)

    def _stack(self, frames: Iterable[polars.DataFrame], column: str) -> Floats:
        n_episodes = self.n_episodes
        rows = [frame[column].head(n_episodes).cast(float).to_numpy() for frame in frames]
        return np.array(rows, dtype=np.float64)

    def _checked(self, found: Floats, column: str) -> Floats:
        if not np.isfinite(found).all():
            raise ModelError(
                f"runs of {show(self.learner)}: column {column!r} has gaps, expected a number in "
                "every episode; remove the folders of these runs and run `fsmdp compare` again."
            )
        return found


def trials_of_model(results: Results, model: str) -> tuple[Trials, ...]:
    """What each learner did on a model, in the order in which learners are listed."""
    return tuple(trials for trials in all_trials_of_model(results, model) if trials.runs)


def all_trials_of_model(results: Results, model: str) -> tuple[Trials, ...]:
    """One for each learner, also of those without a finished run."""
    found = []
    for learner in results.specification.learners:
        runs = tuple(
            run
            for run in results.runs
            if (run.model, run.learner, run.status) == (model, learner.id, "done")
        )
        for run in runs:
            _check_frames(run)
        heuristic = bool(runs) and runs[0].heuristic
        label = shown_label(learner.label, heuristic)
        knows_model = learner.learner in KNOW_THE_MODEL
        found.append(Trials(learner.id, learner.label, label, heuristic, knows_model, runs))
    return tuple(found)


def shown_label(label: str, heuristic: bool) -> str:
    """A label as figures show it, which says when the settings void the guarantee."""
    return printable(label) + (" (heuristic)" if heuristic else "")


def check_facts(model: str, facts: ModelFacts) -> None:
    """Refuse facts that contradict themselves, which a damaged file may hold."""
    places = range(len(facts.variable_names))
    named = {place for edge in facts.edges for place in edge} | set(facts.elimination_order)
    if not named <= set(places):
        wrong, found = "edges and elimination_order", f"{max(named)} for {len(places)} variables"
    elif len(set(facts.elimination_order)) < len(facts.elimination_order):
        wrong, found = "elimination_order", "a variable twice"
    elif facts.regret_bound is not None and not _is_bound(facts.regret_bound):
        wrong, found = "regret_bound", "no total for each of the episodes"
    else:
        return
    raise ModelError(
        f"models.json, {show(model)}: {wrong} hold {found}; remove the file and run `compare` "
        "again."
    )


def _is_bound(found: Mapping[str, Any]) -> bool:
    try:
        return len(found["episodes"]) == len(found["general"]["total"]) > 0
    except (KeyError, TypeError):
        return False


def _check_frames(run: Run) -> None:
    for frame, columns in ((run.episodes, EPISODE_COLUMNS), (run.timings, TIMING_COLUMNS)):
        absent = [column for column in columns if column not in frame.columns]
        if absent or not frame.height or frame.height != run.episodes.height:
            found = f"no column {show_names(absent)}" if absent else f"{frame.height} rows"
            raise ModelError(
                f"run {show(run.id)}: expected one row for each episode, found {found}; remove the "
                "run's folder and run `fsmdp compare` again."
            )


MOST_POINTS = 250
"""Points a curve is drawn with; more cannot be seen."""

FIT_POINTS = 50
FEWEST_TO_FIT = 16


def smoothing_window(n_episodes: int) -> int:
    """How many episodes a smoothed curve averages over."""
    return max(1, n_episodes // 20)


def moving_mean(samples: Floats, window: int) -> Floats:
    """Mean of each entry and those before it, `window` in all or as many as there are."""
    sums = np.cumsum(samples, axis=-1)
    sums[..., window:] = sums[..., window:] - sums[..., :-window]
    return np.asarray(sums / np.minimum(np.arange(1, samples.shape[-1] + 1), window))


def thinned(n_points: int, log: bool) -> Integers:
    """Indices to draw, evenly spaced on the axis; the first and the last are among them."""
    if n_points <= MOST_POINTS:
        return np.arange(n_points)
    if log:
        chosen = np.geomspace(1, n_points, MOST_POINTS) - 1
    else:
        chosen = np.linspace(0, n_points - 1, MOST_POINTS)
    return np.unique(np.rint(chosen).astype(np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    """A straight line on log axes: y = exp(intercept) * x^slope, from `start` to `end`."""

    slope: float
    intercept: float
    start: float
    end: float

    def at(self, x: Floats) -> Floats:
        """The line's height."""
        return np.asarray(np.exp(self.intercept) * x**self.slope)


def fit_slope(values: Floats) -> Slope | None:
    """Least squares on log axes over the last half of log-time.

    log y = slope * log k + c at log-spaced k from sqrt(K) to K, so that each part of log-time
    weighs the same. None where some value there is not positive, or there are too few episodes.
    """
    n_episodes = len(values)
    if n_episodes < FEWEST_TO_FIT or not positive_in_last_half(values):
        return None
    k = np.geomspace(math.sqrt(n_episodes), n_episodes, FIT_POINTS)
    y = np.interp(k, np.arange(1, n_episodes + 1), values)
    slope, intercept = np.polyfit(np.log(k), np.log(y), 1)
    return Slope(float(slope), float(intercept), float(k[0]), float(n_episodes))


def positive_in_last_half(values: Floats) -> bool:
    """Whether a log axis can show all values of the last half of log-time, from sqrt(K) on."""
    return bool((values[math.isqrt(len(values)) - 1 :] > 0).all())


DECADES_SHOWN = 3
"""Curves that start near zero are followed this far down on a log axis."""


CHARTS: Registry[Callable[[Sequence[Trials], ModelFacts], Chart]] = Registry("chart")
"""What draws a chart over episodes from the runs of all learners on a model."""


def model_charts(trials: Sequence[Trials], facts: ModelFacts) -> tuple[Chart, ...]:
    """All charts over episodes for which there is something to draw."""
    charts = []
    for name, draw in CHARTS.items():
        try:
            chart = draw(trials, facts)
            charts += [chart] if any(line.learner for line in chart.lines) else []
        except FsmdpError:
            raise
        except Exception as error:  # of a plug-in: the report shows the others
            text = f"{type(error).__name__}: {error}"
            warn(f"figure {name!r} is left out: {text}", FsmdpWarning, stacklevel=2)
    return tuple(charts)


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
                    lambda t: np.cumsum(bound - t.required("returns"), axis=1),
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
        lines.append(_mean_line(t, moving_mean(t.required("returns"), window), log=False))
        believed = t.series("optimistic_values")
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
        _panel(trials, "width of the intervals", smoothed("widths")),
        _panel(trials, "slack of the policy", smoothed("slacks")),
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
            lambda t: np.cumsum(t.required("replans"), axis=1),
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


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of the table: which figure it holds, under which heading."""

    figure: str
    heading: str
    least: float = 0.0  # a smaller mean is shown as "< least"


COLUMNS = (
    Column("regret", "regret"),
    Column("observable_regret_bound", "observable regret bound"),
    Column("return_last_tenth", "return, last tenth"),
    Column("percent_below_best", "% below V*, last tenth"),
    Column("percent_below_bound", "% below the certified bound, last tenth"),
    Column("replans", "plans made"),
    Column("seconds_planning", "seconds planning", 0.001),
    Column("seconds", "seconds in all", 0.001),
)


def columns_shown(finals: Sequence[Row], facts: ModelFacts) -> tuple[Column, ...]:
    """Columns worth showing: the bounds only where V* is not known."""
    hidden = {"percent_below_bound"} if facts.start_value_exact else {"percent_below_best"}
    if facts.start_value_exact is not None:
        hidden.add("observable_regret_bound")
    present = {name for final in finals for name in final.figures}
    return tuple(c for c in COLUMNS if c.figure in present and c.figure not in hidden)


def summary_frame(finals: Sequence[Row]) -> polars.DataFrame:
    """One row for each model and learner: every mean, and half the width of its interval."""
    import polars

    rows = []
    for final in finals:
        row: dict[str, object] = {
            "model": final.model,
            "learner": final.trials.learner,
            "label": final.trials.label,
            "heuristic": final.trials.heuristic,
            "seeds": final.done,
            "episodes": final.trials.n_episodes,
        }
        for column in COLUMNS:
            found = final.figures.get(column.figure)
            row[column.figure] = None if found is None else found.mean
            row[f"{column.figure}_half_width"] = None if found is None else found.half_width
        rows.append(row)
    return polars.DataFrame(rows, infer_schema_length=None)


def finals_chart(finals: Sequence[Row], facts: ModelFacts) -> DotChart:
    """What every learner ended at, against the value that no policy exceeds."""
    dots = [
        Dot(
            final.trials.label,
            final.figures["return_last_tenth"].mean,
            final.figures["return_last_tenth"].half_width,
            final.trials.learner,
        )
        for final in finals
    ]
    several = any(dot.half_width is not None for dot in dots)
    spread = "with 95 % t intervals over seeds" if several else "of one seed"
    text = f"Mean return over the last tenth of episodes, {spread}. "
    if facts.plan_policy_mean is not None:
        error = facts.plan_policy_standard_error or 0.0
        dots.append(Dot("plan behind the bound", facts.plan_policy_mean, NORMAL_QUANTILE * error))
        text += "The plan behind the bound was simulated; its 95 % interval is over episodes. "
    if facts.plan_upper_bound is not None:
        text += "No policy earns more than the certified bound. "
    return DotChart(
        name="finals",
        title="Final returns and the certified gap",
        caption=text.rstrip(),
        x_label="return",
        dots=tuple(dots),
        marks=tuple(reference_values(facts)),
    )
