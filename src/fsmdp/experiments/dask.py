"""A Dask cluster, or a local one when no address is given."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from fsmdp.errors import ExperimentError
from fsmdp.experiments.executors import RETRIES, ClusterExecutor, Result, Task


class DaskExecutor(ClusterExecutor):
    """One Dask task a run; Dask schedules, and does a dead worker's tasks again elsewhere."""

    name = "dask"
    module = "distributed"
    example = "tcp://host:8786"

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result | ExperimentError]]:
        """Positions of tasks with their results."""
        futures = self._client.map(function, tasks, pure=False, retries=RETRIES)
        position_of = {future.key: position for position, future in enumerate(futures)}
        for future in self.engine.as_completed(futures):
            try:
                result = future.result()
            except Exception as error:  # whatever a worker raised, or what became of it
                result = self.gave_up(error)
            yield position_of[future.key], result
            future.release()

    def __enter__(self) -> DaskExecutor:
        self._open = ExitStack()
        self.check_listening()
        target: Any = self.address
        if target is None:
            cluster = self.engine.LocalCluster(
                n_workers=self.workers,
                threads_per_worker=1,
                dashboard_address=None,
                silence_logs=logging.ERROR,
            )
            target = self._open.enter_context(cluster)
        try:
            self._client = self._open.enter_context(self.engine.Client(target))
        except (OSError, ValueError) as error:
            self._open.close()
            raise self.cannot_join(error) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
