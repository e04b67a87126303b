"""Loading published problems: exact values, the cache, and what does not happen on the way."""

import logging
import subprocess
import sys

import numpy as np
import pytest
from tests.io.rddl_texts import KEEP, load_problem, write_problem

import fsmdp
from fsmdp.io.rddl import loading
from fsmdp.io.rddl.loading import cache_folder, load_source
from fsmdp.io.rddl.sources import find_source
from fsmdp.io.readers import read_model


@pytest.fixture(scope="module")
def sysadmin():
    return fsmdp.rddl.load("SysAdmin_MDP_ippc2011", 1, cache=False)


def test_sysadmin_1_has_the_published_structure(sysadmin):
    assert len(sysadmin.variables) == 10
    assert sysadmin.actions == ("noop", *(f"reboot(c{i})" for i in range(1, 11)))
    assert (sysadmin.horizon, sysadmin.discount) == (40, 1.0)
    assert sysadmin.initial == (1,) * 10


def test_sysadmin_1_has_its_exact_values(sysadmin):
    start = -1  # the last state: all machines run
    assert fsmdp.solve_exactly(sysadmin).start_value == pytest.approx(342.680, abs=1e-3)
    idle = fsmdp.evaluate_exactly(sysadmin, np.zeros(1024, dtype=int))
    assert idle[start] == pytest.approx(158.184, abs=1e-3)
    assert fsmdp.evaluate_exactly(sysadmin, "random")[start] == pytest.approx(215.935, abs=1e-3)


def test_singles_plan_sysadmin_1_as_well_as_the_prototype(sysadmin):
    plan = fsmdp.plan(sysadmin, fsmdp.Basis.singles(sysadmin), method="programs")
    assert 342.680 <= plan.upper_bound <= 358.48
    runs = fsmdp.rollout(sysadmin, plan, episodes=1000, seed=0)
    assert runs.mean >= 338.9 - 1.3 - 2 * runs.standard_error


def assert_same_model(one, other):
    assert one.variables == other.variables
    assert one.latents == other.latents
    assert one.actions == other.actions
    assert one.initial == other.initial
    assert (one.horizon, one.discount) == (other.horizon, other.discount)
    for mechanism, same in zip(one.dynamics.mechanisms, other.dynamics.mechanisms, strict=True):
        assert mechanism.children == same.children
        assert mechanism.cases.exceptions == same.cases.exceptions
        for kernel, equal in zip(mechanism.cases, same.cases, strict=True):
            assert (kernel.parents, kernel.drawn) == (equal.parents, equal.drawn)
            assert np.array_equal(kernel.table, equal.table)
    for means, same_means in zip(one.reward_means, other.reward_means, strict=True):
        assert means.exceptions == same_means.exceptions
        for table, equal_table in zip(means, same_means, strict=True):
            assert table.scope == equal_table.scope
            assert np.array_equal(table.values, equal_table.values)


@pytest.mark.parametrize(
    ("domain", "instance"),
    [
        ("Elevators_MDP_ippc2011", 2),
        ("TriangleTireworld_MDP_ippc2014", 3),
        ("Intruders_Discrete", 0),
    ],
)
def test_a_cached_problem_is_the_same_and_is_not_parsed_again(domain, instance, monkeypatch):
    source = find_source(domain, instance)
    first = load_source(source)
    monkeypatch.setattr(loading, "import_source", None)
    again = load_source(source)
    assert_same_model(first.model, again.model)
    assert first.values == again.values
    assert first.aliases == again.aliases
    assert (first.joint_actions, first.notes) == (again.joint_actions, again.notes)


def test_the_cache_goes_by_content_and_by_limits(tmp_path):
    files = write_problem(tmp_path, cpfs=KEEP, pvariables="")
    fsmdp.rddl.load(*files)
    assert len(list(cache_folder().iterdir())) == 1
    fsmdp.rddl.load(*files)
    assert len(list(cache_folder().iterdir())) == 1
    fsmdp.rddl.load(*files, most_actions=100)
    assert len(list(cache_folder().iterdir())) == 2
    files = write_problem(tmp_path, cpfs="on'(?t) = ~on(?t) | press(?t);", pvariables="")
    changed = fsmdp.rddl.load(*files)
    assert len(list(cache_folder().iterdir())) == 3
    assert changed.dynamics.mechanisms[0].cases.at(0).table.tolist() == [[0, 1], [1, 0]]


def test_a_damaged_cache_is_written_anew(tmp_path):
    files = write_problem(
        tmp_path, cpfs=KEEP, pvariables="", reward="sum_{?t : thing} (0.5 * on(?t))"
    )
    first = fsmdp.rddl.load(*files)
    (path,) = cache_folder().iterdir()
    content = path.read_bytes()
    nearly = content[:-8] + b"\x01" + content[-7:]  # the last reward, wrong in its last digit
    for damaged in (b"", b"junk", content[:-8], nearly):
        path.write_bytes(damaged)
        assert_same_model(first, fsmdp.rddl.load(*files))
        assert path.read_bytes() == content


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    occupied = tmp_path / "file"
    occupied.write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(occupied))
    assert load_problem(tmp_path, cpfs=KEEP, pvariables="").horizon == 5
    assert fsmdp.rddl.load(tmp_path / "domain.rddl", tmp_path / "instance.rddl").horizon == 5


def test_pyrddlgym_is_imported_only_when_a_problem_is_read():
    code = (
        "import sys, fsmdp; fsmdp.rddl.load; fsmdp.rddl.survey; "
        "print([name for name in ('pyRDDLGym', 'rddlrepository', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_loading_says_what_it_is_doing(tmp_path, caplog):
    with caplog.at_level(logging.INFO, logger="fsmdp"):
        load_problem(tmp_path, cpfs=KEEP, pvariables="")
    said = " ".join(caplog.messages)
    assert "parsing" in said
    assert "grounding" in said
    assert "table 1 of 3" in said


def test_loading_prints_nothing_and_leaves_no_files(tmp_path):
    code = (
        f"import os, fsmdp; os.chdir({str(tmp_path)!r}); "
        "fsmdp.rddl.load('CooperativeRecon_MDP_ippc2011', 1)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert not list(tmp_path.iterdir())


def test_a_name_on_the_command_line_loads_a_problem(sysadmin):
    assert_same_model(read_model("rddl:SysAdmin_MDP_ippc2011:1"), sysadmin)
    assert read_model("rddl:Navigation_MDP_ippc2011:1:join").n_states == 13
    for text in ("rddl:SysAdmin_MDP_ippc2011", "rddl::1", "rddl:Navigation_MDP_ippc2011:1:jon"):
        with pytest.raises(fsmdp.ModelError, match="expected rddl:DOMAIN:INSTANCE"):
            read_model(text)
