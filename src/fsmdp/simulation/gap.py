"""The certified gap: what no policy can exceed, against what the plan's policy earns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsmdp.model.mdp import FactoredMDP
from fsmdp.planning.plan import Plan
from fsmdp.simulation.rollout import Progress, Runs, rollout

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Gap:
    """An upper bound on the best return, and an estimate of the policy's."""

    upper_bound: float
    runs: Runs

    @property
    def gap(self) -> float:
        """How far the policy can be from the best, up to the estimate's error.

        Never below 0: a mean above the bound is the error of the mean.
        """
        return max(0.0, self.upper_bound - self.runs.mean)

    @property
    def relative(self) -> float:
        """The gap as a fraction of the bound; infinite if the bound is zero and the gap is not."""
        if abs(self.gap) <= ROUNDING * max(1.0, abs(self.runs.mean)):
            return 0.0
        return self.gap / abs(self.upper_bound) if self.upper_bound else float(np.inf)

    def __repr__(self) -> str:
        return (
            f"Gap(policy earns {self.runs.mean:.6g} ± {self.runs.standard_error:.2g}, no policy "
            f"more than {self.upper_bound:.6g}: within {100 * self.relative:.2g} % of the best)"
        )


def certified_gap(
    model: FactoredMDP,
    plan: Plan,
    episodes: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Gap:
    """Roll the plan's policy out and set its mean against the plan's certified bound."""
    return Gap(plan.upper_bound, rollout(model, plan, episodes, seed, progress=progress))
