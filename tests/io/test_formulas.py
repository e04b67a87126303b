"""What formulas mean: each language feature against probabilities worked out by hand."""

import numpy as np
import pytest
from tests.io.rddl_texts import KEEP, load_problem, next_distribution

import fsmdp


def test_names_of_variables_and_actions_are_readable(tmp_path):
    model = load_problem(tmp_path, cpfs=KEEP, pvariables="", limit="max-nondef-actions = 2;")
    assert [variable.name for variable in model.variables] == ["on(t1)", "on(t2)", "on(t3)"]
    assert model.actions[:2] == ("noop", "press(t1)")
    assert "press(t1)+press(t2)" in model.actions
    assert model.initial == (1, 0, 0)
    assert (model.horizon, model.discount) == (5, 1.0)


def test_objects_can_be_compared(tmp_path):
    cpfs = "on'(?t) = exists_{?o : thing} [(?o ~= ?t) ^ on(?o)];"
    model = load_problem(tmp_path, cpfs=cpfs, pvariables="")
    assert next_distribution(model, "on(t1)", (1, 0, 0), "noop") == pytest.approx([1, 0])
    assert next_distribution(model, "on(t2)", (1, 0, 0), "noop") == pytest.approx([0, 1])
    assert [len(model.parents(p)) for p in range(3)] == [2, 2, 2]


def test_parents_are_those_that_matter_under_each_action(tmp_path):
    cpfs = (
        "on'(?t) = if (press(?t)) then KronDelta(true) else if (exists_{?o : thing} "
        "[NEXT(?o, ?t) ^ on(?o)]) then Bernoulli(0.25) else KronDelta(on(?t) ^ UNUSED > 2);"
    )
    model = load_problem(
        tmp_path,
        cpfs=cpfs,
        pvariables="NEXT(thing, thing) : { non-fluent, bool, default = false };",
        constants="NEXT(t1, t2); NEXT(t2, t3);",
    )
    assert [model.parents(p) for p in range(3)] == [(), (0,), (1,)]
    pressed = model.dynamics.mechanisms[1].cases.at(model.action_index("press(t2)"))
    assert pressed.parents == ()
    assert next_distribution(model, "on(t2)", (1, 0, 0), "noop") == pytest.approx([0.75, 0.25])


def test_each_occurrence_of_a_distribution_is_its_own_draw(tmp_path):
    cpfs = "on'(?t) = Bernoulli(0.5) ^ Bernoulli(0.5);"
    model = load_problem(tmp_path, cpfs=cpfs, pvariables="")
    assert next_distribution(model, "on(t1)", (0, 0, 0), "noop") == pytest.approx([0.75, 0.25])
    cpfs = "on'(?t) = exists_{?o : thing} Bernoulli(0.5);"
    model = load_problem(tmp_path, cpfs=cpfs, pvariables="")
    assert next_distribution(model, "on(t1)", (0, 0, 0), "noop") == pytest.approx([0.125, 0.875])


def test_an_intermediate_fluent_is_one_draw_for_all_who_look_at_it(tmp_path):
    model = load_problem(
        tmp_path,
        pvariables="coin : { interm-fluent, bool };",
        cpfs="coin = Bernoulli(0.5); on'(?t) = KronDelta(coin ^ ~press(?t));",
    )
    assert [latent.name for latent in model.latents] == ["coin"]
    both = model.marginals(fsmdp.Basis.blocks(model, [("on(t1)", "on(t2)")])).cases[1]
    assert both.at(0).probabilities == pytest.approx(np.diag([0.5, 0.5]))


def test_an_intermediate_fluent_without_draws_is_no_latent(tmp_path):
    model = load_problem(
        tmp_path,
        pvariables="any-on : { interm-fluent, bool };",
        cpfs="any-on = exists_{?t : thing} on(?t); on'(?t) = KronDelta(any-on);",
    )
    assert not model.latents
    assert next_distribution(model, "on(t3)", (0, 1, 0), "noop") == pytest.approx([0, 1])


def test_next_values_may_look_at_next_values(tmp_path):
    model = load_problem(
        tmp_path,
        pvariables="lamp : { state-fluent, bool, default = false };",
        cpfs="on'(?t) = Bernoulli(0.5); lamp' = forall_{?t : thing} on'(?t);",
    )
    assert next_distribution(model, "lamp", (0, 0, 0, 0), "noop") == pytest.approx([0.875, 0.125])


ENUM = "thing : object; height : {@low, @middle, @high};"
LEVELS = (
    "gauge : { state-fluent, height, default = @middle };"
    "WEIGHT(height) : { non-fluent, real, default = 0.0 };"
)
WEIGHTS = "WEIGHT(@low) = 0.2; WEIGHT(@middle) = 0.3; WEIGHT(@high) = 0.5;"


def test_values_keyed_by_literals_reach_a_discrete_distribution(tmp_path):
    cpfs = (
        KEEP + "gauge' = Discrete(height, @high : WEIGHT(@high), @low : WEIGHT(@low), "
        "@middle : WEIGHT(@middle));"
    )
    model = load_problem(tmp_path, types=ENUM, pvariables=LEVELS, cpfs=cpfs, constants=WEIGHTS)
    assert model.sizes == (3, 2, 2, 2) or model.sizes == (2, 2, 2, 3)
    at = [variable.name for variable in model.variables].index("gauge")
    assert model.initial[at] == 1
    assert next_distribution(model, "gauge", (0, 0, 0, 0), "noop") == pytest.approx([0.2, 0.3, 0.5])


def test_a_switch_chooses_by_value(tmp_path):
    cpfs = (
        KEEP + "gauge' = switch (gauge) { case @low : @middle, case @middle : @high, "
        "default : @low };"
    )
    model = load_problem(tmp_path, types=ENUM, pvariables=LEVELS, cpfs=cpfs)
    at = [variable.name for variable in model.variables].index("gauge")
    for value, expected in ((0, 1), (1, 2), (2, 0)):
        state = [0, 0, 0, 0]
        state[at] = value
        assert np.argmax(next_distribution(model, "gauge", state, "noop")) == expected


def test_a_fluent_may_stand_in_the_argument_of_another(tmp_path):
    cpfs = KEEP + "gauge' = @low;"
    model = load_problem(
        tmp_path,
        types=ENUM,
        pvariables=LEVELS,
        cpfs=cpfs,
        constants=WEIGHTS,
        reward="WEIGHT(gauge)",
    )
    at = [variable.name for variable in model.variables].index("gauge")
    for value, expected in ((0, 0.2), (1, 0.3), (2, 0.5)):
        state = [0, 0, 0, 0]
        state[at] = value
        assert model.mean_reward(state, "noop") == pytest.approx(expected)


def test_an_action_may_take_values_of_a_type(tmp_path):
    pvariables = LEVELS + "turn : { action-fluent, height, default = @low };"
    cpfs = KEEP + "gauge' = turn;"
    model = load_problem(tmp_path, types=ENUM, pvariables=pvariables, cpfs=cpfs)
    assert {"turn=middle", "turn=high", "noop"} <= set(model.actions)
    assert next_distribution(model, "gauge", (0, 0, 0, 0), "turn=high") == pytest.approx([0, 0, 1])


def test_integers_take_the_values_they_can_reach(tmp_path):
    pvariables = "stock : { state-fluent, int, default = 2 };"
    cpfs = KEEP + (
        "stock' = if (exists_{?t : thing} press(?t)) then max[0, stock - 1] "
        "else min[4, stock + Bernoulli(0.5)];"
    )
    model = load_problem(tmp_path, pvariables=pvariables, cpfs=cpfs, reward="stock")
    at = [variable.name for variable in model.variables].index("stock")
    assert model.sizes[at] == 5
    state = [0, 0, 0, 0]
    state[at] = 3
    assert model.mean_reward(state, "noop") == 3
    assert next_distribution(model, "stock", state, "noop") == pytest.approx([0, 0, 0, 0.5, 0.5])
    assert next_distribution(model, "stock", state, "press(t1)") == pytest.approx([0, 0, 1, 0, 0])


def test_rewards_split_into_local_terms_that_sum_to_the_whole(tmp_path):
    reward = (
        "[sum_{?t : thing} -(2 * on(?t))] - 3 * (on(t1) ^ on(t2)) + 0.5 - "
        "[sum_{?t : thing} (press(?t) * 0.25)]"
    ).replace("on(t1) ^ on(t2)", "forall_{?t : thing} on(?t)")
    model = load_problem(tmp_path, cpfs=KEEP, pvariables="", reward=reward)
    assert sorted(len(means.groups[0].scope) for means in model.reward_means) == [0] * 4 + [
        1
    ] * 3 + [3]
    for state in np.ndindex(2, 2, 2):
        whole = -2 * sum(state) - 3 * all(state) + 0.5
        assert model.mean_reward(state, "noop") == pytest.approx(whole)
        assert model.mean_reward(state, "press(t2)") == pytest.approx(whole - 0.25)


def test_joint_actions_that_do_the_same_are_one_with_aliases(tmp_path):
    files = {
        "cpfs": "on'(?t) = on(?t) | (press(?t) ^ WORKS(?t));",
        "pvariables": "WORKS(thing) : { non-fluent, bool, default = false };",
        "constants": "WORKS(t2);",
    }
    model = load_problem(tmp_path, **files)
    assert model.actions == ("noop", "press(t2)")
    found = fsmdp.rddl.report(tmp_path / "domain.rddl", tmp_path / "instance.rddl", cache=False)
    assert (found.joint_actions, found.actions) == (4, 2)
    assert dict(found.aliases) == {"noop": ("press(t1)", "press(t3)")}


def test_preconditions_on_actions_alone_forbid_actions(tmp_path):
    model = load_problem(
        tmp_path,
        cpfs=KEEP,
        pvariables="",
        limit="",
        sections="action-preconditions { (sum_{?t : thing} press(?t)) == 1; };",
    )
    assert model.actions == ("press(t1)", "press(t2)", "press(t3)")


def test_missing_limit_on_actions_allows_all_at_once(tmp_path):
    model = load_problem(tmp_path, cpfs=KEEP, pvariables="", limit="")
    assert len(model.actions) == 8


def test_constraints_on_actions_alone_forbid_actions_and_say_so(tmp_path):
    sections = "state-action-constraints { forall_{?t : thing} [(?t == t1) => ~press(?t)]; };"
    with pytest.warns(fsmdp.rddl.RDDLWarning, match="forbid some joint actions"):
        model = load_problem(tmp_path, cpfs=KEEP, pvariables="", sections=sections)
    assert "press(t1)" not in model.actions


def test_constraints_on_states_are_ignored_and_said_so(tmp_path):
    sections = "state-action-constraints { exists_{?t : thing} on(?t); };"
    with pytest.warns(fsmdp.rddl.RDDLWarning, match="are ignored"):
        load_problem(tmp_path, cpfs=KEEP, pvariables="", sections=sections)


def test_invariants_are_not_enforced_and_said_so(tmp_path):
    sections = "state-invariants { exists_{?t : thing} on(?t); };"
    with pytest.warns(fsmdp.rddl.RDDLWarning, match="not enforced"):
        load_problem(tmp_path, cpfs=KEEP, pvariables="", sections=sections)


def test_probabilities_outside_their_range_are_mended_and_said_so(tmp_path):
    cpfs = "on'(?t) = Bernoulli(sum_{?o : thing} (0.4 * on(?o)));"
    with pytest.warns(fsmdp.rddl.RDDLWarning, match="put back"):
        model = load_problem(tmp_path, cpfs=cpfs, pvariables="")
    assert next_distribution(model, "on(t1)", (1, 1, 1), "noop") == pytest.approx([0, 1])
    assert next_distribution(model, "on(t1)", (1, 1, 0), "noop") == pytest.approx([0.2, 0.8])


REWARDS = {
    "(forall_{?t : thing} on(?t)) <=> (exists_{?t : thing} on(?t))": lambda s: all(s) == any(s),
    "avg_{?t : thing} on(?t)": lambda s: sum(s) / 3,
    "argmax_{?t : thing} on(?t)": lambda s: s.index(max(s)),
    "argmin_{?t : thing} on(?t)": lambda s: s.index(min(s)),
    "max_{?t : thing} [on(?t) * 2]": lambda s: 2 * max(s),
    "min_{?t : thing} [on(?t) + 1]": lambda s: 1 + min(s),
    "prod_{?t : thing} [1 + on(?t)]": lambda s: 2 ** sum(s),
    "6 / (1 + sum_{?t : thing} on(?t))": lambda s: 6 / (1 + sum(s)),
    "pow[2, sum_{?t : thing} on(?t)] - 7 / 2": lambda s: 2 ** sum(s) - 3.5,
    "mod[sum_{?t : thing} on(?t), 2]": lambda s: sum(s) % 2,
    "div[sum_{?t : thing} on(?t), 2]": lambda s: sum(s) // 2,
    "abs[-(sum_{?t : thing} on(?t))]": lambda s: sum(s),
    "sqrt[sum_{?t : thing} on(?t)]": lambda s: sum(s) ** 0.5,
    "if ((sum_{?t : thing} on(?t)) >= 2) then 5 else -(1 + UNUSED)": (
        lambda s: 5 if sum(s) >= 2 else -2
    ),
    "(exists_{?t : thing} on(?t)) => (forall_{?t : thing} on(?t))": lambda s: not any(s) or all(s),
    "[sum_{?t : thing} on(?t)] ~= 2": lambda s: sum(s) != 2,
}


@pytest.mark.parametrize("reward", REWARDS)
def test_a_reward_formula_means_what_it_says_in_every_state(reward, tmp_path):
    model = load_problem(tmp_path, cpfs=KEEP, pvariables="", reward=reward)
    for state in np.ndindex(2, 2, 2):
        expected = float(REWARDS[reward](state))
        assert model.mean_reward(state, "noop") == pytest.approx(expected, abs=1e-12)


DRAWS = {
    "KronDelta(@high)": [0, 0, 1],
    "Discrete_{?h : height} (WEIGHT(?h))": [0.2, 0.3, 0.5],
    "UnnormDiscrete(height, @low : 1, @middle : 2, @high : 1)": [0.25, 0.5, 0.25],
    "if (Bernoulli(0.5)) then gauge else Discrete_{?h : height} (WEIGHT(?h))": [0.1, 0.65, 0.25],
    "if (Bernoulli(Bernoulli(0.5) * 0.5)) then @low else @high": [0.25, 0, 0.75],
}


@pytest.mark.parametrize("draw", DRAWS)
def test_a_draw_has_its_distribution(draw, tmp_path):
    model = load_problem(
        tmp_path, types=ENUM, pvariables=LEVELS, cpfs=KEEP + f"gauge' = {draw};", constants=WEIGHTS
    )
    state = [0, 0, 0, 0]
    state[[variable.name for variable in model.variables].index("gauge")] = 1
    assert next_distribution(model, "gauge", state, "noop") == pytest.approx(DRAWS[draw])


def test_a_binomial_is_the_number_of_successes(tmp_path):
    pvariables = "stock : { state-fluent, int, default = 0 };"
    model = load_problem(tmp_path, pvariables=pvariables, cpfs=KEEP + "stock' = Binomial(3, 0.5);")
    state = (0,) * 4
    assert next_distribution(model, "stock", state, "noop") == pytest.approx(
        [0.125, 0.375, 0.375, 0.125]
    )
