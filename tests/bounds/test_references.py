"""Numbers known beforehand: reference values, closed forms, and corners of the definitions."""

import numpy as np
import pytest
from planning_problems import (
    known_problem,
    stage_optimum,
    uncertain_problem,
)

from fsmdp.bounds.bellman import network_of_model, state_means
from fsmdp.bounds.certificate import certify, separate
from fsmdp.bounds.clock import Status
from fsmdp.bounds.ellipsoid import solve_ellipsoid
from fsmdp.bounds.enumerated import joint_optimum
from fsmdp.bounds.joint import solve_joint
from fsmdp.bounds.stagewise import StagewiseProgram
from fsmdp.domains import ExogenousBlock, Influence, random_model, sysadmin
from fsmdp.exact.solve import solve_exactly
from fsmdp.model.basis import Basis
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.tables import Table
from fsmdp.model.variables import Variable


def joint_bound(model, basis, weights):
    """Objective and certified bound, which must agree."""
    network, intervals = network_of_model(model, basis)
    means = state_means(weights, network.basis, model)
    found = solve_joint(network, intervals, means)
    certificate, _ = certify(network, intervals, found.weights, means)
    assert certificate.upper_bound == pytest.approx(found.objective, abs=1e-6)
    return found.objective


@pytest.mark.parametrize(
    ("topology", "machines", "functions", "expected"),
    [
        ("ring", 4, "singles", 8.276),
        ("ring", 4, "pairs", 8.122),
        ("ring", 6, "singles", 7.862),
        ("ring", 8, "pairs", 6.561),
        ("star", 8, "singles", 8.145),
        ("bidirectional-ring", 8, "singles", 6.328),
    ],
)
def test_joint_bounds_of_sysadmin_over_all_states(topology, machines, functions, expected):
    model = sysadmin(machines, topology=topology, horizon=10)
    basis = getattr(Basis, functions)(model)
    assert joint_bound(model, basis, "uniform") == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("machines", "functions", "expected"), [(4, "singles", 9.4217), (8, "pairs", 9.3059)]
)
def test_joint_bounds_of_sysadmin_from_all_machines_up(machines, functions, expected):
    model = sysadmin(machines, topology="ring", horizon=10)
    basis = getattr(Basis, functions)(model)
    assert joint_bound(model, basis, "initial") == pytest.approx(expected, abs=1e-4)


def test_joint_bound_of_sysadmin_over_an_infinite_horizon():
    model = sysadmin(8, topology="ring", horizon=None, discount=0.95)
    assert joint_bound(model, Basis.singles(model), "uniform") == pytest.approx(17.5740, abs=1e-3)


@pytest.mark.parametrize(
    "parameters",
    [
        Influence(nodes=10, horizon=10),
        Influence(nodes=10, horizon=None, discount=0.9),
        ExogenousBlock(factors=6, horizon=10),
        ExogenousBlock(factors=6, horizon=None, discount=0.9),
    ],
    ids=repr,
)
def test_the_bound_is_the_optimal_value_where_it_is_linear(parameters):
    model = parameters.model()
    bound = joint_bound(model, parameters.basis(model), "initial")
    assert bound == pytest.approx(solve_exactly(model).start_value, abs=1e-6)


@pytest.mark.parametrize(
    "parameters",
    [
        Influence(nodes=200, horizon=5),
        Influence(nodes=200, horizon=None, discount=0.9),
        ExogenousBlock(factors=198, horizon=10),
        ExogenousBlock(factors=198, horizon=None, discount=0.9),
    ],
    ids=repr,
)
def test_the_bound_is_the_closed_form_with_200_variables(parameters):
    model = parameters.model()
    basis = parameters.basis(model)
    assert len(model.variables) == 200
    means = state_means("initial", basis.bind(model.variables), model)
    expected = means @ parameters.optimal_weights()[0]
    assert joint_bound(model, basis, "initial") == pytest.approx(expected, abs=1e-6)


def test_closed_form_weights_have_no_violation_and_no_slack():
    parameters = Influence(nodes=200, horizon=5)
    model = parameters.model()
    network, intervals = network_of_model(model, parameters.basis(model))
    means = state_means("initial", network.basis, model)
    weights = parameters.optimal_weights()[:-1]
    certificate, _ = certify(network, intervals, weights, means)
    np.testing.assert_allclose(certificate.violations, 0.0, atol=1e-12)
    assert abs(separate(network, intervals, weights).violation) <= 1e-12


def lamp(actions=("wait", "fix"), idle=1, reward=1.0, horizon=3, rewards=True):
    """A lamp that may fail and be fixed, beside a variable of `idle` values that does nothing."""
    always = np.zeros(idle)
    always[0] = 1.0
    cases = [Case(ANY, ["lamp"], [[0.9, 0.1], [0.3, 0.7]])]
    if "fix" in actions:
        cases.append(Case(["fix"], [], [0.0, 1.0]))
    return FactoredMDP(
        variables=[Variable("idle", idle), Variable("lamp", 2)],
        actions=actions,
        conditionals=[Conditional("lamp", cases), Conditional("idle", [Case(ANY, [], always)])],
        rewards=[Reward("light", [Case(ANY, ["lamp"], [0.0, reward])], 0, 1)] if rewards else [],
        horizon=horizon,
        initial={"lamp": [0.5, 0.5]},
        discount=0.9,
    )


def assert_all_planners_agree(model, basis, uncertain=False):
    """Every planner against enumeration; the objectives, the certificates and the oracle."""
    rng = np.random.default_rng(0)
    problem = uncertain_problem(model, basis, rng) if uncertain else known_problem(model, basis)
    network, intervals, numbers = problem.network, problem.intervals, problem.numbers
    means = numbers.means("initial")
    optimum = joint_optimum(numbers, means)
    for solver in ("interior", "simplex"):
        found = solve_joint(network, intervals, means, solver=solver)
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(optimum, abs=1e-6)
        certificate, lifted = certify(network, intervals, found.weights, means)
        assert certificate.upper_bound == pytest.approx(optimum, abs=1e-5)
        assert numbers.excesses(lifted).max() <= 1e-6
        assert separate(network, intervals, found.weights).violation <= 1e-5
    if model.horizon is not None:
        for solver in ("interior", "simplex"):
            weights = StagewiseProgram(network, means, solver).solve(intervals).weights
            for row in range(len(weights)):
                expected = stage_optimum(numbers, means, numbers.following(weights, row))
                assert means @ weights[row] == pytest.approx(expected, abs=1e-6)
    ellipsoid = solve_ellipsoid(network, intervals, means, epsilon=0.01)
    assert ellipsoid.lower_bound <= optimum + 1e-6
    assert optimum - 1e-6 <= ellipsoid.objective <= optimum + 0.01


@pytest.mark.parametrize("horizon", [1, 3, None])
@pytest.mark.parametrize("uncertain", [False, True])
class TestCorners:
    def test_one_action(self, horizon, uncertain):
        model = lamp(actions=("wait",), horizon=horizon)
        assert_all_planners_agree(model, Basis.singles(model), uncertain)

    def test_a_variable_of_one_value(self, horizon, uncertain):
        model = lamp(idle=1, horizon=horizon)
        assert_all_planners_agree(model, Basis.blocks(model, [["idle", "lamp"]]), uncertain)

    def test_a_variable_that_nothing_looks_at(self, horizon, uncertain):
        model = lamp(idle=3, horizon=horizon)
        basis = Basis([Table(["lamp"], [0.0, 1.0])])
        assert_all_planners_agree(model, basis, uncertain)

    def test_no_reward_anywhere(self, horizon, uncertain):
        model = lamp(reward=0.0, horizon=horizon)
        assert_all_planners_agree(model, Basis.singles(model), uncertain)

    def test_no_reward_terms(self, horizon, uncertain):
        model = lamp(rewards=False, horizon=horizon)
        assert_all_planners_agree(model, Basis.singles(model), uncertain)

    def test_the_constant_alone(self, horizon, uncertain):
        assert_all_planners_agree(lamp(horizon=horizon), Basis(), uncertain)

    def test_the_same_function_twice(self, horizon, uncertain):
        model = lamp(horizon=horizon)
        lit = Table(["lamp"], [0.0, 1.0])
        assert_all_planners_agree(model, Basis([lit, lit]), uncertain)

    def test_functions_that_sum_to_the_constant(self, horizon, uncertain):
        model = lamp(horizon=horizon)
        basis = Basis([Table(["lamp"], [0.0, 1.0]), Table(["lamp"], [1.0, 0.0])])
        assert_all_planners_agree(model, basis, uncertain)

    def test_a_function_of_zeros(self, horizon, uncertain):
        model = lamp(horizon=horizon)
        basis = Basis([Table(["lamp"], [0.0, 0.0]), Table(["lamp"], [0.0, 1.0])])
        assert_all_planners_agree(model, basis, uncertain)


@pytest.mark.parametrize("factor", [1e-8, 1e8])
@pytest.mark.parametrize("solver", ["interior", "simplex"])
def test_bounds_scale_with_the_rewards(factor, solver):
    """Rewards of any size are solved to the same relative precision."""
    model = random_model(5, variables=3, horizon=3)
    network, intervals = network_of_model(model, Basis.singles(model))
    means = state_means("uniform", network.basis, model)
    plain = solve_joint(network, intervals, means, solver=solver).objective
    scaled = type(intervals)(factor * intervals.rewards, intervals.low, intervals.high)
    large = solve_joint(network, scaled, means, solver=solver).objective
    assert large == pytest.approx(factor * plain, rel=1e-6)
    weights = StagewiseProgram(network, means).solve(intervals).weights
    large_weights = StagewiseProgram(network, means).solve(scaled).weights
    assert means @ large_weights[-1] == pytest.approx(factor * (means @ weights[-1]), rel=1e-6)
