"""History: what happened in every episode, and what it says about regret."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fsmdp.foundation.checks import as_number, plural
from fsmdp.foundation.numbers import facts_table, plain, upper
from fsmdp.learning.cells.layout import Cells
from fsmdp.learning.cells.statistics import Statistics
from fsmdp.learning.options import as_probability
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats

if TYPE_CHECKING:
    import polars


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
    replans: NDArray[np.bool_]  # whether a plan was made before the episode
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
