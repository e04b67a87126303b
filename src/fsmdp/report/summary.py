"""Final figures of a sweep: one row for each model and learner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fsmdp.experiments.store import ModelFacts, Results, Run, RunStatus
from fsmdp.foundation.numbers import figures_table, mean_and_error
from fsmdp.model.tables import Floats

if TYPE_CHECKING:
    from fsmdp.report.curves import Trials

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
    from fsmdp.report.curves import all_trials_of_model

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
