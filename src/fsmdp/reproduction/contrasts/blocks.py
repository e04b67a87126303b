"""Blocks: how many a Block MDP would need to describe a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars

from fsmdp.exact.flat import FlatMDP, enumerate_states
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.report.charts import Panel
from fsmdp.reproduction.claim import Contrast, Judged, judge_growth
from fsmdp.reproduction.contrasts.bellman_rank import panel_by_model, reachable

DIGITS = 9
TABLE = "blocks"


def block_numbers(flat: FlatMDP) -> np.ndarray:
    """The block of each state that can be met, of the fewest blocks that describe the model.

    In a Block MDP each state is shown by one block, P(s' | s, a) = P(b' | b, a) q(s' | b'), and
    rewards depend on the block. So two states may share a block if and only if what follows them is
    the same under every action, and the chances of coming to the one and to the other are in the
    same proportion from everywhere and at the start. Both relations are equivalences, so the
    classes of both together are the fewest blocks.
    Source: Du, Krishnamurthy, Jiang, Agarwal, Dudik and Langford (2019), Provably efficient RL with
    rich observations via latent state decoding.
    """
    met = reachable(flat)
    transitions = flat.transitions[:, met][:, :, met]
    n = int(met.sum())
    leaving = np.hstack([transitions.transpose(1, 0, 2).reshape(n, -1), flat.rewards[:, met].T])
    coming = np.hstack([transitions.transpose(2, 0, 1).reshape(n, -1), flat.initial()[met, None]])
    coming = coming / coming.max(axis=1, keepdims=True)
    return _classes(np.hstack([leaving, coming]))


def _classes(rows: Floats) -> np.ndarray:
    _, numbers = np.unique(np.round(rows, DIGITS), axis=0, return_inverse=True)
    return np.asarray(numbers).ravel()


def measure(models: Mapping[str, Sequence[FactoredMDP]]) -> polars.DataFrame:
    """Blocks of each model."""
    rows = []
    for name, several in models.items():
        for model in several:
            numbers = block_numbers(enumerate_states(model))
            rows.append(
                {
                    "model": name,
                    "variables": len(model.variables),
                    "states_met": len(numbers),
                    "blocks": int(numbers.max()) + 1,
                }
            )
    return polars.DataFrame(rows)


def judge(table: polars.DataFrame) -> Judged:
    """Whether the number of blocks grows exponentially."""
    return judge_growth(table, "blocks", "numbers of blocks")


def panel(table: polars.DataFrame) -> Panel:
    """Blocks of each model."""
    return panel_by_model("blocks", table, "blocks")


CONTRAST = Contrast(
    "block structure",
    "few latent states (Block MDPs)",
    TABLE,
    judge,
    panel,
    "Fewest blocks by which a Block MDP describes each model without loss.",
)
