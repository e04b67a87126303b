"""Real clusters on this machine: a worker is killed, and every run is there once all the same."""

import os
import signal

import psutil
import pytest
from tests.experiments.sweeps import episodes_of, ring

from fsmdp.errors import ExperimentError
from fsmdp.experiments.executors.choose import choose_executor
from fsmdp.experiments.runner import compare
from fsmdp.experiments.store import CHECKPOINT, RUNS

SWEEP = ring(episodes=800, learners=[{"learner": "psrl"}, {"learner": "ucrl", "replan": "episode"}])


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The episodes of the same sweep on local processes."""
    folder = tmp_path_factory.mktemp("local")
    compare(SWEEP, folder)
    return episodes_of(folder)


class KillOnce:
    """Progress that kills a worker, once, after a checkpoint was written."""

    def __init__(self, folder, find_worker):
        self.folder, self.find_worker = folder, find_worker
        self.killed = None

    def __call__(self, _):
        if self.killed is None and list(self.folder.glob(f"{RUNS}/*/{CHECKPOINT}")):
            self.killed = self.find_worker()
            os.kill(self.killed, signal.SIGKILL)


def assert_all_there(results, folder, local):
    assert [run.id for run in results.runs] == [run.id for run in SWEEP.runs]
    assert {run.status for run in results.runs} == {"done"}
    assert episodes_of(folder) == local


def test_ray_gives_the_same_numbers_although_a_worker_was_killed(local, tmp_path):
    kill = KillOnce(tmp_path, ray_worker)
    with choose_executor("ray", 2) as engine:
        results = compare(SWEEP, tmp_path, engine, progress=kill)
    assert kill.killed is not None
    assert results.provenance["executor"] == "ray"
    assert_all_there(results, tmp_path, local)


def ray_worker():
    """A process that Ray started for us and that is at work."""
    mine = psutil.Process().children(recursive=True)
    return next(one.pid for one in mine if "ray::execute" in " ".join(one.cmdline()))


def test_dask_gives_the_same_numbers_although_a_worker_was_killed(local, tmp_path):
    import distributed

    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):

        def dask_worker():
            return next(iter(client.run(os.getpid).values()))

        kill = KillOnce(tmp_path, dask_worker)
        results = compare(
            SWEEP,
            tmp_path,
            "dask",
            address=cluster.scheduler_address,
            progress=kill,
        )
    assert kill.killed is not None
    assert_all_there(results, tmp_path, local)


def test_dask_starts_a_cluster_of_its_own_when_no_address_is_given(local, tmp_path):
    results = compare(SWEEP, tmp_path, "dask", workers=2)
    assert_all_there(results, tmp_path, local)


def test_an_address_where_nobody_listens_is_one_error(tmp_path):
    for name, address in (("dask", "tcp://127.0.0.1:1"), ("ray", "127.0.0.1:1")):
        with pytest.raises(ExperimentError, match=r"cannot join a cluster at '.*127.0.0.1:1'"):
            compare(ring(), tmp_path / name, name, address=address)
