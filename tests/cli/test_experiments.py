"""`fsmdp learn` and `fsmdp compare`, as a user meets them."""

import json
import sys

import pytest
from typer.testing import CliRunner

import fsmdp
from fsmdp.cli import entry as cli
from fsmdp.cli import learn as learn_command
from fsmdp.experiments.store import read_results
from fsmdp.foundation.numbers import with_error
from fsmdp.report.curves import chance_of_regret, returns_of

RING = "sysadmin:ring:3:horizon=4"


def run(*arguments):
    return CliRunner().invoke(cli.app, arguments)


def run_main(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["fsmdp", *arguments])
    return cli.run()


def test_learn_prints_one_object_for_machines():
    done = run("learn", RING, "--episodes", "50", "--option", "known_rewards=true", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    model = fsmdp.domains.build_domain(RING)
    learner = fsmdp.UCRLFactored(
        model.structure(fsmdp.Basis.singles(model)), known_rewards=model.rewards
    )
    history = fsmdp.learn(model, learner, 50)
    best = fsmdp.solve_exactly(model).start_value
    assert found["episodes"] == 50
    assert found["replans"] == history.replans.sum()
    assert found["mean_return_last"] == pytest.approx(history.returns[-5:].mean())
    assert found["start_value_exact"] == pytest.approx(best)
    assert found["regret"] == pytest.approx(history.regret(best)[-1])
    bound = history.observable_regret_bound()[-1]
    assert found["observable_regret_bound"] == pytest.approx(bound)
    assert 0 < found["seconds_planning"] < found["seconds"]
    assert found["heuristic"] is False
    assert found["learner"] == history.learner


def test_learn_says_what_is_not_known():
    done = run("learn", "sysadmin:ring:16:horizon=3", "--learner", "random", "--episodes", "20")
    assert done.exit_code == 0, done.output
    assert "not known at this size" in done.output
    assert "claims no values" in done.output
    heuristic = run("learn", RING, "--episodes", "5", "--option", "scale=0.1")
    assert "(heuristic: no guarantee)" in " ".join(heuristic.output.replace("│", " ").split())


def test_learn_goes_on_from_its_checkpoint_and_keeps_its_folder(tmp_path):
    path = str(tmp_path / "run.npz")
    whole = json.loads(run("learn", RING, "--episodes", "40", "--json").output)
    run("learn", RING, "--episodes", "20", "--checkpoint", path, "--json")
    resumed = run("learn", RING, "--episodes", "40", "--checkpoint", path, "--json")
    found = json.loads(resumed.output)
    assert found["regret"] == whole["regret"]
    folder = tmp_path / "runs"
    done = run("learn", RING, "--episodes", "40", "--output", str(folder))
    assert f"fsmdp report {folder}" in done.output
    assert read_results(folder).runs[0].episodes["regret"][-1] == whole["regret"]


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--learner", "ucrll"], "--learner: unknown learner 'ucrll'; did you mean 'ucrl'", 2),
        (["--option", "preset=papr"], "option 'preset': expected one of paper, practical", 2),
        (["--option", "preset"], "expected key=value", 2),
        (["--option", "delta=0.1", "--option", "delta=0.2"], "at most once", 2),
        (["--basis", "triples"], "unknown basis 'triples'", 2),
        (["--checkpoint", "no/such/run.npz"], "its folder is not there", 2),
        (["--checkpoint", "a.npz", "--output", "b"], "expected one of them", 2),
    ],
)
def test_a_mistake_in_learn_is_one_message(arguments, message, code, monkeypatch, capsys):
    assert run_main(monkeypatch, "learn", RING, *arguments) == code
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err


def test_a_learner_that_cannot_take_the_model_ends_with_3(monkeypatch, capsys):
    assert run_main(monkeypatch, "learn", "sysadmin:ring:60", "--learner", "optimal") == 3
    assert "contraction needs" in capsys.readouterr().err


def test_an_interrupted_learn_says_whether_anything_was_kept(monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(learn_command, "_learn", interrupt)
    assert run_main(monkeypatch, "learn", RING) == 130
    assert "nothing was kept" in capsys.readouterr().err


SPECIFICATION = """
name = "two <rings>"
episodes = 30
seeds = 2
[[models]]
model = "sysadmin:ring:3:horizon=4"
[[models]]
model = "sysadmin:ring:60:horizon=3"
[[learners]]
learner = "random"
[[learners]]
learner = "optimal"
label = "[bold]best"
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swept")
    (folder / "rings.toml").write_text(SPECIFICATION)
    done = run("compare", str(folder / "rings.toml"), "--output", str(folder / "runs"))
    return done, folder


def test_compare_ends_with_a_table_failures_and_the_way_to_a_report(swept):
    done, folder = swept
    assert done.exit_code == 1, done.output
    assert "V* = " in done.output
    assert "V* at most" in done.output
    assert "[bold]best" in done.output
    assert "failed: [bold]best on sysadmin-ring-60" in done.output
    assert f"fsmdp report {folder / 'runs'}" in done.output
    assert done.stderr.splitlines()[-1].startswith("fsmdp: 2 of 8 runs failed; the same command")


def test_compare_prints_one_object_for_machines(swept, in_this_process):
    _, folder = swept
    done = run("compare", str(folder / "rings.toml"), "--output", str(folder / "runs"), "--json")
    assert done.exit_code == 1
    assert done.stderr.startswith("fsmdp: 2 of 8 runs failed; ")
    found = json.loads(done.stdout)
    assert found["runs"] == 8
    assert len(found["failed"]) == 2
    assert {row["done"] for row in found["rows"]} == {0, 2}
    assert len(found["seeds"]) == 2
    assert all(row["model"] in found["models"] for row in found["rows"])
    best = found["start_values_exact"]
    assert best["sysadmin-ring-3-horizon=4"] > 0
    assert best["sysadmin-ring-60-horizon=3"] is None


def test_one_seed_has_the_chance_in_its_run_and_no_interval_over_seeds(tmp_path, in_this_process):
    text = SPECIFICATION.replace('[[models]]\nmodel = "sysadmin:ring:60:horizon=3"\n', "")
    text = text.replace("seeds = 2", "seeds = 1").partition('[[learners]]\nlearner = "optimal"')[0]
    (tmp_path / "rings.toml").write_text(text)
    done = run("compare", str(tmp_path / "rings.toml"), "--output", str(tmp_path / "runs"))
    assert done.exit_code == 0, done.output
    words = " ".join(done.stdout.split())
    assert "30 episodes, 1 seed; ±: chance in the returns of its run, 95 %" in words
    assert "95 % intervals" not in words
    assert "1 run in " in words
    (run_found,) = read_results(tmp_path / "runs").runs
    chance = chance_of_regret(returns_of(run_found))
    assert with_error(run_found.episodes["regret"][-1], chance) in words


def test_seeds_are_shifted_and_the_folder_is_named_after_the_sweep(
    tmp_path, monkeypatch, in_this_process
):
    monkeypatch.chdir(tmp_path)
    text = SPECIFICATION.replace('[[models]]\nmodel = "sysadmin:ring:60:horizon=3"\n', "")
    (tmp_path / "rings.toml").write_text(text)
    done = run("compare", "rings.toml", "--seed", "7", "--quiet")
    assert done.exit_code == 0, done.output
    results = read_results(tmp_path / "runs" / "two-rings")
    assert [run.seed for run in results.runs] == [7, 8, 7, 8]


@pytest.mark.parametrize(
    ("old", "new", "more", "message"),
    [
        ("episodes = 30", "episodes = -1", [], "episodes: Input should be greater"),
        ("seeds = 2", "sedes = 2", [], "unknown key 'sedes'"),
        ('"random"', '"randm"', [], "did you mean 'random'"),
        ("sysadmin:ring:3", "sysadmn:ring:3", [], "models[0]: unknown domain"),
        ("name", "name", ["--executor", "slurm"], "expected one of local, ray, dask"),
        ("name", "name", ["--address", "x:1"], "executor 'local' has none"),
    ],
)
def test_a_mistake_in_compare_is_one_message(
    old, new, more, message, tmp_path, monkeypatch, capsys
):
    (tmp_path / "x.toml").write_text(SPECIFICATION.replace(old, new))
    folder = ["--output", str(tmp_path / "runs")]
    assert run_main(monkeypatch, "compare", str(tmp_path / "x.toml"), *folder, *more) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err
