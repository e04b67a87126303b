"""The plain construction gives the values of the fast ones."""

import numpy as np
import pytest
from benchmarks._plain_planning import plan_stages_plainly, plan_stationary_plainly

import fsmdp
from fsmdp.bounds.bellman import network_of_model, state_means
from fsmdp.bounds.certificate import certify


@pytest.mark.parametrize("topology", ["ring", "star"])
def test_plain_stages_solve_the_first_stage_alike(topology):
    model = fsmdp.domains.sysadmin(6, topology=topology)
    basis = fsmdp.Basis.singles(model)
    weights, objective = plan_stages_plainly(model, basis)
    fast = fsmdp.plan(model, basis, method="stagewise", weights="uniform")
    # Later stages may differ, since a stage's optimal weights need not be unique.
    means = state_means("uniform", fast.basis, model)
    assert means @ weights[-1] == pytest.approx(means @ fast.weights[-2], abs=1e-7)
    assert objective == pytest.approx(fast.objective, rel=0.02)
    network, intervals = network_of_model(model, basis)
    certificate, _ = certify(network, intervals, weights, means)
    assert certificate.violation < 1e-6


def test_the_plain_stationary_program_has_the_same_value():
    model = fsmdp.domains.sysadmin(6, horizon=None, discount=0.9)
    basis = fsmdp.Basis.pairs(model)
    fast = fsmdp.plan(model, basis, method="joint", weights="uniform")
    assert plan_stationary_plainly(model, basis) == pytest.approx(fast.objective, rel=1e-6)
    assert np.isfinite(fast.upper_bound)
