"""Not subsumed: what other lines of work would have to assume of the problems here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars

from fsmdp.domains.gridworld import gridworld
from fsmdp.domains.influence import influence
from fsmdp.domains.proposition import proposition_one
from fsmdp.domains.random import random_model
from fsmdp.domains.sysadmin import sysadmin
from fsmdp.model.mdp import FactoredMDP
from fsmdp.report.charts import Chart
from fsmdp.reproduction.claim import GROWS, Callback, Claim, Evidence, Form, Judgement, Verdict
from fsmdp.reproduction.contrasts import action_sets, bellman_rank, blocks, eluder, running_times

STEPS = 5
CONTRASTS = (
    eluder.CONTRAST,
    bellman_rank.CONTRAST,
    blocks.CONTRAST,
    action_sets.CONTRAST,
    running_times.CONTRAST,
)
SUMMARY = "contrasts"


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """Variables of each model; for a gridworld its lanes."""

    bits: Sequence[int]
    small: Sequence[int]
    lanes: Sequence[int]
    rings: Sequence[int]
    timed: Sequence[int]
    repeats: int


SIZES = {
    Form.TINY: Sizes(range(2, 7), (2, 4), (1, 2), (20, 140), (4, 8), 1),
    Form.SMALL: Sizes(range(2, 13), (2, 3, 4, 5), (1, 2), (10, 20, 40, 80, 160), (4, 8, 16, 32), 3),
    Form.FULL: Sizes(
        range(2, 13), (2, 3, 4, 5, 6), (1, 2, 3), (10, 20, 40, 80, 160), (4, 8, 16, 32, 64), 3
    ),
}


def models(sizes: Sizes, seed: int) -> dict[str, list[FactoredMDP]]:
    """Domains small enough to be enumerated, each in several sizes."""
    return {
        "random": [
            random_model(
                seed, n, horizon=STEPS, largest_size=2, latents=0, deterministic=False, noise=False
            )
            for n in sizes.small
        ],
        "ring": [sysadmin(n, horizon=STEPS) for n in sizes.small],
        "proposition 1": [proposition_one(n, seed, horizon=STEPS) for n in sizes.small],
        "influence": [influence(n, campaigns=2, horizon=STEPS, seed=seed) for n in sizes.small],
        "gridworld": [gridworld(n, 2, horizon=STEPS) for n in sizes.lanes],
    }


def run(form: Form, seed: int, callback: Callback) -> Evidence:
    """The five measurements."""
    sizes = SIZES[form]
    small = models(sizes, seed)
    callback("subsumed: Eluder dimension")
    tables = {eluder.TABLE: eluder.measure(sizes.bits, seed)}
    callback("subsumed: Bellman rank")
    tables[bellman_rank.TABLE] = bellman_rank.measure(small, seed)
    callback("subsumed: blocks")
    tables[blocks.TABLE] = blocks.measure(small)
    callback("subsumed: actions")
    tables[action_sets.TABLE] = action_sets.measure(sizes.rings)
    timed = {running_times.TABLE: running_times.measure(sizes.timed, sizes.repeats, callback)}
    return Evidence(tables, {**timed, SUMMARY: summary(Evidence(tables, timed))})


def summary(evidence: Evidence) -> polars.DataFrame:
    """A row for each contrast, as the page shows them."""
    rows = []
    for one in CONTRASTS:
        judged = one.judge(evidence[one.table])
        rows.append(
            {
                "contrast": one.name,
                "assumed_elsewhere": one.others,
                "measured": judged.measured,
                "verdict": str(judged.verdict),
            }
        )
    return polars.DataFrame(rows)


def judge(evidence: Evidence) -> Judgement:
    """As the worst of the five."""
    found = {one.name: one.judge(evidence[one.table]).verdict for one in CONTRASTS}
    verdicts = list(found.values())
    reason = "; ".join(
        f"{verdict}: {', '.join(name for name in found if found[name] is verdict)} "
        f"({verdicts.count(verdict)} of {len(found)})"
        for verdict in Verdict
        if verdict in verdicts
    )
    for worst in (Verdict.FAILS, Verdict.CORRECTED):
        if worst in verdicts:
            return Judgement(worst, reason)
    return Judgement(Verdict.HOLDS, reason)


def draw(evidence: Evidence) -> tuple[Chart, ...]:
    """A chart for each contrast."""
    return tuple(one.chart(evidence[one.table]) for one in CONTRASTS)


CLAIM = Claim(
    name="subsumed",
    title="Not subsumed: what other assumptions would make of these problems",
    statement="Other lines of work learn in large state spaces, too, under assumptions of their "
    "own: a small Eluder dimension, a low Bellman rank, few blocks. The paper argues that its "
    "problems meet none of them, that a known lower bound for linear Q-functions does not apply "
    "since it takes exponentially many actions, and counts the time of a plan by cutting planes "
    "around linear programs.",
    what_was_run="Five measurements on models that can be enumerated or counted: sequences of "
    "states and actions of Proposition 1, each of which members of the family disagree about "
    "although they agree on all before it; the rank of the matrix of average Bellman errors of "
    "random value functions (sums over the cells of our basis) under one another's greedy "
    "policies; the fewest blocks that describe a model; the sizes of action sets; and both counts "
    "of operations beside measured seconds.",
    rule="Eluder dimension: does not hold if the bound from below grows less than "
    f"{GROWS:g} times with each bit, with a correction if our own reward cells grow so, too. "
    f"Bellman rank and blocks: hold if they grow {GROWS:g} times or more with each variable in all "
    "models, with a correction if in some. Lower bound: does not hold if rings have as many "
    "actions as it at the largest size, with a correction if they have as many as a later bound "
    "asks for. Running times: do not hold if seconds grow faster than the paper's count, with a "
    "correction if a single linear program has a smaller count, within which seconds stay. All "
    "together: as the worst of the five.",
    run=run,
    judge=judge,
    draw=draw,
    tables={SUMMARY: ("contrast", "assumed_elsewhere", "measured", "verdict")},
)
