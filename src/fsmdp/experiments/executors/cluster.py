"""What engines with an address have in common."""

from __future__ import annotations

import importlib
import socket
from typing import Any, ClassVar
from urllib.parse import urlsplit

from fsmdp.errors import ExperimentError
from fsmdp.experiments.executors.protocol import RETRIES
from fsmdp.foundation.checks import clip

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
