"""Notes 4 and 5: a program's optimum is not tight where learners go, and its weights are free."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import polars

from fsmdp.bounds.bellman import constant_value, network_of_structure
from fsmdp.bounds.bound import value_of
from fsmdp.bounds.joint import solve_joint
from fsmdp.bounds.plan import Plan
from fsmdp.domains.influence import influence
from fsmdp.domains.sysadmin import sysadmin
from fsmdp.exact.solve import solve_exactly
from fsmdp.learning.learners.learner import Learner
from fsmdp.learning.learners.ucrl import UCRLFactored
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.reproduction.claim import Callback, Finding, Repeats
from fsmdp.reproduction.losses import EnumeratedOptimum, Optimum, Trial, measure_all
from fsmdp.solver.plan import plan as make_plan

REALIZABLE, OTHER = "influence", "ring"
STAGEWISE, JOINT = "practical", "paper"
TIGHT = 1e-6
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Runs(Repeats):
    """How many seeds and episodes, and episodes of the paper's learner."""

    paper_episodes: int


def build(name: str) -> FactoredMDP:
    """A model whose V* is linear in singles, or one whose V* is not."""
    return influence(6, 2, horizon=5) if name == REALIZABLE else sysadmin(5, horizon=5)


def _prepare(name: str) -> tuple[FactoredMDP, Optimum]:
    model = build(name)
    return model, EnumeratedOptimum.of(model)


def _learner(preset: str, model: FactoredMDP, seed: int) -> Learner:
    structure = model.structure(Basis.singles(model))
    return UCRLFactored(
        structure, preset, seed=seed, known_rewards=model.rewards, empirical_weight=0
    )


def run_learners(runs: Runs, seed: int, callback: Callback) -> polars.DataFrame:
    """Regret, slack, widths and norms, an episode a row."""
    trials = [
        Trial(
            {"model": name, "preset": preset},
            partial(_prepare, name),
            partial(_learner, preset),
            runs.paper_episodes if preset == JOINT else runs.episodes,
            seed + number,
        )
        for preset in (JOINT, STAGEWISE)
        for name in (REALIZABLE, OTHER)
        for number in range(runs.seeds)
    ]
    return measure_all(trials, runs.workers, callback)


def slack_in_the_limit(model: FactoredMDP) -> float:
    """Expected slack of an episode when the model is known, planned step by step.

    sum_l E[V_l(s_l) - max_a Q_l(s_l, a)], s_l as the plan's policy meets it. By enumeration.
    """
    plan = _plan(model, "initial")
    exact = solve_exactly(model)
    flat, every = exact.flat, np.arange(len(exact.flat.states))
    occupied, total = flat.initial(), 0.0
    assert model.horizon is not None
    for step in range(1, model.horizon + 1):
        values, q_values = _values(plan, flat.states.tolist(), step)
        total += float(occupied @ (values - q_values.max(axis=1)))
        occupied = occupied @ flat.transitions[q_values.argmax(axis=1), every]
    return total


def _plan(model: FactoredMDP, weights: str) -> Plan:
    return make_plan(model, Basis.singles(model), method="stagewise", weights=weights)


def _values(plan: Plan, states: list[list[int]], step: int) -> tuple[np.ndarray, np.ndarray]:
    return (
        # Of the policy's own weights: the plan's bound may be a tighter one.
        np.array([value_of(plan.basis, plan.weights, state, step) for state in states]),
        np.array([plan.q_values(state, step) for state in states]),
    )


def slacks(learning: polars.DataFrame) -> polars.DataFrame:
    """By model and preset: slack of an episode relative to V*, early, late and in the limit.

    `covered` is the regret over the sum of slack and widths, which bounds it in the mean.
    """
    rows = []
    for (name, preset), part in learning.group_by(["model", "preset"], maintain_order=True):
        model = build(str(name))
        value = solve_exactly(model).start_value
        last = int(part["episode"].max())  # type: ignore[arg-type]
        relative = part.group_by("episode").agg(polars.col("slack").mean() / value).sort("episode")
        regret = float(part.filter(polars.col("episode") == last)["regret"].sum())
        logged = float(part["slack"].sum()) + float(part["width"].sum())
        rows.append(
            {
                "model": name,
                "preset": preset,
                "episodes": last,
                "early": float(relative["slack"][: last // 4].mean()),  # type: ignore[arg-type]
                "late": float(relative["slack"][-(last // 4) :].mean()),  # type: ignore[arg-type]
                "limit": slack_in_the_limit(model) / value,
                "covered": regret / logged,
            }
        )
    return polars.DataFrame(rows)


def tightness(table: polars.DataFrame) -> Finding:
    """Note 4: the slack along trajectories."""
    parts = [
        f"{row['model']}, {row['preset']}: {row['early']:.3g} V* early, {row['late']:.3g} V* late"
        for row in table.iter_rows(named=True)
    ]
    limits = {row["model"]: row["limit"] for row in table.iter_rows(named=True)}
    covered = float(table["covered"].max())  # type: ignore[arg-type]
    return Finding(
        note=4,
        says="the program is tight at every state of the trajectory, so V_1 is the value of the "
        "policy in the optimistic model",
        truth="an optimum is tight at some states only; the difference is at least 0 and a term "
        "of its own in the bound",
        measured=f"slack of an episode: {'; '.join(parts)}; with a known model "
        f"{limits[REALIZABLE]:.3f} V* where V* is linear and {limits[OTHER]:.3f} V* on the ring; "
        f"with slack as a term, regret is at most {covered:.2f} of the bound by slack and widths",
        wrong=float(table["early"].max()),  # type: ignore[arg-type]
        wrong_above=TIGHT,
        remaining=covered,
        remaining_up_to=1.0,
    )


def norms(learning: polars.DataFrame) -> Finding:
    """Note 5: norms of the weights that learners had, against that of V*."""
    model = build(REALIZABLE)
    plan = _plan(model, "uniform")
    true_norm = float(np.abs(plan.weights).sum(axis=1).max())
    used = float(learning.filter(polars.col("model") == REALIZABLE)["w_norm"].max())  # type: ignore[arg-type]
    allowed, found = _norm_with_rows(model)
    return Finding(
        note=5,
        says="weights have a 1-norm of at most W",
        truth="nothing in the program keeps them below the norm of V*; rows can, for a W that "
        "leaves a solution",
        measured=f"influence: V* has weights of norm {true_norm:.2f}, learners used up to "
        f"{used:.2f}; before anything is seen, rows for W = {allowed:.2f}, the largest reward at "
        f"every step, leave a solution with norm {found:.2f}",
        wrong=used / true_norm,
        wrong_above=1.0,
        remaining=found / allowed,
        remaining_up_to=1.0 + ROUNDING,
    )


def _norm_with_rows(model: FactoredMDP) -> tuple[float, float]:
    """W by the largest reward at every step, and the norm found with rows for it."""
    structure = model.structure(Basis.singles(model))
    network = network_of_structure(structure)
    intervals = UCRLFactored(structure, JOINT, known_rewards=model.rewards).bounds()
    allowed = constant_value(network, intervals)
    means = np.array([table.values.mean() for table in network.basis])
    weights = solve_joint(network, intervals, means, w_norm=allowed).weights
    return allowed, float(np.abs(weights).sum(axis=1).max())
