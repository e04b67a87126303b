"""Time limits x methods x discounts x horizons: how far past its limit a plan ends."""

import contextlib
import itertools
import time
import warnings

import pytest

import fsmdp
from fsmdp.errors import FsmdpError, TrivialBoundWarning
from fsmdp.foundation.threads import begin_peak, peak_memory
from fsmdp.solver.plan import METHODS

pytestmark = pytest.mark.slow

LIMITS = (0.0, 0.01, 0.5, 2.0)
DISCOUNTS = (0.9, 0.99, 0.9999)
HORIZONS = (10, 100, 1000, 10_000, 100_000, None)
OVERRUN = 1.0
"""Seconds past the limit, after compiling, of the clock or of the processor, whichever are fewer:
on a machine that others use the clock runs on while nothing is done."""

MOST_BYTES = 2**30


def exactly(model, limit):
    """`Exact` refuses a limit of 0."""
    return fsmdp.Exact(time_limit=max(limit, 1e-9)).plan(model)


def planned(method, model, limit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrivialBoundWarning)
        return fsmdp.plan(model, method=method, time_limit=limit)


@pytest.fixture(scope="module")
def optima():
    """V* at the start, by horizon and discount."""
    return {
        (horizon, discount): fsmdp.solve_exactly(model(horizon, discount)).start_value
        for horizon, discount in itertools.product(HORIZONS, DISCOUNTS)
    }


def model(horizon, discount):
    return fsmdp.domains.sysadmin(4, horizon=horizon, discount=discount)


@pytest.mark.parametrize("method", [*METHODS, "exact"])
def test_plans_end_in_time_with_a_bound(method, optima, capsys):
    run = exactly if method == "exact" else lambda *rest: planned(method, *rest)
    for horizon in (3, None):  # compiles what the method uses
        with contextlib.suppress(FsmdpError):
            run(model(horizon, 0.9), 60.0)
    worst, latest, most, counts = (-1.0, ""), (-1.0, ""), 0, {}
    for horizon, discount, limit in itertools.product(HORIZONS, DISCOUNTS, LIMITS):
        asked, case = model(horizon, discount), f"horizon {horizon}, {discount}, {limit} s"
        measured = begin_peak()
        held = peak_memory() or 0
        began, worked = time.perf_counter(), time.process_time()
        try:
            found = run(asked, limit)
            ended = "solved" if method == "exact" else str(found.status)
        except FsmdpError as error:
            found, ended = None, type(error).__name__
        waited = time.perf_counter() - began
        over = min(waited, time.process_time() - worked) - limit
        latest = max(latest, (waited - limit, case))
        counts[ended] = counts.get(ended, 0) + 1
        worst = max(worst, (over, case))
        if measured:
            most = max(most, (peak_memory() or 0) - held)
        if method != "exact" and found is not None:
            optimum = optima[horizon, discount]
            assert found.upper_bound >= optimum - 1e-9 * max(1.0, abs(optimum)), case
            assert found.action((0, 0, 0, 0), 1) in asked.actions
        if limit == 0 and method != "exact":
            assert found is not None, case
    with capsys.disabled():
        ends = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        print(
            f"\n{method}: {sum(counts.values())} plans ({ends}); worst overrun {worst[0]:.2f} s "
            f"({worst[1]}), by the clock alone {latest[0]:.2f} s ({latest[1]}); at most "
            f"{most / 2**20:.0f} MiB more"
        )
    assert worst[0] <= OVERRUN, worst
    assert most <= MOST_BYTES
