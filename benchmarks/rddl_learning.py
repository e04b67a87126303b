"""Learners on the first problem of each competition domain: a sweep, a table, a figure.

The score is 0 at the better of doing nothing and acting at random, 1 at the plan of the known model
(exact values where there are any). The mean of the last hundred episodes counts. Learners are told
structure and rewards, with functions of single variables; those that plan by linear programs run
where a program takes seconds. What has been run is kept in the folder: the same command goes on.
Run: python benchmarks/rddl_learning.py [DOMAIN ...] [--groups learning provable programs]
         [--seeds 5] [--output runs/rddl-learning] [--figure docs/rddl_learners.svg]
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from rich.console import Console

import fsmdp
from fsmdp.reproduction.ippc import DOMAINS

LAST = 100
TARGETS = {"PSRL-Factored, solver": (0.9, 9), "UCRL, solver": (0.5, 6)}
"""The score that a learner is to be above, on how many of the twelve domains."""

WIDE = ("Traffic", "Wildfire", "TriangleTireworld", "GameOfLife")
"""A linear program of these takes minutes, or is too wide for some learner."""

LARGE = ("AcademicAdvising", "CooperativeRecon", "Tamarisk", "Traffic", "Wildfire")
"""Optimistic values of all states of these take seconds for each plan, or cannot be had."""


def learner(name, label, **options):
    return {"learner": name, "label": label, "known_rewards": True, **options}


GROUPS = {
    "learning": (
        1000,
        [
            {"learner": "random"},
            learner("psrl", "PSRL-Factored, solver", planner="solver"),
            learner("rlsvi", "RLSVI (replan 0.5, known rewards)", replan=0.5),
            learner("unknown", "UCRL, structure unknown (known rewards)"),
        ],
        (),
    ),
    "provable": (5000, [learner("ucrl", "UCRL, solver", planner="solver")], LARGE),
    "programs": (
        1000,
        [
            learner("ucrl", "UCRL, practical"),
            learner("psrl", "PSRL, program", replan=0.5),
            learner("rmax", "R-max"),
            learner("bonus", "bonuses"),
            learner("dorl", "DORL"),
            learner("ucrl", "UCRL, product sets", preset="product", replan=0.5),
        ],
        WIDE,
    ),
}
"""Episodes, learners, and the domains that are left out."""


def levels(domain, folder, seconds):
    """What doing nothing or acting at random earns, and what the plan of the known model earns."""
    path = folder / "levels.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    if domain not in known:
        model = fsmdp.rddl.load(DOMAINS[domain], 1)
        base = max(fsmdp.rollout(model, p, 1000).mean for p in (model.idle_action(), "random"))
        known[domain] = [base, fsmdp.plan(model, time_limit=seconds).incumbent.mean]
        path.write_text(json.dumps(known, indent=1))
    return known[domain]


class LearnerContext:
    """A line for every hundredth part of all episodes."""

    def __init__(self, console, group, episodes):
        self.console, self.group, self.episodes, self.told = console, group, episodes, 0

    def __call__(self, seen):
        share = 100 * sum(one.episodes for one in seen) // (self.episodes * len(seen))
        if share > self.told:
            self.told = share
            self.console.print(f"{self.group}: {share} % of the episodes of {len(seen)} runs")


def runs_of(folder, domains):
    """Returns and seconds of each finished run, by domain and label."""
    names = {DOMAINS[domain]: domain for domain in domains}
    found = {}
    for path in sorted(folder.glob("*/runs/*/run.json")):
        run = json.loads(path.read_text())
        domain = names.get(run["model"].removeprefix("rddl-").removesuffix("-1"))
        if domain is None or run["status"] != "done":
            continue
        returns = pl.read_parquet(path.with_name("episodes.parquet"))["returns"].to_numpy()
        label = run["label"].partition(" (")[0]
        found.setdefault((domain, label), []).append((returns, run["seconds"]))
    return found


def table(console, found, known):
    """Markdown: a row for each domain, the mean score of each learner and its worst seed."""
    labels = list(dict.fromkeys(label for _, label in found))
    console.print("| domain | noop or random | known model | " + " | ".join(labels) + " |")
    console.print("|---|--:|--:|" + "--:|" * len(labels))
    above = dict.fromkeys(TARGETS, 0)
    for domain, (base, best) in known.items():
        row = [domain, f"{base:.1f}", f"{best:.2f}"]
        for label in labels:
            runs = found.get((domain, label), [])
            scores = [(returns[-LAST:].mean() - base) / (best - base) for returns, _ in runs]
            row.append(f"{np.mean(scores):.2f} ({min(scores):.2f})" if scores else "")
            if label in TARGETS and scores:
                above[label] += np.mean(scores) > TARGETS[label][0]
        console.print("| " + " | ".join(row) + " |")
    for label in labels:
        every = [len(runs) for (_, name), runs in found.items() if name == label]
        longest = max(s for (_, name), runs in found.items() if name == label for _, s in runs)
        console.print(f"{label}: {min(every)} to {max(every)} seeds, at most {longest:.0f} s a run")
    for label, (wanted, count) in TARGETS.items():
        console.print(f"{label}: above {wanted} on {above[label]} domains (target {count} of 12)")


def draw(path, found, known):
    """A panel for each domain: scores over episodes, the mean over seeds with its range."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        3, 4, figsize=(12, 8), sharex=True, sharey=True, layout="constrained"
    )
    labels = sorted(dict.fromkeys(label for _, label in found), key="UCRL, solver".__eq__)
    for axis, (domain, (base, best)) in zip(axes.flat, known.items(), strict=False):
        axis.axhline(0, color="0.6", linewidth=0.8, linestyle=":")
        axis.axhline(1, color="0.6", linewidth=0.8, linestyle=":")
        for number, label in enumerate(labels):
            runs = found.get((domain, label), [])
            if not runs:
                continue
            shortest = min(len(returns) for returns, _ in runs)
            scores = (np.stack([returns[:shortest] for returns, _ in runs]) - base) / (best - base)
            window = 50
            smooth = np.stack(
                [np.convolve(one, np.ones(window) / window, "valid") for one in scores]
            )
            at = np.arange(window, shortest + 1)
            color = "black" if label in TARGETS and label.startswith("UCRL") else f"C{number}"
            width = 1.8 if label in TARGETS else 0.9
            axis.plot(at, smooth.mean(0), color=color, label=label, linewidth=width)
            axis.fill_between(at, smooth.min(0), smooth.max(0), color=color, alpha=0.12)
        axis.set_title(f"{domain} 1", fontsize=10)
        axis.set_xscale("log")
        axis.set_ylim(-1, 1.2)
    for axis in axes[-1]:
        axis.set_xlabel("episode")
    for axis in axes[:, 0]:
        axis.set_ylabel("score")
    handles = {}
    for axis in axes.flat:
        handles.update(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5, fontsize=9)
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("domains", nargs="*", default=list(DOMAINS))
    parser.add_argument("--groups", nargs="*", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=30.0, help="to plan the known model")
    parser.add_argument("--output", type=Path, default=Path("runs/rddl-learning"))
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(highlight=False, soft_wrap=True)
    for group in asked.groups:
        episodes, learners, left_out = GROUPS[group]
        models = [f"rddl:{DOMAINS[d]}:1" for d in asked.domains if d not in left_out]
        if models:
            fsmdp.compare(
                models,
                learners,
                seeds=asked.seeds,
                episodes=episodes,
                output=asked.output / group,
                name=f"rddl-{group}",
                checkpoint_every=250,
                workers=asked.workers,
                progress=LearnerContext(console, group, episodes),
            )
    known = {domain: levels(domain, asked.output, asked.seconds) for domain in asked.domains}
    found = runs_of(asked.output, asked.domains)
    table(console, found, known)
    if asked.figure:
        draw(asked.figure, found, known)
        console.print(f"wrote {asked.figure}")


if __name__ == "__main__":
    main()
