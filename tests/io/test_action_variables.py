"""Concurrent actions as variables: the same model as with a list, without the list."""

import numpy as np
import pytest
from tests.io.rddl_texts import KEEP, load_problem

import fsmdp

DRAWN = """
    luck = Bernoulli(0.3);
    on'(?t) = if (press(?t)) then Bernoulli(0.9)
              else Bernoulli(0.2 + 0.5 * on(?t) + 0.1 * (luck & (exists_{?o : thing} press(?o))));
"""
LUCK = "luck : { interm-fluent, bool };"
REWARD = "(sum_{?t : thing} (2 * on(?t) - 0.5 * press(?t)))"


@pytest.mark.parametrize("limit", ["max-nondef-actions = 2;", ""])
@pytest.mark.parametrize(
    "sections",
    ["", "action-preconditions { ~(press(t1) & press(t3)); (press(t1) => press(t2)); };"],
)
def test_action_variables_and_the_list_are_the_same_problem(tmp_path, limit, sections):
    parts = {"cpfs": DRAWN, "pvariables": LUCK, "reward": REWARD, "limit": limit}
    found = load_problem(tmp_path, "factored", sections=sections, **parts)
    listed = load_problem(tmp_path, "listed", sections=sections, **parts)
    assert sorted(found.actions) == sorted(listed.actions)
    basis = fsmdp.Basis.blocks(listed, [[v.name for v in listed.variables]])
    ours, theirs = found.marginals(basis), listed.marginals(basis)
    for state in np.ndindex(*listed.sizes):
        for name in listed.actions:
            values = (*state, *found.action_values(name))
            assert found.mean_reward(state, name) == pytest.approx(listed.mean_reward(state, name))
            for one, other in zip(ours.backprojections(), theirs.backprojections(), strict=True):
                expected = other.at(listed.action_index(name)).value(state)
                assert one.groups[0].value(values) == pytest.approx(expected)


def test_two_hundred_actions_at_once_need_no_list(tmp_path):
    things = ", ".join(f"t{i}" for i in range(200))
    model = load_problem(
        tmp_path, cpfs=KEEP, pvariables="", objects=f"thing : {{{things}}};", limit=""
    )
    assert model.n_actions == 2**200
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="stagewise")
    assert plan.certificate.violation < 1e-6


def test_few_joint_actions_are_listed_unless_asked_for(tmp_path):
    parts = {"cpfs": KEEP, "pvariables": "", "limit": ""}
    assert isinstance(load_problem(tmp_path, **parts).actions, tuple)
    assert isinstance(load_problem(tmp_path, "factored", **parts).actions, fsmdp.Actions)


def test_a_default_of_true_is_the_idle_value(tmp_path):
    pvariables = "hold(thing) : { action-fluent, bool, default = true };"
    cpfs = "on'(?t) = KronDelta(hold(?t) & (on(?t) | press(?t)));"
    parts = {"cpfs": cpfs, "pvariables": pvariables, "limit": "max-nondef-actions = 2;"}
    model = load_problem(tmp_path, "factored", **parts)
    listed = load_problem(tmp_path, "listed", **parts)
    assert {"noop", "~hold(t1)", "press(t1)+~hold(t2)"} <= set(model.actions)
    starts = [fsmdp.rollout(one, "~hold(t1)", 3, steps=2).returns for one in (model, listed)]
    assert np.array_equal(*starts)


def test_wrong_forms_are_refused(tmp_path):
    with pytest.raises(fsmdp.ModelError, match="expected one of listed, factored, auto"):
        load_problem(tmp_path, "joint", cpfs=KEEP, pvariables="")
    with pytest.raises(fsmdp.ModelError, match="leave out join"):
        fsmdp.rddl.load("SysAdmin_MDP_ippc2011", 1, join=True, actions="factored")


def test_the_cache_gives_the_same_action_variables_back(tmp_path, monkeypatch):
    from tests.io.rddl_texts import write_problem

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = write_problem(
        tmp_path,
        cpfs=KEEP,
        pvariables="",
        limit="",
        sections="action-preconditions { ~(press(t1) & press(t3)); };",
    )
    first, again = (fsmdp.rddl.load(*files, actions="factored") for _ in range(2))
    assert first.actions == again.actions
    assert len(again.actions) == 6
