"""A reduction of one's own: variables left out that no reward depends on."""

import numpy as np
import pytest

import fsmdp
from fsmdp.exact.flat import enumerate_states
from fsmdp.reductions.reduction import REDUCTIONS, Reduced, Reduction, keep_variables


class Relevant(Reduction):
    """Leaves out the variables that no reward depends on, not even through others."""

    name = "relevant"

    def apply(self, model):
        """None where all matter, or where values are drawn together."""
        waiting = [name for one in model.rewards for case in one.cases for name in case.parents]
        needed, names = set(), [variable.name for variable in model.variables]
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed.add(name)
                waiting += [names[parent] for parent in model.parents(name)]
        kept = [position for position, name in enumerate(names) if name in needed]
        together = any(
            len(one.children) > 1 or case.drawn for one in model.conditionals for case in one.cases
        )
        if len(kept) == len(names) or not kept or together:
            return None
        smaller = model.replace(
            variables=[model.variables[position] for position in kept],
            conditionals=[one for one in model.conditionals if one.children[0] in needed],
            initial=[model.initial[position] for position in kept],
        )
        states = keep_variables(kept, model.sizes)
        return Reduced(model, smaller, state_map=states, name=self.name)


@pytest.fixture
def relevant():
    REDUCTIONS.add(Relevant())
    yield
    REDUCTIONS.remove("relevant")


def with_weather(model, count):
    """The model with variables beside it that follow one another and matter to nothing else."""
    turns = np.array([[[0.7, 0.3], [0.4, 0.6]], [[0.2, 0.8], [0.5, 0.5]]])
    names = [f"weather-{n}" for n in range(count)]
    beside = [
        fsmdp.Conditional(name, fsmdp.Case(fsmdp.ANY, [name, names[n - 1]], turns))
        for n, name in enumerate(names)
    ]
    return model.replace(
        variables=[*(fsmdp.Variable(name, 2) for name in names), *model.variables],
        conditionals=[*beside, *model.conditionals],
        initial=[0] * count + list(model.initial),
    )


MODELS = {
    "finite": fsmdp.domains.sysadmin(4, horizon=5),
    "endless": fsmdp.domains.sysadmin(4, horizon=None, discount=0.8),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_solver_plans_in_the_reduced_model(relevant, name):
    model = with_weather(MODELS[name], 3)
    best = fsmdp.solve_exactly(model).start_value
    plan = fsmdp.plan(model)
    assert any(line.what.startswith("relevant exact values") for line in plan.log)
    assert plan.upper_bound >= best - 1e-9
    assert plan.upper_bound == pytest.approx(best, rel=1e-6)
    value = enumerate_states(model).initial() @ fsmdp.evaluate_exactly(model, plan)
    assert value == pytest.approx(best, rel=1e-6)


def test_bounds_and_fits_of_the_reduced_model_hold_in_the_model(relevant):
    model = with_weather(MODELS["finite"], 2)
    best = fsmdp.solve_exactly(model).start_value
    plan = fsmdp.plan(model, rounds=0, exact=False)
    tried = [line.what for line in plan.log]
    assert any(what.startswith("fit of relevant singles") for what in tried)
    assert any(what.startswith("program of relevant singles") for what in tried)
    assert best - 1e-9 <= plan.upper_bound <= best * 1.2
    assert plan.incumbent.mean <= best + 5 * plan.incumbent.standard_error + 1e-9


def test_states_and_policies_have_a_way_back():
    model = with_weather(MODELS["finite"], 3)
    reduced = Relevant().apply(model)
    assert reduced.model.variables == MODELS["finite"].variables
    states = np.random.default_rng(0).integers(model.sizes, size=(50, len(model.sizes)))
    assert (reduced.states(states) == states[:, 3:]).all()
    solution = fsmdp.solve_exactly(reduced.model)
    policy = reduced.policy(solution)
    for state in states.tolist():
        assert policy.action(state, 2) == solution.action(tuple(state[3:]), 2)
    assert Relevant().apply(reduced.model) is None


class Misspelt(Relevant):
    """Claims a relation that there is none of; taken for a proof, its bound would be false."""

    name = "misspelt"

    def apply(self, model):
        worse = model.with_rewards([fsmdp.Reward("none", fsmdp.Case(fsmdp.ANY, [], 0.0))])
        return Reduced(model, worse, relation="Equal", name=self.name)


class TooNarrow(Relevant):
    """Maps states to fewer variables than its model has."""

    name = "too-narrow"

    def apply(self, model):
        return Reduced(model, model, state_map=keep_variables([0], model.sizes), name=self.name)


class Failing(Relevant):
    """Fails."""

    name = "failing"

    def apply(self, model):
        raise ZeroDivisionError("nothing to divide by")


@pytest.mark.parametrize(
    ("kind", "what"), [(Misspelt, "relation"), (TooNarrow, "state map"), (Failing, "ZeroDivision")]
)
def test_a_reduction_that_is_wrong_is_left_out_with_a_warning(kind, what):
    model = MODELS["finite"]
    REDUCTIONS.add(kind())
    try:
        with pytest.warns(
            fsmdp.FsmdpWarning, match=f"reduction '{kind.name}' is left out: .*{what}"
        ):
            plan = fsmdp.plan(model)
    finally:
        REDUCTIONS.remove(kind.name)
    assert plan.upper_bound == pytest.approx(fsmdp.solve_exactly(model).start_value)
