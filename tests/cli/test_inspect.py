"""`fsmdp inspect` and `fsmdp simulate`, as a user meets them."""

import json

import pytest
from tests.conditioned_models import shop
from typer.testing import CliRunner

import fsmdp
from fsmdp.bounds.bellman import joined_variables, network_sizes
from fsmdp.cli import entry


def run(*arguments):
    return CliRunner().invoke(entry.app, arguments)


def test_inspect_tells_the_sizes_that_planning_will_have():
    done = run("inspect", "sysadmin:ring:12", "--json")
    facts = json.loads(done.output)
    model = fsmdp.domains.sysadmin(12)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="stagewise")
    singles = facts["bases"]["singles"]
    shared = next(one for one in singles["networks"] if one["elimination"] == "shared")
    assert (shared["induced_width"], shared["rows"]) == (plan.induced_width, plan.rows)
    assert singles["functions"] == len(plan.basis)
    assert facts["variables"] == 12
    assert facts["actions"] == 13


def test_inspect_prints_tables_for_people():
    done = run("inspect", "gridworld:3:3")
    assert done.exit_code == 0
    for words in ("latents", "reward terms", "Cost networks", "singles", "pairs"):
        assert words in done.output


def test_a_single_variable_is_not_plural(tmp_path):
    coin = fsmdp.FactoredMDP(
        [fsmdp.Variable("coin", 2)],
        ["toss"],
        [fsmdp.Conditional("coin", [fsmdp.Case(fsmdp.ANY, [], [0.5, 0.5])])],
        [fsmdp.Reward("heads", [fsmdp.Case(fsmdp.ANY, ["coin"], [0.0, 1.0])], 0, 1)],
        horizon=2,
    )
    fsmdp.save(coin, tmp_path / "coin.json")
    assert "1 with 2 values │" in " ".join(
        run("inspect", str(tmp_path / "coin.json")).output.split()
    )


def test_a_network_beyond_the_limit_is_said_to_be_too_wide():
    model = fsmdp.domains.sysadmin(8)
    sizes = network_sizes(model, fsmdp.Basis.singles(model), limit=4)
    assert sizes
    assert all(size.rows is None and "limit" in size.refused for size in sizes)


def test_the_edges_of_a_ring_s_cost_network_are_those_of_the_ring():
    from fsmdp.bounds.bellman import network_of_model

    model = fsmdp.domains.sysadmin(6)
    network, _ = network_of_model(model, fsmdp.Basis.singles(model))
    ring = {tuple(sorted((i, (i + 1) % 6))) for i in range(6)}
    assert set(joined_variables(network.elimination.network.all_scopes)) == ring


def test_the_list_names_every_domain_with_its_options():
    found = json.loads(run("inspect", "--list", "--json").output)
    assert set(found) == set(fsmdp.domains.DOMAINS)
    assert "topology" in found["sysadmin"]["options"]
    assert "sysadmin" in run("inspect", "--list").output


def test_a_simulated_mean_is_near_the_exact_value():
    model = fsmdp.domains.sysadmin(4)
    exact = fsmdp.solve_exactly(model).start_value
    facts = json.loads(
        run("simulate", "sysadmin:ring:4", "--policy", "optimal", "--json", "--seed", "3").output
    )
    assert abs(facts["mean"] - exact) < 5 * facts["standard_error"]


@pytest.mark.parametrize("policy", ["random", "wait", "plan"])
def test_a_policy_is_simulated_by_its_name(policy):
    done = run("simulate", "sysadmin:ring:4", "--policy", policy, "--episodes", "50")
    assert done.exit_code == 0
    assert f"{policy}: " in done.output


@pytest.mark.parametrize("method", ["auto", "programs"])
def test_a_plan_file_is_simulated(tmp_path, method):
    path = tmp_path / "plan.npz"
    model = fsmdp.domains.sysadmin(4)
    plan = fsmdp.plan(model, method=method)
    plan.save(path)
    facts = json.loads(run("simulate", "sysadmin:ring:4", "--policy", str(path), "--json").output)
    assert facts["mean"] == fsmdp.rollout(model, plan, 1000, seed=0).mean


def test_an_rddl_problem_is_reported_before_its_model():
    done = run("inspect", "rddl:SysAdmin_MDP_ippc2011:1")
    assert done.exit_code == 0, done.output
    assert done.output.index("joint actions") < done.output.index("Cost networks")
    facts = json.loads(run("inspect", "rddl:SysAdmin_MDP_ippc2011:1", "--json").output)
    assert facts["actions"] == 11
    assert facts["bases"]["singles"]["networks"][0]["induced_width"] == 4


def test_what_cannot_be_imported_is_said_with_its_reason():
    facts = json.loads(run("inspect", "rddl:UAV_Discrete:0", "--json").output)
    assert facts["status"] == "unsupported"
    assert "continuous" in facts["reason"]
    assert "continuous" in run("inspect", "rddl:UAV_Discrete:0").output


def test_a_domain_without_an_instance_is_surveyed():
    domain = "rddl:SysAdmin_MDP_ippc2011"
    facts = json.loads(run("inspect", domain, "--seed=2", "--json").output)
    assert len(facts["problems"]) == 10
    assert (facts["model"], facts["seed"]) == (domain, 2)


@pytest.mark.slow
def test_a_survey_ends_with_how_many_were_imported():
    assert "10 of 10 imported" in run("inspect", "rddl:SysAdmin_MDP_ippc2011").output


def test_an_unknown_policy_is_refused_with_those_that_are_known():
    done = run("simulate", "sysadmin:ring:3", "--policy", "reboot")
    assert "'reboot-2'" in str(done.exception)
    assert "plan file" in str(done.exception)


def test_the_version_is_told():
    assert run("--version").output.strip() == fsmdp.__version__


@pytest.mark.parametrize("ends", [True, False])
def test_simulate_says_at_most_where_episodes_end_early(ends, tmp_path):
    fsmdp.save(shop() if ends else shop(terminal=[]), tmp_path / "shop.json")
    done = run("simulate", str(tmp_path / "shop.json"), "--episodes", "10")
    assert done.exit_code == 0, done.output
    text = " ".join(done.output.split())
    assert ("episodes of at most 12 steps" in text) is ends
    assert ("episodes of 12 steps" in text) is not ends
