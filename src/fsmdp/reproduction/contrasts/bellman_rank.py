"""Bellman rank: of the matrix of average Bellman errors, policies by value functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars

from fsmdp.exact.flat import FlatMDP, enumerate_states
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.learning.cells.layout import cell_lookup
from fsmdp.learning.learners.baselines.enumerated import fill_cells
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.report.charts import Line, Panel
from fsmdp.reproduction.claim import Contrast, Judged, judge_growth

RELATIVE = 1e-9
"""Singular values below this fraction of the largest count as zero."""

TABLE = "bellman"


def bellman_errors(flat: FlatMDP, functions: Floats) -> list[Floats]:
    """For each step the matrix of average Bellman errors.

    E_l(pi, f) = E[ f_l(s, a) - r(s, a) - f_{l+1}(s', a') ],  a and a' greedy in f, where s is the
    state of step l under pi; each f is a value function, and its greedy policy one of the pi.
    `functions` has shape (n, horizon, n_actions, n_states).
    Cost: n horizon |states|^2, and n^2 |states| for each step.
    Source: Jiang, Krishnamurthy, Agarwal, Langford and Schapire (2017), Contextual decision
    processes with low Bellman rank are PAC-learnable, Definitions 3 and 4.
    """
    n, horizon, _, n_states = functions.shape
    every = np.arange(n_states)
    occupancies = np.zeros((horizon, n, n_states))
    errors = np.zeros((horizon, n, n_states))
    for number, f in enumerate(functions):
        actions, values = f.argmax(axis=1), f.max(axis=1)  # (horizon, n_states)
        reached = flat.initial()
        for step in range(horizon):
            rows = flat.transitions[actions[step], every]
            following = values[step + 1] if step + 1 < horizon else np.zeros(n_states)
            occupancies[step, number] = reached
            errors[step, number] = (
                values[step] - flat.rewards[actions[step], every] - rows @ following
            )
            reached = reached @ rows
    return [occupancies[step] @ errors[step].T for step in range(horizon)]


def rank(matrix: Floats) -> int:
    """Numerical rank."""
    singular = np.linalg.svd(matrix, compute_uv=False)
    return int((singular > RELATIVE * max(singular[0], 1e-300)).sum())


def random_functions(model: FactoredMDP, flat: FlatMDP, n: int, seed: int) -> Floats:
    """Value functions that are sums over the cells of singles, each number drawn at random.

    All values that our learners back up are of this form.
    """
    lookup = cell_lookup(model.structure(Basis.singles(model)))
    n_actions, n_states = flat.rewards.shape
    cells = np.zeros((n_actions, n_states, len(lookup.defaults)), dtype=np.int64)
    fill_cells(lookup, np.ascontiguousarray(flat.states, dtype=np.int64), cells)
    assert model.horizon is not None
    rng = generator(seed, Purpose.REPRODUCTION, "Bellman rank", n_states)
    weights = rng.normal(size=(n, model.horizon, int(lookup.offset[-1])))
    found = np.zeros((n, model.horizon, n_actions, n_states))
    for item in range(cells.shape[2]):
        found += weights[:, :, cells[:, :, item]]
    return found


def reachable(flat: FlatMDP) -> np.ndarray:
    """For each state whether some policy meets it, at whatever step."""
    step = flat.transitions.max(axis=0) > 0
    met = flat.initial() > 0
    while True:
        more = met | step[met].any(axis=0)
        if (more == met).all():
            return np.asarray(met)
        met = more


def measure(models: Mapping[str, Sequence[FactoredMDP]], seed: int) -> polars.DataFrame:
    """The largest rank over the steps, with twice as many functions as states can be met."""
    return polars.DataFrame(
        [_row(name, model, seed) for name, several in models.items() for model in several]
    )


def _row(name: str, model: FactoredMDP, seed: int) -> dict[str, Any]:
    flat = enumerate_states(model)
    n_met = int(reachable(flat).sum())
    functions = random_functions(model, flat, 2 * n_met, seed)
    return {
        "model": name,
        "variables": len(model.variables),
        "states_met": n_met,
        "rank": max(map(rank, bellman_errors(flat, functions))),
        "our_cells": model.structure(Basis.singles(model)).cells,
    }


def judge(table: polars.DataFrame) -> Judged:
    """Whether the rank grows exponentially."""
    return judge_growth(table, "rank", "Bellman ranks")


def panel(table: polars.DataFrame) -> Panel:
    """Rank of each model."""
    return panel_by_model("Bellman rank", table, "rank")


def panel_by_model(label: str, table: polars.DataFrame, column: str) -> Panel:
    """A line for each model."""
    return Panel(
        label,
        tuple(
            Line(
                str(name),
                part["variables"].to_numpy().astype(float),
                part[column].to_numpy().astype(float),
                str(name),
            )
            for (name,), part in table.group_by(["model"], maintain_order=True)
        ),
        log=True,
    )


CONTRAST = Contrast(
    "Bellman rank",
    "low Bellman rank (OLIVE), and classes around it",
    TABLE,
    judge,
    panel,
    "Rank of the matrix of average Bellman errors, by roll-in policies and value functions: "
    "what methods of low Bellman rank pay for.",
)
