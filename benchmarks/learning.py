"""Learning: what counting costs, replans against cold plans, growth with size, and regret.

Prints ratios measured in this run. Run: python benchmarks/learning.py [--regret]
"""

import sys
import time

import numpy as np
from _timing import best_time
from rich.console import Console
from rich.table import Table

import fsmdp

console = Console()


def steps_per_second(machines=10, horizon=40, episodes=5000):
    """Acting with counting and logging, against rolling the same plan out."""
    model = fsmdp.domains.sysadmin(machines, horizon=horizon)
    basis = fsmdp.Basis.singles(model)
    structure = model.structure(basis)
    plan = fsmdp.plan(model, basis, method="stagewise")
    learner = fsmdp.UCRLFactored(structure, known_rewards=model.rewards, replan=1e9)
    fsmdp.learn(model, learner, episodes=200)
    fsmdp.rollout(model, plan, 10)
    alone = best_time(lambda: fsmdp.rollout(model, plan, episodes))
    history = fsmdp.learn(model, learner, episodes=episodes)
    learning = history.seconds_acting[1:].sum() * episodes / (episodes - 1)
    steps = episodes * horizon
    console.print(
        f"ring {machines}, horizon {horizon}, steps per second:\n"
        f"  a plan rolled out            {steps / alone:12,.0f}\n"
        f"  the same with learning on    {steps / learning:12,.0f}  "
        f"slower by [bold]{learning / alone:.2f}[/bold] (target 2)",
        highlight=False,
    )
    simulator = rddl_steps_per_second()
    if simulator is not None:
        console.print(
            f"  pyRDDLGym's simulator alone  {simulator:12,.0f}  (SysAdmin 1, also 10 machines); "
            f"learning here is faster by [bold]{steps / learning / simulator:,.0f}[/bold]",
            highlight=False,
        )


def rddl_steps_per_second(seconds=3.0):
    """Steps per second of pyRDDLGym on SysAdmin 1, or None if it is not installed."""
    try:
        import pyRDDLGym
    except ImportError:
        return None
    env = pyRDDLGym.make("SysAdmin_MDP_ippc2011", "1")
    env.reset(seed=0)
    names = list(env.action_space.sample())
    rng = np.random.default_rng(0)
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        *_, terminated, truncated, _ = env.step({names[rng.integers(len(names))]: 1})
        steps += 1
        if terminated or truncated:
            env.reset()
    return steps / (time.perf_counter() - began)


def replans(sizes=((8, 1000), (20, 1000), (50, 1000), (100, 300), (200, 300))):
    """Seconds of a replan in a run, against planning the same structure from nothing."""
    table = Table(title="Replanning while learning a ring, horizon 10, singles")
    for heading in (
        "machines",
        "episodes",
        "cells",
        "plans",
        "ms per replan",
        "ms cold",
        "ratio (target 5)",
    ):
        table.add_column(heading, justify="right")
    for machines, episodes in sizes:
        model = fsmdp.domains.sysadmin(machines, horizon=10)
        structure = model.structure(fsmdp.Basis.singles(model))
        learner = fsmdp.UCRLFactored(structure, known_rewards=model.rewards)
        history = fsmdp.learn(model, learner, episodes=episodes)
        late = history.seconds_planning[history.replans][3:]

        def plan_cold(structure=structure, model=model, statistics=learner.statistics):
            fresh = fsmdp.UCRLFactored(structure, known_rewards=model.rewards)
            fresh.statistics = statistics
            fresh.replan()

        cold = best_time(plan_cold)
        warm = float(np.median(late))
        table.add_row(
            f"{machines}",
            f"{episodes}",
            f"{structure.cells}",
            f"{int(history.replans.sum())}",
            f"{1e3 * warm:.1f}",
            f"{1e3 * cold:.1f}",
            f"{cold / warm:.1f}",
        )
    console.print(table)


def regret(machines, episodes=1000, seeds=3):
    """Realised regret of every learner on a ring with known rewards.

    The product form and LSVI-UCB run on the smaller ring only: a plan of theirs takes too long.
    """
    model = fsmdp.domains.sysadmin(machines, horizon=10)
    best = fsmdp.solve_exactly(model).start_value
    structure = model.structure(fsmdp.Basis.pairs(model))
    known = model.rewards
    learners = {
        "practical": lambda i: fsmdp.UCRLFactored(structure, seed=i, known_rewards=known),
        "weissman": lambda i: fsmdp.UCRLFactored(
            structure, seed=i, confidence="weissman", known_rewards=known
        ),
        "hoeffding": lambda i: fsmdp.UCRLFactored(
            structure, seed=i, confidence="hoeffding", known_rewards=known
        ),
        "posterior sampling": lambda i: fsmdp.PSRLFactored(
            structure, i, replan=0.5, known_rewards=known
        ),
        "known plan": lambda _: fsmdp.FixedPolicy(structure, fsmdp.Programs().plan(model)),
        "exact optimum": lambda _: fsmdp.FixedPolicy(structure, fsmdp.solve_exactly(model)),
        "random": lambda _: fsmdp.RandomLearner(structure),
        "tabular posterior sampling": lambda i: fsmdp.TabularPSRL(
            structure, i, known_rewards=known
        ),
        "UCBVI, Hoeffding": lambda i: fsmdp.UCBVI(
            structure, "hoeffding", seed=i, known_rewards=known
        ),
        "UCBVI, Bernstein": lambda i: fsmdp.UCBVI(structure, seed=i, known_rewards=known),
        "UCRL2": lambda i: fsmdp.UCRL2(structure, seed=i, known_rewards=known),
    }
    if machines <= 4:
        n_states, n_actions = model.n_states, len(model.actions)
        one_hot = np.eye(n_states * n_actions).reshape(n_states, n_actions, -1)
        learners["UCRL-Factored, product form"] = lambda i: fsmdp.UCRLProduct(
            structure, seed=i, known_rewards=known
        )
        learners["LSVI-UCB, one-hot features"] = lambda i: fsmdp.LSVIUCB(
            structure, one_hot, seed=i, known_rewards=known
        )
    table = Table(
        title=f"Ring {machines}, horizon 10, pairs, {episodes} episodes, {seeds} seeds: "
        f"V* = {best:.3f} an episode"
    )
    for heading in ("learner", "regret", "plans", "seconds"):
        table.add_column(heading, justify="right")
    for name, make in learners.items():
        runs = [fsmdp.learn(model, make(seed), episodes, seed) for seed in range(seeds)]
        table.add_row(
            name,
            f"{np.mean([run.regret(best)[-1] for run in runs]):.1f}",
            f"{np.mean([run.replans.sum() for run in runs]):.0f}",
            f"{np.mean([(run.seconds_planning + run.seconds_acting).sum() for run in runs]):.1f}",
        )
    console.print(table)


def main():
    steps_per_second()
    replans()
    if "--regret" in sys.argv:
        for machines in (4, 8):
            regret(machines)


if __name__ == "__main__":
    main()
