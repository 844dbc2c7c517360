"""Ordered classes: CumulativeCalibrator and OrdinalCalibrator."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from isoroc import (
    AutoCalibrator,
    CalibratedClassifier,
    Counts,
    CumulativeCalibrator,
    InputError,
    OrdinalCalibrator,
)
from isoroc._calibrators.ordinal import CumulativeLoss
from isoroc._input import Sample
from isoroc._input.kinds import kind_of
from isoroc._maps import CumulativeMap
from strategies import arbitrary, labelled_forecasts

GRADES = ["poor", "fair", "good", "excellent"]


def simulated(n, change, K=4, seed=0):
    """Forecasts, outcomes whose cumulative log odds are a change of theirs, and true forecasts."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), n)
    truth = np.diff(expit(change(logit(P.cumsum(axis=1)[:, :-1]))), prepend=0, append=1)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return P, y, truth


@st.composite
def cumulative_maps(draw, most=30.0, coldest=0.1):
    """Maps with any numbers that a model file may hold, up to a bound."""
    K = draw(st.integers(2, 6))

    def numbers(n, low=-most):
        return np.array(draw(st.lists(st.floats(low, most), min_size=n, max_size=n)))

    return CumulativeMap(
        kind=kind_of(K),
        floor=draw(st.sampled_from([1e-300, 1e-12, 0.01])),
        temperature=draw(st.floats(coldest, 10)),
        smoothing=draw(st.sampled_from([0.0, 1e-3])),
        tilt=numbers(K),
        rates=numbers(2, 0.01),
        location=numbers(K),
        shifts=np.sort(numbers(K - 1)),
    )


@given(chosen=cumulative_maps(), seed=st.integers(0, 2**32))
def test_cumulative_probabilities_are_in_order_for_every_map_and_forecast(chosen, seed):
    K = len(chosen.tilt)
    chosen.check(K)
    rng = np.random.default_rng(seed)
    P = np.vstack([rng.dirichlet(np.full(K, a), 20) for a in (0.01, 1, 50)] + [np.eye(K)])
    Q = chosen.apply(P / P.sum(axis=1, keepdims=True))
    assert Q.min() >= 0
    np.testing.assert_allclose(Q.sum(axis=1), 1, atol=1e-12)


@given(chosen=cumulative_maps(most=2.0, coldest=1.0), seed=st.integers(0, 2**32))
def test_the_formula_is_that_of_the_notes(chosen, seed):
    K = len(chosen.tilt)
    P = np.random.default_rng(seed).dirichlet(np.ones(K), 20) * (1 - K * 0.02) + 0.02
    tempered = P ** (1 / chosen.temperature)
    tempered /= tempered.sum(axis=1, keepdims=True)
    z = np.log((1 - chosen.smoothing) * tempered + chosen.smoothing / K)
    tilted = np.exp(z + chosen.tilt)
    F = (tilted / tilted.sum(axis=1, keepdims=True)).cumsum(axis=1)[:, :-1]
    (a, b) = chosen.rates
    location = z @ chosen.location
    u = a * np.log(F) - b * np.log(1 - F) + location[:, None] + chosen.shifts
    np.testing.assert_allclose(chosen.apply(P).cumsum(axis=1)[:, :-1], expit(u), atol=1e-9)


@given(chosen=cumulative_maps(most=3.0).filter(lambda chosen: len(chosen.tilt) == 2))
def test_a_map_of_two_classes_that_says_so_is_increasing(chosen):
    p = np.linspace(0.02, 0.98, 50)
    q = chosen.apply(np.column_stack([1 - p, p]))[:, 1]
    if chosen.is_increasing():
        assert (np.diff(q) >= 0).all()


@arbitrary
@given(labelled_forecasts())
def test_fits_to_any_rows_are_valid(data):
    P, y, weights = data
    K = P.shape[1]
    fitted = CumulativeCalibrator().fit(P, y, labels=range(K), sample_weight=weights)
    fitted.map_.check(K)
    Q = fitted.predict_proba(np.vstack([np.eye(K), P]))
    assert Q.min() >= 0
    np.testing.assert_allclose(Q.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("K", [2, 3, 6])
def test_gradient(K):
    P, y, _ = simulated(60, lambda u: u, K)
    weights = np.random.default_rng(1).random(60)
    problem = CumulativeLoss(Sample(P, y.astype(np.uint8), weights))
    theta = 0.3 * np.random.default_rng(2).normal(size=problem.ends[-1])
    steps = 1e-6 * np.eye(len(theta))
    slopes = [(problem.loss(theta + e)[0] - problem.loss(theta - e)[0]) / 2e-6 for e in steps]
    value, gradient = problem.loss(theta)
    np.testing.assert_allclose(gradient, slopes, atol=1e-5)
    likelihood = problem.map_of(theta).apply(P)[np.arange(60), y]
    penalty = value + weights @ np.log(likelihood)
    assert penalty == pytest.approx(problem.priors.precision() @ theta**2 / 2)


def test_one_shift_of_all_thresholds_is_recovered():
    P, y, _ = simulated(4000, lambda u: u - 1)
    Q = CumulativeCalibrator().fit(P, y).predict_proba(P)
    moved = logit(Q.cumsum(axis=1)[:, :-1]) - logit(P.cumsum(axis=1)[:, :-1])
    np.testing.assert_allclose(np.median(moved, axis=0), -1, atol=0.1)


@pytest.mark.parametrize(
    "change", [lambda u: 0.5 * u, lambda u: u + np.array([-0.8, 0.0, 0.8]), lambda u: 2 * u + 1]
)
def test_scales_and_shifts_that_differ_are_recovered(change):
    P, y, truth = simulated(4000, change)
    Q = CumulativeCalibrator().fit(P, y).predict_proba(P)
    before, after = ((truth * np.log(truth / given)).sum(axis=1).mean() for given in (P, Q))
    assert after < 0.1 * before


@pytest.mark.parametrize("calibrator", [CumulativeCalibrator(), OrdinalCalibrator()])
def test_cumulative_probabilities_are_calibrated(calibrator):
    P, y, _ = simulated(2000, lambda u: 0.5 * u + 1)
    F = calibrator.fit(P, y).predict_proba(P).cumsum(axis=1)
    for k in range(3):
        for rows in np.array_split(np.argsort(F[:, k]), 4):
            assert F[rows, k].mean() == pytest.approx((y[rows] <= k).mean(), abs=0.05)


@pytest.mark.parametrize("K", [2, 3])
def test_the_cumulative_map_joins_the_members_of_the_automatic_calibrator(K):
    P, y, _ = simulated(300, lambda u: u - 2, K)
    mixed = OrdinalCalibrator().fit(P, y)
    names = mixed.member_scores_["member"].tolist()
    others = AutoCalibrator().fit(P, y).member_scores_["member"].tolist()
    assert names == [*others[:-1], "CumulativeCalibrator", "mixture"]
    if K > 2:  # with two classes the other members contain it
        weights = dict(zip(names, mixed.member_scores_["weight"], strict=True))
        assert weights["CumulativeCalibrator"] > 0


def test_the_order_of_names_must_be_given():
    P, codes, _ = simulated(200, lambda u: u)
    y = np.array(GRADES)[codes]
    ordered = OrdinalCalibrator().fit(P, y, labels=GRADES)
    assert ordered.classes_.tolist() == GRADES
    np.testing.assert_array_equal(
        ordered.predict_proba(P), OrdinalCalibrator().fit(P, codes).predict_proba(P)
    )
    for series in (
        pd.Series(pd.Categorical(y, GRADES, ordered=True)),
        pd.Categorical(y, GRADES, ordered=True),
        pl.Series(y, dtype=pl.Enum(GRADES)),
    ):
        assert CumulativeCalibrator().fit(P, series).classes_.tolist() == GRADES
    frame = pd.DataFrame(P, columns=GRADES)
    classifier = CalibratedClassifier(LogisticRegression(), method="ordinal")
    for fit in (
        lambda: OrdinalCalibrator().fit(P, y),
        lambda: CumulativeCalibrator().fit(frame, pd.Series(pd.Categorical(y))),
        lambda: CumulativeCalibrator().fit_counts(Counts.from_arrays(P, y, labels=GRADES)),
        lambda: classifier.fit(P, y),
    ):
        with pytest.raises(InputError, match=r"labels: the order of the classes .* is not known"):
            fit()
    two = CumulativeCalibrator().fit(P[:, :2] / P[:, :2].sum(axis=1, keepdims=True), y == "fair")
    assert two.classes_.tolist() == [False, True]


def test_columns_in_another_order_than_numbers_are_refused():
    P, y, _ = simulated(200, lambda u: u, K=3)
    frame = pd.DataFrame(P[:, ::-1], columns=["2", "1", "0"])
    with pytest.raises(InputError, match="the order of the classes 2, 1, 0 is not known"):
        CumulativeCalibrator().fit(frame, y)
    assert CumulativeCalibrator().fit(frame, y, labels=[2, 1, 0]).classes_.tolist() == [2, 1, 0]


def test_there_are_no_monotone_mixtures_of_it():
    P, y, _ = simulated(50, lambda u: u)
    with pytest.raises(InputError, match="monotone: is True"):
        OrdinalCalibrator(monotone=True).fit(P, y)


def test_behind_a_classifier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.searchsorted([-1, 0, 1.5], X[:, 0] + rng.logistic(scale=0.5, size=400))
    classifier = CalibratedClassifier(LogisticRegression(), method="ordinal").fit(X, y)
    assert isinstance(classifier.calibrators_[0], OrdinalCalibrator)
    assert (classifier.predict(X) == y).mean() > 0.5
