"""A Ray cluster, or a local Ray when no address is given."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fsmdp.errors import ExperimentError
from fsmdp.experiments.executors.protocol import RETRIES, Result, Task, died, missing


class RayExecutor:
    """One Ray task a run, with one core each; Ray schedules, and retries when a worker dies.

    A Ray that this process has already joined is used as it is, and left running.
    """

    name = "ray"
    children = False

    def __init__(self, workers: int, address: str | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise missing("ray", "ray") from None
        self._ray: Any = ray
        self.workers = workers
        self.address = address
        self._joined = False

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result | ExperimentError]]:
        """Positions of tasks with their results."""
        ray = self._ray
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(function)
        position_of = {remote.remote(task): position for position, task in enumerate(tasks)}
        waiting = list(position_of)
        while waiting:
            (done, *_), waiting = ray.wait(waiting, num_returns=1)
            position = position_of.pop(done)
            try:
                yield position, ray.get(done)
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
                yield position, died(position, type(error).__name__)

    def __enter__(self) -> RayExecutor:
        ray = self._ray
        if ray.is_initialized():
            return self
        options: dict[str, Any] = {"address": self.address}
        if self.address is None:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            options = {"address": "local", "num_cpus": self.workers, "include_dashboard": False}
        try:
            ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ExperimentError(
                f"cannot join Ray at {self.address!r}: {error}; expected the address of a running "
                "cluster, such as ray://host:10001 or auto."
            ) from None
        self._joined = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._joined:
            self._ray.shutdown()
