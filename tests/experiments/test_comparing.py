"""`fsmdp.compare` does from Python what the command does from a file."""

import pytest
from tests.experiments.sweeps import Here

import fsmdp

EPISODES = 6


def test_models_and_learners_of_all_kinds_are_compared(tmp_path):
    mine = fsmdp.domains.sysadmin(2, horizon=3)
    results = fsmdp.compare(
        {"mine": mine, "ring": "sysadmin:ring:3:horizon=3"},
        ["random", {"learner": "psrl", "known_rewards": True, "label": "sampling"}],
        seeds=[0, 4],
        episodes=EPISODES,
        output=tmp_path / "runs",
        executor=Here(),
    )
    assert not results.missing
    assert {(run.model, run.label, run.seed) for run in results.runs} == {
        (model, label, seed)
        for model in ("mine", "sysadmin-ring-3-horizon=3")
        for label in ("random actions", "sampling")
        for seed in (0, 4)
    }
    assert all(run.episodes.height == EPISODES for run in results.runs)
    exact = fsmdp.solve_exactly(mine).start_value
    assert results.models["mine"].start_value_exact == pytest.approx(exact)


def test_the_same_call_does_nothing_twice(tmp_path):
    first, again = Here(), Here()
    for engine in (first, again):
        fsmdp.compare("sysadmin:ring:2", "random", episodes=3, output=tmp_path, executor=engine)
    assert first.tasks
    assert not again.tasks


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(fsmdp.ModelError, match="models: expected a FactoredMDP or what"):
        fsmdp.compare([7], "random", output=tmp_path)


def test_a_function_hears_how_far_each_run_is(tmp_path):
    heard = []
    fsmdp.compare(
        "sysadmin:ring:2",
        "random",
        seeds=2,
        episodes=EPISODES,
        output=tmp_path,
        executor=Here(),
        progress=heard.append,
    )
    assert [seen.episodes for seen in heard[-1]] == [EPISODES, EPISODES]


def test_what_is_no_folder_is_refused():
    with pytest.raises(fsmdp.ModelError, match="output: expected the path of a folder, found 5"):
        fsmdp.compare("sysadmin:ring:2", "random", output=5)
