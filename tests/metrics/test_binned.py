import contextlib
import inspect
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import calibration_curve as theirs

from isoroc import InputError, metrics
from isoroc.metrics import calibration_curve, expected_calibration_error


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1.0, 1.0, 1.0], 1000)
    return np.array([rng.choice(3, p=p) for p in P]), P**1.5 / (P**1.5).sum(axis=1, keepdims=True)


def by_hand(hit, p, edges):
    """The published formula, bin by bin. Bins are closed on the right."""
    error = 0.0
    for low, high in pairwise(edges.tolist()):
        inside = (p > low) & (p <= high)
        if inside.any():
            error += inside.mean() * abs(hit[inside].mean() - p[inside].mean())
    return error


def test_top_label_and_classwise_errors(data):
    y, P = data
    edges = np.linspace(0, 1, 11)
    top = by_hand(P.argmax(axis=1) == y, P.max(axis=1), edges)
    assert expected_calibration_error(y, P, n_bins=10) == pytest.approx(top, rel=1e-12)
    each = np.mean([by_hand(y == k, P[:, k], edges) for k in range(3)])
    found = expected_calibration_error(y, P, n_bins=10, kind="classwise")
    assert found == pytest.approx(each, rel=1e-12)
    second = by_hand(y == 1, P[:, 1], edges)
    assert expected_calibration_error(y == 1, P[:, 1], n_bins=10) == pytest.approx(second)


def test_bins_of_equal_weight(data):
    y, P = data
    edges = np.quantile(P[:, 1], np.linspace(0, 1, 9))
    edges[0] = 0
    found = expected_calibration_error(y == 1, P[:, 1], n_bins=8, strategy="quantile")
    assert found == pytest.approx(by_hand(y == 1, P[:, 1], edges), rel=0.05)


@pytest.mark.parametrize("n_bins", [5, 12])
def test_the_curve_is_that_of_scikit_learn(data, n_bins):
    y, P = data
    curve = calibration_curve(y, P, pos_label=2, n_bins=n_bins)
    for ours, expected in zip(curve, theirs(y == 2, P[:, 2], n_bins=n_bins), strict=True):
        np.testing.assert_allclose(ours, expected)
    assert (curve.low < curve.prob_true).all()
    assert (curve.prob_true < curve.high).all()
    assert curve.weight.sum() == 1000
    assert curve.frame().shape == (n_bins, 5)


@pytest.mark.parametrize(
    ("norm", "mean"),
    [("l1", np.mean), ("l2", lambda x: np.sqrt(np.mean(x**2))), ("max", np.max)],
)
def test_the_error_of_two_classes_is_the_one_proposed_for_scikit_learn(data, norm, mean):
    """Pull request 34261: ceil(cbrt(n)) bins of the quantiles of distinct forecasts."""
    y, P = data
    frequency, forecast = theirs(y == 2, P[:, 2], n_bins=10, strategy="quantile")
    found = metrics.calibration_error(y == 2, P[:, 2], norm=norm, bins="quantile", n_bins=10)
    assert found == pytest.approx(mean(abs(frequency - forecast)), rel=1e-12)


def test_weights_are_counts(data):
    y, P = data
    repeats = np.random.default_rng(1).integers(1, 4, 1000)
    weighted = calibration_curve(y == 1, P[:, 1], sample_weight=repeats)
    repeated = calibration_curve(np.repeat(y == 1, repeats), np.repeat(P[:, 1], repeats))
    np.testing.assert_allclose(weighted.high, repeated.high)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "pos_label: expected one of 0, 1, 2; got None"),
        ({"pos_label": 7}, "pos_label: expected one of 0, 1, 2; got 7"),
        ({"pos_label": 1, "n_bins": 0}, "n_bins: .*1"),
        ({"pos_label": 1, "strategy": "width"}, "strategy: expected one of 'uniform', 'quantile'"),
    ],
)
def test_bad_input(data, options, message):
    with pytest.raises(InputError, match=message):
        calibration_curve(*data, **options)


BINNED = [name for name in dir(metrics) if callable(getattr(metrics, name))]
BINNED = [
    name for name in BINNED if "n_bins" in inspect.signature(getattr(metrics, name)).parameters
]
CHOICES: dict[str, list[Any]] = {
    "bins": [None, 4, "quantile", "exact", "ties", "irp"],
    "norm": ["l1", "l2", "max"],
    "kind": ["canonical", "classwise", "top", "auto"],
    "strategy": ["uniform", "quantile"],
}


@pytest.mark.parametrize("name", BINNED)
def test_the_number_of_bins_acts_or_is_refused(name):
    metric = getattr(metrics, name)
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p**2
    given = [option for option in CHOICES if option in inspect.signature(metric).parameters]

    def measured(n_bins, options):
        result = metric(y, p, n_bins=n_bins, **options)
        return getattr(result, "prob_true", [result])

    acted = 0
    for values in product(*(CHOICES[option] for option in given)):
        options = dict(zip(given, values, strict=True))
        with contextlib.suppress(InputError):
            assert list(measured(3, options)) != list(measured(40, options)), options
            acted += 1
    assert acted


def test_three_metrics_take_a_number_of_bins():
    assert sorted(BINNED) == [
        "calibration_curve",
        "calibration_error",
        "expected_calibration_error",
    ]
