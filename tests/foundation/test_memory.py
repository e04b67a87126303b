import numpy as np
import pytest

from fsmdp.foundation.threads import begin_peak, peak_memory

HELD = 2**26


def test_a_peak_stays_after_memory_is_given_back_until_a_new_one_begins():
    if peak_memory() is None or not begin_peak():
        pytest.skip("nobody tells here what a process holds")
    before = peak_memory()
    np.ones(HELD // 8).sum()
    held = peak_memory()
    assert held >= before + 0.9 * HELD
    begin_peak()
    assert peak_memory() <= held - 0.8 * HELD
