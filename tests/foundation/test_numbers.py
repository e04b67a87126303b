"""Numbers as people write them."""

import math

import pytest

from fsmdp.foundation.numbers import count_of_states, percent, plain, with_error


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (180.4, 2, "180"),
        (9.87e7, 2, "99000000"),
        (-1234567.0, 6, "-1234570"),
        (0.0123, 2, "0.012"),
        (1e-7, 2, "1e-07"),
        (3e20, 2, "3e+20"),
        (math.inf, 3, "inf"),
        (117.4, 6, "117.4"),
    ],
)
def test_a_number_is_written_out_unless_it_is_huge_or_tiny(value, digits, text):
    assert plain(value, digits) == text


def test_a_wide_error_is_no_power_of_ten():
    assert with_error(117.4, 178.9) == "117.4 ± 180"
    assert with_error(1.16585, 0.0312) == "1.16585 ± 0.031"


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.0, "0.0 %"),
        (0.9994, "99.9 %"),
        (1.0, "100 %"),
        (4.87e8, "-"),
        (math.inf, "-"),
        (None, "-"),
    ],
)
def test_a_gap_that_says_nothing_is_a_dash(fraction, text):
    assert percent(fraction) == text


def test_few_states_are_counted():
    assert count_of_states(math.log10(8)) == "8"
    assert count_of_states(math.log10(2**20)) == "1,048,576"
    assert count_of_states(18.06) == "10^18.1"
