"""Imported models against pyRDDLGym's simulator, and broken ones, which must not pass."""

import numpy as np
import pytest
from tests.io.rddl_texts import write_problem

import fsmdp
from fsmdp.io.rddl.sources import repository

SMALLEST = {
    "AcademicAdvising_MDP_ippc2014": 1,
    "CooperativeRecon_MDP_ippc2011": 1,
    "CrossingTraffic_MDP_ippc2011": 1,
    "Elevators_MDP_ippc2011": 2,
    "GameOfLife_MDP_ippc2011": 1,
    "Navigation_MDP_ippc2011": 1,
    "SkillTeaching_MDP_ippc2011": 1,
    "SysAdmin_MDP_ippc2011": 1,
    "Tamarisk_MDP_ippc2014": 1,
    "Traffic_CTM_MDP_ippc2011": 1,
    "TriangleTireworld_MDP_ippc2014": 1,
    "Wildfire_MDP_ippc2014": 1,
}


@pytest.mark.parametrize("domain", SMALLEST)
def test_the_simulator_agrees_on_an_instance_of_every_domain(domain):
    found = fsmdp.rddl.cross_check(domain, SMALLEST[domain], walks=8)
    assert found.require().steps == 8 * 40


@pytest.mark.parametrize(
    ("domain", "instance", "walks"),
    [
        ("PushYourLuck_ippc2018", 1, 6),  # variables that share a draw
        ("Intruders_Discrete", 0, 2),  # latents, actions with values of a type
        ("Sidewalk_rddlsim", 0, 4),  # integers
    ],
)
def test_the_simulator_agrees_on_other_kinds_of_problems(domain, instance, walks):
    fsmdp.rddl.cross_check(domain, instance, walks=walks).require()


@pytest.mark.slow
@pytest.mark.parametrize("domain", SMALLEST)
@pytest.mark.parametrize("instance", range(1, 11))
def test_the_simulator_agrees_on_all_competition_instances(domain, instance):
    fsmdp.rddl.cross_check(domain, instance, walks=6).require()


def changed(model, conditionals=None, rewards=None):
    return fsmdp.FactoredMDP(
        model.variables,
        model.actions,
        model.conditionals if conditionals is None else conditionals,
        model.rewards if rewards is None else rewards,
        model.horizon,
        model.initial,
        model.discount,
        model.latents,
        model.allowed,
        model.terminal,
    )


def with_case(part, table_of):
    """The same conditional or reward with the table of its last case replaced."""
    *others, last = part.cases
    case = fsmdp.Case(last.actions, last.parents, table_of(last.table), last.drawn)
    return [*others, case]


def test_a_wrong_reward_is_found():
    model = fsmdp.rddl.load("SysAdmin_MDP_ippc2011", 1)
    first, *others = model.rewards
    cases = with_case(first, lambda table: table * (1 + 1e-8))
    wrong = fsmdp.Reward(first.name, cases, first.low - 1, first.high + 1)
    found = fsmdp.rddl.cross_check(
        "SysAdmin_MDP_ippc2011", 1, model=changed(model, rewards=[wrong, *others]), walks=2
    )
    assert found.transitions_agree
    with pytest.raises(fsmdp.ModelError, match="a reward differs"):
        found.require()


def test_a_wrong_probability_is_found():
    model = fsmdp.rddl.load("SysAdmin_MDP_ippc2011", 1)

    def worse(table):
        up = 0.85 * table[..., 1]
        return np.stack([1 - up, up], axis=-1)

    first, *others = model.conditionals
    wrong = fsmdp.Conditional(first.children, with_case(first, worse))
    found = fsmdp.rddl.cross_check(
        "SysAdmin_MDP_ippc2011", 1, model=changed(model, conditionals=[wrong, *others])
    )
    assert found.rewards_agree
    with pytest.raises(fsmdp.ModelError, match="next values differ"):
        found.require()


def test_something_the_model_excludes_is_found():
    model = fsmdp.rddl.load("CrossingTraffic_MDP_ippc2011", 1)
    names = [conditional.children[0] for conditional in model.conditionals]
    at = names.index("obstacle-at(x3,y2)") if "obstacle-at(x3,y2)" in names else None
    random_ones = [
        position
        for position, conditional in enumerate(model.conditionals)
        if not np.isin(conditional.cases[-1].table, (0, 1)).all()
    ]
    assert at in (None, random_ones[0])
    conditionals = list(model.conditionals)
    conditional = conditionals[random_ones[0]]
    never = with_case(conditional, lambda table: np.eye(2)[np.zeros(table.shape[:-1], int)])
    conditionals[random_ones[0]] = fsmdp.Conditional(conditional.children, never)
    found = fsmdp.rddl.cross_check(
        "CrossingTraffic_MDP_ippc2011", 1, model=changed(model, conditionals=conditionals), walks=4
    )
    assert found.impossible
    assert not found.passed


def test_independent_draws_in_place_of_a_shared_one_are_found(tmp_path):
    files = write_problem(
        tmp_path,
        pvariables="coin : { interm-fluent, bool };",
        cpfs="coin = Bernoulli(0.5); on'(?t) = KronDelta(coin);",
        horizon=40,
    )
    right = fsmdp.rddl.load(*files, cache=False)
    assert fsmdp.rddl.cross_check(*files, walks=4).passed
    keep = [c for c in right.conditionals if c.children == ("coin",)]
    apart = [
        fsmdp.Conditional(variable, [fsmdp.Case(fsmdp.ANY, [], [0.5, 0.5])])
        for variable in right.variables
    ]
    # Each next value alone has the right distribution: only pairs tell.
    both = [
        fsmdp.Conditional("on(t1)", [fsmdp.Case(fsmdp.ANY, [], np.eye(2), ["coin"])]),
        fsmdp.Conditional("on(t2)", [fsmdp.Case(fsmdp.ANY, [], np.eye(2)[::-1], ["coin"])]),
        apart[2],
    ]
    wrong = changed(right, conditionals=[*keep, *both])
    assert not fsmdp.rddl.cross_check(*files, model=wrong, walks=4).passed


def test_a_model_of_something_else_is_refused():
    with pytest.raises(fsmdp.ModelError, match="other variables"):
        fsmdp.rddl.cross_check("SysAdmin_MDP_ippc2011", 1, model=fsmdp.domains.sysadmin(4), walks=1)


def test_every_domain_of_the_two_competitions_is_covered():
    tracks = {
        listing.name
        for listing in repository().values()
        if listing.context in ("ippc2011", "ippc2014") and "POMDP" not in listing.name
    }
    repeated = {f"{name}_MDP_ippc2014" for name in ("CrossingTraffic", "Elevators", "Traffic")}
    assert tracks - repeated - {"SkillTeaching_MDP_ippc2014"} == set(SMALLEST)
