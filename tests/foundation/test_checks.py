"""What is no part of a model is refused where it is given, in a short message."""

import math

import numpy as np
import pytest

import fsmdp
from fsmdp import (
    ANY,
    Basis,
    Case,
    Conditional,
    FactoredMDP,
    ModelError,
    Reward,
    SizeError,
    Structure,
    Table,
    Variable,
    domains,
    evaluate_exactly,
    solve_exactly,
)
from fsmdp.foundation.checks import WIDTH, show, show_count, show_names
from fsmdp.io.models import to_dict

FAIR = [0.5, 0.5]
X = Variable("x", 2)
LONG = "n" * 10**6


def model(**changes):
    """A coin that is thrown again and again, with parts replaced."""
    parts = {
        "variables": [X],
        "actions": ["throw"],
        "conditionals": [Conditional("x", [Case(ANY, [], FAIR)])],
        "rewards": [],
        "horizon": 3,
    }
    return FactoredMDP(**(parts | changes))


def structure(**changes):
    parts = {
        "variables": [X],
        "actions": ["throw"],
        "parents": {"x": [Case(ANY, ["x"])]},
        "rewards": [],
        "basis": Basis.singles([X]),
        "horizon": 3,
    }
    return Structure.from_parents(**(parts | changes))


MISTAKES = {
    # parts of a model of the wrong kind
    "no variables": (lambda: model(variables=None), "variables: expected a list of Variable"),
    "number of variables": (lambda: model(variables=2), "list of Variable objects, found 2"),
    "names for variables": (lambda: model(variables=["x"]), "entry 0 is 'x', expected a Variable"),
    "set of variables": (lambda: model(variables={X}), "expected a list of Variable objects"),
    "actions by number": (lambda: model(actions=2), "actions: expected a list of names, found 2"),
    "set of actions": (lambda: model(actions={"a", "b"}), "actions: expected a list of names"),
    "dictionary of actions": (lambda: model(actions={"a": 1}), "actions: expected a list of names"),
    "action by number": (lambda: model(actions=["a", 2]), "action number 1: a name is a non-empty"),
    "unhashable action": (lambda: model(actions=[["a"]]), "action number 0: a name is a non-empty"),
    "no conditionals": (lambda: model(conditionals=None), "conditionals: expected a list of Cond"),
    "case for conditional": (
        lambda: model(conditionals=[Case(ANY, [], FAIR)]),
        "conditionals: entry 0 is Case.*expected a Conditional",
    ),
    "reward by number": (lambda: model(rewards=3), "rewards: expected a list of Reward objects"),
    "latents by name": (lambda: model(latents="z"), "latents: expected a list of Variable objects"),
    "forgotten case": (
        lambda: Conditional("a", [FAIR]),
        r"cases of conditional of 'a': entry 0 is \[0.5, 0.5\], expected a Case; write \[Case\(",
    ),
    "cases none": (lambda: Conditional("a", None), "expected a list of Case objects, found None"),
    "child by number": (lambda: Conditional(0, []), "expected a list of names, found 0"),
    "children by number": (lambda: Conditional([0], []), "found the number 0; write its name"),
    "set of children": (lambda: Conditional({"a", "b"}, []), "children .*: expected a list"),
    "set of parents": (lambda: Case(ANY, {"a", "b"}), "parents: expected a list of names"),
    "dictionary of parents": (lambda: Case(ANY, {"a": 1}), "parents: expected a list of names"),
    "set of drawn": (lambda: Case(ANY, drawn={"a", "b"}), "drawn: expected a list of names"),
    "set of case actions": (lambda: Case({"a", "b"}), "actions of a case: expected ANY or a list"),
    "number of case actions": (lambda: Case(3), "expected ANY or a list of action names, found 3"),
    "parent by position": (lambda: Case(ANY, [0]), "positions stand only in the scope of a Table"),
    "unhashable parent": (lambda: Case(ANY, [["a"]]), "parents: a name is a non-empty string"),
    "half a surrogate pair": (lambda: Variable("\ud800", 2), "half of a surrogate pair"),
    "nameless reward": (lambda: Reward("", []), "reward: a name is a non-empty string, found ''"),
    "reward named by number": (
        lambda: Reward(3, []),
        "reward: a name is a non-empty string, found 3",
    ),
    "low of 400 digits": (lambda: Reward("r", [], low=10**400), "low is a whole number of 1329"),
    "low of 9,000 digits": (lambda: Reward("r", [], low=10**9000), "expected a finite number"),
    "discount of 400 digits": (lambda: model(discount=10**400), "discount is a whole number"),
    "horizon above the limit": (lambda: model(horizon=10**6 + 1), "at most 1000000 steps, found"),
    "horizon of 9,000 digits": (lambda: model(horizon=10**9000), "at most 1000000 steps, found a"),
    "initial by number": (lambda: model(initial=5), "initial: expected 1 values, .* found 5; or"),
    "initial by set": (lambda: model(initial={1}), "initial: expected 1 values, one per variable"),
    "initial by position": (lambda: model(initial={0: 1}), "initial: expected the name of a var"),
    "initial twice": (lambda: model(initial={"x": 1, X: 0}), "'x' is listed twice"),
    "initial by text": (
        lambda: model(initial={"x": "up"}),
        "initial of 'x': value 'up' is out of range",
    ),
    "case without a table": (
        lambda: model(conditionals=[Conditional("x", [Case(ANY, ["x"])])]),
        r"expected a table of shape \(2, 2\).*found no table",
    ),
    "reward without a table": (
        lambda: model(rewards=[Reward("r", [Case(ANY, ["x"])])]),
        r"expected a table of shape \(2,\).*found no table",
    ),
    "a case that no action uses": (
        lambda: model(
            conditionals=[Conditional("x", [Case("throw", [], FAIR), Case(ANY, [], [2.0])])]
        ),
        r"action group ANY: expected a table of shape \(2,\)",
    ),
    "row beyond all numbers": (
        lambda: model(conditionals=[Conditional("x", [Case(ANY, [], [1e308, 1e308])])]),
        "probabilities sum to inf, expected 1",
    ),
    "initial beyond all numbers": (lambda: model(initial={"x": [1e308] * 2}), "sum to inf"),
    "masked table": (
        lambda: Case(ANY, [], np.ma.masked_array(FAIR, [True, False])),
        "found a masked array",
    ),
    "row of float32": (
        lambda: model(
            conditionals=[Conditional("x", [Case(ANY, [], np.array([0.1, 0.9], np.float32))])]
        ),
        r"normalise the row \(float32\? give float64\)",
    ),
    "initial of float32": (
        lambda: model(initial={"x": np.array([0.1, 0.9], np.float32)}),
        r"normalise them \(float32\? give float64\)",
    ),
    # structures
    "structure without parents": (lambda: structure(parents=None), "expected a dictionary from"),
    "structure of no case": (
        lambda: structure(parents={"x": ["x"]}),
        "parents of 'x': entry 0 is 'x', expected a Case",
    ),
    "structure with drawn": (
        lambda: structure(parents={"x": [Case(ANY, drawn=["x"])]}),
        r"parents of 'x': depends on values drawn in this step \['x'\]",
    ),
    "structure with a table": (
        lambda: structure(parents={"x": [Case(ANY, [], FAIR)]}),
        r"found a table of shape \(2,\), expected none since a structure holds no",
    ),
    "structure with a reward twice": (
        lambda: structure(rewards=[Reward("r", [Case(ANY)])] * 2),
        "reward 'r' appears twice",
    ),
    "structure with a reward of drawn values": (
        lambda: structure(rewards=[Reward("r", [Case(ANY, drawn=["x"])])]),
        "reward 'r': depends on values drawn",
    ),
    "structure with a reward out of bounds": (
        lambda: structure(rewards=[Reward("r", [Case(ANY, ["x"], [0, 2])])]),
        "means run from 0 to 2",
    ),
    "structure of unknown variable": (
        lambda: structure(parents={"x": [Case(ANY)], "y": [Case(ANY)]}),
        "parents of a structure: unknown variable 'y'",
    ),
    "structure without a basis": (lambda: structure(basis=None), "expected a Basis, found None"),
    # tables and bases
    "scope of halves": (lambda: Table([0.5], [1, 2]), "scope of a table: a name is a non-empty"),
    "scope of truth": (lambda: Table([True], [1, 2]), "scope of a table: a name is a non-empty"),
    "scope by set": (lambda: Table({"x"}, [1, 2]), "expected a list of names, Variables or pos"),
    "empty table": (lambda: Table(["x"], []), "expected a number for each assignment, found none"),
    "value of unbound": (lambda: Table(["x"], [1, 2]).value([0]), r"call bind\(model.variables\)"),
    "value below zero": (lambda: Table([0], [1, 2]).value([-1]), "position 0 is -1, expected a wh"),
    "value too large": (lambda: Table([0], [1, 2]).value([2]), "position 0 is 2, expected a whole"),
    "value of halves": (lambda: Table([0], [1, 2]).value([0.5]), "position 0 is 0.5, expected"),
    "value of short state": (lambda: Table([3], [1, 2]).value([0]), "found 1 values; give the"),
    "value of no state": (lambda: Table([0], [1, 2]).value(None), "state: expected one value per"),
    "features of unbound": (lambda: Basis(Table("x", [0, 1])).evaluate([0]), "bind"),
    "features below zero": (lambda: Basis.singles(model()).evaluate([-1]), "is -1, expected"),
    "basis of arrays": (
        lambda: Basis([np.eye(2)]),
        r"tables of a basis: entry 0 is .*expected a Table; write \[Table\(",
    ),
    "basis of nothing": (lambda: Basis(None), "expected a list of Table objects, found None"),
    "basis of a class": (lambda: Basis(Table), "expected a list of Table objects, found <class"),
    "singles of a number": (lambda: Basis.singles(3), "Basis.singles: expected a FactoredMDP, a"),
    "singles of a class": (lambda: Basis.singles(FactoredMDP), "expected a FactoredMDP, a Struct"),
    "singles of names": (lambda: Basis.singles(["x"]), "entry 0 is 'x', expected a Variable"),
    "pairs of a number": (lambda: Basis.pairs(3), "Basis.pairs: expected a FactoredMDP, found int"),
    "blocks by text": (
        lambda: Basis.blocks(model(), "ab"),
        "expected a list of scopes, found 'ab'",
    ),
    "blocks by number": (lambda: Basis.blocks(model(), 3), "expected a list of scopes, found 3"),
    "block of unknown": (lambda: Basis.blocks(model(), ["y"]), "unknown variable 'y'"),
    "ones over unknown variable": (
        lambda: model().marginals(Basis([Table(["y"], [1.0, 1.0])])),
        "unknown variable 'y'",
    ),
    # solving
    "state of no kind": (lambda: model().check_state(None), "state: expected 1 values, .* None"),
    "state by another name": (
        lambda: model().check_state({"z": 1}),
        "state: .* variable .z.; expected",
    ),
    "no model to solve": (lambda: solve_exactly(3), "solve_exactly: expected a FactoredMDP, found"),
    "no model to follow": (lambda: evaluate_exactly(None, "x"), "expected a FactoredMDP, found"),
    "limit of text": (lambda: solve_exactly(model(), limit="9"), "limit: expected a whole number"),
    "limit of halves": (lambda: solve_exactly(model(), limit=1e9), "limit: expected a whole num"),
    "limit not a number": (lambda: solve_exactly(model(), limit=math.nan), "limit: .* found nan"),
    "limit of zero": (lambda: solve_exactly(model(), limit=0), "limit: .* at least 1, found 0"),
    "half a step": (lambda: solve_exactly(model()).value([0], 1.5), "step 1.5: expected 1 to 3"),
    "step by text": (lambda: solve_exactly(model()).action([0], "1"), "step '1': expected 1 to 3"),
    "step true": (lambda: solve_exactly(model()).action([0], True), "step True: expected 1 to 3"),
    "step of an endless model": (
        lambda: solve_exactly(model(horizon=None, discount=0.5)).action([0], 0),
        "step 0: expected a whole number of at least 1",
    ),
    # long names and lists
    "long name": (lambda: model(actions=[LONG, LONG]), "appears twice"),
    "long unknown name": (
        lambda: model(conditionals=[Conditional(LONG, [Case(ANY, [], FAIR)])]),
        "unknown variable 'nnn",
    ),
    "many parents": (
        lambda: model(conditionals=[Conditional("x", [Case(ANY, ["x"] * 9999, FAIR)])]),
        "'x' is listed twice",
    ),
    "long row": (lambda: model(initial={"x": [0.5] * 10**5}), "or 2 probabilities, found"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_refused_in_a_short_message(mistake):
    build, message = MISTAKES[mistake]
    with pytest.raises(ModelError, match=message) as caught:
        build()
    assert len(str(caught.value)) < 450


def test_a_single_object_stands_for_a_list_of_itself():
    one = FactoredMDP(X, "throw", Conditional(X, Case(ANY, X, [FAIR] * 2)), (), 3)
    assert one.conditionals[0].children == ("x",)
    assert one.conditionals[0].cases[0].parents == ("x",)
    assert one.actions == ("throw",)
    assert Basis(Table(X, [0, 1])).bind(one.variables).scopes == ((), (0,))
    assert structure(actions="throw").actions == ("throw",)


def test_variables_stand_for_their_names_everywhere(tmp_path):
    y = Variable("y", 2)
    built = model(
        variables=[X, y],
        conditionals=[
            Conditional([X], [Case(ANY, [y], [FAIR] * 2)]),
            Conditional(y, [Case(ANY, [], [FAIR] * 2, drawn=[X])]),
        ],
        initial={X: 1},
    )
    fsmdp.save(built, tmp_path / "model.json")
    assert to_dict(fsmdp.load(tmp_path / "model.json")) == to_dict(built)
    assert structure(parents={X: Case(ANY, X)}).parents[1].groups == ((0,),)


def test_iterators_and_views_of_dictionaries_keep_their_order():
    costs = {"a": 0.0, "b": 1.0}
    built = model(variables=iter([X]), actions=costs.keys(), initial=iter([1]))
    assert (built.actions, built.initial) == (("a", "b"), (1,))
    assert built.check_state(iter([1])) == (1,)


def test_a_table_of_ones_is_the_constant_and_is_left_out_once_its_scope_is_known():
    ones = Basis([Table(["x"], [1, 1]), Table(["x"], [0, 1])])
    assert len(ones) == 3
    assert ones.bind([X]).scopes == ((), (0,))
    assert len(Basis([Table([], 1.0)])) == 1


def test_blocks_of_more_variables_than_an_array_has_axes_are_refused():
    many = [Variable(f"x{i}", 1) for i in range(70)]
    with pytest.raises(SizeError, match="a scope has 70 variables, expected at most 32"):
        Basis.blocks(many, [many])


def test_a_basis_needs_only_variables_unless_it_needs_parents():
    assert Basis.singles([X]).scopes == Basis.singles(model()).scopes
    assert Basis.singles(structure()).scopes == Basis.singles(model()).scopes
    assert Basis.blocks([X], ["x", 0, X]).scopes == ((), (0,))


def test_pairs_do_not_depend_on_the_probabilities():
    def coupled(row):
        return model(
            variables=[X, Variable("y", 2)],
            conditionals=[
                Conditional("x", [Case(ANY, ["y"], [FAIR, row])]),
                Conditional("y", [Case(ANY, [], FAIR)]),
            ],
        )

    assert coupled(FAIR).parents("x") == coupled([0.1, 0.9]).parents("x") == (1,)
    assert Basis.pairs(coupled(FAIR)).scopes == ((), (0,), (1,), (0, 1))
    assert domains.sysadmin(4).parents("machine-0") == (0, 3)


class TestMessages:
    @pytest.mark.parametrize(
        "value",
        [LONG, [LONG] * 99, (2,) * 999, 10**5000, {10**5000}, np.ones(9999)],
        ids=lambda value: type(value).__name__,
    )
    def test_values_are_clipped(self, value):
        assert len(show(value)) <= WIDTH

    def test_what_cannot_be_shown_is_named_by_its_kind(self):
        class Shy:
            def __repr__(self):
                raise RuntimeError

        assert "Shy" in show(Shy())
        assert "Shy" in show([Shy()])

    def test_names_are_listed_up_to_a_few(self):
        assert show_names([]) == "none"
        assert show_names(["a", "b"]) == "'a', 'b'"
        assert show_names(map(str, range(99))).endswith("... (99 in all)")
        assert len(show_names([LONG] * 99)) < 2 * WIDTH

    def test_counts_are_exact_while_they_are_small(self):
        assert (show_count(12), show_count(2**30), show_count(2**9000)) == ("12", "2^30", "2^9000")

    def test_one_is_not_plural(self):
        assert "1 variable, 2 states, 1 action, 0 reward terms" in repr(model())
        assert "1 variable, 1 action, 2 basis functions" in repr(structure())
        assert repr(Basis()) == "Basis(1 function, scopes of up to 0 variables)"
        assert "infinite horizon, discount 0.5" in repr(model(horizon=None, discount=0.5))
        assert repr(model().marginals(Basis.singles(model()))) == (
            "Marginals(2 functions, tables of up to 2 entries)"
        )
        assert repr(solve_exactly(model()).flat).startswith("FlatMDP(2 states, FactoredMDP(")
