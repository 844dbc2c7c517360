import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binomtest

from isoroc._evaluation.curves import (
    axis_of,
    calibration_map,
    histogram,
    reliability_panels,
    thin,
)
from isoroc._input import Sample
from isoroc.metrics._calibration import observed_rates
from strategies import binary_data


def as_sample(scores, y, weights):
    """Sample of scores mapped to [0, 1] with the same order and ties."""
    _, rank = np.unique(scores, return_inverse=True)
    return Sample(rank / (rank.max() + 1), y.astype(np.uint8), weights)


@given(binary_data())
def test_groups_partition_the_rows(data):
    sample = as_sample(*data)
    rates = observed_rates(sample, n_bins=4, confidence=0.9)
    weights = sample.row_weights()
    assert 1 <= rates.n_rows <= 4
    assert rates["weight"].sum() == pytest.approx(weights.sum())
    assert (rates["weight"] * rates["rate"]).sum() == pytest.approx((weights * sample.codes).sum())
    total = (weights * sample.forecasts).sum()
    assert (rates["weight"] * rates["forecast"]).sum() == pytest.approx(total)
    assert (np.diff(rates["forecast"]) > 0).all()
    assert (rates["low"] <= rates["rate"] + 1e-12).all()
    assert (rates["rate"] <= rates["high"] + 1e-12).all()
    counted = histogram(sample)
    assert counted["percent"].sum() == pytest.approx(100)


def test_intervals_are_wilsons():
    rng = np.random.default_rng(0)
    sample = Sample(np.repeat([0.2, 0.6], 30), (rng.random(60) < 0.4).astype(np.uint8), None)
    rates = observed_rates(sample, n_bins=2, confidence=0.8)
    for group in range(2):
        hits = int(sample.codes[30 * group : 30 * (group + 1)].sum())
        low, high = binomtest(hits, 30).proportion_ci(0.8, method="wilson")
        assert (rates["low"][group], rates["high"][group]) == pytest.approx((low, high))


def test_few_distinct_forecasts_have_a_marker_and_a_bar_each():
    levels = np.array([0.05, 0.3, 0.7, 0.9])
    p = np.repeat(levels, 50)
    sample = Sample(p, (np.arange(200) % 3 == 0).astype(np.uint8), None)
    rates = observed_rates(sample, n_bins=None, confidence=0.9)
    np.testing.assert_allclose(rates["forecast"], levels)
    assert observed_rates(sample, n_bins=2, confidence=0.9).n_rows == 2
    bars = histogram(sample)
    filled = bars["percent"] > 0
    assert bars["percent"][filled].tolist() == [25] * 4
    middle = (bars["left"] + bars["right"])[filled] / 2
    np.testing.assert_allclose(middle, levels, atol=1e-3)
    np.testing.assert_array_equal(bars["left"][1:], bars["right"][:-1])


def test_bars_contain_their_left_end():
    p = np.append(np.arange(100) / 100, np.arange(0.001, 1, 0.01))
    counted = histogram(Sample(p, np.zeros(200, dtype=np.uint8), None))
    assert counted["percent"].tolist() == [5.0] * 20


ENDS = np.geomspace(1e-5, 0.1, 500)


@pytest.mark.parametrize(
    ("p", "rate", "scale"),
    [
        (np.linspace(0, 1, 1000), 0.5, "linear"),
        (np.linspace(0, 1, 1000), 0.02, "logit"),
        (np.linspace(0, 1, 1000), 0.98, "logit"),
        (np.geomspace(1e-4, 0.15, 1000), 0.1, "logit"),
        (np.append(ENDS, 1 - ENDS), 0.5, "logit"),
        (np.append(np.zeros(500), np.ones(500)), 0.5, "linear"),  # no log odds
    ],
)
def test_scale_follows_forecasts_and_rate(p, rate, scale):
    sample = Sample(p, (np.arange(1000) < 1000 * rate).astype(np.uint8), None)
    axis = axis_of([sample])
    assert axis.scale == scale
    place = axis.position(axis.values(10))
    np.testing.assert_allclose(place, np.arange(11) / 10, atol=1e-9)
    assert histogram(sample, axis)["percent"].sum() == pytest.approx(100)
    ticks = axis.position(axis.ticks())
    assert ticks[0] >= 0
    assert (np.diff(ticks) > 0.1).all()
    assert 3 <= len(ticks) <= 7


def test_log_odds_end_where_the_forecasts_do():
    p = 1 - np.geomspace(1e-4, 0.4, 1000)
    axis = axis_of([Sample(p, np.ones(1000, dtype=np.uint8), None)], "logit")
    assert (axis.low, axis.high) == (0.5, 0.99999)
    assert axis.position([0.0, 0.5, 0.99999, 1.0]).tolist() == [0, 0, 1, 1]
    rare = axis_of([Sample(1 - p, (np.arange(1000) < 100).astype(np.uint8), None)], "logit")
    assert (rare.low, rare.high) == (1e-4, 0.5)


def test_one_event_has_two_panels_and_several_events_one_each():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 200)
    y = P.argmax(axis=1).astype(np.uint8)
    samples = {of: Sample(P, y, None) for of in ("before", "after")}
    two = reliability_panels(samples, {"top": None})
    assert [(panel.name, panel.event, list(panel.series)) for panel in two] == [
        ("before", "top", ["before"]),
        ("after", "top", ["after"]),
    ]
    each = reliability_panels(samples, {"a": 0, "b": 1})
    assert [(panel.name, list(panel.series)) for panel in each] == [
        ("a", ["before", "after"]),
        ("b", ["before", "after"]),
    ]


def test_calibration_map_has_the_means_of_similar_forecasts():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    weights = rng.random(500)
    event = Sample(p, (rng.random(500) < p).astype(np.uint8), weights)
    line = calibration_map(event, p**2, axis_of([event]), 20)
    assert line.n_rows == 20
    first = p < 0.05
    mean = np.average(p[first] ** 2, weights=weights[first])
    assert line["after"][0] == pytest.approx(mean)
    np.testing.assert_allclose(line["after"], line["before"] ** 2, atol=0.01)


def test_observed_rates_of_equal_forecasts():
    y = np.array([0, 1, 0, 1, 1], dtype=np.uint8)
    sample = Sample(np.array([0.2, 0.2, 0.4, 0.4, 0.9]), y, None)
    rates = observed_rates(sample, n_bins=5, confidence=0.9)
    np.testing.assert_allclose(rates["rate"], [0.5, 0.5, 1])
    np.testing.assert_allclose(rates["low"], [0.12087, 0.12087, 0.26987], atol=1e-5)
    assert rates["weight"].tolist() == [2, 2, 1]


def test_thinned_lines_have_equal_steps():
    t = np.linspace(0, 1, 1001)
    assert thin(t, t, most=5).tolist() == [0, 250, 500, 750, 1000]
