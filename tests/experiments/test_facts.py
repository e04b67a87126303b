"""What is said about a model is true of it."""

import json

import networkx
import pytest

import fsmdp
from fsmdp.domains import build_domain
from fsmdp.errors import ModelError
from fsmdp.experiments import folder as facts_module
from fsmdp.experiments.folder import FactsTask, describe_model, exact_start_value, find_source
from fsmdp.experiments.specification import ModelSetting


def described(text, basis="singles", episodes=100):
    return describe_model(FactsTask(find_source(ModelSetting("x", text, basis), "x"), episodes))


@pytest.mark.parametrize(
    "text",
    ["sysadmin:ring:4", "gridworld:2:2", "influence:6", "exogenous-block:3", "proposition-1:3"],
)
def test_the_start_value_is_that_of_enumeration(text):
    model = build_domain(text)
    exact = fsmdp.solve_exactly(model).start_value
    assert exact_start_value(text, model) == pytest.approx(exact, abs=1e-9)


def test_closed_forms_reach_beyond_enumeration_and_the_others_give_none():
    found = described("influence:40")
    assert found.log10_states > 12
    assert found.plan_upper_bound == pytest.approx(found.start_value_exact, rel=1e-6)
    assert described("sysadmin:ring:16").start_value_exact is None


def test_the_certified_bound_is_above_the_exact_value_and_the_policy_below():
    found = described("sysadmin:ring:4", "pairs")
    assert found.plan_upper_bound >= found.start_value_exact
    error = found.plan_policy_standard_error
    assert found.plan_policy_mean <= found.start_value_exact + 4 * error
    assert found.regret_bound["episodes"][-1] == 100
    terms = found.regret_bound["general"]["terms"].values()
    assert sum(term[-1] for term in terms) == pytest.approx(
        found.regret_bound["general"]["total"][-1]
    )


@pytest.mark.parametrize("text", ["sysadmin:ring:8", "gridworld:3:3", "influence:8", "random:3"])
@pytest.mark.parametrize("basis", ["singles", "pairs"])
def test_eliminating_in_the_stored_order_has_the_stored_width(text, basis):
    found = described(text, basis)
    graph = networkx.Graph(found.edges)
    graph.add_nodes_from(range(found.variables))
    width = 0
    for variable in found.elimination_order:
        neighbours = list(graph[variable])
        width = max(width, len(neighbours))
        graph.add_edges_from((a, b) for a in neighbours for b in neighbours if a != b)
        graph.remove_node(variable)
    assert width == found.induced_width
    assert not graph


def test_what_is_too_wide_to_plan_is_none_and_the_rest_is_there(monkeypatch):
    def refuse(*_, **__):
        raise fsmdp.WidthError("too wide")

    monkeypatch.setattr("fsmdp.bounds.joint.Programs.plan", refuse)
    monkeypatch.setattr("fsmdp.bounds.bellman.network_of_model", refuse)
    found = described("sysadmin:ring:4")
    assert found.plan_upper_bound is None
    assert found.induced_width is None
    assert found.start_value_exact == pytest.approx(9.36006, abs=1e-4)


def test_a_model_file_is_sent_whole_and_a_domain_by_name(tmp_path):
    path = tmp_path / "ring.json"
    fsmdp.save(fsmdp.domains.sysadmin(3), path)
    source = find_source(ModelSetting("x", str(path), "singles"), "x")
    path.unlink()
    assert source.load()[0].actions == fsmdp.domains.sysadmin(3).actions
    assert json.loads(source.document)["format"] == "fsmdp-model"
    assert find_source(ModelSetting("x", "sysadmin:3", "singles"), "x").document is None


@pytest.mark.parametrize(
    ("text", "basis", "message"),
    [
        ("sysadmn:8", "singles", "models.0.: unknown domain .*did you mean 'sysadmin'"),
        ("sysadmin:3", "triples", "models.0.: unknown basis 'triples'"),
        ("sysadmin:3:horizon=none:discount=0.9", "singles", "infinite horizon"),
    ],
)
def test_a_wrong_model_is_found_before_anything_runs(text, basis, message):
    with pytest.raises(ModelError, match=message):
        find_source(ModelSetting("x", text, basis), "models[0]")


def test_enumeration_stops_where_it_gets_expensive(monkeypatch):
    monkeypatch.setattr(facts_module, "EXACT_LIMIT", 10)
    assert exact_start_value("sysadmin:ring:4", build_domain("sysadmin:ring:4")) is None
