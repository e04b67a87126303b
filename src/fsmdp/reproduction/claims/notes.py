"""Notes and corrections: where the paper has to be read with care, each with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars

from fsmdp.exact.solve import solve_exactly
from fsmdp.report.charts import Chart, Line, Panel
from fsmdp.reproduction.claim import (
    CONFIRMED,
    NOT_REPAIRED,
    NOT_SEEN,
    Callback,
    Claim,
    Evidence,
    Form,
    Judgement,
    Verdict,
    note_verdict,
)
from fsmdp.reproduction.losses import thinned
from fsmdp.reproduction.notes import deviations, networks, programs, theorems
from fsmdp.reproduction.notes.programs import JOINT, OTHER, REALIZABLE, STAGEWISE

LINES = {
    (REALIZABLE, STAGEWISE): "V* linear, stagewise program",
    (REALIZABLE, JOINT): "V* linear, joint program",
    (OTHER, STAGEWISE): "V* not linear, stagewise program",
    (OTHER, JOINT): "V* not linear, joint program",
}
LEAST_SHOWN = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """How much is drawn, counted and learnt."""

    draws: int
    chains: Sequence[int]
    cliques: Sequence[int]
    visits: int
    coverage_runs: int
    runs: programs.Runs


SIZES = {
    Form.TINY: Sizes(50, (8, 32), (4,), 10_000, 2000, programs.Runs(1, 60, 12, workers=1)),
    Form.SMALL: Sizes(1000, (16, 64, 256), (12,), 10_000, 10_000, programs.Runs(2, 1500, 300)),
    Form.FULL: Sizes(
        10_000, (16, 64, 256, 1024), (16,), 100_000, 10_000, programs.Runs(5, 10_000, 2000)
    ),
}


def run(form: Form, seed: int, callback: Callback) -> Evidence:
    """The run or the computation of each note."""
    sizes = SIZES[form]
    callback("notes: networks")
    found = [
        networks.scopes(sizes.draws, seed),
        networks.widths(sizes.chains, sizes.cliques, seed),
    ]
    callback("notes: deviations")
    coverage = deviations.coverage(sizes.visits, sizes.coverage_runs, seed)
    found.append(deviations.random_visits(coverage))
    learning = programs.run_learners(sizes.runs, seed, lambda text: callback(f"notes: {text}"))
    slacks = programs.slacks(learning)
    found += [programs.tightness(slacks), programs.norms(learning)]
    found.append(deviations.osband_radius((1, 2, 4, 8, 16), (0.5, 0.05, 1e-3, 1e-6)))
    theorem, bounds = theorems.bounds(learning, (2, 3, 4), (1, 100, 10_000))
    found.append(theorem)
    return Evidence(
        {
            "notes": polars.DataFrame([finding.row() for finding in found]),
            "coverage": coverage,
            "slacks": slacks,
            "bounds": bounds,
            "learning": _running_means(learning),
        }
    )


def _running_means(learning: polars.DataFrame) -> polars.DataFrame:
    """Slack of an episode, mean over all episodes so far and over seeds, relative to V*."""
    parts = []
    for (name, preset), part in learning.group_by(["model", "preset"], maintain_order=True):
        value = solve_exactly(programs.build(str(name))).start_value
        mean = part.group_by("episode").agg(polars.col("slack").mean()).sort("episode")
        parts.append(
            thinned(
                mean.select(
                    polars.lit(name).alias("model"),
                    polars.lit(preset).alias("preset"),
                    "episode",
                    relative_slack=polars.col("slack").cum_sum() / polars.col("episode") / value,
                )
            )
        )
    return polars.concat(parts)


def judge(evidence: Evidence) -> Judgement:
    """Which notes the numbers bear out, and whether what they put in place holds."""
    rows = evidence["notes"].sort("note").to_dicts()
    verdicts = [note_verdict(row) for row in rows]
    words = ", ".join(
        f"{row['note']} {verdict}" for row, verdict in zip(rows, verdicts, strict=True)
    )
    seen = verdicts.count(CONFIRMED)
    reason = f"{seen} of {len(rows)} notes confirmed ({words})"
    if NOT_REPAIRED in verdicts:
        return Judgement(Verdict.FAILS, reason)
    return Judgement(Verdict.CORRECTED if seen else Verdict.HOLDS, reason)


def draw(evidence: Evidence) -> Chart:
    """Slack of an episode relative to V*."""
    lines = []
    for (name, preset), label in LINES.items():
        part = evidence["learning"].filter(
            (polars.col("model") == name) & (polars.col("preset") == preset)
        )
        x = part["episode"].to_numpy().astype(float)
        y = part.select(
            polars.when(polars.col("relative_slack") >= LEAST_SHOWN).then("relative_slack")
        )
        lines.append(Line(label, x, y.to_series().to_numpy(), f"{name} {preset}"))
    return Chart(
        name="notes",
        title="Note 4: how far the program is from tight where the learner goes",
        caption="Slack of an episode over V*, mean over episodes so far and over seeds: the "
        "regret proof takes it to be 0. Influence, whose V* is linear in the basis, and a ring "
        "of 5 machines, whose V* is not; transitions are learnt, rewards known.",
        panels=(Panel("slack / V*", tuple(lines), log=True, least=LEAST_SHOWN),),
        log=True,
    )


CLAIM = Claim(
    name="notes",
    title="Notes and corrections",
    statement="Seven places of the paper have to be read with care: the scopes of the cost "
    "network, its width, the union bound over episodes, tightness of the program along the "
    "trajectory, the norm of the weights, the remark on another radius, and constants of the "
    "theorems.",
    what_was_run="For each note a run or a computation: elimination with and without some scopes, "
    "chains and cliques, a coin watched for a long time, learners on a model whose V* is linear "
    "and on one whose V* is not, radii and bounds evaluated.",
    rule="Each note has two numbers: one that is above its limit if the text is wrong, and one "
    f"that stays within its limit if the repair holds. A note is “{CONFIRMED}” if both are as "
    f"expected, “{NOT_SEEN}” if the text is not found wrong, “{NOT_REPAIRED}” otherwise. The "
    "paper holds as written if no note is seen, with corrections if some are and all repairs "
    "hold, and not as stated if a repair fails.",
    run=run,
    judge=judge,
    draw=draw,
    tables={"notes": ("note", "says", "truth", "measured", "verdict")},
)
