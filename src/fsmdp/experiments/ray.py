"""A Ray cluster, or a local Ray when no address is given."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fsmdp.errors import ExperimentError
from fsmdp.experiments.executors import RETRIES, ClusterExecutor, Result, Task


class RayExecutor(ClusterExecutor):
    """One Ray task a run, with one core each; Ray schedules, and retries when a worker dies.

    A Ray that this process has already joined is used as it is, and left running.
    """

    name = "ray"
    module = "ray"
    example = "host:6379, ray://host:10001 or auto"
    _joined = False

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result | ExperimentError]]:
        """Positions of tasks with their results."""
        ray = self.engine
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(function)
        position_of = {remote.remote(task): position for position, task in enumerate(tasks)}
        waiting = list(position_of)
        while waiting:
            (done, *_), waiting = ray.wait(waiting, num_returns=1)
            try:
                result = ray.get(done)
            except ray.exceptions.RayError as error:
                result = self.gave_up(error)
            yield position_of.pop(done), result

    def __enter__(self) -> RayExecutor:
        if self.engine.is_initialized():
            return self
        options: dict[str, Any] = {"address": self.address}
        if self.address is None:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            options = {"address": "local", "num_cpus": self.workers, "include_dashboard": False}
        self.check_listening()
        try:
            self.engine.init(**options, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise self.cannot_join(error) from None
        self._joined = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._joined:
            self.engine.shutdown()
