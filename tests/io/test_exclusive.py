"""Joining exclusive fluents leaves the same problem, without states that cannot be reached."""

import pytest
from tests.io.rddl_texts import load_problem, next_distribution, write_problem

import fsmdp

WALK = (
    "on'(?t) = if (exists_{?o : thing} [press(?t) ^ on(?o)]) then true "
    "else if (exists_{?o : thing} press(?o)) then false else on(?t);"
)
LOSSY = WALK.replace("then true", "then Bernoulli(0.75)")


def test_fluents_of_which_one_is_true_become_one_variable(tmp_path):
    model = fsmdp.rddl.load(*_files(tmp_path, WALK), join=True, cache=False)
    assert [(one.name, one.size) for one in model.variables] == [("on", 3)]
    assert model.initial == (0,)
    assert next_distribution(model, "on", (0,), "press(t3)") == pytest.approx([0, 0, 1])
    assert next_distribution(model, "on", (2,), "noop") == pytest.approx([0, 0, 1])


def test_none_is_a_value_where_none_may_be_true(tmp_path):
    model = fsmdp.rddl.load(*_files(tmp_path, LOSSY), join=True, cache=False)
    assert model.sizes == (4,)
    assert model.initial == (1,)
    assert next_distribution(model, "on", (1,), "press(t3)") == pytest.approx([0.25, 0, 0, 0.75])
    assert next_distribution(model, "on", (0,), "press(t3)") == pytest.approx([1, 0, 0, 0])


def test_fluents_that_may_be_true_together_stay_apart(tmp_path):
    for cpfs in (
        "on'(?t) = on(?t) | press(?t);",
        "on'(?t) = exists_{?o : thing} on(?o);",
        "on'(?t) = if (on(?t)) then true else Bernoulli(0.001);",
    ):
        model = fsmdp.rddl.load(*_files(tmp_path, cpfs), join=True, cache=False)
        assert len(model.variables) == 3


def test_fluents_that_start_true_together_stay_apart(tmp_path):
    load_problem(tmp_path, cpfs=WALK, pvariables="", start="on(t1); on(t2);")
    files = tmp_path / "domain.rddl", tmp_path / "instance.rddl"
    model = fsmdp.rddl.load(*files, join=True, cache=False)
    # The third is true only when something was pressed, and then alone.
    assert [(one.name, one.size) for one in model.variables] == [
        ("on(t1) | on(t3)", 3),
        ("on(t2)", 2),
    ]


def test_next_values_that_others_look_at_are_joined_too(tmp_path):
    files = _files(
        tmp_path,
        LOSSY + "lamp' = exists_{?t : thing} on'(?t);",
        "lamp : { state-fluent, bool, default = false };",
    )
    apart = fsmdp.rddl.load(*files, cache=False)
    joined = fsmdp.rddl.load(*files, join=True, cache=False)
    assert {(one.name, one.size) for one in joined.variables} == {("on", 4), ("lamp", 2)}
    assert len(apart.variables) == 4
    at = [one.name for one in joined.variables].index("lamp")
    start = tuple(value if value else 0 for value in joined.initial)
    law = next_distribution(joined, "lamp", start, "press(t3)")
    assert law == pytest.approx([0.25, 0.75])
    assert joined.initial[at] == 0


def test_an_argument_that_stays_fixed_names_the_variable():
    with pytest.warns(fsmdp.rddl.RDDLWarning, match="forbid some joint actions"):
        model = fsmdp.rddl.load("Elevators_MDP_ippc2011", 2, join=True)
    names = {variable.name: variable.size for variable in model.variables}
    assert names["elevator-at-floor(e0)"] == names["elevator-at-floor(e1)"] == 3


def test_places_that_are_never_taken_do_not_keep_others_from_being_joined():
    model = fsmdp.rddl.load("CrossingTraffic_MDP_ippc2011", 3, join=True)
    # Of 16 obstacles 8 stand in rows where none ever comes; with all 16 the table would not fit.
    assert model.n_states == 17 * 2**8
    assert {variable.name: variable.size for variable in model.variables}["robot-at"] == 17


REWARD = "[sum_{?t : thing} (VALUE(?t) * on(?t))] - 0.25 * [sum_{?t : thing} press(?t)]"


def test_a_problem_is_worth_the_same_joined(tmp_path):
    files = write_problem(
        tmp_path,
        cpfs=LOSSY,
        pvariables="VALUE(thing) : { non-fluent, real, default = 1.0 };",
        constants="VALUE(t2) = 3.0; VALUE(t3) = 2.5;",
        reward=REWARD,
    )
    apart = fsmdp.rddl.load(*files, cache=False)
    joined = fsmdp.rddl.load(*files, join=True, cache=False)
    assert (apart.n_states, joined.n_states) == (8, 4)
    values = [fsmdp.solve_exactly(model).start_value for model in (apart, joined)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    in_apart = fsmdp.evaluate_exactly(apart, "random")[0b100]  # on(t1) alone
    assert in_apart == pytest.approx(fsmdp.evaluate_exactly(joined, "random")[1], rel=1e-12)


@pytest.mark.slow
def test_navigation_is_worth_the_same_joined():
    values = [
        fsmdp.solve_exactly(fsmdp.rddl.load("Navigation_MDP_ippc2011", 1, join=join)).start_value
        for join in (False, True)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_singles_solve_joined_navigation_exactly():
    model = fsmdp.rddl.load("Navigation_MDP_ippc2011", 1, join=True)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="programs")
    assert plan.upper_bound == pytest.approx(fsmdp.solve_exactly(model).start_value, abs=1e-4)


def _files(folder, cpfs, pvariables=""):
    return write_problem(folder, cpfs=cpfs, pvariables=pvariables)
