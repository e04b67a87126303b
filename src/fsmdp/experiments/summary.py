"""Final figures of a sweep: one row for each model and learner."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fsmdp.experiments.store import Results, Run, RunStatus

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """A mean over seeds, and half the width of its 95 % t interval; None with a single seed."""

    mean: float
    half_width: float | None

    @staticmethod
    def of(values: Sequence[float]) -> Interval:
        """mean +- t s / sqrt(n), t the quantile of Student's distribution with n - 1 degrees."""
        from scipy.special import stdtrit

        n, mean = len(values), math.fsum(values) / len(values)
        if n < 2:
            return Interval(mean, None)
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
        quantile = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2))
        return Interval(mean, quantile * deviation / math.sqrt(n))

    def __str__(self) -> str:
        width = "" if self.half_width is None else f" ± {self.half_width:.2g}"
        return f"{self.mean:.5g}{width}"


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """What the finished runs of a learner on a model came to; None where there is nothing."""

    model: str
    learner: str
    label: str
    heuristic: bool
    done: int
    failed: int
    message: str | None
    mean_return_last: Interval | None
    regret: Interval | None
    replans: Interval | None
    seconds: Interval | None


def mean_return_last(run: Run) -> float:
    """Mean return of the last tenth of the episodes."""
    return float(run.episodes["return"].tail(max(1, len(run.episodes) // 10)).mean())  # type: ignore[arg-type]


def summarise(results: Results) -> tuple[Row, ...]:
    """A row for each model and learner, in the order of the specification."""
    rows = []
    for model in results.specification.models:
        for learner in results.specification.learners:
            runs = [
                run for run in results.runs if (run.model, run.learner) == (model.id, learner.id)
            ]
            done = [run for run in runs if run.status == RunStatus.DONE]
            failed = [run for run in runs if run.status == RunStatus.FAILED]
            regrets = [run.episodes["regret"][-1] for run in done]
            known = bool(done) and None not in regrets
            rows.append(
                Row(
                    model.id,
                    learner.id,
                    learner.label,
                    any(run.heuristic for run in done),
                    len(done),
                    len(failed),
                    failed[0].message if failed else None,
                    Interval.of([mean_return_last(run) for run in done]) if done else None,
                    Interval.of(regrets) if known else None,
                    Interval.of([float(run.episodes["replan"].sum()) for run in done])
                    if done
                    else None,
                    Interval.of([run.facts["seconds"] for run in done]) if done else None,
                )
            )
    return tuple(rows)
