"""A bound technique from outside the package: one class and one line of registration."""

import pytest

import fsmdp
from fsmdp import domains
from fsmdp.model.basis import Basis
from fsmdp.solver.techniques import TECHNIQUES, BoundTechnique


class EveryState(BoundTechnique):
    """A function for every state: the program's value is then that of the best policy."""

    def applies(self, to):
        return to.grows and len(to.basis) < to.model.n_states <= 256

    def run(self, to, clock):
        names = [variable.name for variable in to.model.variables]
        problem = to.laid_out(Basis.blocks(to.model, [names]), clock)
        to.take(problem, to.minimised(problem, None, None, clock))
        return True


@pytest.fixture
def technique(monkeypatch):
    monkeypatch.setattr(TECHNIQUES, "_entries", dict(TECHNIQUES._entries))
    TECHNIQUES.register("every-state", EveryState)
    return EveryState


MODEL = domains.sysadmin(8, horizon=None, discount=0.7)


def planned():
    return fsmdp.plan(MODEL, exact=False, rounds=0)


def linear_bound():
    """By linear values alone: regions with prices may prove as much."""
    return planned().bound.values.upper_bound


@pytest.fixture(scope="module")
def best():
    return fsmdp.solve_exactly(MODEL).start_value


@pytest.fixture(scope="module")
def bound_without():
    return linear_bound()


@pytest.mark.usefixtures("technique")
def test_the_bound_of_a_registered_technique_is_the_plans_and_above_the_best_value(
    best, bound_without
):
    assert best <= linear_bound() <= best + 1e-6
    assert bound_without > best + 1e-2  # so that it is the technique's doing


def test_a_technique_that_refuses_a_model_is_noted_and_other_bounds_stay(
    technique, monkeypatch, best
):
    def refuse(self, to, clock):
        raise fsmdp.ModelError("no such model is known; use another technique.")

    monkeypatch.setattr(technique, "run", refuse)
    plan = planned()
    assert best <= plan.upper_bound < plan.bound.trivial
    assert any("no such model is known" in line.what for line in plan.log)
