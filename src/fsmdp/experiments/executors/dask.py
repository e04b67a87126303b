"""A Dask cluster, or a local one when no address is given."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from fsmdp.errors import ExperimentError
from fsmdp.experiments.executors.protocol import RETRIES, Result, Task, died, missing


class DaskExecutor:
    """One Dask task a run; Dask schedules, and does a dead worker's tasks again elsewhere."""

    name = "dask"
    children = False

    def __init__(self, workers: int, address: str | None = None) -> None:
        try:
            import distributed
        except ImportError:
            raise missing("dask[distributed]", "dask") from None
        self._distributed: Any = distributed
        self.workers = workers
        self.address = address
        self._client: Any = None
        self._open = ExitStack()

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result | ExperimentError]]:
        """Positions of tasks with their results."""
        distributed = self._distributed
        futures = self._client.map(function, tasks, pure=False, retries=RETRIES)
        position_of = {future.key: position for position, future in enumerate(futures)}
        for future in distributed.as_completed(futures):
            position = position_of[future.key]
            try:
                result = future.result()
            except distributed.KilledWorker as error:
                result = died(position, type(error).__name__)
            yield position, result
            future.release()

    def __enter__(self) -> DaskExecutor:
        distributed = self._distributed
        target: Any = self.address
        if target is None:
            target = self._open.enter_context(
                distributed.LocalCluster(
                    n_workers=self.workers,
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=logging.ERROR,
                )
            )
        try:
            self._client = self._open.enter_context(distributed.Client(target))
        except (OSError, TimeoutError, ValueError) as error:
            raise ExperimentError(
                f"cannot reach the Dask scheduler at {self.address!r}: {error}; expected the "
                "address of a running one, such as tcp://host:8786."
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
