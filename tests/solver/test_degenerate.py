"""Every method on models at the edge: a plan that bounds the optimum, and no crash."""

import warnings

import pytest
from tests.degenerate_models import BASES, DEGENERATE

import fsmdp
from fsmdp.errors import PoorPolicyWarning, TrivialBoundWarning
from fsmdp.solver.plan import METHODS

OPTIONS = {
    "auto": {"rounds": 1, "exact": False},
    "fitted": {"rounds": 1, "episodes": 50},
}
PLAIN = [(method, "default") for method in METHODS]


def planned(model, method, basis):
    """A plan, or None where a method says that it is not for such a model."""
    if method == "stagewise" and model.horizon is None:
        with pytest.raises(fsmdp.ModelError, match="finite horizon"):
            fsmdp.plan(model, basis, method=method)
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrivialBoundWarning)
        return fsmdp.plan(model, basis, method=method, **OPTIONS.get(method, {}))


@pytest.mark.parametrize(("method", "basis"), [*PLAIN, ("auto", "empty"), ("bundled", "empty")])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_models_are_planned_and_bounded(name, method, basis):
    model = DEGENERATE[name]
    plan = planned(model, method, BASES[basis](model))
    if plan is None:
        return
    optimum = fsmdp.solve_exactly(model).start_value
    assert plan.upper_bound >= optimum - 1e-9 * max(1.0, abs(optimum))
    state = [0] * len(model.variables)
    assert plan.action(state) in model.actions
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoorPolicyWarning)  # there may be no better one
        gap = fsmdp.certified_gap(model, plan, episodes=50)
    assert gap.upper_bound == plan.upper_bound


@pytest.mark.parametrize("name", DEGENERATE)
def test_the_constant_alone_is_bundled_to_the_optimum_of_its_program(name):
    model, basis = DEGENERATE[name], fsmdp.Basis([])
    found = planned(model, "bundled", basis)
    assert found.status == "optimal"
    assert found.upper_bound == pytest.approx(planned(model, "joint", basis).upper_bound, rel=1e-6)
