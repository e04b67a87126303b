"""Numbers as people write them."""

import math

import pytest

from fsmdp.foundation.numbers import (
    bound_text,
    count_of_states,
    lower,
    percent,
    percent_at_most,
    plain,
    upper,
    with_error,
)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (180.4, 2, "180"),
        (9.87e7, 2, "98700000"),
        (-1234567.2, 6, "-1234567"),
        (1e10, 6, "10000000000"),
        (0.00001234567, 6, "0.0000123457"),
        (0.0123, 2, "0.012"),
        (1e-7, 2, "1e-07"),
        (3e20, 2, "3e+20"),
        (math.inf, 3, "inf"),
        (117.4, 6, "117.4"),
    ],
)
def test_a_number_is_written_out_unless_it_is_huge_or_tiny(value, digits, text):
    assert plain(value, digits) == text


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (117.4, 178.9, "120 ± 180"),
        (1.16585, 0.0312, "1.166 ± 0.031"),
        (-3.8688, 120.0, "0 ± 120"),
        (0.48133, 0.014, "0.481 ± 0.014"),
        (31.621, 34.0, "32 ± 34"),
        (6576123.4, 42000.0, "6576000 ± 42000"),
        (2.0, 0.0996, "2.00 ± 0.10"),
        (8.125, 0.0, "8.125 ± 0"),
        (8.125, 1e-16, "8.125 ± 0"),
        (8.125, math.inf, "8.125 ± inf"),
        (3e20, 2e18, "3e+20 ± 2e+18"),
        (3e-20, 2e-22, "3e-20 ± 2e-22"),
        (math.nan, math.nan, "nan ± nan"),
    ],
)
def test_a_mean_has_as_many_places_as_its_error_and_that_two_figures(mean, error, text):
    assert with_error(mean, error) == text


@pytest.mark.parametrize("write", [plain, upper, lower])
def test_what_is_rounding_beside_what_was_added_up_is_zero(write):
    assert write(7.4e-11, 6, scale=800.0) == "0"
    assert write(-7.4e-11, 6, scale=800.0) == "0"
    assert write(7.4e-8, 6, scale=800.0) != "0"
    assert write(4e-290, 6) == "0"
    assert with_error(1e-13, 1e-14, scale=10.0) == "0 ± 0"


@pytest.mark.parametrize(
    ("value", "above", "below"),
    [
        (8.125002752, "8.12501", "8.125"),
        (8.125 + 1e-12, "8.125", "8.125"),
        (8.125 - 1e-12, "8.125", "8.125"),
        (-8.125002752, "-8.125", "-8.12501"),
        (6786921.3, "6786922", "6786921"),
        (10000000008.25, "10000000009", "10000000008"),
        (10000000008.0, "10000000008", "10000000008"),
        (1.0000001e20, "1.00001e+20", "1e+20"),
        (math.inf, "inf", "inf"),
        (0.0, "0", "0"),
    ],
)
def test_a_limit_holds_as_it_is_written(value, above, below):
    assert upper(value, 6) == above
    assert lower(value, 6) == below


def test_a_bound_that_is_attained_is_written_as_the_value_it_is():
    assert bound_text(8.1250027, attained=True) == "8.125"
    assert bound_text(8.1250027, attained=False) == "8.12501"


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.10612, "10.7 %"), (3.47e-10, "0.0001 %"), (0.0, "0 %"), (0.1, "10 %")],
)
def test_a_limit_on_a_loss_is_rounded_up(fraction, text):
    assert percent_at_most(fraction) == text


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
