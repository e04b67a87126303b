"""Sweeps: what is kept, what a second call does, and what is refused."""

import functools
import json
import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.experiments.dying import MARKER, Deadly
from tests.experiments.sweeps import RING, Here, episodes_of, ring

import fsmdp
from fsmdp.errors import ExperimentError, ModelError
from fsmdp.experiments import runner
from fsmdp.experiments.executors import ClusterExecutor, choose_executor
from fsmdp.experiments.folder import is_held_as, locked
from fsmdp.experiments.learners import completed_options
from fsmdp.experiments.runner import Place, compare, learn_in_folder
from fsmdp.experiments.specification import Specification
from fsmdp.experiments.store import (
    CHECKPOINT,
    EPISODE_COLUMNS,
    TIMING_COLUMNS,
    RunStatus,
    Store,
    read_results,
    write_json,
)
from fsmdp.foundation import disk as arrays
from fsmdp.foundation.disk import seal
from fsmdp.report.curves import Interval, summarise

DEADLINE = 300.0  # so that a test that hangs fails in the end; nothing else depends on it


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return compare(ring(), folder, text="as written"), folder


def test_every_run_is_there_once_with_all_columns_and_facts(whole):
    results, folder = whole
    assert [run.id for run in results.runs] == [run.id for run in ring().runs]
    assert not results.missing
    for run in results.runs:
        assert dict.fromkeys(run.episodes.columns) == dict.fromkeys(EPISODE_COLUMNS)
        assert dict.fromkeys(run.timings.columns) == dict.fromkeys(TIMING_COLUMNS)
        assert run.episodes["episode"].to_list() == list(range(1, 61))
        assert run.status == "done"
        assert run.facts["versions"]["fsmdp"]
        assert Store(folder).checkpoint(run.id).exists()  # to make it longer
    assert (folder / "specification.toml").read_text() == "as written"
    assert results.provenance["executor"] == "local"
    assert results.provenance["finished"] >= results.provenance["created"]


def test_the_numbers_are_those_of_learn(whole):
    results, _ = whole
    model = fsmdp.domains.sysadmin(3, horizon=4)
    structure = model.structure(fsmdp.Basis.singles(model))
    best = fsmdp.solve_exactly(model).start_value
    for seed in (0, 1):
        learner = fsmdp.UCRLFactored(structure, seed=seed, known_rewards=model.rewards)
        history = fsmdp.learn(model, learner, 60, seed)
        run = results.runs[seed]
        assert run.episodes["returns"].to_list() == history.returns.tolist()
        assert run.episodes["optimistic_values"].to_list() == history.optimistic_values.tolist()
        assert run.episodes["regret"].to_list() == history.regret(best).tolist()
        bound = history.observable_regret_bound()
        assert run.episodes["observable_regret_bound"].to_list() == bound.tolist()
        assert run.facts["describe"] == history.learner


def test_learners_that_claim_nothing_have_nulls_and_an_unknown_optimum_gives_no_regret(tmp_path):
    asked = ring(
        models=[{"model": "sysadmin:ring:16:horizon=3"}], learners=[{"learner": "random"}], seeds=1
    )
    (run,) = compare(asked, tmp_path, Here()).runs
    for column in ("optimistic_values", "slacks", "widths", "w_norms", "regret"):
        assert run.episodes[column].null_count() == 60
    assert run.episodes["returns"].null_count() == 0


def test_a_sweep_that_was_stopped_does_only_what_is_missing(whole, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        compare(ring(), tmp_path, Here(most=3))
    partial = read_results(tmp_path)
    assert len(partial.runs) == 2
    assert partial.missing == tuple(run.id for run in ring().runs[2:])
    assert partial.provenance["finished"] is None
    rest = Here()
    compare(ring(), tmp_path, rest)
    assert [task.setting.id for task in rest.tasks] == list(partial.missing)
    assert episodes_of(tmp_path) == episodes_of(whole[1])
    again = Here()
    compare(ring(), tmp_path, again)
    assert not again.tasks


def test_a_run_goes_on_from_its_checkpoint(whole, tmp_path, monkeypatch):
    class Stopped(BaseException):
        pass

    real = runner.build_learner

    def stop_in_the_middle(*arguments):
        learner = real(*arguments)
        plan = learner.replan

        def replan():
            if learner.statistics.episodes >= 30:
                raise Stopped
            return plan()

        learner.replan = replan
        return learner

    monkeypatch.setattr(runner, "build_learner", stop_in_the_middle)
    last = ring().runs[-1]
    with pytest.raises(Stopped):
        compare(ring(seeds=[1], learners=[{"learner": "psrl"}]), tmp_path, Here())
    assert Store(tmp_path).status(last) is RunStatus.PARTIAL
    plans = []

    def count_plans(*arguments):
        learner = real(*arguments)
        plan = learner.replan
        learner.replan = lambda: (plans.append(1), plan())[1]
        return learner

    monkeypatch.setattr(runner, "build_learner", count_plans)
    compare(ring(seeds=[1], learners=[{"learner": "psrl"}]), tmp_path, Here())
    assert episodes_of(tmp_path)[last.id] == episodes_of(whole[1])[last.id]
    assert Store(tmp_path).checkpoint(last.id).exists()
    assert len(plans) == 30  # one an episode, for those that were missing


def test_a_failing_run_is_kept_with_its_message_and_the_others_go_on(tmp_path):
    asked = ring(
        models=[{"model": "sysadmin:ring:3:horizon=4"}, {"model": "sysadmin:ring:60:horizon=4"}],
        learners=[{"learner": "tabular-psrl"}, {"learner": "psrl"}],
        seeds=1,
    )
    results = compare(asked, tmp_path, Here())
    failed = [run for run in results.runs if run.status == "failed"]
    assert [run.id for run in failed] == ["sysadmin-ring-60-horizon=4--tabular-psrl--seed-0"]
    assert "writes every state out" in failed[0].message
    assert len(failed[0].episodes) == 0
    assert set(failed[0].episodes.columns) == set(EPISODE_COLUMNS)
    again = Here()
    compare(asked, tmp_path, again)
    assert [task.setting.id for task in again.tasks] == [failed[0].id]
    rows = summarise(results)
    assert [(row.done, row.failed) for row in rows] == [(1, 0), (1, 0), (0, 1), (1, 0)]
    assert rows[2].message == failed[0].message


def test_a_bug_in_a_learner_is_kept_with_its_traceback(tmp_path, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(runner, "build_learner", broken)
    results = compare(ring(), tmp_path, Here())
    assert {run.message for run in results.runs} == {"ZeroDivisionError: by nothing"}
    assert "in broken" in results.runs[0].facts["traceback"]


def test_a_run_without_memory_says_so_in_a_sentence(tmp_path, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(runner, "build_learner", fail)
    results = compare(ring(), tmp_path, Here())
    assert all(run.message.startswith("there was not enough memory") for run in results.runs)
    assert all(run.facts["traceback"] is None for run in results.runs)


def test_a_sweep_may_grow_but_not_change(whole, tmp_path):
    compare(ring(seeds=1), tmp_path, Here())
    more = Here()
    compare(ring(), tmp_path, more)
    assert {task.setting.seed for task in more.tasks if hasattr(task, "setting")} == {1}
    assert episodes_of(tmp_path) == episodes_of(whole[1])
    for change, message in (
        ({"episodes": 50}, "have 60 episodes, found 50; runs can be made longer"),
        ({"name": "other"}, "name is 'ring', found 'other'"),
        ({"seeds": 1}, "1 of its seeds is missing"),
        ({"learners": [{"learner": "psrl"}]}, "'ucrl-known-rewards' of its learners"),
        ({"models": [{"model": "sysadmin:ring:4"}]}, "of its models is missing or different"),
    ):
        with pytest.raises(ModelError, match=message):
            compare(ring(**change), tmp_path, Here())


def test_a_folder_from_before_a_learner_had_an_option_is_gone_on_with(tmp_path):
    asked = ring(seeds=1)
    compare(asked, tmp_path, Here())
    store, older = Store(tmp_path), asked.to_dict()
    ucrl = next(one for one in older["learners"] if one["learner"] == "ucrl")
    assert ucrl["options"].pop("planner") == "program"
    store.write_specification(Specification.from_dict(older), None)
    again = Here()
    compare(asked, tmp_path, again)
    assert not again.tasks
    assert store.read_specification().to_dict() == asked.to_dict()
    assert ucrl["options"]["empirical_weight"] == 4
    before = {name: value for name, value in ucrl["options"].items() if name != "empirical_weight"}
    assert completed_options("ucrl", before)["empirical_weight"] == 0  # which is what it did then
    for name, value in (
        ("planner", "solver"),
        ("no such option", 1),
        ("preset", "gone"),
        ("empirical_weight", 0.0),
    ):
        changed = {**ucrl, "options": ucrl["options"] | {name: value}}
        others = [one for one in older["learners"] if one is not ucrl]
        other = Specification.from_dict({**older, "learners": [*others, changed]})
        store.write_specification(other, None)
        with pytest.raises(ModelError, match="of its learners is missing or different"):
            compare(asked, tmp_path, Here())


def test_a_model_file_that_changed_is_refused(tmp_path):
    path = tmp_path / "ring.json"
    fsmdp.save(fsmdp.domains.sysadmin(3, horizon=4), path)
    asked = ring(models=[{"model": str(path)}], seeds=1)
    compare(asked, tmp_path / "runs", Here())
    fsmdp.save(fsmdp.domains.sysadmin(3, horizon=5), path)
    with pytest.raises(ModelError, match="the model has changed since"):
        compare(asked, tmp_path / "runs", Here())


def test_a_folder_in_use_is_refused_and_says_by_whom(tmp_path):
    with locked(tmp_path, "fsmdp compare x.toml") as token:
        assert is_held_as(tmp_path, token)
        assert not is_held_as(tmp_path, "another")
        with pytest.raises(ExperimentError, match=rf"in use by process {os.getpid()} .*x\.toml"):
            compare(ring(), tmp_path, Here())
    assert len(compare(ring(seeds=1), tmp_path, Here()).runs) == 2


def test_a_worker_without_the_folder_leaves_no_checkpoint(tmp_path):
    engine = Here()
    compare(ring(seeds=1, learners=[{"learner": "psrl"}]), tmp_path / "here", engine)
    task = engine.tasks[-1]
    Store(tmp_path / "here").checkpoint(task.setting.id).unlink()
    files = runner.execute(task)  # the lock is free by now, so the folder is not the driver's
    assert files.episodes == episodes_of(tmp_path / "here")[task.setting.id]
    assert not Store(tmp_path / "here").checkpoint(task.setting.id).exists()


def test_one_worker_gives_the_numbers_of_two(whole, tmp_path):
    compare(ring(), tmp_path, workers=1)
    assert episodes_of(tmp_path) == episodes_of(whole[1])


def test_a_killed_local_worker_is_replaced(whole, tmp_path):
    with choose_executor("local", 2) as engine:
        compare(ring(), tmp_path, Deadly(engine))
    assert (tmp_path / MARKER).exists()
    assert episodes_of(tmp_path) == episodes_of(whole[1])


def test_progress_counts_episodes_up_to_all_of_them(tmp_path, monkeypatch):
    class Children(Here):
        children = True

    seen, looked = [], threading.Event()
    usual = Place.reporter

    def wait_for_a_look(place):
        report = usual(place)

        def report_and_wait(returns):
            report(returns)
            if len(returns) == 10:
                looked.clear()
                assert looked.wait(DEADLINE)

        return report_and_wait

    def progress(done):
        seen.append(list(done))
        looked.set()

    monkeypatch.setattr(Place, "reporter", wait_for_a_look)
    asked = ring(learners=[{"learner": "psrl"}])
    results = compare(asked, tmp_path, Children(), progress=progress)
    assert [one.episodes for one in seen[-1]] == [60, 60]
    assert any(0 < one.episodes < 60 for done in seen for one in done)
    totals = [sum(one.episodes for one in done) for done in seen]
    assert totals == sorted(totals)
    returns = [run.episodes["returns"].sum() for run in results.runs]
    assert [one.total for one in seen[-1]] == pytest.approx(returns)


def test_a_task_that_workers_die_of_is_a_failed_run(tmp_path):
    class Deadly(Here):
        def run(self, function, tasks):
            error = ClusterExecutor.gave_up(self, OSError("killed"))
            for position, result in super().run(function, tasks):
                yield position, error if function is runner.execute else result

    results = compare(ring(), tmp_path, Deadly())
    assert {run.status for run in results.runs} == {"failed"}
    assert "here gave up after 3 retries (OSError: killed)" in results.runs[0].message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cloud", 2), "unknown executor 'cloud'; expected one of local, ray, dask"),
        (("local", 0), "workers: expected a whole number of at least 1"),
        (("local", 2, "tcp://x"), "executor 'local' has none"),
    ],
)
def test_a_wrong_executor_is_refused(arguments, message):
    with pytest.raises(ModelError, match=message):
        choose_executor(*arguments)


@pytest.mark.parametrize("name", ["ray", "dask"])
def test_an_engine_that_is_not_installed_names_the_extra(name, monkeypatch):
    module = "distributed" if name == "dask" else "ray"
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(ExperimentError, match=rf"fsmdp\[{name}\]"):
        choose_executor(name, 2)


def test_a_single_run_is_kept_like_one_of_a_sweep(whole, tmp_path):
    asked = ring(seeds=1, learners=[{"learner": "psrl"}])
    regrets = []
    best, run = learn_in_folder(
        asked, tmp_path, lambda returns, v: regrets.append(v * len(returns) - returns.sum())
    )
    assert episodes_of(tmp_path)[run.id] == episodes_of(whole[1])[run.id]
    assert regrets[-1] == pytest.approx(run.episodes["regret"][-1])
    assert best == read_results(tmp_path).models[run.model].start_value_exact
    _, again = learn_in_folder(asked, tmp_path, lambda *_: pytest.fail("nothing is left to do"))
    assert again.episodes.equals(run.episodes)
    refused = ring(
        seeds=1, models=[{"model": "sysadmin:ring:60"}], learners=[{"learner": "optimal"}]
    )
    with pytest.raises(fsmdp.SizeError):
        learn_in_folder(refused, tmp_path / "refused", lambda *_: None)
    assert read_results(tmp_path / "refused").runs[0].status == "failed"


def test_a_folder_that_holds_no_runs_or_spoilt_ones_is_an_error(tmp_path):
    with pytest.raises(ModelError, match="holds no runs"):
        read_results(tmp_path)
    with pytest.raises(ModelError, match="holds no runs"):
        read_results(tmp_path / "none")
    compare(ring(seeds=1), tmp_path, Here())
    run = Store(tmp_path).run_folder(ring().runs[0].id)
    spoilt = {
        "episodes.parquet": (b"nothing", "changed since it was written"),
        "run.json": (seal({"status": "failed"}), "it is of another run: its id is None"),
        "timings.parquet": (b"", "changed since it was written"),
    }
    for name, (content, message) in spoilt.items():
        before = (run / name).read_bytes()
        (run / name).write_bytes(content)
        with pytest.raises(ModelError, match=message):
            read_results(tmp_path)
        (run / name).write_bytes(before)
    (run / "run.json").rename(run / "kept.json")
    facts = json.loads((run / "kept.json").read_text())
    (run / "run.json").write_bytes(seal(facts | {"digest": "0" * 64, "status": "perhaps"}))
    with pytest.raises(ModelError, match="status is 'perhaps', expected done or failed"):
        read_results(tmp_path)
    (run / "run.json").write_text('{"status": "done"}')
    with pytest.raises(ModelError, match=r"it has no digest, .*older release"):
        read_results(tmp_path)
    (run / "kept.json").rename(run / "run.json")
    for name in ("models.json", "specification.json", "provenance.json"):
        before = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(b"[1")
        with pytest.raises(ModelError, match=f"{name}: expected a JSON object"):
            read_results(tmp_path)
        (tmp_path / name).write_bytes(before)
    for name in ("models.json", "specification.json"):
        before = (tmp_path / name).read_bytes()
        write_json(tmp_path / name, {"x": {}})
        with pytest.raises(ModelError, match=r"expected (facts|what)"):
            read_results(tmp_path)
        (tmp_path / name).write_bytes(before)
    assert len(read_results(tmp_path).runs) == 2


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="cannot make the folder"):
        compare(ring(), tmp_path / "file" / "runs", Here())


def test_intervals_over_seeds_are_those_of_students_distribution():
    found = Interval.of([1.0, 2.0, 3.0, 4.0])
    assert found.mean == 2.5
    assert found.half_width == pytest.approx(3.182446 * 1.290994 / 2, rel=1e-6)
    assert Interval.of([1.0]).half_width is None
    assert str(Interval.of([1.0])) == "1"


def test_metadata_of_a_run_says_how_it_was_made(whole):
    _, folder = whole
    facts = json.loads((Store(folder).run_folder(ring().runs[0].id) / "run.json").read_text())
    assert facts["options"]["confidence"] == "chernoff"
    assert facts["seconds"] >= facts["seconds_planning"] > 0
    assert facts["heuristic"] is False


def _meet(folder, how_many):
    """This process's number, once so many processes are here."""
    (folder / str(os.getpid())).touch()
    began = time.monotonic()
    while len(list(folder.iterdir())) < how_many:
        assert time.monotonic() - began < DEADLINE
        time.sleep(0.01)
    return os.getpid()


def test_a_pool_grows_from_one_task_to_as_many_workers_as_were_asked_for(tmp_path):
    for name in ("alone", "together"):
        (tmp_path / name).mkdir()
    with choose_executor("local", 2) as engine:
        alone = functools.partial(_meet, tmp_path / "alone")
        assert len(list(engine.run(alone, [1]))) == 1
        together = functools.partial(_meet, tmp_path / "together")
        assert len({pid for _, pid in engine.run(together, [2, 2, 2, 2])}) == 2


def _blocked_signals(_):
    return signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_workers_leave_interrupts_to_their_parent_which_hears_them():
    before = _blocked_signals(None)
    with choose_executor("local", 2) as engine:
        blocked = [found for _, found in engine.run(_blocked_signals, [0, 1])]
    assert [signal.SIGINT in found for found in blocked] == [True, True]
    assert _blocked_signals(None) == before
    assert signal.SIGINT not in before


@pytest.mark.parametrize("learner", ["psrl", "ucrl"])
def test_a_failed_run_keeps_its_checkpoint_and_goes_on_from_it(
    learner, whole, tmp_path, monkeypatch
):
    asked = ring(seeds=1, learners=[dict(one) for one in RING["learners"] if learner in str(one)])
    run = asked.runs[0].id
    written = []

    def write(most, path, content):
        if Path(path).name == CHECKPOINT:
            if len(written) == most:
                raise ModelError("cannot write: No space left on device.")
            written.append(path)
        return usual(path, content)

    usual = arrays.write_file
    monkeypatch.setattr(arrays, "write_file", partial(write, 3))
    results = compare(asked, tmp_path, Here())
    assert results.runs[0].message == "cannot write: No space left on device."
    assert Store(tmp_path).status(asked.runs[0]) is RunStatus.FAILED
    with np.load(Store(tmp_path).checkpoint(run)) as kept:
        assert int(kept["done"]) == 30
    written.clear()
    monkeypatch.setattr(arrays, "write_file", partial(write, None))
    compare(asked, tmp_path, Here())
    assert len(written) == 3  # episodes 40, 50 and 60
    assert episodes_of(tmp_path)[run] == episodes_of(whole[1])[run]
    assert Store(tmp_path).checkpoint(run).exists()


def test_only_what_writing_our_own_files_left_is_removed(tmp_path):
    mine = [tmp_path / ".mine.part", tmp_path / "deep" / "x" / ".download.part"]
    left = [tmp_path / ".models.json.12-34.part"]
    asked = ring(episodes=5, learners=[{"learner": "random"}])
    left.append(tmp_path / "runs" / asked.runs[0].id / ".episodes.parquet.12-34.part")
    for path in (*mine, *left):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    compare(asked, tmp_path, Here())
    assert all(path.exists() for path in mine)
    assert not any(path.exists() for path in left)
