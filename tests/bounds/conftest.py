import pytest

from fsmdp.bounds.bellman import network_of_model, state_means
from fsmdp.bounds.certificate import certify
from fsmdp.bounds.joint import solve_joint
from fsmdp.domains import random_model
from fsmdp.model.basis import Basis


@pytest.fixture(autouse=True, scope="session")
def _compiled():
    """Compile before the first test, so that no example is charged for it."""
    model = random_model(variables=2, horizon=2)
    network, intervals = network_of_model(model, Basis.singles(model))
    means = state_means("uniform", network.basis, model)
    certify(network, intervals, solve_joint(network, intervals, means).weights, means)
