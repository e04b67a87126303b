"""Intervals, moving means, slopes and thinning, against their definitions."""

import numpy as np
import pytest
from scipy import stats

from fsmdp.report.curves import (
    MOST_POINTS,
    fit_slope,
    half_widths,
    moving_mean,
    positive_in_last_half,
    thinned,
)


def test_half_widths_are_those_of_the_t_interval():
    samples = np.random.default_rng(0).normal(size=(5, 3))
    for column, found in zip(samples.T, half_widths(samples), strict=True):
        low, high = stats.t.interval(0.95, 4, loc=column.mean(), scale=stats.sem(column))
        assert found == pytest.approx((high - low) / 2)


def test_the_interval_covers_the_mean_as_often_as_it_says():
    samples = np.random.default_rng(1).normal(size=(4, 20_000))
    covered = np.abs(samples.mean(axis=0)) <= half_widths(samples)
    assert covered.mean() == pytest.approx(0.95, abs=0.006)


def test_a_single_seed_has_no_interval():
    assert half_widths(np.ones((1, 4))) is None


@pytest.mark.parametrize("window", [1, 3, 50])
def test_a_moving_mean_looks_back_over_its_window(window):
    series = np.random.default_rng(0).normal(size=(2, 20))
    expected = [[row[max(0, k + 1 - window) : k + 1].mean() for k in range(20)] for row in series]
    np.testing.assert_allclose(moving_mean(series, window), expected)


@pytest.mark.parametrize("exponent", [0.3, 0.5, 1.0])
def test_the_slope_of_a_power_is_its_exponent(exponent):
    fit = fit_slope(3 * np.arange(1, 1001) ** exponent)
    assert fit.slope == pytest.approx(exponent, abs=1e-4)
    assert fit.at(np.array([100.0])) == pytest.approx(3 * 100**exponent, rel=1e-3)


def test_only_the_last_half_of_log_time_is_fitted():
    k = np.arange(1, 10_001)
    early_noise = np.where(k < 100, 1000.0, np.sqrt(k))
    assert fit_slope(early_noise).slope == pytest.approx(0.5, abs=1e-4)


def test_there_is_no_slope_where_a_log_axis_could_not_show_it():
    series = np.sqrt(np.arange(1.0, 401.0))
    series[300] = -1
    assert not positive_in_last_half(series)
    assert fit_slope(series) is None
    assert fit_slope(np.ones(10)) is None


def test_values_before_the_last_half_may_be_negative():
    series = np.sqrt(np.arange(1.0, 401.0))
    series[:18] = -1
    assert positive_in_last_half(series)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("n_points", [1, 17, 400, 100_000])
def test_thinning_keeps_both_ends_and_bounds_the_number(n_points, log):
    chosen = thinned(n_points, log)
    assert chosen[0] == 0
    assert chosen[-1] == n_points - 1
    assert len(chosen) <= MOST_POINTS
    assert (np.diff(chosen) > 0).all()
