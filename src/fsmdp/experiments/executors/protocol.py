"""What an executor is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, TypeVar

from fsmdp.errors import ExperimentError

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


def died(position: int, reason: object) -> ExperimentError:
    """The error for a task whose workers keep dying."""
    return ExperimentError(
        f"task {position}: its worker died {RETRIES + 1} times ({reason}); it may need more memory "
        "than there is, use fewer workers a machine."
    )
