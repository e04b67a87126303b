"""Multi-agent SysAdmin: its numbers are those that others have published."""

import pytest

import fsmdp
from fsmdp.domains import multiagent_sysadmin
from fsmdp.exact.flat import enumerate_states

PUBLISHED = [
    (2, "ring", 5.7287210131, 6.5437272981),
    (3, "ring", 8.5930815196, 9.8155909472),
    (3, "bidirectional-ring", 8.5685443263, 9.8155909472),
    (8, "ring", 22.9148840523, 26.1749091924),
]


@pytest.mark.parametrize(("agents", "topology", "nine", "six"), PUBLISHED)
def test_the_program_has_the_published_value(agents, topology, nine, six):
    model = multiagent_sysadmin(agents, topology)
    blocks = [(f"status-{i}", f"load-{i}") for i in range(agents)]
    for basis, expected in (
        (fsmdp.Basis.blocks(model, blocks), nine),
        (fsmdp.Basis.singles(model), six),
    ):
        plan = fsmdp.plan(model, basis, method="joint", weights="uniform")
        assert plan.objective == pytest.approx(expected, abs=1e-7)
        assert plan.program.certified >= expected - 1e-9


def test_laws_and_rewards_are_those_of_the_description():
    flat = enumerate_states(multiagent_sysadmin(2))
    good_loaded, fail_loaded = flat.index([0, 1, 1, 0]), flat.index([1, 1, 0, 0])
    actions = list(flat.model.actions)
    noop, reboot = actions.index("noop"), actions.index("reboot-0+reboot-1")
    assert flat.rewards[noop, good_loaded] == pytest.approx(0.4)
    assert flat.rewards[noop, fail_loaded] == pytest.approx(0.3)
    assert flat.rewards[reboot, good_loaded] == 0.0
    after = flat.transitions[reboot, good_loaded]
    assert after[flat.index([0, 0, 0, 0])] == pytest.approx(1.0)
    # Agent 0 is good, its neighbour fails: it fails with 0.1 + 0.2, and its job is done with 0.4.
    after = flat.transitions[noop, good_loaded]
    chosen = (flat.states[:, 0] == 1) & (flat.states[:, 1] == 2)
    assert after[chosen].sum() == pytest.approx(0.3 * 0.4)


@pytest.mark.parametrize("topology", ["ring", "bidirectional-ring", "star", "bidirectional-star"])
def test_every_network_plans_and_acts(topology):
    model = multiagent_sysadmin(4, topology, horizon=3, discount=1.0)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="stagewise")
    exact = fsmdp.solve_exactly(model)
    assert plan.upper_bound >= exact.start_value - 1e-9
    assert fsmdp.rollout(model, plan, 50).mean <= plan.upper_bound
    # Dead for ever, or good again and perhaps loaded when the last step comes.
    assert exact.action([2] * 8, 1) == "reboot-0+reboot-1+reboot-2+reboot-3"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"agents": 1}, "agents"),
        ({"topology": "line"}, "unknown topology"),
        ({"agents": 20, "topology": "bidirectional-star"}, "neighbours"),
    ],
)
def test_networks_that_there_are_not_are_refused(options, match):
    with pytest.raises(fsmdp.ModelError, match=match):
        multiagent_sysadmin(**options)


def test_administrators_are_a_number_or_each():
    assert fsmdp.domains.sysadmin(4, administrators="each").n_actions == 16
    assert fsmdp.domains.sysadmin(4, administrators=2).n_actions == 11
    built = fsmdp.domains.build_domain("sysadmin:ring:4:administrators=each")
    assert built.n_actions == 16
    for wrong in ("all", 0, 5):
        with pytest.raises(fsmdp.ModelError, match="administrators"):
            fsmdp.domains.sysadmin(4, administrators=wrong)
