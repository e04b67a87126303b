"""Small sweeps that several tests run, and what is checked of their folders."""

import io
import json
from pathlib import Path

import numpy as np
import polars

from fsmdp.experiments.specification import specify
from fsmdp.experiments.store import EPISODES, RUNS

RING = {
    "name": "ring",
    "episodes": 60,
    "seeds": 2,
    "checkpoint_every": 10,
    "models": [{"model": "sysadmin:ring:3:horizon=4"}],
    "learners": [{"learner": "ucrl", "known_rewards": True}, {"learner": "psrl"}],
}


def ring(**changes):
    return specify(RING | changes)


def episodes_of(folder):
    """The bytes of every episodes file, by run."""
    return {
        path.parent.name: path.read_bytes() for path in Path(folder).glob(f"{RUNS}/*/{EPISODES}")
    }


def assert_readable(folder):
    """Every file that a killed process left is whole."""
    found = [path for path in Path(folder).rglob("*") if path.is_file()]
    for path in found:
        content = path.read_bytes()
        if path.suffix == ".json":
            json.loads(content)
        elif path.suffix == ".parquet":
            polars.read_parquet(io.BytesIO(content))
        elif path.suffix == ".npz":
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                assert all(arrays[name] is not None for name in arrays.files)
    return found


class Here:
    """An executor that does every task at once, in this process."""

    name, workers, children = "here", 1, False

    def __init__(self, most=None):
        self.most = most
        self.tasks = []

    def run(self, function, tasks):
        for position, task in enumerate(tasks):
            if self.most is not None and len(self.tasks) >= self.most:
                raise KeyboardInterrupt
            self.tasks.append(task)
            yield position, function(task)


class Local(Here):
    """Stands for the local executor where a test is not about its processes."""

    name, children = "local", True

    def __init__(self, workers, address):
        super().__init__()
        self.workers = workers

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Nothing to end."""
