"""The run: the loop of learning, its history, and its checkpoints.

Plan, follow the plan, count, and plan again when it is due. A history has what happened in every
episode and what it says about regret; a checkpoint is plain arrays, written whole or not at all.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_number, as_probability, as_seed, as_whole, clip, plural, show
from fsmdp.foundation.disk import check_path, digest_of, read_arrays, write_arrays
from fsmdp.foundation.numbers import facts_table, plain, upper
from fsmdp.foundation.progress import Report, reporting
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.foundation.threads import one_blas_thread
from fsmdp.learning.cells.kernel import Logs
from fsmdp.learning.cells.layout import Cells
from fsmdp.learning.cells.statistics import LARGEST_FILE, Statistics
from fsmdp.learning.environments import EpisodeRunner, Source, open_runner
from fsmdp.learning.learners.learner import Acting, Learner, Planned, check_learner, check_planned
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Booleans, Floats
from fsmdp.policies.arrays import policy_from_arrays, policy_to_arrays

if TYPE_CHECKING:
    import polars

MOST_EPISODES = 10**9
Watch = Callable[[Floats], None]
"""Called with the returns of the episodes done."""

BATCH = 10_000
"""Most episodes between two reports of progress."""


def learn(
    environment: Source,
    learner: Learner,
    episodes: int,
    seed: int = 0,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 100,
    progress: bool | Report | None = None,
    watch: Watch | None = None,
) -> History:
    """Let a learner live through episodes of a FactoredMDP or a Gymnasium environment.

    `seed` draws the episodes; what the learner draws depends on its own seed. A model and its
    environment give the same counts. A learner that has already learnt goes on from what it knows;
    the history is that of this call.

    With `checkpoint` everything is written to that file every `checkpoint_every` episodes and at
    the end. If the file exists, the run goes on from it (with a fresh learner of the same options)
    and ends with the same history, bit for bit, as if it had never stopped; seconds excepted.

    `progress`: True shows a bar once it takes longer than two seconds; a function is called with
    the episodes done and their number in all. `watch` is called with the returns so far.
    """
    episodes = as_whole(episodes, "episodes", 1, MOST_EPISODES)
    checkpoint_every = as_whole(checkpoint_every, "checkpoint_every", 1)
    check_learner(learner)
    rng = generator(as_seed(seed), Purpose.LEARNING)
    run = _Run(open_runner(environment, learner, rng), learner, episodes, seed)
    path = None if checkpoint is None else check_path(checkpoint)
    if path is not None and path.exists():
        run.resume(path)
    with one_blas_thread(), reporting(progress, "learning", episodes) as report:
        while run.done < episodes:
            last = min(episodes, run.done + BATCH)
            if path is not None:
                last = min(last, (run.done // checkpoint_every + 1) * checkpoint_every)
            run.advance(last)
            if path is not None and (run.done % checkpoint_every == 0 or run.done == episodes):
                run.write(path)
            if report is not None:
                report(run.done, episodes)
            if watch is not None:
                watch(run.series["returns"][: run.done])
    return run.history()


class _Run:
    """A run in progress: how far it is, what is being followed, and what was logged."""

    def __init__(self, runner: EpisodeRunner, learner: Learner, episodes: int, seed: int) -> None:
        self.runner, self.learner = runner, learner
        self.done = 0
        self.planned: Planned | None = None
        self.due = True
        self.series: dict[str, Any] = {name: np.zeros(episodes) for name in SERIES}
        self.series["replans"] = np.zeros(episodes, dtype=np.bool_)
        self.logs = Logs(**{name: self.series[name] for name in Logs._fields})
        self.most = learner.structure.largest_return
        self.identity = {"seed": str(seed), "environment": runner.identity()} | identify(learner)

    def advance(self, last: int) -> None:
        """Plan if it is due, then run episodes until the next plan is."""
        series, began = self.series, time.perf_counter()
        if self.due or self.planned is None:
            self.planned = check_planned(self.learner.replan(), self.learner)
            series["replans"][self.done] = True
            series["seconds_planning"][self.done] = time.perf_counter() - began
        planned, began = self.planned, time.perf_counter()
        reached, self.due = self.runner.run(planned.acting, self.logs, self.done, last)
        ran = slice(self.done, reached)
        series["seconds_acting"][ran] = (time.perf_counter() - began) / (reached - self.done)
        values = series["optimistic_values"]
        values[ran] = np.minimum(values[ran], self.most)  # still above V*, and NaN stays NaN
        series["lifts"][ran] = planned.lift
        series["w_norms"][ran] = planned.w_norm
        self.done = reached

    def write(self, path: Path) -> None:
        """Everything that the episodes to come depend on, and those that were."""
        assert self.planned is not None
        write_checkpoint(
            path,
            self.identity,
            with_prefix("statistics", self.learner.statistics.arrays())
            | with_prefix("learner", self.learner.state())
            | with_prefix("planned", planned_to_arrays(self.planned))
            | with_prefix("series", {n: s[: self.done] for n, s in self.series.items()})
            | {
                "done": np.array(self.done),
                "due": np.array(self.due),
                "environment": np.array(json.dumps(self.runner.random_state())),
            },
        )

    def resume(self, path: Path) -> None:
        """Take up a run that was written."""
        learner = self.learner
        arrays = read_checkpoint(path, self.identity)
        if learner.statistics.episodes:
            raise ModelError(
                f"checkpoint {path}: the learner has already seen {learner.statistics.episodes} "
                "episodes; resume with a fresh one."
            )
        done = take(path, lambda: as_whole(one(arrays, "done", np.int64), "done", 1))
        if done > len(self.series["returns"]):
            raise ModelError(
                f"checkpoint {path} already holds {done} episodes, asked for "
                f"{len(self.series['returns'])}; ask for at least as many."
            )
        statistics = take(path, lambda: Statistics.from_arrays(under_prefix("statistics", arrays)))
        take(path, lambda: statistics.check_fit(learner.cells))
        take(path, lambda: statistics.check_counts(learner.cells, done))
        planned = take(
            path, lambda: planned_from_arrays(under_prefix("planned", arrays), learner.structure)
        )
        self.planned = take(path, lambda: check_planned(planned, learner))
        series = under_prefix("series", arrays)
        take(path, lambda: check_series(series, done, planned))
        for name, values in self.series.items():
            values[:done] = series[name]
        take(path, lambda: learner.restore(under_prefix("learner", arrays)))
        take(
            path,
            lambda: self.runner.set_random_state(json.loads(one(arrays, "environment", np.str_))),
        )
        self.due = take(path, lambda: one(arrays, "due", np.bool_))
        self.done, learner.statistics = done, statistics

    def history(self) -> History:
        """What happened."""
        learner = self.learner
        return History(
            structure=learner.structure,
            learner=f"{learner.name}({learner.describe()})",
            heuristic=learner.heuristic,
            optimistic=bool(learner.optimistic),
            cells=learner.cells,
            statistics=learner.statistics + Statistics.empty(learner.cells),  # a copy
            **self.series,
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class History:
    """One entry per episode.

    `optimistic_values` are V_1(s_1) of the plan followed, or the most that an episode can earn if
    that is less; `slacks` the sum over the trajectory of V_l(s_l) - Q_l(s_l, a_l), which the
    paper's proof takes to be 0, and `widths` the sum of what the plan's intervals left open about
    the actions taken. When the truth lies in the intervals, the expected regret of an episode is at
    most the mean of slack plus width.
    `lifts` are what certificates added to V_1, `w_norms` the largest 1-norm of a step's weights.
    """

    structure: Structure = field(repr=False)
    learner: str
    heuristic: bool
    optimistic: bool  # whether the learner's values are meant to be upper bounds
    returns: Floats
    optimistic_values: Floats
    slacks: Floats
    widths: Floats
    replans: Booleans  # whether a plan was made before the episode
    lifts: Floats
    w_norms: Floats
    seconds_planning: Floats
    seconds_acting: Floats
    cells: Cells | None = field(default=None, repr=False)  # where the learner counted
    statistics: Statistics | None = field(default=None, repr=False)  # and what, at the end

    def __post_init__(self) -> None:
        for name in SERIES:
            array = getattr(self, name).copy()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.returns)

    def frame(self, start_value: float | None = None) -> polars.DataFrame:
        """One row per episode; `regret` needs V* at the start, and is NaN without."""
        import polars

        regret = np.full(len(self), np.nan) if start_value is None else self.regret(start_value)
        return polars.DataFrame(
            {"episode": np.arange(1, len(self) + 1)}
            | {name: getattr(self, name) for name in SERIES}
            | {
                "observable_regret_bound": self.observable_regret_bound(),
                "regret": regret,
                "heuristic": np.full(len(self), self.heuristic),
            }
        )

    def martingale_allowance(self, delta: float = 0.05) -> Floats:
        """How far the sum of the first K returns may stray from its mean, for all K at once.

        sqrt(2 K (c^2 / 4 + n) log(pi^2 K^2 / (6 delta))), c the range of an episode's expected
        rewards and n the variance of its noise; by the Azuma-Hoeffding inequality for sums of
        conditionally sub-Gaussian terms, and a union over K.
        """
        delta = as_probability(delta)
        terms, discount = self.structure.rewards, self.structure.discount
        assert self.structure.horizon is not None
        factors = discount ** np.arange(self.structure.horizon)
        reach = factors.sum() * sum(term.high - term.low for term in terms)
        noise = (factors**2).sum() * sum(term.sigma**2 for term in terms)
        k = np.arange(1, len(self) + 1, dtype=np.float64)
        logs = np.log(math.pi**2 * k**2 / (6 * delta))
        return np.asarray(np.sqrt(2 * k * (reach**2 / 4 + noise) * logs))

    def observable_regret_bound(self, delta: float = 0.05) -> Floats:
        """An upper bound on the regret after each episode that needs no knowledge of V*.

        sum_k (V_1(s_1) - return) + allowance. With probability at least 1 - `delta` it holds
        for all episodes at once, as long as V_1 >= V*_1 in every episode: for UCRL-Factored that is
        whenever the truth lies in the confidence sets. NaN for learners that are not optimistic,
        such as posterior sampling.
        """
        allowance = self.martingale_allowance(delta)
        if not self.optimistic:
            return np.full(len(self), np.nan)
        return np.asarray(np.cumsum(self.optimistic_values - self.returns) + allowance)

    def regret(self, start_value: float) -> Floats:
        """Regret after each episode when V*, the best expected return, is known.

        sum_k (V* - return): its mean is the regret, and it strays by `martingale_allowance`.
        """
        best = as_number(start_value, "start_value", "give solve_exactly(model).start_value")
        return np.asarray(np.cumsum(best - self.returns))

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw returns, optimistic values, and regret or its bound; see `fsmdp.plot.history`."""
        from fsmdp.report.plot import history

        return history(self, ax, **options)

    def _repr_html_(self) -> str:
        last = self.returns[-max(1, len(self) // 10) :]
        bound = self.observable_regret_bound()
        return facts_table(
            "History" + (" (heuristic: no guarantee)" if self.heuristic else ""),
            (
                ("learner", self.learner),
                ("episodes", len(self)),
                ("plans made", int(self.replans.sum())),
                ("mean return", plain(self.returns.mean(), 6)),
                ("mean return, last tenth", plain(last.mean(), 6)),
                ("regret at most", upper(bound[-1], 6) if self.optimistic and len(self) else None),
                ("seconds planning", f"{self.seconds_planning.sum():.2f}"),
            ),
        )

    def __repr__(self) -> str:
        label = ", HEURISTIC" if self.heuristic else ""
        last = self.returns[-max(1, len(self) // 10) :]
        return (
            f"History({self.learner}{label}: {plural(len(self), 'episode')}, "
            f"{plural(int(self.replans.sum()), 'plan')}, mean return "
            f"{plain(self.returns.mean(), 6)} (last tenth {plain(last.mean(), 6)}), "
            f"{self.seconds_planning.sum():.2f} s planning, {self.seconds_acting.sum():.2f} s "
            "acting)"
        )


SERIES = tuple(
    f.name
    for f in fields(History)
    if f.name not in ("structure", "learner", "heuristic", "optimistic", "cells", "statistics")
)
"""Names of what History holds for every episode."""


FORMAT = 7

REMEDY = "use another file, or remove this one to start anew"

Taken = TypeVar("Taken")

Identity = dict[str, str]
"""What a run is, by the name of the part: another value of any part makes it another run."""


def write_checkpoint(
    path: str | os.PathLike[str], identity: Identity, arrays: Mapping[str, np.ndarray]
) -> None:
    """Write a file of arrays beside the old one, then put it in its place."""
    about = {"format": np.array(FORMAT), "identity": np.array(json.dumps(identity))}
    write_arrays(path, about | dict(arrays))


def read_checkpoint(path: str | os.PathLike[str], identity: Identity) -> dict[str, np.ndarray]:
    """The arrays of a checkpoint of this very run; anything else is a ModelError."""
    arrays = read_arrays(path, LARGEST_FILE, "checkpoint", REMEDY)
    found = take(path, lambda: one(arrays, "format", np.int64))
    if found != FORMAT:
        raise ModelError(
            f"checkpoint {show(str(path))} has format {found}, expected {FORMAT}; {REMEDY}."
        )
    _check_identity(path, arrays, identity)
    return arrays


def check_whole(path: str | os.PathLike[str], parts: Identity) -> None:
    """Refuse, with a ModelError, a checkpoint that is damaged, or whose run has other parts.

    Whether it can be taken up, which depends on its learner, is left to `read_checkpoint`.
    """
    _check_identity(path, read_arrays(path, LARGEST_FILE, "checkpoint", REMEDY), parts)


def _check_identity(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], identity: Identity
) -> None:
    written = take(path, lambda: dict(json.loads(one(arrays, "identity", np.str_))))
    for part in identity:
        if written.get(part) != identity[part]:
            raise ModelError(
                f"checkpoint {show(str(path))} is of another run: its {part} is "
                f"{clip(str(written.get(part)))}, this run's is {clip(identity[part])}; {REMEDY}."
            )


def take(path: str | os.PathLike[str], part: Callable[[], Taken]) -> Taken:
    """A part of a checkpoint, or a ModelError if it is missing or wrong."""
    try:
        return part()
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ModelError(
            f"checkpoint {show(str(path))}: a part is missing or wrong ({clip(str(error))}); "
            f"{REMEDY}."
        ) from None


def one(arrays: Mapping[str, np.ndarray], name: str, kind: type[np.generic]) -> Any:
    """The single number, truth value or text of an array of that kind, or a ValueError."""
    array = arrays[name]
    if array.ndim or not np.issubdtype(array.dtype, kind):
        raise ValueError(f"{name}: expected one {np.dtype(kind).name}")
    return array.item()


def identify(learner: Learner) -> Identity:
    """What a learner is, as far as a run depends on it: options, seed, structure, known rewards."""
    structure, cells = learner.structure, learner.cells
    described = [
        [[variable.name, variable.size] for variable in structure.variables],
        structure.actions.as_json(),
        structure.horizon,
        structure.discount,
        [[term.name, term.low, term.high, term.sigma] for term in structure.rewards],
        structure.independent,
    ]
    laid_out = [*cells.layout.lookup, *cells.layout[1:], cells.values]
    return {
        "learner": f"{learner.name}({learner.describe()})",
        "learner's seed": str(learner.seed),
        "structure": f"{structure!r}, {digest_of([np.array(json.dumps(described)), *laid_out])}",
        "known rewards, features or policy": digest_of(learner.given()),
    }


def with_prefix(prefix: str, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The same arrays under longer names."""
    return {f"{prefix}/{name}": np.asarray(value) for name, value in arrays.items()}


def under_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The inverse of `with_prefix`."""
    start = prefix + "/"
    return {name[len(start) :]: a for name, a in arrays.items() if name.startswith(start)}


def planned_to_arrays(planned: Planned) -> dict[str, np.ndarray]:
    """A plan that is being followed, as arrays."""
    acting = planned.acting._asdict()
    policy = policy_to_arrays(acting.pop("policy"))
    return (
        with_prefix("acting", acting)
        | with_prefix("policy", policy)
        | {"lift": np.array(planned.lift), "w_norm": np.array(planned.w_norm)}
    )


def planned_from_arrays(arrays: dict[str, np.ndarray], structure: Structure) -> Planned:
    """The inverse of `planned_to_arrays`; a ValueError if numbers are not what they can be."""
    sizes = [variable.size for variable in structure.variables]
    policy = policy_from_arrays(under_prefix("policy", arrays), sizes, structure.actions)
    logged = under_prefix("acting", arrays)
    for name in ("values", "q", "widths", "start_values"):
        if not is_claimed(logged[name]) and not np.isnan(logged[name]).all():
            raise ValueError(f"{name}: expected finite numbers, or NaN and nothing else")
    acting = Acting(policy=policy, **logged)
    lift, w_norm = (one(arrays, name, np.float64) for name in ("lift", "w_norm"))
    if np.isinf([lift, w_norm]).any():
        raise ValueError("lift, w_norm: expected numbers that are not infinite")
    return Planned(acting, lift, w_norm)


def is_claimed(numbers: Any) -> bool:
    """Whether numbers are finite; a learner that claims nothing logs NaN."""
    return bool(np.isfinite(numbers).all())


def check_series(series: Mapping[str, np.ndarray], done: int, planned: Planned) -> None:
    """Refuse, with a ValueError, series of other lengths or kinds, or with gaps.

    NaN may stand only where the plan that is followed claims nothing.
    """
    acting = planned.acting
    behind: dict[str, tuple[Any, ...]] = {
        "optimistic_values": (acting.values, acting.start_values),
        "slacks": (acting.values, acting.q),
        "widths": (acting.widths,),
        "lifts": (planned.lift,),
        "w_norms": (planned.w_norm,),
    }
    for name in SERIES:
        array, kind = series[name], np.bool_ if name == "replans" else np.float64
        if array.shape != (done,) or array.dtype != kind:
            raise ValueError(f"{name}: expected {done} of kind {np.dtype(kind)}")
        claimed = all(is_claimed(source) for source in behind.get(name, ()))
        if not np.isfinite(array).all() if claimed else np.isinf(array).any():
            raise ValueError(f"{name}: expected finite numbers")
        if name.startswith("seconds") and (array < 0).any():
            raise ValueError(f"{name}: expected no negative seconds")
