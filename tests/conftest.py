"""Property tests look at the same examples in every run unless told to explore.

Files that take long come first, so that several processes end at about the same time.
"""

import os
import signal
from pathlib import Path

# Before NumPy is imported. On small matrices the threads of BLAS wait for one another, busily.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell that starts the tests in the background ignores interrupts for all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("same")

LONGEST = (
    "test_documentation.py",
    "experiments/test_runner.py",
    "experiments/test_killed.py",
    "experiments/test_engines.py",
    "learning/test_confidence.py",
    "discovery/test_discovery.py",
    "learning/test_checkpoint.py",
    "solver/test_solver.py",
    "test_examples.py",
    "learning/test_independence.py",
    "learning/test_checkpoint_files.py",
    "learning/test_regret.py",
    "io/test_plan_files.py",
    "learning/test_learners.py",
)
"""Files with more than about 15 s of work, the longest first; the others keep their order."""


@pytest.fixture
def in_this_process(monkeypatch):
    """Runs that the local executor would do are done here, which saves the start of processes."""
    from fsmdp.experiments.executors import EXECUTORS
    from tests.experiments.sweeps import Local

    monkeypatch.setitem(EXECUTORS._entries, "local", Local)


def pytest_collection_modifyitems(items):
    first = {Path(__file__).parent / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: first.get(item.path, len(first)))
