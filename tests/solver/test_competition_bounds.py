"""On problems of the competitions that can be solved, no bound is below the best value."""

import pytest

import fsmdp
from fsmdp.experiments.ippc.published import DOMAINS
from fsmdp.model.basis import Basis
from fsmdp.planning.certificate import certify
from fsmdp.planning.clock import NO_LIMIT
from fsmdp.planning.problem import problem_of_model
from fsmdp.solver.tightening import Tightening

pytest.importorskip("pyRDDLGym")

SOLVED = [name for name in DOMAINS if name not in ("CooperativeRecon", "Traffic", "Wildfire")]
"""Domains whose first instance has exact values in seconds."""


def bounds(model, size, rounds):
    """Certified bounds of singles, and as the basis grows and steps are divided."""

    def problem_of(basis, clock):
        return problem_of_model(model, basis, clock=clock, mini_bucket=size)

    found = Tightening(model, Basis.singles(model), problem_of)
    found.begin(NO_LIMIT)
    for _ in range(rounds + 1):
        problem = found.problem
        parts = problem.network, problem.intervals, found.found.weights, problem.start
        yield certify(*parts)[0].upper_bound
        if found.advance(NO_LIMIT) is None:
            return


def assert_above_the_best(domain, size, join, rounds):
    model = fsmdp.rddl.load(DOMAINS[domain], 1, join=join)
    best = fsmdp.Exact().solve(model, NO_LIMIT.check).start_value
    for bound in bounds(model, size, rounds):
        assert bound >= best - 1e-9 * max(1.0, abs(best))


@pytest.mark.parametrize("size", [None, 8])
def test_bounds_of_a_small_problem_are_above_its_best_value(size):
    assert_above_the_best("SysAdmin", size, join=False, rounds=2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("join", [False, True])
@pytest.mark.parametrize("size", [None, 16, 256])
@pytest.mark.parametrize("domain", SOLVED)
def test_bounds_of_competition_problems_are_above_their_best_values(domain, size, join):
    assert_above_the_best(domain, size, join, rounds=3)
