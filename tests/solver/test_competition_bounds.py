"""On problems of the competitions that can be solved, no bound is below the best value."""

import pytest

import fsmdp
from fsmdp.bounds.bundle import coarse_blocks, minimise_by_rows
from fsmdp.bounds.certificate import certify
from fsmdp.bounds.clock import NO_LIMIT
from fsmdp.bounds.problem import problem_of_model
from fsmdp.model.basis import Basis
from fsmdp.reproduction.ippc import DOMAINS
from fsmdp.solver.engines.programs import regions_of
from fsmdp.solver.techniques import Tightening

pytest.importorskip("pyRDDLGym")

SOLVED = [name for name in DOMAINS if name not in ("CooperativeRecon", "Traffic", "Wildfire")]
"""Domains whose first instance has exact values in seconds."""


def bounds(model, size, rounds):
    """Certified bounds of singles, and as the basis grows and steps are divided."""
    invariants = fsmdp.find_invariants(model)

    def problem_of(basis, clock):
        return problem_of_model(model, basis, clock=clock, mini_bucket=size, invariants=invariants)

    found = Tightening(model, Basis.singles(model), problem_of, NO_LIMIT)
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


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_invariants_make_the_bound_of_a_competition_problem_tighter():
    model = fsmdp.rddl.load(DOMAINS["SkillTeaching"], 1, join=True)
    found = fsmdp.find_invariants(model)
    assert found
    best = fsmdp.Exact().solve(model, NO_LIMIT.check).start_value
    loose, tight = (
        fsmdp.plan(model, Basis.singles(model), method="joint", invariants=given).upper_bound
        for given in ((), found)
    )
    assert best - 1e-6 <= tight < loose - 1


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_crossing_of_two_roads_holds_cars_up():
    """Traffic 1: singles and pairs prove 0, the largest reward at every step."""
    model = fsmdp.rddl.load(DOMAINS["Traffic"], 1)
    region = regions_of(model)[0]
    assert {model.variables[p].name for p in region} >= {
        *("light-signal1(ia3a3)", "light-signal2(ia3a3)"),
        *("occupied(ca3a1)", "occupied(ca3a2)", "occupied(ca1a3)", "occupied(ca2a3)"),
    }
    problem = problem_of_model(model, Basis.blocks(model, [region]))
    parts = problem.network, problem.intervals, problem.means, coarse_blocks(problem.network)
    found = minimise_by_rows(*parts)
    certificate, _ = certify(problem.network, problem.intervals, found.weights, problem.start)
    assert certificate.upper_bound < -1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("join", [False, True])
@pytest.mark.parametrize("size", [None, 16, 256])
@pytest.mark.parametrize("domain", SOLVED)
def test_bounds_of_competition_problems_are_above_their_best_values(domain, size, join):
    assert_above_the_best(domain, size, join, rounds=3)
