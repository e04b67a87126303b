"""Executors by name."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

from fsmdp.experiments.executors.protocol import Executor
from fsmdp.foundation.checks import as_whole
from fsmdp.foundation.registry import Registry

EXECUTORS: Registry[Callable[[int, str | None], Executor]] = Registry("executor")
"""What makes an executor of a number of workers, and an address or None."""


def _imported(place: str) -> Callable[[int, str | None], Executor]:
    """A class that is imported when it is asked for, and with it the engine that it drives."""

    def make(workers: int, address: str | None) -> Executor:
        executor: Any = resolve_name(f"fsmdp.experiments.executors.{place}")
        return executor(workers, address)  # type: ignore[no-any-return]

    return make


EXECUTORS.register("local", _imported("local:LocalExecutor"))
EXECUTORS.register("ray", _imported("ray:RayExecutor"))
EXECUTORS.register("dask", _imported("dask:DaskExecutor"))


def choose_executor(name: str, workers: int, address: str | None = None) -> Executor:
    """The executor of a name; its engine is imported here, and only if it is asked for."""
    as_whole(workers, "workers", 1)
    return EXECUTORS.find(name)(workers, address)
