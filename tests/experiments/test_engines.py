"""Real clusters on this machine: a worker dies, and every run is there once all the same."""

import pytest
from tests.experiments.dying import MARKER, Deadly
from tests.experiments.sweeps import Here, episodes_of, ring

from fsmdp.errors import ExperimentError
from fsmdp.experiments.executors import choose_executor
from fsmdp.experiments.runner import compare

SWEEP = ring(episodes=40, learners=[{"learner": "psrl"}, {"learner": "ucrl", "replan": "episode"}])


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The episodes of the same sweep in this process."""
    folder = tmp_path_factory.mktemp("local")
    compare(SWEEP, folder, Here())
    return episodes_of(folder)


def assert_all_there(results, folder, local):
    assert [run.id for run in results.runs] == [run.id for run in SWEEP.runs]
    assert {run.status for run in results.runs} == {"done"}
    assert episodes_of(folder) == local


@pytest.mark.parametrize("name", ["ray", "dask"])
def test_a_cluster_gives_the_same_numbers_although_a_worker_died(name, local, tmp_path):
    with choose_executor(name, 2) as engine:
        results = compare(SWEEP, tmp_path, Deadly(engine))
    assert (tmp_path / MARKER).exists()
    assert results.provenance["executor"] == name
    assert_all_there(results, tmp_path, local)


def test_dask_joins_a_cluster_at_an_address(local, tmp_path):
    import distributed

    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        results = compare(SWEEP, tmp_path, "dask", address=cluster.scheduler_address)
    assert_all_there(results, tmp_path, local)


@pytest.mark.slow  # as the one above in which a worker died, with nothing gone wrong
def test_dask_starts_a_cluster_of_its_own_when_no_address_is_given(local, tmp_path):
    results = compare(SWEEP, tmp_path, "dask", workers=2)
    assert_all_there(results, tmp_path, local)


def test_an_address_where_nobody_listens_is_one_error(tmp_path):
    for name, address in (("dask", "tcp://127.0.0.1:1"), ("ray", "127.0.0.1:1")):
        with pytest.raises(ExperimentError, match=r"cannot join a cluster at '.*127.0.0.1:1'"):
            compare(ring(), tmp_path / name, name, address=address)
