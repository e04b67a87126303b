"""Compiled batch rollouts against a plain Python loop, and how time grows with the model.

Prints ratios measured in this run. Run: python benchmarks/simulation.py
"""

import random
import time

import numpy as np
from _plain_simulation import simulate_plainly
from _timing import best_time
from rich.console import Console
from rich.table import Table

import fsmdp

HORIZON = 40


def steps_per_second(simulate, seconds=2.0):
    """Steps per second of a function that simulates one episode."""
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        simulate()
        steps += HORIZON
    return steps / (time.perf_counter() - began)


def tuned_loop(model):
    """A Python loop tuned for this model: nested lists, binary variables, no objects."""
    rng = random.Random(0)
    actions = range(len(model.actions))
    kernels = [
        [(mechanism.cases.at(a).parents, mechanism.cases.at(a).table.tolist()) for a in actions]
        for mechanism in model.dynamics.mechanisms
    ]
    rewards = [
        [(means.at(a).scope, means.at(a).values.tolist()) for a in actions]
        for means in model.reward_means
    ]

    def simulate():
        state = list(model.initial)
        total = 0.0
        for _ in range(model.horizon):
            action = rng.randrange(len(model.actions))
            for term in rewards:
                total += look_up(term[action], state)
            state = [int(rng.random() >= look_up(kernel[action], state)[0]) for kernel in kernels]
        return total

    return simulate


def look_up(entry, state):
    scope, row = entry
    for position in scope:
        row = row[state[position]]
    return row


def main():
    console = Console()
    model = fsmdp.domains.sysadmin(10, horizon=HORIZON)
    fsmdp.rollout(model, "random", 1)
    rng, chooser = np.random.default_rng(0), random.Random(0)
    n_actions = len(model.actions)

    def choose(state, step):  # noqa: ARG001
        return chooser.randrange(n_actions)

    plain = steps_per_second(lambda: simulate_plainly(model, choose, 1, rng))
    tuned = steps_per_second(tuned_loop(model))
    episodes = 20_000
    seconds = best_time(lambda: fsmdp.rollout(model, "random", episodes))
    compiled = episodes * HORIZON / seconds
    console.print(
        f"ring 10, horizon {HORIZON}, random actions, steps per second:\n"
        f"  compiled batch rollouts             {compiled:12,.0f}\n"
        f"  plain Python loop over the model    {plain:12,.0f}  ratio [bold]{compiled / plain:.0f}"
        "[/bold] (target 100)\n"
        f"  Python tuned by hand for this model {tuned:12,.0f}  ratio {compiled / tuned:.0f}",
        highlight=False,
    )
    table = Table(title="Time for each variable and step, by size")
    for heading in ("machines", "steps/s", "ns per variable-step", "ratio to the smallest"):
        table.add_column(heading, justify="right")
    measured = []
    for machines in (10, 30, 100, 300, 1000):
        model = fsmdp.domains.sysadmin(machines, horizon=HORIZON)
        episodes = 30_000_000 // (machines * HORIZON)
        seconds = best_time(lambda m=model, n=episodes: fsmdp.rollout(m, "random", n), 3)
        measured.append(
            (
                machines,
                episodes * HORIZON / seconds,
                1e9 * seconds / (episodes * machines * HORIZON),
            )
        )
    fastest = min(nanoseconds for _, _, nanoseconds in measured)
    for machines, speed, nanoseconds in measured:
        table.add_row(
            f"{machines:,}", f"{speed:,.0f}", f"{nanoseconds:.1f}", f"{nanoseconds / fastest:.2f}"
        )
    console.print(table)
    spread = max(nanoseconds for _, _, nanoseconds in measured) / fastest
    console.print(f"largest ratio [bold]{spread:.2f}[/bold] (target 2)")


if __name__ == "__main__":
    main()
