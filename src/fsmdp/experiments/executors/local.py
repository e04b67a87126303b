"""Processes on this machine, through joblib and loky."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from fsmdp.errors import ExperimentError
from fsmdp.experiments.executors.protocol import RETRIES, Result, Task


class LocalExecutor:
    """A pool of processes, each with one thread for linear algebra and compiled code."""

    name = "local"
    children = True

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result | ExperimentError]]:
        """Positions of tasks with their results.

        The death of a worker breaks the whole pool and nobody can tell whose fault it was, so what
        is left is done in a new pool, a few times over if nothing gets done in between.
        """
        left = dict(enumerate(tasks))
        deaths = 0
        while left:
            try:
                for position, result in self._pool(function, left):
                    del left[position]
                    deaths = 0
                    yield position, result
            except BrokenProcessPool as error:
                deaths += 1
                if deaths > RETRIES:
                    raise ExperimentError(
                        f"local workers died {deaths} times without finishing a run; expected them "
                        "to live, they may need more memory than there is: use fewer --workers."
                    ) from error

    def _pool(
        self, function: Callable[[Task], Result], tasks: dict[int, Task]
    ) -> Iterator[tuple[int, Result]]:
        from joblib import Parallel, delayed, parallel_config

        with parallel_config(backend="loky", n_jobs=self.workers, inner_max_num_threads=1):
            pool = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="all")
            numbered = delayed(_numbered)
            yield from pool(numbered(function, at, task) for at, task in list(tasks.items()))

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Idle workers may stay for the next sweep; busy ones would only be in its way."""
        from joblib.externals.loky import get_reusable_executor

        if kind is not None:
            get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


def _numbered(function: Callable[[Any], Any], position: int, task: Any) -> tuple[int, Any]:
    return position, function(task)
