"""Learning competition problems with the solver inside, on the first of each domain.

`--learner psrl` is posterior sampling; `--learner ucrl` is provable: optimism over sets with
delta = 0.05, where all states can be swept.

The score is 0 at the better of doing nothing and acting at random, 1 at the plan of the known model
(exact values where there are any). The mean of the last hundred episodes counts.
Run: python benchmarks/rddl_learning.py [DOMAIN ...] [--seeds 3] [--episodes 1000] [--seconds 30]
     python benchmarks/rddl_learning.py --learner ucrl --episodes 5000 --seeds 1
"""

import argparse
import time
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table

import fsmdp
from fsmdp.experiments.ippc.published import DOMAINS
from fsmdp.simulation.gap import idle_action

LAST = 100
LEARNERS = {"psrl": (fsmdp.PSRLFactored, 0.9, 9), "ucrl": (fsmdp.UCRLFactored, 0.5, 6)}
"""Which learner, and the score that it is to be above on how many domains."""

HEADINGS = ("", "base", "known model", "last 100", "score", "worst seed", "seconds a run")


def learnt(model, kind, seed, episodes):
    """Mean of the last episodes of a run, and its seconds."""
    structure = model.structure(fsmdp.Basis.singles(model))
    make, _, _ = LEARNERS[kind]
    learner = make(structure, seed=seed, planner="solver", known_rewards=model.rewards)
    began = time.perf_counter()
    history = fsmdp.learn(model, learner, episodes=episodes, seed=seed)
    return float(history.returns[-LAST:].mean()), time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("domains", nargs="*", default=list(DOMAINS))
    parser.add_argument("--learner", choices=LEARNERS, default="psrl")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30.0, help="to plan the known model")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(highlight=False, width=120)
    table = Table(title=f"{asked.episodes:,} episodes, {asked.seeds} seeds")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    _, wanted, domains = LEARNERS[asked.learner]
    above = 0
    for domain in asked.domains:
        model = fsmdp.rddl.load(DOMAINS[domain], 1)
        base = max(fsmdp.rollout(model, p, 1000).mean for p in (idle_action(model), "random"))
        known = fsmdp.plan(model, time_limit=asked.seconds).incumbent.mean
        runs = [learnt(model, asked.learner, seed, asked.episodes) for seed in range(asked.seeds)]
        scores = [(mean - base) / (known - base) for mean, _ in runs]
        above += float(np.mean(scores)) > wanted
        row = [domain, f"{base:.1f}", f"{known:.2f}", f"{np.mean([mean for mean, _ in runs]):.2f}"]
        row += [f"{np.mean(scores):.2f}", f"{min(scores):.2f}"]
        row += [f"{max(seconds for _, seconds in runs):.0f}"]
        table.add_row(*row)
        console.print(" | ".join(row))
    console.print(table)
    console.print(
        f"score above {wanted} on {above} of {len(asked.domains)} domains (target {domains} of 12)"
    )


if __name__ == "__main__":
    main()
