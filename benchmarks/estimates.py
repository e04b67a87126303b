"""Estimated and actual seconds of exact values, by each method that fits, on one core.

Actual seconds are processor time, so that other work on the machine counts little; preparation is
part of them. A last line says how many estimates are within a factor of 3.
Run: python benchmarks/estimates.py [--most 20] [--problems]
"""

import argparse
import time
import warnings

from newcomers import inventory, tandem
from rich.console import Console
from rich.table import Table

import fsmdp
from fsmdp import domains
from fsmdp.errors import SizeError
from fsmdp.exact import costs
from fsmdp.exact.flat import ENTRY_LIMIT, can_enumerate, enumerate_states, solve_flat
from fsmdp.exact.row_classes import plan_classes
from fsmdp.exact.solve import DENSE_LIMIT, fit, sweep_back, sweep_classes
from fsmdp.reductions.actions import ListActions
from fsmdp.reductions.reduction import reductions_of
from fsmdp.reproduction.ippc import DOMAINS

FACTOR = 3.0
LEAST_SECONDS = 0.02
"""Estimates and times below are as good as 0."""


def go_on():
    """Nothing ends a sweep."""


def own_models():
    """Domains and models of newcomers, of many sizes."""
    yield "inventory", inventory()
    yield "tandem", tandem()
    for n in (6, 10, 12, 14, 16):
        yield f"sysadmin:ring:{n}", domains.sysadmin(n)
        yield f"sysadmin:ring:{n}, endless", domains.sysadmin(n, horizon=None, discount=0.95)
    for seed in range(8):
        options = {"variables": 9 + seed % 4, "actions": 2 + 3 * seed, "latents": seed % 3}
        ends = {"horizon": None, "discount": 0.9} if seed % 2 else {"horizon": 20}
        model = domains.random_model(seed, largest_size=2 + seed % 2, **options, **ends)
        yield f"random {seed}", model


def problems():
    """Problems of the competitions, rewritten to the fewest states, with listed actions."""
    for name, problem in DOMAINS.items():
        for instance in range(1, 11):
            try:
                model = fsmdp.rddl.load(problem, instance)
            except fsmdp.FsmdpError:
                continue
            equal = [one for one in reductions_of(model) if one.relation == "equal"]
            smallest = min(equal, key=lambda one: one.model.n_states).model
            if smallest.n_states > ENTRY_LIMIT:
                continue
            listed = ListActions().apply(smallest)
            if listed is not None:
                yield f"{name} {instance}", listed.model


def methods(model):
    """Name, estimate, and what to time."""
    if can_enumerate(model, DENSE_LIMIT):
        yield "matrices", costs.matrix_seconds(model), lambda: solve_flat(enumerate_states(model))
    try:
        plan, keep_all = fit(model, ENTRY_LIMIT)
    except SizeError:
        pass
    else:
        seconds = costs.contraction_seconds(model, plan)
        yield "contraction", seconds, lambda: sweep_back(model, plan, keep_all, go_on)
    classes = plan_classes(model, ENTRY_LIMIT)
    if classes is not None and classes.entries() + 2 * model.n_states <= ENTRY_LIMIT:
        seconds = costs.class_seconds(model, classes)
        yield "row classes", seconds, lambda: sweep_classes(classes, False, go_on)


def main():
    """Time every method of every model whose estimate is small enough."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, default=20.0, help="largest estimate that is tried")
    parser.add_argument("--problems", action="store_true", help="problems of the competitions, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for _, _, run in methods(domains.sysadmin(6)):
        run()  # compiled before anything is timed
    table = Table("model", "states", "method", "estimated s", "actual s", "factor")
    within = count = 0
    sources = [own_models(), problems()] if options.problems else [own_models()]
    for name, model in (pair for source in sources for pair in source):
        for method, estimated, run in methods(model):
            if estimated > options.most:
                continue
            began = time.process_time()
            run()
            actual = time.process_time() - began
            factor = max(estimated, LEAST_SECONDS) / max(actual, LEAST_SECONDS)
            count += 1
            within += 1 / FACTOR <= factor <= FACTOR
            states = f"{model.n_states:,}"
            numbers = f"{estimated:.3f}", f"{actual:.3f}", f"{factor:.2f}"
            table.add_row(name, states, method, *numbers)
    console = Console(width=110, highlight=False)
    console.print(table)
    console.print(f"{within} of {count} within a factor of {FACTOR:g}")


if __name__ == "__main__":
    main()
