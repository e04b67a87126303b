"""How bounds tighten: fixed bases against a basis that grows by duals, in the same time.

Prints bounds over time with their gap to the best policy's value, and how long a ring of 1,000
machines takes to grow. Run: python benchmarks/bounds.py [SECONDS]
With --figure FILE: draws bound and incumbent over time on three problems instead.
With --regions: compares the programs' growing basis with regions and prices instead.
"""

import argparse
import time
import warnings
from pathlib import Path

from rich.console import Console
from rich.table import Table

import fsmdp
from fsmdp.bounds.clock import Clock, Stopped
from fsmdp.bounds.normalise import normalise
from fsmdp.bounds.problem import problem_of_model, trivial_problem
from fsmdp.bounds.regions.minimise import Minimisation
from fsmdp.io.rddl.loading import object_basis
from fsmdp.solver.parameters import EXACT_ENTRIES, REGION_ADDITIONS
from fsmdp.solver.techniques import Tightening

SECONDS = 20.0
RING = 1000

REGION_PROBLEMS = (
    ("SysAdmin_MDP_ippc2011", 5),
    ("SysAdmin_MDP_ippc2011", 10),
    ("Tamarisk_MDP_ippc2014", 5),
    ("Traffic_MDP_ippc2014", 5),
    ("AcademicAdvising_MDP_ippc2014", 4),
    ("Wildfire_MDP_ippc2014", 5),
    ("GameOfLife_MDP_ippc2011", 10),
)

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
        return problem_of_model(model, functions, clock=clock, budget=EXACT_ENTRIES)

    clock, began = Clock(seconds), time.perf_counter()
    curve = []
    try:
        found = Tightening(model, basis, problem_of, clock, grows=grows)
        while True:
            curve.append((time.perf_counter() - began, found.value, len(found.basis)))
            if clock.status is not None or found.advance(clock) is None:
                break
    except Stopped:
        pass
    return curve


def bound_after(curve, seconds):
    """The last bound found by then, or None."""
    found = [bound for when, bound, _ in curve if when <= seconds]
    return min(found, default=None)


def compare(seconds):
    """The bound of each basis over time, and its gap to the best policy's value."""
    times = [seconds * share for share in (0.05, 0.1, 0.25, 0.5, 1.0)]
    table = Table(title="bounds over time: fixed bases, and one that grows by duals")
    table.add_column("problem (V*)")
    for column in ("basis", "functions", *(f"{when:g} s" for when in times), "gap", "/ best fixed"):
        table.add_column(column, justify="right")
    for name, model, best in problems():
        if best is None and model.n_states <= 2**12:
            best = fsmdp.solve_exactly(model).start_value
        singles = fsmdp.Basis.singles(model)
        bases = {
            "singles": (singles, False),
            "pairs": (fsmdp.Basis.pairs(model), False),
            "objects": (object_basis(model), False),
            "growth": (singles, True),
        }
        fixed = []
        for label, (basis, grows) in bases.items():
            curve = tightened(model, basis, seconds, grows=grows)
            bounds = [bound_after(curve, when) for when in times]
            gap = share = ""
            if best is not None and bounds[-1] is not None:
                gap = f"{bounds[-1] - best:.3f}"
                if grows and fixed:
                    share = f"{(bounds[-1] - best) / max(1e-9, min(fixed) - best):.2f}"
            if not grows and bounds[-1] is not None:
                fixed.append(bounds[-1])
            table.add_row(
                ("" if label != "singles" else name if best is None else f"{name} ({best:.3f})"),
                label,
                str(curve[-1][2] if curve else len(basis)),
                *("" if bound is None else f"{bound:.3f}" for bound in bounds),
                gap,
                share,
            )
        table.add_section()
    Console(width=120).print(table)


def regions(seconds):
    """Bounds of a basis that grows by duals, and of regions with prices, in the same time."""
    table = Table(title=f"bounds after {seconds:g} s, one thread each")
    for column in ("problem", "trivial", "growing basis", "regions", "number", "first after"):
        table.add_column(column, justify="right" if column != "problem" else "left")
    for domain, instance in REGION_PROBLEMS:
        units = normalise(fsmdp.rddl.load(domain, instance))
        model = units.model
        curve = tightened(model, fsmdp.Basis.singles(model), seconds, grows=True)
        found, clock, began = [], Clock(seconds), time.perf_counter()
        try:
            for one in Minimisation(model, clock.check, REGION_ADDITIONS).run():
                if one is not None:
                    found.append((time.perf_counter() - began, one))
        except Stopped:
            pass
        grown = bound_after(curve, seconds)
        table.add_row(
            f"{domain.partition('_')[0]} {instance}",
            f"{units.upper(trivial_problem(model).trivial.upper_bound):.1f}",
            "" if grown is None else f"{units.upper(grown):.1f}",
            *(
                (
                    f"{units.upper(found[-1][1].upper_bound):.1f}",
                    str(len(found[-1][1].regions.layouts)),
                    f"{found[0][0]:.1f} s",
                )
                if found
                else ("", "", "")
            ),
        )
    Console(width=120).print(table)


def large_ring():
    """Seconds until the basis of a ring of 1,000 machines has grown once."""
    model = fsmdp.domains.sysadmin(RING, horizon=10)
    began = time.perf_counter()
    curve = tightened(model, fsmdp.Basis.singles(model), 100.0, grows=True)
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
    parser.add_argument("--regions", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.figure:
        figure(given.figure, given.seconds)
        return
    if given.regions:
        regions(given.seconds)
        return
    compare(given.seconds)
    large_ring()


if __name__ == "__main__":
    main()
