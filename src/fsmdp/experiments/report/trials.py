"""The runs of one learner on one model, as arrays over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.experiments.report.style import printable
from fsmdp.experiments.store import EPISODE_COLUMNS, TIMING_COLUMNS, ModelFacts, Results, Run
from fsmdp.foundation.checks import show, show_names
from fsmdp.model.tables import Floats

if TYPE_CHECKING:
    import polars

TOLD_THE_MODEL = frozenset({"plan", "optimal"})
"""Learners of the catalogue that do not learn: they are given the model."""


@dataclass(frozen=True, slots=True, eq=False)
class Trials:
    """All finished runs of one learner on one model."""

    learner: str
    name: str  # the label as it was given
    label: str  # and as figures show it
    heuristic: bool
    told: bool  # is given the model, so that it is no learner to compare
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
        told = learner.learner in TOLD_THE_MODEL
        found.append(Trials(learner.id, learner.label, label, heuristic, told, runs))
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
