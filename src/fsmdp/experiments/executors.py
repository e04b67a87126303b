"""Executors: where runs are done. Each hands tasks to an engine that schedules and retries.

Processes on this machine are in `local`; here are the interface, and clusters of Ray and Dask.
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, ClassVar, Protocol, TypeVar
from urllib.parse import urlsplit

from fsmdp.errors import ExperimentError
from fsmdp.foundation.checks import as_whole, clip
from fsmdp.foundation.registry import Registry

Task = TypeVar("Task")
Result = TypeVar("Result")

RETRIES = 3
"""How often a task is tried again whose worker died."""


class Executor(Protocol):
    """An engine: takes tasks all at once, gives results back as they finish.

    Functions are found by their names on the workers, tasks and results are pickled. A task may be
    done twice when a worker dies, so it must do no harm to do so.
    """

    name: str
    workers: int
    children: bool  # whether workers are children of this process, on this machine

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result | ExperimentError]]:
        """Positions of tasks with their results; an error for a task that was given up."""
        ...

    def __enter__(self) -> Executor: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


_HERE = "fsmdp.experiments"

EXECUTORS: Registry[Callable[[int, str | None], Executor]] = Registry(
    "executor",
    import_paths={
        "local": f"{_HERE}.local:LocalExecutor",
        "ray": f"{_HERE}.executors:RayExecutor",
        "dask": f"{_HERE}.executors:DaskExecutor",
    },
)
"""What makes an executor of a number of workers, and an address or None."""


def choose_executor(name: str, workers: int, address: str | None = None) -> Executor:
    """The executor of a name; its engine is imported here, and only if it is asked for."""
    as_whole(workers, "workers", 1)
    return EXECUTORS.find(name)(workers, address)


SECONDS_TO_CONNECT = 10.0


class ClusterExecutor:
    """An engine that is imported when it is asked for, at an address or started on this machine."""

    name: str
    module: ClassVar[str]  # what is imported
    example: ClassVar[str]  # of an address
    children = False

    def __init__(self, workers: int, address: str | None = None) -> None:
        try:
            self.engine: Any = importlib.import_module(self.module)
        except ImportError:
            raise ExperimentError(
                f"executor {self.name!r} needs {self.module!r}, which is not installed; "
                f'pip install "fsmdp[{self.name}]", or use --executor local.'
            ) from None
        self.workers = workers
        self.address = address

    def check_listening(self) -> None:
        """Refuse an address with a port at which nobody listens; engines would try for minutes."""
        address = self.address
        if address is None:
            return
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        try:
            if parts.hostname is None or parts.port is None:
                return  # a name that only the engine understands
            socket.create_connection((parts.hostname, parts.port), SECONDS_TO_CONNECT).close()
        except (OSError, ValueError) as error:
            raise self.cannot_join(error) from None

    def cannot_join(self, error: Exception) -> ExperimentError:
        """The error for a cluster that cannot be joined."""
        return ExperimentError(
            f"--executor {self.name}: cannot join a cluster at {self.address!r}: "
            f"{clip(str(error))}; expected the address of a running one, such as {self.example}."
        )

    def gave_up(self, error: Exception) -> ExperimentError:
        """The error for a task that the engine gave up on."""
        return ExperimentError(
            f"{self.name} gave up after {RETRIES} retries ({type(error).__name__}: "
            f"{clip(str(error))}); expected a worker to survive the run: it may have run out of "
            "memory, or lack the package."
        )


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
