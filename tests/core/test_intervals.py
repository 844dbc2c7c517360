import numpy as np
import pytest
from scipy import stats
from scipy.stats import binomtest

from isoroc._core.intervals import Difference, Statistic, wilson


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize(("hits", "n"), [(0, 3), (1, 3), (7, 40), (40, 40)])
def test_wilson_is_scipys(hits, n, confidence):
    low, high = wilson(np.array([hits / n]), np.array([float(n)]), confidence)
    expected = binomtest(hits, n).proportion_ci(confidence, method="wilson")
    np.testing.assert_allclose([low[0], high[0]], [expected.low, expected.high], atol=1e-12)


@pytest.mark.parametrize("df", [1, 4, 30])
@pytest.mark.parametrize("t", [0.0, 1.0, 5.0, 100.0])
def test_intervals_of_squares_cover_a_noncentral_chi_square(df, t):
    # An estimate x - df of t, where x is a noncentral chi-square variable, on quantiles of x.
    chances = (np.arange(400) + 0.5) / 400
    x = stats.ncx2.ppf(chances, df, t) if t else stats.chi2.ppf(chances, df)
    covered = 0
    for value in x - df:
        estimate = Statistic(float(value), 2.0 * df, 4.0)
        low, high = estimate.interval(0.95)
        assert low <= value <= high or (value < 0 and low == value)
        covered += low <= t <= high
    assert 0.94 <= covered / 400 <= 0.98


def test_an_interval_is_widened_by_the_bias():
    low, high = Statistic(1.0, 0.01).interval(0.95)
    assert (low, high) == pytest.approx((0.804, 1.196), abs=1e-3)
    biased = Statistic(1.0, 0.01, 0.0, 0.25, 0.5).interval(0.95)
    assert biased == pytest.approx((low - 0.25, high + 0.5))
    assert np.isnan(Statistic(1.0, np.nan).interval(0.95)).all()


def test_the_interval_of_a_difference_is_that_of_paired_estimates():
    first, second = Statistic(1.0, 0.04), Statistic(1.5, 0.09)
    difference = Difference(first, second, correlation=0.5)
    error = np.sqrt(0.04 + 0.09 - 2 * 0.5 * 0.2 * 0.3)
    assert difference.interval(0.95) == pytest.approx(
        (0.5 - 1.96 * error, 0.5 + 1.96 * error), abs=1e-4
    )
