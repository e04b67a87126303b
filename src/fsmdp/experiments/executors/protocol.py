"""What an executor is."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from fsmdp.errors import ExperimentError

Task = TypeVar("Task")
Result = TypeVar("Result")

RETRIES = 3
"""How often a task is tried again whose worker died."""

SECONDS_TO_CONNECT = 10.0


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
        """Positions of tasks with their results; an error for a task that workers died of."""
        ...

    def __enter__(self) -> Executor: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def missing(package: str, extra: str) -> ExperimentError:
    """The error for an engine that is not installed."""
    return ExperimentError(
        f"executor {extra!r} needs the package {package!r}, which is not installed; "
        f'pip install "fsmdp[{extra}]", or use --executor local.'
    )


def check_listening(address: str, engine: str) -> None:
    """Refuse an address with a port at which nobody listens; engines would try for minutes."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    try:
        if parts.hostname is None or parts.port is None:
            return  # a name that only the engine understands
        with socket.create_connection((parts.hostname, parts.port), SECONDS_TO_CONNECT):
            return
    except (OSError, ValueError) as error:
        raise cannot_join(engine, address, error) from None


def cannot_join(engine: str, address: str | None, error: object) -> ExperimentError:
    """The error for a cluster that cannot be joined."""
    example = {"ray": "host:6379, ray://host:10001 or auto", "dask": "tcp://host:8786"}[engine]
    return ExperimentError(
        f"--executor {engine}: cannot join a cluster at {address!r}: {error}; expected the address "
        f"of a running one, such as {example}."
    )


def died(position: int, reason: object) -> ExperimentError:
    """The error for a task whose workers keep dying."""
    return ExperimentError(
        f"task {position}: its worker died {RETRIES + 1} times ({reason}); it may need more memory "
        "than there is, use fewer workers a machine."
    )
