"""Executors by name."""

from __future__ import annotations

from collections.abc import Callable

from fsmdp.experiments.executors.protocol import Executor
from fsmdp.foundation.checks import as_whole
from fsmdp.foundation.registry import Registry

_HERE = "fsmdp.experiments.executors"

EXECUTORS: Registry[Callable[[int, str | None], Executor]] = Registry(
    "executor",
    places={
        "local": f"{_HERE}.local:LocalExecutor",
        "ray": f"{_HERE}.ray:RayExecutor",
        "dask": f"{_HERE}.dask:DaskExecutor",
    },
)
"""What makes an executor of a number of workers, and an address or None."""


def choose_executor(name: str, workers: int, address: str | None = None) -> Executor:
    """The executor of a name; its engine is imported here, and only if it is asked for."""
    as_whole(workers, "workers", 1)
    return EXECUTORS.find(name)(workers, address)
