"""Action variables against lists, against the plain program, and how they grow.

Ratios are to a reference measured in this run; growth is the exponent fitted between the smallest
and the largest size. Run: python benchmarks/actions.py [--only NAME ...]
"""

import argparse
import warnings
from math import log

import numpy as np
from _plain_planning import plan_stationary_plainly
from _timing import best_time
from rich.console import Console
from rich.table import Table

import fsmdp

console = Console(highlight=False)

AI_TOOLBOX = {("ring", 16): 0.23, ("ring", 32): 1.23, ("ring", 64): 4.54, ("ring", 128): 22.6}
AI_TOOLBOX |= {("bidirectional-ring", 16): 2.78, ("bidirectional-ring", 40): 79.7}
"""Seconds of AI-Toolbox (C++, lp_solve) with six functions an agent, on another machine."""

OPTIMA = {
    (2, "ring"): (5.7287210131, 6.5437272981),
    (3, "ring"): (8.5930815196, 9.8155909472),
    (3, "bidirectional-ring"): (8.5685443263, 9.8155909472),
    (8, "ring"): (22.9148840523, 26.1749091924),
}
"""Optimal values with nine and with six functions an agent, all states weighing alike."""


def table(title, *headings):
    made = Table(title=title, title_justify="left")
    for heading in headings:
        made.add_column(heading, justify="right")
    return made


def exponent(sizes, times):
    return log(times[-1] / times[0]) / log(sizes[-1] / sizes[0])


def timed(action, repeats=3):
    found = []
    seconds = best_time(lambda: found.append(action()), repeats)
    return seconds, found[-1]


def functions(model, nine):
    if not nine:
        return fsmdp.Basis.singles(model)
    agents = len(model.variables) // 2
    return fsmdp.Basis.blocks(model, [(f"status-{i}", f"load-{i}") for i in range(agents)])


def agents():
    made = table("multi-agent SysAdmin: optimal values", "agents", "network", "functions", "off by")
    for (count, topology), values in OPTIMA.items():
        model = fsmdp.domains.multiagent_sysadmin(count, topology)
        for nine, expected in zip((True, False), values, strict=True):
            plan = fsmdp.plan(model, functions(model, nine), method="joint", weights="uniform")
            off = plan.objective - expected
            made.add_row(str(count), topology, "9" if nine else "6", f"{off:.1e}")
    console.print(made)
    headings = ("network", "agents", "seconds", "HiGHS, plain rows", "ratio", "AI-Toolbox", "ratio")
    made = table("multi-agent SysAdmin, six functions an agent, with certificate", *headings)
    for topology, sizes in (("ring", (16, 32, 64, 128)), ("bidirectional-ring", (16, 40, 80))):
        seconds = []
        for count in sizes:
            model = fsmdp.domains.multiagent_sysadmin(count, topology)
            basis = functions(model, nine=False)
            spent, plan = timed(
                lambda m=model, b=basis: fsmdp.plan(m, b, method="joint", weights="uniform")
            )
            plain, value = timed(lambda m=model, b=basis: plan_stationary_plainly(m, b), 1)
            assert abs(value - plan.objective) < 1e-5 * abs(value)
            seconds.append(spent)
            published = AI_TOOLBOX.get((topology, count))
            made.add_row(
                topology,
                str(count),
                f"{spent:.3f}",
                f"{plain:.3f}",
                f"{plain / spent:.1f}",
                "" if published is None else f"{published:g}",
                "" if published is None else f"{published / spent:.0f}",
            )
        made.add_row(topology, "growth", f"n^{exponent(sizes, seconds):.2f}", "", "", "", "")
    console.print(made)


def each():
    made = table(
        "one administrator each, singles, horizon 10",
        "machines",
        "stagewise, s",
        "joint, s",
        "greedy step, µs",
    )
    sizes, seconds = (50, 100, 200, 400), []
    for machines in sizes:
        model = fsmdp.domains.sysadmin(machines, administrators="each")
        basis = fsmdp.Basis.singles(model)
        staged, plan = timed(lambda m=model, b=basis: fsmdp.plan(m, b, method="stagewise"))
        joint, _ = timed(lambda m=model, b=basis: fsmdp.plan(m, b, method="joint"), 1)
        fsmdp.rollout(model, plan, 1)
        acting = best_time(lambda m=model, p=plan: fsmdp.rollout(m, p, 200))
        seconds.append(staged)
        made.add_row(str(machines), f"{staged:.3f}", f"{joint:.3f}", f"{acting / 2000 * 1e6:.1f}")
    made.add_row("growth", f"m^{exponent(sizes, seconds):.2f}", "", "")
    console.print(made)


def one():
    made = table(
        "one administrator on a ring, against the list: seconds, and the bound's difference",
        "machines",
        "method",
        "list",
        "variables",
        "ratio",
        "bounds differ by",
    )
    for machines in (100, 1000):
        listed = fsmdp.domains.sysadmin(machines)
        model = fsmdp.domains.sysadmin(machines, administrators=1)
        basis = fsmdp.Basis.singles(listed)
        for method in ("stagewise", "joint"):
            first, plan = timed(lambda m=listed, b=basis, k=method: fsmdp.plan(m, b, method=k), 2)
            other, found = timed(lambda m=model, b=basis, k=method: fsmdp.plan(m, b, method=k), 2)
            made.add_row(
                str(machines),
                method,
                f"{first:.2f}",
                f"{other:.2f}",
                f"{other / first:.2f}",
                f"{found.upper_bound - plan.upper_bound:.1e}",
            )
    console.print(made)


def advising():
    """Wide tables: a bound as good in a fifth of the time."""
    made = table(
        "AcademicAdvising 10, 466 joint actions, singles, bundles: bound after some seconds",
        "seconds",
        "variables",
        "five times as many",
        "list",
    )
    forms = {}
    for kind in ("factored", "listed"):
        model = fsmdp.rddl.load("AcademicAdvising_MDP_ippc2014", 10, actions=kind)
        forms[kind] = model, fsmdp.Basis.singles(model)
    for seconds in (6, 12, 24):
        row = []
        for kind, limit in (("factored", seconds), ("listed", 5 * seconds)):
            plan = fsmdp.plan(*forms[kind], method="bundled", time_limit=limit)
            row += [f"{limit}", f"{plan.upper_bound:.2f}"]
        made.add_row(*row)
    console.print(made)


def learners():
    model = fsmdp.domains.sysadmin(8, administrators=2)
    listed = model.listed()
    best = fsmdp.solve_exactly(listed).start_value
    made = table(
        "ring of 8, two administrators: regret after 500 episodes, mean of 5 seeds, known rewards",
        "learner",
        "variables",
        "list",
        "ratio",
    )
    for name in ("UCRLFactored", "PSRLFactored"):
        regrets = []
        for one_of in (model, listed):
            found = []
            for seed in range(5):
                structure = one_of.structure(fsmdp.Basis.singles(one_of))
                learner = getattr(fsmdp, name)(structure, seed=seed, known_rewards=one_of.rewards)
                history = fsmdp.learn(one_of, learner, episodes=500, seed=seed)
                found.append(500 * best - history.returns.sum())
            regrets.append(np.mean(found))
        ratio = f"{regrets[0] / regrets[1]:.2f}"
        made.add_row(name, f"{regrets[0]:.1f}", f"{regrets[1]:.1f}", ratio)
    console.print(made)


PARTS = {"agents": agents, "each": each, "one": one, "advising": advising, "learners": learners}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    warnings.simplefilter("ignore", fsmdp.FsmdpWarning)
    model = fsmdp.domains.sysadmin(4, administrators=2, horizon=2)
    for method in ("stagewise", "joint"):
        fsmdp.rollout(model, fsmdp.plan(model, method=method), 2)
    for name in parser.parse_args().only:
        PARTS[name]()


if __name__ == "__main__":
    main()
