"""One thread a run, so that numbers do not depend on where it is done."""

import os

LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in LIBRARIES}
"""What the environment must say before numpy is imported."""


def use_one_thread() -> None:
    """Ask libraries for one thread; works only before numpy is imported.

    Sums may round differently with another number of threads.
    """
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
