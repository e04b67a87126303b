"""Reports and surveys say what is there, and why something is left out."""

import pytest
from tests.io.rddl_texts import KEEP, write_problem

import fsmdp
from fsmdp.bounds.bellman import network_sizes


def test_a_report_counts_what_a_model_has():
    found = fsmdp.rddl.report("TriangleTireworld_MDP_ippc2014", 3)
    model = fsmdp.rddl.load("TriangleTireworld_MDP_ippc2014", 3)
    assert found.status == "imported"
    assert found.variables == len(model.variables) == 33
    assert found.joint_actions == 242
    assert found.actions == len(model.actions) == 1 + 241 - sum(map(len, found.aliases.values()))
    assert found.reward_terms == 1
    assert found.largest_scope == 3
    assert found.widths["separate"] == 2  # parents by action: 132 fluents before folding
    assert found.width == min(found.widths.values())
    sizes = network_sizes(model, fsmdp.Basis.singles(model))
    assert found.widths == {size.elimination: size.induced_width for size in sizes}
    assert found.log10_states == pytest.approx(model.log10_states)
    rows = dict(found.rows())
    assert rows["distinct actions"] == str(len(model.actions))
    assert "shared" in rows["induced width"]


def test_a_report_counts_conditions_and_auxiliary_variables():
    found = fsmdp.rddl.report("RedFinnedBlueEye_ippc2018", 1)
    assert found.status == "imported"
    assert found.action_fluents == 21
    assert found.actions == found.joint_actions == 120  # of 2^21, by a budget of three points
    assert found.action_variables is None
    assert found.conditions == 16
    assert dict(found.rows())["conditions on actions"] == "16"


def test_a_report_on_what_is_refused_says_why_and_how_large_it_is(tmp_path):
    things = ", ".join(f"t{i}" for i in range(1, 40))
    weights = " + ".join(f"{2**i / 2**40:.15f} * on(t{i})" for i in range(1, 40))
    files = write_problem(
        tmp_path,
        cpfs=f"on'(?t) = Bernoulli({weights});",
        pvariables="",
        objects=f"thing : {{{things}}};",
    )
    found = fsmdp.rddl.report(*files, cache=False)
    assert found.status == "too large"
    assert "entries" in found.reason
    assert found.largest_scope == 39
    assert found.joint_actions == 40
    assert found.actions is None
    assert found.width is None


def test_a_report_carries_the_notes(tmp_path):
    files = write_problem(
        tmp_path,
        cpfs=KEEP,
        pvariables="",
        sections="state-invariants { exists_{?t : thing} on(?t); };",
    )
    found = fsmdp.rddl.report(*files, cache=False)
    assert any("not enforced" in note for note in found.notes)
    assert ("note", found.notes[0]) in found.rows()


def test_a_survey_lists_every_instance_once():
    found = fsmdp.rddl.survey(["CrossingTraffic_MDP_ippc2011", "CrossingTraffic_MDP_ippc2014"])
    assert len(found.reports) == len(found.imported) == 10
    assert found.repeated[0] == (
        "CrossingTraffic_MDP_ippc2014:1",
        "CrossingTraffic_MDP_ippc2011:1",
    )
    frame = found.frame()
    assert frame["width"].to_list() == [report.width for report in found.reports]
    assert set(frame["status"]) == {"imported"}


def test_a_survey_gives_the_reason_for_what_is_left_out():
    found = fsmdp.rddl.survey(context="gym")
    assert not found.imported
    assert all("continuous" in report.reason for report in found.reports)


def test_a_survey_of_something_unknown_is_refused():
    with pytest.raises(fsmdp.ModelError, match="unknown context"):
        fsmdp.rddl.survey(context="ippc1999")
    with pytest.raises(fsmdp.ModelError, match="unknown domain"):
        fsmdp.rddl.survey(["Nonesuch"])
