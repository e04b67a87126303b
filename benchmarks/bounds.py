"""How bounds tighten: fixed bases against a basis that grows by duals, in the same time.

Prints the gap to the best known value after some seconds, and how long a ring of 1,000 machines
takes to grow. Run: python benchmarks/bounds.py [SECONDS]
With --figure FILE: draws bound and incumbent over time on three problems instead.
"""

import argparse
import time
import warnings
from pathlib import Path

from rich.console import Console
from rich.table import Table

import fsmdp
from fsmdp.interop.rddl.bases import object_basis
from fsmdp.planning.clock import Clock, Stopped
from fsmdp.planning.problem import problem_of_model
from fsmdp.solver.bounding import BUDGET
from fsmdp.solver.tightening import Tightening

SECONDS = 20.0
RING = 1000

EXACT = {
    "Elevators 1, joined": -44.054,
    "SkillTeaching 1, joined": 66.265,
    "SysAdmin 1": 342.68,
    "GameOfLife 1": 209.43,
}
"""Values of the best policies: docs/ippc.md."""


def problems():
    """Name, model, and the value of the best policy, or None where nobody knows it."""
    yield "ring 10", fsmdp.domains.sysadmin(10, horizon=20), None
    for name, source, join in (
        ("Elevators 1, joined", "Elevators_MDP_ippc2011", True),
        ("SkillTeaching 1, joined", "SkillTeaching_MDP_ippc2011", True),
        ("SysAdmin 1", "SysAdmin_MDP_ippc2011", False),
        ("GameOfLife 1", "GameOfLife_MDP_ippc2011", False),
    ):
        yield name, fsmdp.rddl.load(source, 1, join=join), EXACT[name]
    yield "ring 100", fsmdp.domains.sysadmin(100, horizon=20), None


def tightened(model, basis, seconds, grows):
    """Seconds and bounds as a bound tightens."""

    def problem_of(functions, clock):
        return problem_of_model(model, functions, clock=clock, budget=BUDGET)

    clock, began = Clock(seconds), time.perf_counter()
    found = Tightening(model, basis, problem_of, grows=grows)
    curve = []
    try:
        found.begin(clock)
        while True:
            curve.append((time.perf_counter() - began, found.value, len(found.basis)))
            if clock.status is not None or found.advance(clock) is None:
                break
    except Stopped:
        pass
    return curve


def compare(seconds):
    """The gap of each basis after the same time."""
    table = Table(title=f"bounds after {seconds:g} s, and functions; V* where it is known")
    for column in ("problem", "V*", "singles", "pairs", "objects", "growth", "growth / best fixed"):
        table.add_column(column, justify="left" if column == "problem" else "right")
    for name, model, best in problems():
        singles = fsmdp.Basis.singles(model)
        fixed = [singles, fsmdp.Basis.pairs(model), object_basis(model)]
        cells, bounds = [], []
        for basis in fixed:
            curve = tightened(model, basis, seconds, grows=False)
            bounds.append(curve[-1][1] if curve else None)
            cells.append(f"{curve[-1][1]:.4f} ({curve[-1][2]})" if curve else "none in time")
        curve = tightened(model, singles, seconds, grows=True)
        cells.append(f"{curve[-1][1]:.4f} ({curve[-1][2]})" if curve else "none in time")
        if best is None and model.n_states <= 2**12:
            best = fsmdp.solve_exactly(model).start_value
        ratio = ""
        known = [bound for bound in bounds if bound is not None]
        if best is not None and curve and known:
            ratio = f"{(curve[-1][1] - best) / max(1e-9, min(known) - best):.2f}"
        table.add_row(name, "" if best is None else f"{best:.4f}", *cells, ratio)
    Console().print(table)


def large_ring():
    """Seconds until the basis of a ring of 1,000 machines has grown once."""
    model = fsmdp.domains.sysadmin(RING, horizon=10)
    began = time.perf_counter()
    curve = tightened(model, fsmdp.Basis.singles(model), 300.0, grows=True)
    for seconds, bound, functions in curve[:4]:
        print(f"ring {RING}: {seconds:.1f} s, bound {bound:.5f}, {functions} functions")
    print(f"in all {time.perf_counter() - began:.1f} s")


def figure(path, seconds):
    """Bound and incumbent over time on three problems, as an SVG."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(10, 3.2), layout="constrained")
    FigureCanvasSVG(drawing)
    chosen = (
        ("SysAdmin 1", fsmdp.rddl.load("SysAdmin_MDP_ippc2011", 1)),
        ("Tamarisk 5", fsmdp.rddl.load("Tamarisk_MDP_ippc2014", 5)),
        ("ring of 40 machines", fsmdp.domains.sysadmin(40, horizon=20)),
    )
    for axes, (name, model) in zip(drawing.subplots(1, 3), chosen, strict=True):
        plan = fsmdp.plan(model, exact=False, time_limit=seconds)
        lines = [line for line in plan.log if line.incumbent is not None]
        times = [line.seconds for line in lines]
        axes.step(times, [line.upper_bound for line in lines], where="post", label="bound")
        axes.step(times, [line.incumbent for line in lines], where="post", label="policy")
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("seconds")
        axes.spines[["top", "right"]].set_visible(False)
    drawing.axes[0].set_ylabel("return")
    drawing.axes[0].legend(frameon=False, fontsize=9)
    drawing.savefig(Path(path), format="svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("seconds", nargs="?", type=float, default=SECONDS)
    parser.add_argument("--figure", metavar="FILE")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.figure:
        figure(given.figure, given.seconds)
        return
    compare(given.seconds)
    large_ring()


if __name__ == "__main__":
    main()
