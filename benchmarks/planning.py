"""Planners against the plain construction, against each other, and how they grow.

Ratios are to a reference measured in this run; growth is the exponent fitted between the smallest
and the largest size. Run: python benchmarks/planning.py [--only NAME ...]
"""

import argparse
import resource
import time
from math import log

import numpy as np
from _plain_planning import plan_stages_plainly, plan_stationary_plainly
from rich.console import Console
from rich.table import Table

import fsmdp
from fsmdp.bounds.bellman import network_of_model, state_means
from fsmdp.bounds.certificate import separate
from fsmdp.bounds.clock import Clock
from fsmdp.bounds.cutting_planes import solve_joint_by_cuts, solve_stages_by_cuts
from fsmdp.bounds.ellipsoid import solve_ellipsoid
from fsmdp.bounds.joint import solve_joint

console = Console(highlight=False)


def seconds_of(action, repeats=3):
    """Shortest of several runs, and the last result: other processes can only add time."""
    best, result = np.inf, None
    for _ in range(repeats):
        began = time.perf_counter()
        result = action()
        best = min(best, time.perf_counter() - began)
    return best, result


def exponent(sizes, times):
    return log(times[-1] / times[0]) / log(sizes[-1] / sizes[0])


def table(title, *headings):
    made = Table(title=title, title_justify="left")
    for heading in headings:
        made.add_column(heading, justify="right")
    return made


def warm_up():
    """Compile, so that no measurement pays for it."""
    for horizon in (2, None):
        model = fsmdp.domains.sysadmin(4, horizon=horizon, discount=0.9)
        for method in ("programs", "cutting-planes"):
            fsmdp.rollout(model, fsmdp.plan(model, method=method), 2)


def stagewise():
    model = fsmdp.domains.sysadmin(40)
    basis = fsmdp.Basis.singles(model)
    plain, (_, value) = seconds_of(lambda: plan_stages_plainly(model, basis), 1)
    fast, plan = seconds_of(
        lambda: fsmdp.plan(model, basis, method="stagewise", weights="uniform"), 5
    )
    console.print(
        f"ring 40, singles, horizon 10, building included: a network per action and a cold program "
        f"per step {plain:.2f} s (value {value:.5f}), stagewise {fast:.4f} s (value "
        f"{plan.objective:.5f}), ratio [bold]{plain / fast:.0f}[/bold] (target 100)"
    )


def growth():
    made = table(
        "Stagewise, ring, singles, horizon 10", "machines", "log10 states", "rows", "seconds"
    )
    sizes, times = (250, 500, 1000), []
    for machines in sizes:
        seconds, plan = seconds_of(
            lambda m=machines: fsmdp.plan(
                fsmdp.domains.sysadmin(m), method="stagewise", weights="uniform"
            ),
            2,
        )
        times.append(seconds)
        states = 0.30103 * machines
        made.add_row(f"{machines}", f"{states:.0f}", f"{plan.rows}", f"{seconds:.2f}")
    console.print(made)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    console.print(
        f"ring 1,000: [bold]{times[-1]:.1f} s[/bold] (target 30), peak memory "
        f"of the process {memory:.2f} GiB (target 2), growth [bold]"
        f"m^{exponent(sizes, times):.2f}[/bold] "
        "(target 1.6); the model is built in that time too"
    )


def discounted():
    made = table(
        "Stationary program, ring, singles, discount 0.95",
        "machines",
        "seconds",
        "plain seconds",
        "ratio",
    )
    sizes, times = (20, 40, 80, 160), []
    for machines in sizes:
        model = fsmdp.domains.sysadmin(machines, horizon=None, discount=0.95)
        basis = fsmdp.Basis.singles(model)
        seconds, plan = seconds_of(
            lambda m=model, b=basis: fsmdp.plan(m, b, method="joint", weights="uniform"), 5
        )
        times.append(seconds)
        plain = "", ""
        if machines <= 40:
            slow, value = seconds_of(lambda m=model, b=basis: plan_stationary_plainly(m, b), 1)
            assert abs(value - plan.objective) < 1e-5 * value
            plain = f"{slow:.2f}", f"{slow / seconds:.0f}"
        made.add_row(f"{machines}", f"{seconds:.4f}", *plain)
    console.print(made)
    console.print(
        f"growth [bold]m^{exponent(sizes, times):.2f}[/bold] (target 2); target ratio at 40: 10"
    )


def random_network(machines=12, others=3, horizon=40, seed=0):
    """Machines that depend on themselves and on three others drawn at random."""
    rng = np.random.default_rng(seed)
    topology = {
        i: rng.choice([j for j in range(machines) if j != i], others, replace=False).tolist()
        for i in range(machines)
    }
    return fsmdp.domains.sysadmin(machines, topology=topology, horizon=horizon)


def cuts():
    model = random_network()
    network, intervals = network_of_model(model, fsmdp.Basis.singles(model))
    uniform = state_means("uniform", network.basis, model)
    means = state_means("initial", network.basis, model)

    def by_cuts():
        _, near, start = solve_stages_by_cuts(network, intervals, uniform, first_means=means)
        return solve_joint_by_cuts(network, intervals, means, start, near)

    fast, found = seconds_of(by_cuts, 3)
    interior, rows = seconds_of(lambda: solve_joint(network, intervals, means), 1)
    console.print(
        f"joint bound, random network of 12 variables with 4 parents, horizon 40, induced width "
        f"{network.elimination.induced_width}: {rows.n_rows} rows {interior:.2f} s (value "
        f"{rows.objective:.5f}), cutting planes {fast:.2f} s and {found.rounds} rounds (value "
        f"{found.certified:.5f}), ratio [bold]{interior / fast:.1f}[/bold] (target 10)"
    )


def joint():
    made = table("Joint program, ring, singles, horizon 10", "machines", "rows", "seconds")
    sizes, times = (50, 100, 200), []
    for machines in sizes:
        model = fsmdp.domains.sysadmin(machines)
        seconds, plan = seconds_of(lambda m=model: fsmdp.plan(m, method="joint"), 1)
        times.append(seconds)
        made.add_row(f"{machines}", f"{plan.rows}", f"{seconds:.2f}")
    console.print(made)
    console.print(
        f"ring 200: [bold]{times[-1]:.1f} s[/bold] (target 30), growth "
        f"m^{exponent(sizes, times):.2f}"
    )


def ellipsoid(limit=120.0):
    best = None
    for size in (2, 4, 6, 7, 8, 9, 10, 11, 12):
        machines = horizon = size
        model = fsmdp.domains.sysadmin(machines, horizon=horizon)
        network, intervals = network_of_model(model, fsmdp.Basis.singles(model))
        means = state_means("uniform", network.basis, model)
        found = solve_ellipsoid(network, intervals, means, epsilon=0.01, clock=Clock(limit))
        if found.status != "optimal":
            break
        seconds, exact = seconds_of(lambda n=network, i=intervals, m=means: solve_joint(n, i, m))
        best = (machines, horizon, found, seconds, exact.objective)
    machines, horizon, found, seconds, value = best
    console.print(
        f"ellipsoid, largest problem solved to 0.01 in {limit:.0f} s: ring {machines}, horizon "
        f"{horizon} ({found.weights.size} weights): {found.seconds:.1f} s and {found.iterations} "
        f"iterations (value {found.objective:.4f}), joint {seconds:.4f} s (value {value:.4f}), "
        f"ratio [bold]{found.seconds / seconds:.0f}[/bold]"
    )


def oracle():
    made = table("Separation over all states, steps and actions of a ring", "machines", "ms a step")
    sizes, times = (250, 500, 1000, 2000), []
    for machines in sizes:
        model = fsmdp.domains.sysadmin(machines)
        network, intervals = network_of_model(model, fsmdp.Basis.singles(model))
        weights = np.random.default_rng(0).normal(size=(10, len(network.basis)))
        seconds, _ = seconds_of(lambda n=network, i=intervals, w=weights: separate(n, i, w), 10)
        times.append(seconds)
        made.add_row(f"{machines}", f"{100 * seconds:.2f}")
    console.print(made)
    console.print(
        f"ring 1,000, {sizes[2] + 1} actions, all ten steps and the hyperplane: [bold]"
        f"{1000 * times[2]:.0f} ms[/bold] (target 50 for one step), growth "
        f"m^{exponent(sizes, times):.2f} (target linear)"
    )


def grid(side=8, horizon=10):
    """Cells that depend on their four neighbours."""
    topology = {
        row * side + column: [
            r * side + c
            for r, c in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
            if 0 <= r < side and 0 <= c < side
        ]
        for row in range(side)
        for column in range(side)
    }
    return fsmdp.domains.sysadmin(side * side, topology=topology, horizon=horizon)


def wide():
    model = grid()
    seconds, plan = seconds_of(
        lambda: fsmdp.plan(model, method="cutting-planes", tolerance=0.01, time_limit=270), 1
    )
    gap = fsmdp.certified_gap(model, plan, 2000)
    console.print(
        f"bidirectional grid 8 x 8, singles, horizon 10, induced width {plan.induced_width}: "
        f"{plan.status} after [bold]{seconds:.0f} s[/bold] (target 300), certified bound "
        f"{plan.upper_bound:.4f} ({plan.record.choices[-1]}), policy {gap.runs.mean:.4f} ± "
        f"{gap.runs.standard_error:.4f}"
    )


PARTS = {
    part.__name__: part
    for part in (stagewise, growth, discounted, cuts, joint, oracle, ellipsoid, wide)
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    warm_up()
    for name in parser.parse_args().only:
        console.rule(name)
        PARTS[name]()


if __name__ == "__main__":
    main()
