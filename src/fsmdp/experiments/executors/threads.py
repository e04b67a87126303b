"""One thread a run, so that numbers do not depend on where it is done."""

import os

LIMITED = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def use_one_thread() -> None:
    """Ask libraries for one thread; works only before numpy is imported.

    Sums may round differently with another number of threads.
    """
    for name in LIMITED:
        os.environ.setdefault(name, "1")
