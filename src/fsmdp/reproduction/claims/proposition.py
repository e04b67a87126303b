"""Proposition 1: V* is linear in any basis while Q* is linear in hardly any."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars
from scipy.stats import binomtest

from fsmdp.domains.proposition import proposition_one
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.learning.learners.baselines.lsvi import LSVIUCB, action_features, one_hot_features
from fsmdp.learning.learners.learner import Learner
from fsmdp.learning.learners.ucrl import UCRLFactored
from fsmdp.learning.theory import regret_bound
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.report.charts import Chart, Line, Panel
from fsmdp.reproduction.claim import Callback, Claim, Evidence, Form, Judgement, Verdict
from fsmdp.reproduction.losses import EnumeratedOptimum, Optimum, Trial, measure_all, thinned

IN_THE_SPAN = 1e-9
CONFIDENCE = 0.999
LATE_LOSS = 0.05  # of an episode, below which a learner has settled; risky actions lose 0.75
DOUBLES = 1.5  # growth for each bit from which a bound is called exponential
BONUS = 0.1

OURS, RANDOM, ONE_HOT, TWO = "constant", "random", "one-hot", "by action"
GAUSSIAN, TIED = "random numbers", "states tied together"
MEANING = {
    OURS: "ours, the constant alone as basis",
    ONE_HOT: "LSVI-UCB, a feature for each state and action",
    RANDOM: "LSVI-UCB, N / 2 random features",
    TWO: "LSVI-UCB, a feature for each action",
}


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """How many models are sampled for the span, and what learners run."""

    span_bits: Sequence[int]
    models: int
    bits: Sequence[int]
    seeds: int
    episodes: int
    workers: int = 2


SIZES = {
    Form.TINY: Sizes((2,), 150, (2, 3), 2, 400, workers=1),
    Form.SMALL: Sizes((2, 3), 1000, (2, 3, 4, 5), 4, 2000),
    Form.FULL: Sizes((2, 3, 4), 5000, (2, 3, 4, 5, 6), 8, 5000),
}


def run(form: Form, seed: int, callback: Callback) -> Evidence:
    """Count members of the family whose Q* a basis spans, then let learners loose on members."""
    sizes = SIZES[form]
    spans = [
        row
        for bits in sizes.span_bits
        for row in spanned_fractions(bits, sizes.models, seed, callback)
    ]
    trials = [
        Trial(
            {"bits": bits, "features": features},
            partial(_prepare, bits, seed + number),
            partial(_learner, features),
            sizes.episodes,
            seed + number,
        )
        for bits in sizes.bits
        for features in MEANING
        for number in range(sizes.seeds)
    ]
    return Evidence(
        {
            "spans": polars.DataFrame(spans),
            "regret": thinned(measure_all(trials, sizes.workers, callback)).select(
                "bits", "features", "seed", "episode", "regret"
            ),
            "bounds": polars.DataFrame([_bound(bits, sizes.episodes) for bits in sizes.bits]),
        }
    )


def spanned_fractions(
    bits: int, models: int, seed: int, callback: Callback
) -> list[dict[str, Any]]:
    """By kind and number of functions: the fraction of sampled MDPs whose Q* lies in the span."""
    callback(f"proposition: {models} members of the family with {bits} bits")
    rng = generator(seed, Purpose.REPRODUCTION, "bits", bits)
    optima = [
        EnumeratedOptimum.of(proposition_one(bits, seed=seed * 10**6 + number)).values[0]
        for number in range(models)
    ]
    q_values = np.stack([q.ravel() for q in optima], axis=1)  # (n_actions * n_states, n_models)
    largest_value = float(max(abs(q.max(axis=0)).max() for q in optima))
    n_states = 2**bits
    rows = []
    for functions in range(max(1, n_states - 4), n_states):
        for kind, basis in (
            (GAUSSIAN, rng.normal(size=(2 * n_states, functions))),
            (TIED, tied_states(n_states, functions)),
        ):
            spanned = int(np.count_nonzero(residuals(basis, q_values) < IN_THE_SPAN))
            interval = binomtest(spanned, models).proportion_ci(CONFIDENCE)
            rows.append(
                {
                    "states": n_states,
                    "functions": functions,
                    "basis": kind,
                    "spanned": spanned / models,
                    "low": float(interval.low),
                    "high": float(interval.high),
                    "stated": 2.0 ** (functions - n_states),
                    "largest_value": largest_value,
                }
            )
    return rows


def tied_states(n_states: int, functions: int) -> Floats:
    """The basis that spans most: the risky rewards of all states beyond the first are equal.

    Functions of (action, state): an indicator of each of the first states, the last of them with
    all states that follow. Q* is in the span if those states happen to have one reward, which has
    probability 2^(functions - states): the proposition's bound, attained.
    """
    risky = np.eye(functions)[np.minimum(np.arange(n_states), functions - 1)]
    return np.vstack([np.zeros((n_states, functions)), risky])


def residuals(basis: Floats, targets: Floats) -> Floats:
    """Largest error of the least-squares fit, for each column of targets."""
    fitted = basis @ np.linalg.lstsq(basis, targets, rcond=None)[0]
    return np.asarray(np.abs(fitted - targets).max(axis=0))


def _prepare(bits: int, seed: int) -> tuple[FactoredMDP, Optimum]:
    model = proposition_one(bits, seed=seed)
    return model, EnumeratedOptimum.of(model)


def _structure(model: FactoredMDP) -> Structure:
    """V* = 0, so the constant is a basis as good as any."""
    return model.structure(Basis([]))


def _learner(features: str, model: FactoredMDP, seed: int) -> Learner:
    structure = _structure(model)
    if features == OURS:
        return UCRLFactored(structure, seed=seed, empirical_weight=0)
    if features == ONE_HOT:
        array = one_hot_features(structure)
    elif features == TWO:
        array = action_features(structure)
    else:
        shape = (model.n_states, len(model.actions), model.n_states // 2)
        array = generator(seed, Purpose.REPRODUCTION, "table", model.n_states).normal(size=shape)
        array /= np.sqrt((array**2).sum(axis=2, keepdims=True))
    # The bonus without its factor d, which a horizon of 1 does not need; the constant is free.
    return LSVIUCB(structure, array, seed=seed, scale=BONUS / array.shape[2] ** 2)


def _bound(bits: int, episodes: int) -> dict[str, Any]:
    """The regret theorem on the family, whose only reward term depends on every bit."""
    structure = _structure(proposition_one(bits))
    return {
        "bits": bits,
        "reward_cells": 2**bits + 1,
        "bound": regret_bound(structure, episodes=episodes).rewards,
    }


def courses(evidence: Evidence) -> dict[tuple[int, str], tuple[Floats, Floats]]:
    """Episodes and mean regret over seeds, by number of bits and features."""
    found = {}
    for (bits, features), part in evidence["regret"].group_by(
        ["bits", "features"], maintain_order=True
    ):
        mean = part.group_by("episode").agg(polars.col("regret").mean()).sort("episode")
        episodes = mean["episode"].to_numpy().astype(float)
        found[int(bits), str(features)] = episodes, mean["regret"].to_numpy()
    return found


def late_losses(evidence: Evidence) -> dict[tuple[int, str], float]:
    """Mean loss of an episode in the last half, by number of bits and features."""
    return {
        key: float((regret[-1] - np.interp(episodes[-1] / 2, episodes, regret)) * 2 / episodes[-1])
        for key, (episodes, regret) in courses(evidence).items()
    }


def judge(evidence: Evidence) -> Judgement:
    """The stated probability is never exceeded, V* is 0, and only our learner settles."""
    spans, losses = evidence["spans"], late_losses(evidence)
    holds = bool((spans["low"] <= spans["stated"]).all()) and spans["largest_value"].max() == 0
    random = float(spans.filter(polars.col("basis") == GAUSSIAN)["spanned"].max())  # type: ignore[arg-type]
    tied = spans.filter(polars.col("basis") == TIED)
    away = float((tied["spanned"] - tied["stated"]).abs().max())  # type: ignore[arg-type]
    most = max(bits for bits, _ in losses)
    ends = {key: regret[-1] for key, (_, regret) in courses(evidence).items()}
    ours = ", ".join(f"{end:.1f}" for (_, features), end in ends.items() if features == OURS)
    of_bits = ", ".join(str(bits) for bits, features in ends if features == OURS)
    settled = all(loss <= LATE_LOSS for (_, features), loss in losses.items() if features == OURS)
    loses = all(loss > LATE_LOSS for (_, features), loss in losses.items() if features == RANDOM)
    two = max(loss for (_, features), loss in losses.items() if features == TWO)
    bounds = evidence["bounds"].sort("bits")
    growth = (bounds["bound"][-1] / bounds["bound"][0]) ** (
        1 / max(1, bounds["bits"][-1] - bounds["bits"][0])
    )
    reason = (
        f"Q* lies in the span of a random basis for {random:.1%} of the members at most, and in "
        f"that of a basis that ties states together as often as stated, to within {away:.1%}; at "
        f"{most} bits and half way on, an episode loses {losses[most, OURS]:.3f} with ours and "
        f"{losses[most, RANDOM]:.3f} with LSVI-UCB on random features; but LSVI-UCB with two "
        f"features that hardly ever span Q*, an indicator of each action, loses {two:.3f} at "
        f"most; our regret ends at {ours} with {of_bits} bits and our bound grows {growth:.2f} "
        "times with each, since the only reward depends on all of them"
    )
    if not (holds and settled and loses):
        return Judgement(Verdict.FAILS, reason)
    care = two <= LATE_LOSS or growth >= DOUBLES
    return Judgement(Verdict.CORRECTED if care else Verdict.HOLDS, reason)


def draw(evidence: Evidence) -> Chart:
    """Regret of the learners with the most bits."""
    found = courses(evidence)
    bits = max(number for number, _ in found)
    lines = []
    for features, label in MEANING.items():
        x, y = found[bits, features]
        lines.append(Line(label, x, np.where(y > 0, y, np.nan), features))
    return Chart(
        name="proposition",
        title=f"Regret on members of the family with {bits} bits",
        caption=f"N = {2**bits} states, one step an episode; mean over members of the family. "
        "Random features cannot represent Q*, and least squares on them keeps choosing risky "
        "actions; features that cannot represent Q* but tell the two actions apart do no harm.",
        panels=(Panel("regret", tuple(lines), log=True),),
        log=True,
    )


CLAIM = Claim(
    name="proposition",
    title="Proposition 1: linear values without linear action values",
    statement="There is a family of MDPs with N states whose V* is linear in any basis, while Q* "
    "of a member drawn at random is outside the span of any φ < N functions of state and action "
    "given beforehand, except with probability 2^(φ − N). Methods for linear Q-functions are then "
    "without their guarantee.",
    what_was_run="Members of the family are drawn, and Q* of each is fitted by least squares in "
    "random bases and in bases that tie states together. Then learners run on members: ours with "
    "the constant as its only function, and LSVI-UCB with random features, with a feature for "
    "each state and action, and with a feature for each action (its bonus is scaled down to a "
    "tenth and freed of its factor d, without which it would learn nothing in these runs).",
    rule=f"Does not hold if the fraction of spanned members is above 2^(φ − N) for some basis "
    f"(lower end of a {CONFIDENCE:.1%} interval), if V* is not 0, if ours still loses more than "
    f"{LATE_LOSS:g} an episode in the second half, or if LSVI-UCB with random features loses "
    "less. With a correction if features that do not span Q* nevertheless serve LSVI-UCB well, "
    f"or if our own regret bound grows by {DOUBLES:g} or more with each bit.",
    run=run,
    judge=judge,
    draw=draw,
)
