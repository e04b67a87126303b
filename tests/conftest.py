"""Property tests look at the same examples in every run unless told to explore."""

import os

# Before NumPy is imported. On small matrices the threads of BLAS wait for one another, busily.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("same")
