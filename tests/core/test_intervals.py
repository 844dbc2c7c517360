import numpy as np
import pytest
from scipy import stats
from scipy.stats import binomtest

from isoroc._core.intervals import (
    Difference,
    Mean,
    Share,
    Statistic,
    design_effect,
    effective_rows,
    mean_of,
    variance_of_sum,
    wilson,
)


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
    first = Statistic(1.0, 0.04)
    second = Statistic(1.5, 0.09)
    difference = Difference(first, second, correlation=0.5)
    error = np.sqrt(0.04 + 0.09 - 2 * 0.5 * 0.2 * 0.3)
    assert difference.interval(0.95) == pytest.approx(
        (0.5 - 1.96 * error, 0.5 + 1.96 * error), abs=1e-4
    )


def test_a_mean_does_not_depend_on_batches():
    rng = np.random.default_rng(0)
    values = rng.exponential(size=1000) + 1e6
    weights = rng.random(1000)
    found = Mean()
    for rows in np.split(np.arange(1000), [3, 700]):
        found.add(values[rows], weights[rows])
    expected = mean_of(values, weights)
    np.testing.assert_allclose(found.statistic(), expected, rtol=1e-6)
    assert expected.value == pytest.approx(np.average(values, weights=weights))
    assert found.size == pytest.approx(effective_rows(weights.sum(), (weights**2).sum()))


def test_the_error_of_an_unweighted_mean_is_the_usual_one():
    values = np.random.default_rng(0).exponential(size=50)
    found = mean_of(values, None)
    assert found.error == pytest.approx(stats.sem(values))
    assert found.skewness == pytest.approx(stats.skew(values) / np.sqrt(50))
    assert found.df == pytest.approx(49)


def test_copies_of_a_row_in_one_cluster_tell_no_more_than_the_row():
    rng = np.random.default_rng(0)
    values = rng.normal(size=40)
    weights = rng.random(40)
    times = rng.integers(1, 6, 40)
    clusters = np.repeat(np.arange(40), times)
    repeated = mean_of(values[clusters], (weights / times)[clusters], clusters)
    np.testing.assert_allclose(repeated, mean_of(values, weights), rtol=1e-9)


def test_the_mean_of_equal_clusters_is_that_of_their_means():
    values = np.random.default_rng(0).normal(size=(30, 4))
    found = mean_of(values.ravel(), None, np.repeat(np.arange(30), 4))
    assert found.error == pytest.approx(stats.sem(values.mean(axis=1)))


def test_sums_by_cluster():
    terms = np.array([[1.0, -1.0, 2.0, -2.0], [1.0, 1.0, -1.0, -1.0]])
    clusters = np.array([0, 0, 1, 1])
    np.testing.assert_allclose(variance_of_sum(terms), [10, 4])
    np.testing.assert_allclose(variance_of_sum(terms, clusters), [0, 16])  # 8 * 2 / (2 - 1)
    np.testing.assert_allclose(design_effect(terms, clusters), [1, 4])


@pytest.mark.parametrize(("hits", "n"), [(0, 30), (3, 100), (100, 100)])
def test_a_share_of_independent_rows_has_wilsons_interval(hits, n):
    found = Mean()
    found.add(np.repeat([1.0, 0.0], [hits, n - hits]), np.ones(n))
    expected = binomtest(hits, n).proportion_ci(0.95, method="wilson")
    low, high = found.share().interval(0.95)
    # The size is estimated, so that the interval is a little wider.
    assert low <= expected.low + 1e-9
    assert high >= expected.high - 1e-9
    assert high - low == pytest.approx(expected.high - expected.low, rel=0.1)


def test_a_share_near_its_end_has_the_size_that_is_expected():
    assert Share.of(1.0, 0.0, 28.0, 7.0, prior=4.0).size == pytest.approx(28.0)
    certain = Share.of(0.5, 0.25 / 50, 10.0, 1e6, prior=4.0)
    assert certain.size == pytest.approx(50.0, rel=1e-4)


def test_events_of_equal_value_have_nearly_exact_intervals():
    # For 5 events among many rows, the interval of the mean is close to Clopper and Pearson's.
    n = 2000
    k = 5
    low, high = mean_of(np.repeat([1.0, 0.0], [k, n - k]), None).interval(0.95)
    exact = binomtest(k, n).proportion_ci(0.95, method="exact")
    assert n * low == pytest.approx(n * exact.low, abs=0.6)
    assert n * high == pytest.approx(n * exact.high, abs=0.8)
