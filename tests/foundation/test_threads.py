import os

import pytest

from fsmdp.foundation.threads import cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be bound here")
def test_only_cores_that_the_process_may_use_count():
    allowed = os.sched_getaffinity(0)
    assert cores() == len(allowed)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
