"""`fsmdp verify`, as a user meets it."""

import json
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import fsmdp
from fsmdp.bounds.proofs import StateValues
from fsmdp.cli import entry
from fsmdp.cli.verify import _above, _progress
from fsmdp.foundation.disk import pack_json, read_arrays, write_arrays


def run(*arguments):
    return CliRunner().invoke(entry.app, [str(one) for one in arguments])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify")
    model = fsmdp.domains.sysadmin(4, horizon=4)
    fsmdp.save(model, folder / "model.json")
    plan = fsmdp.plan(model, method="joint")
    plan.save(folder / "plan.npz")
    arrays = read_arrays(folder / "plan.npz", 2**20, "plan", "none")
    about = json.loads(arrays["about"].tobytes())
    about["bound_weights"][1][0] -= 1e-6
    write_arrays(folder / "wrong.npz", arrays | {"about": pack_json(about)})
    return folder, plan


def test_a_bound_is_proved_for_a_file_and_for_a_domain(files):
    folder, plan = files
    for model in (folder / "model.json", "sysadmin:ring:4:horizon=4"):
        done = run("verify", model, folder / "plan.npz")
        assert done.exit_code == 0
        assert done.output.startswith("PROVED: no policy earns more than 3.")
    facts = json.loads(run("verify", folder / "model.json", folder / "plan.npz", "--json").output)
    assert facts["model"] == str(folder / "model.json")
    assert facts["seed"] == 0
    assert facts["proved"] is True
    assert facts["upper_bound"] == pytest.approx(plan.upper_bound)
    assert facts["upper_bound"] <= plan.upper_bound
    assert 0 < facts["slack"] < 1e-9
    assert facts["largest_table"] == 8


def test_weights_that_are_no_bound_are_refuted(files):
    folder, _ = files
    done = run("verify", folder / "model.json", folder / "wrong.npz", "--quiet")
    assert done.exit_code == 1
    assert done.output.startswith("REFUTED: V >= R + E V' at step ")
    facts = json.loads(run("verify", folder / "model.json", folder / "wrong.npz", "--json").output)
    assert facts["proved"] is False
    assert facts["upper_bound"] is None
    assert facts["slack"] < 0
    assert len(facts["tightest_state"]) == 4


def test_what_cannot_be_checked_ends_with_one_line(files, monkeypatch, capsys):
    folder, _ = files
    for model, plan in (
        ("model.json", "none.npz"),
        ("plan.npz", "plan.npz"),
        ("no.json", "plan.npz"),
        ("model.json", "model.json"),
    ):
        arguments = ["fsmdp", "verify", str(folder / model), str(folder / plan)]
        monkeypatch.setattr("sys.argv", arguments)
        assert entry.run() == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
    assert "give the model and a plan of it that fsmdp plan --output wrote" in said


def test_floats_are_never_below_what_was_proved():
    third = Fraction(1, 3)
    assert Fraction(_above(third)) >= third
    assert Fraction(_above(-third)) >= -third
    assert _above(Fraction(10**400)) == float("inf")
    assert _above(-Fraction(10**400)) == -sys.float_info.max


def test_a_tighter_claim_that_the_file_does_not_prove_is_said_first(tmp_path):
    model = fsmdp.domains.sysadmin(3, administrators=1, horizon=3)
    fsmdp.save(model, tmp_path / "model.json")
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="joint")
    path = tmp_path / "plan.npz"
    plan.save(path)
    arrays = read_arrays(path, 2**20, "plan", "none")
    about = json.loads(arrays["about"].tobytes())
    about |= {"at_start": plan.upper_bound - 1e-3, "proof": "it"}
    about["start_proof"] = {"states": "listed", "boxes": []}
    states = np.zeros((1, 3), dtype=np.uint8)
    write_arrays(path, arrays | {"about": pack_json(about), "states": states})
    done = run("verify", tmp_path / "model.json", path)
    assert done.exit_code == 3
    assert done.output.startswith("PROVED IN PART: no policy earns more than ")
    assert "not proved (the values of its states prove less)" in done.output
    facts = json.loads(run("verify", tmp_path / "model.json", path, "--json").output)
    assert facts["proved"] is False
    assert facts["proved_in_part"] is True


def test_a_bound_without_a_proof_is_not_written(tmp_path, caplog):
    model = fsmdp.domains.sysadmin(3, horizon=3)
    fsmdp.save(model, tmp_path / "model.json")
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="joint")
    proof = StateValues("it", plan.upper_bound - 1, fits=False)
    tighter = replace(plan, bound=replace(plan.bound, at_start=(proof,)))
    tighter.save(tmp_path / "plan.npz")
    assert "is not in the file (nothing in the plan proves it)" in caplog.text
    assert fsmdp.load_plan(tmp_path / "plan.npz").upper_bound == plan.upper_bound
    assert run("verify", tmp_path / "model.json", tmp_path / "plan.npz").exit_code == 0


def test_long_work_tells_how_far_it_is(capsys):
    tell = _progress(every=0.0)
    tell("step 1 of 2")
    assert capsys.readouterr().err.endswith("s  step 1 of 2\n")


def test_joint_actions_have_their_names(tmp_path):
    model = fsmdp.domains.sysadmin(3, administrators=1, horizon=3)
    fsmdp.save(model, tmp_path / "model.json")
    fsmdp.plan(model, fsmdp.Basis.singles(model), method="joint").save(tmp_path / "plan.npz")
    facts = json.loads(
        run("verify", tmp_path / "model.json", tmp_path / "plan.npz", "--json").output
    )
    assert facts["tightest_action"] in model.actions
