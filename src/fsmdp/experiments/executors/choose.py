"""Executors by name."""

from __future__ import annotations

from fsmdp.errors import ModelError
from fsmdp.experiments.executors.protocol import Executor
from fsmdp.foundation.checks import as_whole, show

EXECUTORS = ("local", "ray", "dask")


def choose_executor(name: str, workers: int, address: str | None = None) -> Executor:
    """The executor of a name; its engine is imported here, and only if it is asked for."""
    as_whole(workers, "workers", 1)
    if name == "local":
        if address is not None:
            raise ModelError(
                f"address: executor 'local' has none, found {show(address)}; leave it out, or use "
                "--executor ray or dask."
            )
        from fsmdp.experiments.executors.local import LocalExecutor

        return LocalExecutor(workers)
    if name == "ray":
        from fsmdp.experiments.executors.ray import RayExecutor

        return RayExecutor(workers, address)
    if name == "dask":
        from fsmdp.experiments.executors.dask import DaskExecutor

        return DaskExecutor(workers, address)
    raise ModelError(f"executor: expected one of {', '.join(EXECUTORS)}, found {show(name)}.")
