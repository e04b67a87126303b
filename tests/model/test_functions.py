"""Tables filled by functions, and labels of values, against tables written by hand."""

import pickle

import numpy as np
import pytest

import fsmdp
from fsmdp import ANY, Actions, Case, Conditional, FactoredMDP, ModelError, Reward, Table, Variable
from fsmdp.simulation.environment import FactoredEnv

LEVELS = ["empty", "half", "full"]
UP = {"empty": "half", "half": "full", "full": "full"}
PARTS = {
    "variables": [Variable("pump", 2), Variable("tank", LEVELS)],
    "actions": ["wait", "drain"],
    "conditionals": [
        Conditional.from_function("pump", parents=["pump"], law=lambda pump: 0.9 if pump else 0.2),
        Conditional(
            "tank",
            [
                Case("drain", [], [1, 0, 0]),
                Case.from_function(
                    ANY,
                    ["tank"],
                    lambda tank, pump: {UP[tank]: 0.75, "empty": 0.25} if pump else tank,
                    drawn=["pump"],
                ),
            ],
        ),
    ],
    "rewards": [
        Reward.from_function(
            "level", ["tank", "pump"], lambda tank, pump: LEVELS.index(tank) - pump
        )
    ],
    "horizon": 6,
    "initial": {"pump": 1, "tank": "half"},
    "allowed": [Case.from_function("drain", ["tank"], lambda tank: tank != "empty")],
    "terminal": [
        Table.from_function(["tank", "pump"], lambda tank, pump: tank == "full" and not pump)
    ],
}


def station(**changes):
    return FactoredMDP(**PARTS | changes)


def by_hand():
    """The same model, each number written."""
    still = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    moves = [[0.25, 0.75, 0], [0.25, 0, 0.75], [0.25, 0, 0.75]]
    tank = np.stack([still, moves], axis=1)  # (tank, pump, next)
    return FactoredMDP(
        [Variable("pump", 2), Variable("tank", 3)],
        ["wait", "drain"],
        [
            Conditional("pump", Case(ANY, ["pump"], [[0.8, 0.2], [0.1, 0.9]])),
            Conditional(
                "tank", [Case("drain", [], [1, 0, 0]), Case(ANY, ["tank"], tank, ["pump"])]
            ),
        ],
        [Reward("level", Case(ANY, ["tank", "pump"], [[0, -1], [1, 0], [2, 1]]), -1, 2)],
        6,
        [1, 1],
        allowed=[Case("drain", ["tank"], [0, 1, 1])],
        terminal=[Table(["pump", "tank"], [[0, 0, 1], [0, 0, 0]])],
    )


def test_a_model_of_functions_is_the_model_of_their_tables():
    found, written = station(), by_hand()
    # A probability p of 1 is 1 - p of 0, a rounding beside what is written.
    (law,) = found.conditionals[0].cases
    np.testing.assert_allclose(law.table, [[0.8, 0.2], [0.1, 0.9]], rtol=1e-15)
    assert found.replace(conditionals=[written.conditionals[0], found.conditionals[1]]) == written
    assert fsmdp.solve_exactly(found).start_value == pytest.approx(
        fsmdp.solve_exactly(written).start_value, abs=1e-12
    )


def test_functions_are_called_once_for_each_assignment():
    calls = []

    def mean(tank, pump):
        calls.append((tank, pump))
        return 0.5

    model = station(rewards=[Reward.from_function("r", ["tank", "pump"], mean)])
    fsmdp.solve_exactly(model)
    pickle.loads(pickle.dumps(model)).replace(horizon=3)
    assert calls == [(tank, pump) for tank in LEVELS for pump in (0, 1)]


def test_several_children_are_drawn_as_tuples():
    block = Conditional.from_function(
        ["pump", "tank"],
        ["pump"],
        lambda pump: {(1, "full"): 0.5, (0, 0): 0.5} if pump else (0, "half"),
    )
    ((case,),) = [one.cases for one in station(conditionals=[block]).conditionals]
    expected = np.zeros((2, 2, 3))
    expected[0, 0, 1] = 1
    expected[1, 1, 2] = expected[1, 0, 0] = 0.5
    np.testing.assert_array_equal(case.table, expected)


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (lambda _: 1, [0, 1]),
        (lambda _: True, [0, 1]),
        (lambda _: np.bool_(0), [1, 0]),
        (lambda _: 0.25, [0.75, 0.25]),
        (lambda _: np.float32(0.5), [0.5, 0.5]),
        (lambda _: np.int64(0), [1, 0]),
        (lambda _: {0: 0.25, 1: 0.75}, [0.25, 0.75]),
    ],
)
def test_what_a_law_of_a_binary_variable_may_return(law, expected):
    pump = Conditional.from_function("pump", ["pump"], law)
    model = station(conditionals=[pump, PARTS["conditionals"][1]])
    np.testing.assert_array_equal(model.conditionals[0].cases[0].table, [expected, expected])


@pytest.mark.parametrize(
    ("law", "said"),
    [
        (
            lambda pump, tank: 1 / pump,
            r"at \(pump=0, tank=empty\): the function raised ZeroDivision",
        ),
        (lambda pump, tank: 0 if tank != "full" else 3, r"at \(pump=0, tank=full\): .*returned 3"),
        (lambda pump, tank: {0: 0.5} if pump else 1, r"at \(pump=1, tank=empty\): .*sum to 0.5"),
        (lambda pump, tank: {0: 1.5, 1: -0.5}, "returned a probability 1.5, expected 0 to 1"),
        (lambda pump, tank: 1.5, "returned a probability 1.5"),
        (lambda pump, tank: None, "returned None for 'pump', expected a whole number from 0 to 1"),
        (lambda pump, tank: {"up": 1}, "returned 'up' for 'pump'"),
        (lambda pump: pump, "raised TypeError: .*with a value for each of 'pump', 'tank'"),
    ],
)
def test_a_law_that_fails_is_refused_with_its_assignment(law, said):
    pump = Conditional.from_function("pump", ["pump", "tank"], law)
    with pytest.raises(ModelError, match=said):
        station(conditionals=[pump, PARTS["conditionals"][1]])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"rewards": [Reward.from_function("r", ["tank"], lambda t: t)]},
            "tank=empty.*returned 'empty'",
        ),
        ({"rewards": [Reward.from_function("r", ["tank"], lambda t: 1e400)]}, "returned inf"),
        (
            {"allowed": [Case.from_function("drain", ["tank"], lambda t: None)]},
            "allowed.*returned None",
        ),
        (
            {"terminal": [Table.from_function(["tank"], lambda t: t)]},
            "table over.*returned 'empty'",
        ),
        ({"rewards": [Reward.from_function("r", ["tonk"], len)]}, "unknown variable 'tonk'"),
        ({"terminal": [Table.from_function(["tonk"], len)]}, "unknown variable 'tonk'"),
        (
            {"conditionals": [Conditional.from_function("pump", ["tonk"], len)]},
            "unknown variable 'tonk'",
        ),
        ({"allowed": [Case([], ["tank"], [0, 1, 1])]}, "a case names no action"),
        ({"allowed": [Case(["drain"] * 2, ["tank"], [0, 1, 1])]}, "an action is named twice"),
        ({"initial": {"tank": "fall"}}, "'fall' is out of range.*one of 'empty', 'half', 'full'"),
    ],
)
def test_other_parts_that_fail_are_refused_with_their_place(changes, said):
    with pytest.raises(ModelError, match=said):
        station(**changes)


@pytest.mark.parametrize("wrong", [None, 3, [0, 1], "law"])
def test_what_is_no_function_is_refused(wrong):
    makers = [
        lambda: Conditional.from_function("pump", ["pump"], wrong),
        lambda: Reward.from_function("r", ["pump"], wrong),
        lambda: Case.from_function(ANY, ["pump"], wrong),
        lambda: Table.from_function(["pump"], wrong),
    ]
    for make in makers:
        with pytest.raises(ModelError, match="expected a function of values"):
            make()


def test_a_table_that_would_be_too_large_is_refused_before_a_call():
    many = [Variable(f"x{i}", 10) for i in range(8)]

    def never(*_):
        raise AssertionError("called")

    with pytest.raises(fsmdp.SizeError, match=r"reward .r., .*its table .*fewer parents"):
        FactoredMDP(
            many,
            ["a"],
            [Conditional(one.name, Case(ANY, [], [0.1] * 10)) for one in many],
            [Reward.from_function("r", [one.name for one in many], never)],
            3,
        )


def test_bounds_of_a_reward_follow_its_means_unless_given():
    (found,) = station().rewards
    assert (found.low, found.high) == (-1, 2)
    (given,) = station(
        rewards=[Reward.from_function("r", ["tank"], LEVELS.index, low=-5, sigma=0.5)]
    ).rewards
    assert (given.low, given.high, given.sigma) == (-5, 2, 0.5)
    assert Reward("r", Case(ANY, ["tank"], [3, 4, 5]), low=None, high=None).high == 5
    with pytest.raises(ModelError, match="low is None, expected a number"):
        Reward("r", Case(ANY, ["tank"]), low=None)


def test_parts_with_functions_are_compared_and_pickled():
    for part in (*PARTS["terminal"], Table.from_function(["tank"], len)):
        assert part == part.from_function(part.scope, part.function)
    one = Conditional.from_function("pump", ["pump"], abs)
    assert (
        pickle.loads(pickle.dumps(one)) == one != Conditional.from_function("pump", ["pump"], max)
    )
    table = Table.from_function("tank", len)
    assert pickle.loads(pickle.dumps(table)) == table
    with pytest.raises(ModelError, match="not filled yet"):
        table.value([0])


def test_a_structure_takes_functions_too():
    model = station()
    structure = fsmdp.Structure.from_parents(
        variables=PARTS["variables"],
        actions=PARTS["actions"],
        horizon=6,
        rewards=PARTS["rewards"],
        parents={"pump": [Case(ANY, ["pump"])], "tank": [Case(ANY, ["tank", "pump"])]},
        basis=fsmdp.Basis.singles(model),
        allowed=PARTS["allowed"],
        terminal=PARTS["terminal"],
    )
    assert structure.conditions == model.conditions
    assert (structure.rewards[0].low, structure.rewards[0].high) == (-1, 2)


def test_truth_values_are_entries_of_conditions():
    model = station(
        allowed=[Case("drain", ["tank"], [False, True, True])],
        terminal=[Table(["tank", "pump"], np.array([[0, 0], [0, 0], [1, 0]], dtype=bool))],
    )
    assert (model.allowed, model.terminal) == (station().allowed, station().terminal)


def test_labels_stand_for_values_in_states_and_actions():
    model = station()
    assert model.check_state({"pump": 1, "tank": "full"}) == (1, 2)
    assert model.check_state([0, "half"]) == (0, 1)
    assert model.allowed_actions({"pump": 1, "tank": "empty"}) == ("wait",)
    with pytest.raises(ModelError, match="one of 'empty', 'half', 'full'"):
        model.check_state([0, "fall"])
    with pytest.raises(
        fsmdp.PolicyError, match=r"\(pump=1, tank=empty\), by the condition on tank=empty"
    ):
        model.conditions.check((1, 0), 1)
    solution = fsmdp.solve_exactly(model)
    assert solution.action({"pump": 1, "tank": "half"}, 1) == solution.action((1, 1), 1)


def test_labels_name_joint_actions():
    actions = Actions(
        [Variable("valve", ["shut", "open"]), Variable("order", ["none", "tea", "open"])]
    )
    assert list(actions) == [
        "noop",
        "valve=open",
        "order=tea",
        "order=open",
        "valve=open+order=tea",
        "valve=open+order=open",
    ]
    for name in actions:
        assert actions.name(actions.read(name)) == name
    assert actions.read({"valve": "open", "order": "tea"}) == (1, 1)
    assert actions.read("valve=1+order=2") == (1, 2)
    for wrong in ("valve=shot", "open", {"order": "shut"}):
        with pytest.raises(fsmdp.PolicyError, match="unknown action"):
            actions.read(wrong)
    forbidden = Actions(actions.variables, forbidden=[{"valve": "open", "order": "tea"}])
    assert "valve=open+order=tea" not in list(forbidden)
    with pytest.raises(ModelError, match="labels without '\\+'"):
        Actions([Variable("valve", ["shut", "a+b"])])


@pytest.mark.parametrize("wrong", [["a", "a"], ["a", 1], ["a", ""], [], "ab", {"a": 1, "b": 2}])
def test_labels_that_are_none_are_refused(wrong):
    with pytest.raises(ModelError, match="variable 'tank'"):
        Variable("tank", wrong)


def test_labels_are_kept_in_files_pickles_and_plans(tmp_path):
    model = station(
        actions=Actions([Variable("drain", ["no", "yes"])]),
        conditionals=[
            PARTS["conditionals"][0],
            Conditional.from_function(
                "tank",
                ["tank", "drain"],
                lambda tank, drain: "empty" if drain == "yes" else UP[tank],
            ),
        ],
        allowed=[
            Case.from_function(ANY, ["tank", "drain"], lambda t, d: d == "no" or t != "empty")
        ],
    )
    fsmdp.save(model, tmp_path / "model.json")
    loaded = fsmdp.load(tmp_path / "model.json")
    copied = pickle.loads(pickle.dumps(model))
    for other in (loaded, copied):
        assert other == model
        assert [one.labels for one in other.inputs] == [(), tuple(LEVELS), ("no", "yes")]
    plan = fsmdp.plan(model)
    fsmdp.save_plan(plan, tmp_path / "plan.npz")
    again = fsmdp.load_plan(tmp_path / "plan.npz")
    state = {"pump": 1, "tank": "full"}
    assert again.action(state) == plan.action(state)
    assert [one.labels for one in again.variables] == [(), tuple(LEVELS)]


def test_labels_are_drawn_and_rendered():
    import matplotlib

    matplotlib.use("Agg")
    axes = fsmdp.plot.trajectories(station(), "random", steps=4)
    assert "half" in {text.get_text() for text in axes.texts}
    environment = FactoredEnv(station(), render_mode="ansi")
    environment.reset(seed=0)
    assert "tank=half" in environment.render()


def test_inspect_shows_labels():
    from fsmdp.cli.inspect import model_facts

    assert model_facts(station())["labels"] == {"tank": LEVELS}
