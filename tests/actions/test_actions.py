"""Actions that are made of variables: what they mean, and how they are written."""

import copy
import json
import pickle
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.joint_models import allowed_by_hand, joint_actions, joint_model

import fsmdp
from fsmdp.foundation.disk import seal
from fsmdp.io.models import from_bytes, to_dict
from fsmdp.model.actions import MOST_LISTED, ListedActions
from fsmdp.model.conditions import Conditions
from fsmdp.policies.joint import random_actions

BINARY = [fsmdp.Variable(f"reboot-{i}", 2) for i in range(4)]
VALVE = fsmdp.Variable("valve", 3)


@given(st.integers(0, 10**6))
@settings(max_examples=60)
def test_the_list_holds_exactly_the_allowed_joint_actions(seed):
    actions = joint_actions(np.random.default_rng(seed))
    expected = allowed_by_hand(actions)
    assert sorted(map(tuple, actions.rows().tolist())) == sorted(expected)
    assert len(actions) == actions.n_joint == len(expected)
    off = [sum(v > 0 for v in row) for row in actions.rows().tolist()]
    assert off == sorted(off)


@given(st.integers(0, 10**6))
@settings(max_examples=60)
def test_every_way_to_write_a_joint_action_is_read_back(seed):
    actions = joint_actions(np.random.default_rng(seed), most=64)
    for position, row in enumerate(actions.rows().tolist()):
        values = tuple(row)
        name = actions.name(values)
        by_name = {v.name: value for v, value in zip(actions.variables, row, strict=True) if value}
        for written in (name, values, row, np.array(row), by_name, position):
            assert actions.read(written) == values
        assert actions[position] == name
        assert name in actions
        assert actions.index(name) == position


def test_names_and_order_are_those_a_person_would_write():
    actions = fsmdp.Actions([*BINARY[:2], VALVE], at_most=2)
    assert list(actions)[:5] == ["noop", "reboot-0", "reboot-1", "valve=1", "valve=2"]
    assert actions.name((0, 1, 2)) == "reboot-1+valve=2"


def test_joint_actions_without_end_are_counted_but_not_listed():
    actions = fsmdp.Actions([fsmdp.Variable(f"a{i}", 2) for i in range(200)])
    assert actions.n_joint == 2**200
    with pytest.raises(fsmdp.SizeError, match="too many to list"):
        len(actions)
    assert actions.read("a3+a199")[199] == 1
    assert actions.log10_joint == pytest.approx(200 * np.log10(2))
    assert "10^60.2 joint actions" in repr(
        fsmdp.domains.sysadmin(200, administrators="each", horizon=2)
    )
    limited = fsmdp.Actions(actions.variables, at_most=2)
    assert limited.n_joint == 1 + 200 + comb(200, 2) == len(limited)
    assert fsmdp.Actions(actions.variables, at_most=3).n_joint > MOST_LISTED


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"variables": []}, "expected at least one"),
        ({"variables": [fsmdp.Variable("noop", 2)]}, "noop"),
        ({"variables": [fsmdp.Variable("a+b", 2)]}, "rename"),
        ({"variables": BINARY, "at_most": 0}, "at_most"),
        ({"variables": BINARY, "forbidden": ["reboot-0"]}, "forbidden"),
        ({"variables": BINARY, "forbidden": [{"reboot-0": 2}]}, "from 0 to 1"),
        ({"variables": BINARY, "forbidden": [{"other": 1}]}, "unknown variable"),
        ({"variables": BINARY, "forbidden": [fsmdp.Table(["reboot-0"], [1, 1])]}, "no joint"),
        (
            {
                "variables": BINARY,
                "at_most": 1,
                "forbidden": [fsmdp.Table([v], [1, 0]) for v in BINARY[:2]],
            },
            "no joint",
        ),
    ],
)
def test_what_no_actions_can_be_is_refused(wrong, match):
    with pytest.raises(fsmdp.ModelError, match=match):
        fsmdp.Actions(**wrong)


@pytest.mark.parametrize(
    "wrong",
    ["reboot-9", "reboot-0=2", "reboot-0=x", "reboot-0+reboot-0", "", (0, 1), {"reboot-0": 2}, 99],
)
def test_what_is_no_joint_action_is_refused(wrong):
    with pytest.raises(fsmdp.PolicyError, match="unknown action"):
        fsmdp.Actions(BINARY).read(wrong)


def test_a_joint_action_that_is_not_allowed_is_refused():
    actions = fsmdp.Actions(BINARY, at_most=2, forbidden=[{"reboot-0": 1, "reboot-1": 1}])
    assert actions.read("reboot-0+reboot-2") == (1, 0, 1, 0)
    for wrong in ("reboot-0+reboot-1", (1, 0, 1, 1)):
        with pytest.raises(fsmdp.PolicyError, match="not allowed"):
            actions.read(wrong)
        assert wrong not in actions


def test_an_action_variable_shares_no_name_with_another_variable():
    model = fsmdp.domains.sysadmin(3, administrators=1)
    with pytest.raises(fsmdp.ModelError, match="stands at positions"):
        fsmdp.FactoredMDP(
            model.variables,
            fsmdp.Actions([fsmdp.Variable("machine-0", 2)]),
            model.conditionals,
            model.rewards,
            3,
        )


def test_a_case_that_names_actions_is_told_to_use_parents():
    model = fsmdp.domains.sysadmin(3)
    with pytest.raises(fsmdp.ModelError, match="among the parents"):
        fsmdp.FactoredMDP(
            model.variables, fsmdp.Actions(BINARY), model.conditionals, model.rewards, 3
        )


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_files_and_copies_hold_the_same_model(seed):
    model = joint_model(seed)
    content = seal(to_dict(model))
    for other in (
        from_bytes(content),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ):
        assert model.actions == other.actions
        assert to_dict(other) == to_dict(model)


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_a_listed_model_has_the_laws_and_rewards_of_its_joint_actions(seed):
    model = joint_model(seed, most=64)
    listed = model.listed()
    assert listed.actions == tuple(model.actions)
    for state in np.ndindex(*model.sizes):
        for name in listed.actions:
            expected = model.mean_reward(state, name)
            assert listed.mean_reward(state, name) == pytest.approx(expected, abs=1e-12)
    basis = fsmdp.Basis.blocks(model, [[v.name for v in model.variables]])
    together, apart = model.marginals(basis), listed.marginals(basis)
    n = len(model.variables)
    for ours, theirs in zip(together.backprojections(), apart.backprojections(), strict=True):
        for action, row in enumerate(model.actions.rows().tolist()):
            for state in np.ndindex(*model.sizes):
                found = ours.groups[0].value((*state, *row))
                assert theirs.at(action).value(state) == pytest.approx(found, abs=1e-12)
    assert all(scope < n for scope in model.parents(0))


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_factored_is_the_inverse_of_listed_where_names_allow_it(seed):
    rng = np.random.default_rng(seed)
    model = joint_model(seed, most=64)
    plain = fsmdp.Actions(
        [v for v in model.actions.variables if v.size > 1] or [fsmdp.Variable("a", 2)],
        at_most=int(rng.integers(1, 3)),
    )
    names = {v.name for v in plain.variables}
    if not all(
        set(case.parents) <= names | {v.name for v in model.variables}
        for part in (*model.conditionals, *model.rewards)
        for case in part.cases
    ):
        return
    initial = dict(zip((v.name for v in model.variables), model.initial, strict=True))
    again = fsmdp.FactoredMDP(
        model.variables, plain, model.conditionals, model.rewards, 3, initial, 1.0, model.latents
    )
    listed = again.listed()
    back = fsmdp.factored(listed)
    assert back.listed().actions == listed.actions
    for state in np.ndindex(*model.sizes):
        for name in listed.actions:
            assert back.mean_reward(state, name) == pytest.approx(listed.mean_reward(state, name))
    values = [fsmdp.solve_exactly(one).start_value for one in (listed, back.listed())]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


@pytest.mark.parametrize("topology", ["ring", "star"])
def test_the_listed_domain_reads_as_one_administrator(topology):
    listed = fsmdp.domains.sysadmin(5, topology)
    found = fsmdp.factored(listed)
    expected = fsmdp.domains.sysadmin(5, topology, administrators=1)
    assert found.actions == expected.actions
    basis = fsmdp.Basis.singles(listed)
    assert found.listed().structure(basis).cells == listed.structure(basis).cells


@pytest.mark.parametrize(
    ("names", "match"),
    [(["a+a", "b"], "does not say"), (["wait"], "no action sets"), (["a=0", "b"], "does not say")],
)
def test_names_that_cannot_be_read_are_refused(names, match):
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("x", 2)],
        names,
        [fsmdp.Conditional("x", fsmdp.Case(fsmdp.ANY, [], [0.5, 0.5]))],
        [],
        2,
    )
    with pytest.raises(fsmdp.ModelError, match=match):
        fsmdp.factored(model)


def test_pairs_that_a_list_leaves_out_become_forbidden():
    names = ["noop", "a", "b", "c", "a+b", "b+c"]
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("x", 2)],
        names,
        [fsmdp.Conditional("x", fsmdp.Case(fsmdp.ANY, [], [0.5, 0.5]))],
        [],
        2,
    )
    assert list(fsmdp.factored(model).actions) == names


def test_a_list_of_actions_is_the_tuple_of_its_names():
    names = ("wait", "go", "stop")
    listed = ListedActions(list(names))
    assert listed == names
    assert names == listed
    assert hash(listed) == hash(names)
    assert isinstance(listed, tuple)
    assert listed[1:] == names[1:]
    assert repr(listed) == repr(names)
    assert json.loads(json.dumps(listed)) == listed.as_json() == list(names)
    for copied in (pickle.loads(pickle.dumps(listed)), copy.deepcopy(listed)):
        assert type(copied) is ListedActions
        assert copied == names
        assert copied.read("go") == 1
    assert fsmdp.domains.sysadmin(2).actions == ("wait", "reboot-0", "reboot-1")
    with pytest.raises(fsmdp.ModelError, match="'go' appears twice"):
        ListedActions(["go", "go"])
    with pytest.raises(fsmdp.ModelError, match="at least one"):
        ListedActions([])


@pytest.mark.parametrize("at_most", [None, 1, 2])
def test_joint_actions_and_their_list_answer_alike(at_most):
    variables = [fsmdp.Variable("valve", 3), fsmdp.Variable("lamp", 2), fsmdp.Variable("fan", 2)]
    joint = fsmdp.Actions(variables, at_most, [{"valve": 2, "fan": 1}])
    listed = ListedActions(tuple(joint))
    assert joint.n_joint == joint.n_actions == listed.n_joint == listed.n_actions == len(listed)
    assert (joint.n_cases, listed.n_cases) == (1, len(listed))
    assert listed.variables == ()
    assert listed.rows().shape == (len(listed), 0)
    for position, name in enumerate(listed):
        assert listed.read(name) == listed.position(name) == joint.position(name) == position
        values = joint.values(name)
        assert values == joint.choice(0, joint.rows()[position]) == joint.read(position)
        assert joint.name(values) == listed.name(position) == name
        assert joint.allows(values)
        assert listed.allows(position)
        assert listed.values(name) == ()
    assert listed.names(np.arange(len(listed))).tolist() == joint.names(joint.rows()).tolist()
    assert joint.idle() == listed.idle() == "noop"
    nowhere = np.zeros((200, 0), dtype=np.int64)
    anything = Conditions(joint, joint.variables)
    drawn = random_actions(anything).draw(nowhere, np.random.default_rng(0))
    assert not drawn[0].any()
    assert {joint.name(row) for row in drawn[1]} == set(listed)
    anything = Conditions(listed, ())
    cases, values = random_actions(anything).draw(nowhere, np.random.default_rng(0))
    assert set(cases.tolist()) == set(range(len(listed)))
    assert values.shape == (200, 0)
    assert joint.gymnasium_space().nvec.tolist() == [3, 2, 2]
    assert listed.gymnasium_space().n == len(listed)


def test_the_idle_action_is_one_notion():
    assert ListedActions(["go", "idle"]).idle() == "idle"
    assert ListedActions(["go", "do-nothing"]).idle() == "do-nothing"
    assert ListedActions(["noop", "~noop"]).idle() == "~noop"
    assert ListedActions(["go", "stop"]).idle() is None
    variables = [fsmdp.Variable("left", 2), fsmdp.Variable("right", 2)]
    assert fsmdp.Actions(variables, forbidden=[{"left": 0, "right": 0}]).idle() == "right"
