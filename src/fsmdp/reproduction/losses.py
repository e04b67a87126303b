"""Regret without its noise: what each action loses against the best one, under the true Q*.

The return of an episode strays from its mean by far more than a good learner loses. But

    V*_1(s_1) - E[return] = E[ sum_l V*_l(s_l) - Q*_l(s_l, a_l) ],

and where V* is known the sum inside can be read off the trajectory: zero whenever the action is
optimal. Its running sum is what is called measured regret on these pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, SupportsFloat

import gymnasium
import numpy as np
import polars

from fsmdp.exact.solve import solve_exactly
from fsmdp.experiments.local import LocalExecutor
from fsmdp.learning.learners.learner import Learner
from fsmdp.learning.run import learn
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.report.charts import Line
from fsmdp.reproduction.claim import Callback
from fsmdp.simulation.environment import make_env
from fsmdp.solver.plan import plan


class Optimum(Protocol):
    """The true optimum of a model."""

    def q_values(self, state: Sequence[int], step: int = 1) -> Floats:
        """Q*_l(s, a) for every action."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class EnumeratedOptimum:
    """Q* of a small model, from all its states."""

    strides: Any
    values: Floats  # (horizon, n_actions, n_states)

    @staticmethod
    def of(model: FactoredMDP) -> EnumeratedOptimum:
        """Solve a model exactly. Cost: horizon * |actions| * |states|^2."""
        exact = solve_exactly(model)
        flat = exact.flat
        values = [
            flat.rewards + model.discount * flat.transitions @ following
            for following in exact.values[1:]
        ]
        strides = np.array(
            [flat.index(unit) for unit in np.eye(len(model.sizes), dtype=int).tolist()]
        )
        return EnumeratedOptimum(strides, np.stack(values))

    def q_values(self, state: Sequence[int], step: int = 1) -> Floats:
        """Q*_l(s, a) for every action."""
        return np.asarray(self.values[step - 1, :, int(np.asarray(state) @ self.strides)])


def realizable_optimum(model: FactoredMDP, basis: Basis) -> Optimum:
    """Q* of a model whose V* lies in the span of the basis, at any size.

    Stagewise weights are V* there: V*_l is feasible, and every feasible V is above it everywhere.
    """
    return plan(model, basis, method="stagewise", weights="uniform")


class LossEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that adds up what actions lose."""

    def __init__(self, model: FactoredMDP, optimum: Optimum) -> None:
        super().__init__(make_env(model))
        self.optimum = optimum
        self.losses: list[float] = []
        self._state: Any = None
        self._step = 1

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode without losses."""
        self._state, info = self.env.reset(**options)
        self._step = 1
        self.losses.append(0.0)
        return self._state, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Count the loss of an action, then take it."""
        q = self.optimum.q_values(self._state, self._step)
        self.losses[-1] += float(q.max() - q[int(action)])
        self._state, reward, ended, truncated, info = self.env.step(action)
        self._step += 1
        return self._state, reward, ended, truncated, info


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One learner on one model with one seed; `prepare` makes what is too large to send."""

    labels: dict[str, Any]
    prepare: Callable[[], tuple[FactoredMDP, Optimum]]
    learner: Callable[[FactoredMDP, int], Learner]
    episodes: int
    seed: int


def measure(trial: Trial) -> polars.DataFrame:
    """A row per episode: labels, what was lost, and what the learner logged."""
    model, optimum = trial.prepare()
    env = LossEnv(model, optimum)
    history = learn(env, trial.learner(model, trial.seed), trial.episodes, trial.seed)
    losses = np.array(env.losses[-trial.episodes :])
    return history.frame().select(
        *(polars.lit(value).alias(name) for name, value in trial.labels.items()),
        polars.lit(trial.seed).alias("seed"),
        "episode",
        polars.Series("regret", np.cumsum(losses)),
        polars.col("optimistic_values").alias("optimistic_value"),
        polars.col("slacks").alias("slack"),
        polars.col("widths").alias("width"),
        polars.col("w_norms").alias("w_norm"),
        polars.col("replans").alias("replan"),
    )


def measure_all(trials: Sequence[Trial], workers: int, callback: Callback) -> polars.DataFrame:
    """All trials on the workbench's local executor, in the order in which they were given.

    A single worker is this process: starting another takes longer than a short run.
    """
    if workers == 1:
        return polars.concat([measure(trial) for trial in trials])
    frames: dict[int, polars.DataFrame] = {}
    with LocalExecutor(workers) as executor:
        for position, frame in executor.run(measure, trials):
            if isinstance(frame, Exception):
                raise frame
            frames[position] = frame
            callback(f"{len(frames)} of {len(trials)} runs")
    return polars.concat([frames[position] for position in range(len(trials))])


def final_regret(frame: polars.DataFrame, *labels: str) -> polars.DataFrame:
    """Mean over seeds of the regret after the last episode, and its standard error."""
    last = frame.filter(
        polars.col("episode") == polars.col("episode").max().over([*labels, "seed"])
    )
    return last.group_by(labels, maintain_order=True).agg(
        regret=polars.col("regret").mean(),
        standard_error=polars.col("regret").std() / polars.len().sqrt(),
        episodes=polars.col("episode").max(),
        w_norm=polars.col("w_norm").max(),
        seeds=polars.len(),
    )


def thinned(frame: polars.DataFrame, points: int = 120) -> polars.DataFrame:
    """Only episodes at even distances of their logarithms, enough to draw and to fit."""
    last = int(frame["episode"].max())  # type: ignore[arg-type]
    kept = np.unique(np.geomspace(1, last, min(points, last)).round().astype(np.int64))
    return frame.filter(polars.col("episode").is_in(kept))


def mean_lines(
    curves: polars.DataFrame, label: str, notes: Mapping[str, str] | None = None
) -> tuple[Line, ...]:
    """A line for each value of a label: mean regret over seeds, with standard errors."""
    lines = []
    for (name,), part in curves.group_by([label], maintain_order=True):
        over_seeds = part.group_by("episode", maintain_order=True).agg(
            polars.col("regret").mean(), error=polars.col("regret").std() / polars.len().sqrt()
        )
        lines.append(
            Line(
                str(name),
                over_seeds["episode"].to_numpy().astype(float),
                over_seeds["regret"].to_numpy(),
                str(name),
                half_width=over_seeds["error"].fill_null(0.0).to_numpy(),
                note=(notes or {}).get(str(name), ""),
            )
        )
    return tuple(lines)
