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
        """Positions of tasks with their results; an error for a task that was given up."""
        ...

    def __enter__(self) -> Executor: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
