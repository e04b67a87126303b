"""Models are equal if they are built of equal parts, and only then."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import fsmdp
from fsmdp import ANY, Actions, Basis, Case, Conditional, FactoredMDP, Reward, Table, Variable
from fsmdp.model.cases import Cases

PARTS = {
    "variables": [Variable("x", 2), Variable("y", 3)],
    "actions": ["wait", "go"],
    "conditionals": [
        Conditional("noise", Case(ANY, [], [0.5, 0.5])),
        Conditional("x", [Case(["go"], ["x"], [[0.9, 0.1], [0.2, 0.8]]), Case(ANY, [], [1, 0])]),
        Conditional("y", Case(ANY, ["y"], np.full((3, 2, 3), 1 / 3), drawn=["noise"])),
    ],
    "rewards": [Reward("r", Case(ANY, ["y"], [0.0, 0.5, 1.0]), sigma=0.1)],
    "horizon": 5,
    "initial": {"x": 1, "y": [0.2, 0.3, 0.5]},
    "discount": 0.9,
    "latents": [Variable("noise", 2)],
}
JOINT = {
    "variables": [Variable("x", 2)],
    "actions": Actions([Variable("a", 2), Variable("b", 3)], 1, [{"a": 1, "b": 2}]),
    "conditionals": [Conditional("x", Case(ANY, ["x", "a"], np.full((2, 2, 2), 0.5)))],
    "rewards": [Reward("r", Case(ANY, ["x", "b"], np.full((2, 3), 0.5)))],
    "horizon": 4,
}


def conditional(position, changed):
    listed = list(PARTS["conditionals"])
    listed[position] = changed
    return {"conditionals": listed}


def reward(**changes):
    options = {"low": 0.0, "high": 1.0, "sigma": 0.1} | changes
    return {"rewards": [Reward("r", Case(ANY, ["y"], [0.0, 0.5, 1.0]), **options)]}


GO, ELSE = PARTS["conditionals"][1].cases
CHANGES = {
    "default start": {"initial": {"x": 1}},
    "action": {"actions": ["halt", "go"]},
    "order of actions": {"actions": ["go", "wait"]},
    "horizon": {"horizon": 6},
    "no horizon": {"horizon": None},
    "discount": {"discount": 0.95},
    "start": {"initial": {"x": 0, "y": [0.2, 0.3, 0.5]}},
    "distribution": {"initial": {"x": 1, "y": [0.2, 0.5, 0.3]}},
    "kind of start": {"initial": {"x": [0.0, 1.0], "y": [0.2, 0.3, 0.5]}},
    "last probability": conditional(
        1, Conditional("x", [Case(["go"], ["x"], [[0.9, 0.1], [0.2001, 0.7999]]), ELSE])
    ),
    "parents": conditional(
        1, Conditional("x", [Case(["go"], ["x", "y"], np.full((2, 3, 2), 0.5)), ELSE])
    ),
    "drawn": conditional(2, Conditional("y", Case(ANY, ["y", "x"], np.full((3, 2, 3), 1 / 3)))),
    "group": conditional(1, Conditional("x", [Case(["wait"], GO.parents, GO.table), ELSE])),
    "order of cases": conditional(1, Conditional("x", [ELSE, GO])),
    "name of a term": {"rewards": [Reward("q", PARTS["rewards"][0].cases, sigma=0.1)]},
    "low": reward(low=-1.0),
    "high": reward(high=2.0),
    "sigma": reward(sigma=0.2),
    "terms": {"rewards": [*PARTS["rewards"], Reward("q", Case(ANY, [], 0.5))]},
}

COPIES = {
    "built again": lambda model: None,
    "pickled": lambda model: pickle.loads(pickle.dumps(model)),
    "copied deep": copy.deepcopy,
    "read from its file": lambda model: model,
}


@pytest.mark.parametrize("parts", [PARTS, JOINT], ids=["list", "variables"])
@pytest.mark.parametrize("how", COPIES)
def test_a_copy_is_equal_however_it_was_made(parts, how, tmp_path):
    model = FactoredMDP(**parts)
    other = COPIES[how](model)
    if how == "built again":
        other = FactoredMDP(**copy.deepcopy(parts))
    if how == "read from its file":
        fsmdp.save(model, tmp_path / "model.json")
        other = fsmdp.load(tmp_path / "model.json")
    assert other is not model
    assert other == model
    assert hash(other) == hash(model)
    assert {model: 1}[other] == 1
    basis = Basis.pairs(model)
    assert Basis.pairs(other) == basis
    assert other.structure(basis) == model.structure(Basis.pairs(other))
    assert hash(other.structure(basis)) == hash(model.structure(basis))


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_makes_another_model(change):
    model, other = FactoredMDP(**PARTS), FactoredMDP(**PARTS | CHANGES[change])
    assert model != other
    assert other == FactoredMDP(**PARTS | CHANGES[change])


@pytest.mark.parametrize(
    "actions",
    [
        Actions([Variable("a", 2), Variable("b", 3)], 1),
        Actions([Variable("a", 2), Variable("b", 3)], 2, [{"a": 1, "b": 2}]),
        Actions([Variable("a", 2), Variable("b", 3)], 1, [{"a": 1, "b": 1}]),
        Actions([Variable("a", 2), Variable("b", 4)], 1, [{"a": 1, "b": 2}]),
    ],
)
def test_other_limits_are_other_actions(actions):
    assert actions != JOINT["actions"]
    assert actions == copy.deepcopy(actions)
    assert actions != tuple(actions)


def test_a_structure_differs_where_its_basis_parents_or_terms_do():
    model = FactoredMDP(**PARTS)
    told = model.structure(Basis.singles(model))
    assert told != model.structure(Basis.blocks(model, [["x", "y"]]))
    assert told != FactoredMDP(**PARTS | CHANGES["parents"]).structure(Basis.singles(model))
    assert told != FactoredMDP(**PARTS | CHANGES["low"]).structure(Basis.singles(model))
    # A learner is told no probabilities, so models that differ in those alone look alike to it.
    assert told == FactoredMDP(**PARTS | CHANGES["last probability"]).structure(told.basis)
    assert told != replace(told, horizon=3)


def test_equal_numbers_are_equal_however_they_are_stored():
    numbers = np.arange(6.0).reshape(2, 3)
    plain = Table(["x", "y"], numbers)
    for other in (
        np.asfortranarray(numbers),
        numbers.astype(int),
        numbers * [1, -1, 1] * [1, -1, 1],
    ):
        again = Table(["x", "y"], other)
        assert again == plain
        assert hash(again) == hash(plain)
    zero, negative = Table("x", [0.0, 1.0]), Table("x", [-0.0, 1.0])
    assert (zero == negative, hash(zero)) == (True, hash(negative))
    assert plain != Table(["x", "y"], numbers + np.array([[0, 0, 0], [0, 0, 1e-15]]))
    assert plain != Table(["y", "x"], numbers)
    assert plain != Table("x", numbers[:, 0])


def test_what_is_not_a_model_equals_none():
    model = FactoredMDP(**PARTS)
    assert model != 1
    assert (model == "model") is False
    assert model not in [None, PARTS, model.variables]
    assert Cases((1, 2), {3: 1}) != Cases((1, 2), {4: 1})
    assert Case(ANY, [], 1.0) != Table([], 1.0)
