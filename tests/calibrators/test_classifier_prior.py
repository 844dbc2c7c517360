"""Classifiers that forecast for a population with other class shares."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from isoroc import CalibratedClassifier, InputError, TemperatureCalibrator, adjust_prior


def shifted(seed=0):
    """A classifier, and rows of two populations that differ in their class shares only."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["a", "b", "c"], [400, 400, 400])
    y_new = np.repeat(["a", "b", "c"], [100, 200, 700])
    means = {"a": (0, 0), "b": (2, 0), "c": (0, 2)}
    X, X_new = (
        np.array([means[label] for label in labels]) + rng.normal(size=(len(labels), 2))
        for labels in (y, y_new)
    )
    return X, y, X_new, y_new


@pytest.mark.parametrize("ensemble", [False, True])
def test_forecasts_for_given_class_shares(ensemble):
    X, y, X_new, y_new = shifted()
    plain = CalibratedClassifier(
        LogisticRegression(), calibrator=TemperatureCalibrator(), ensemble=ensemble
    )
    Q = plain.fit(X, y).predict_proba(X_new)
    np.testing.assert_allclose(plain.class_shares_, 1 / 3)
    assert plain.prior_ is None
    shares = {"c": 0.7, "a": 0.1, "b": 0.2}
    adjusted = clone(plain).set_params(prior=shares).fit(X, y)
    found = adjusted.predict_proba(X_new)
    np.testing.assert_allclose(found, adjust_prior(Q, plain.class_shares_, [0.1, 0.2, 0.7]))
    assert log_loss(y_new, found) < log_loss(y_new, Q) - 0.05
    assert adjusted.score(X_new, y_new) > plain.score(X_new, y_new)


def test_forecasts_for_estimated_class_shares():
    X, y, X_new, y_new = shifted()
    model = CalibratedClassifier(LogisticRegression(), calibrator=TemperatureCalibrator()).fit(X, y)
    before = log_loss(y_new, model.predict_proba(X_new))
    for _ in range(2):  # the estimate does not depend on an earlier one
        found = model.adapt_prior(X_new)
        assert found.classes.tolist() == ["a", "b", "c"]
        assert model.prior_ is not None
        np.testing.assert_allclose(model.prior_, [0.1, 0.2, 0.7], atol=0.05)
        assert found.p_value < 1e-6
    assert log_loss(y_new, model.predict_proba(X_new)) < before - 0.05


def test_class_shares_are_checked():
    X, y, *_ = shifted()
    model = CalibratedClassifier(
        LogisticRegression(), calibrator=TemperatureCalibrator(), prior=[0.5, 0.6, 0]
    )
    with pytest.raises(InputError, match=r"prior: sums to 1\.1, not to 1"):
        model.fit(X, y)
    with pytest.raises(InputError, match="prior: names a, but the classes are a, b, c"):
        model.set_params(prior={"a": 1.0}).fit(X, y)
    trained = FrozenEstimator(LogisticRegression().fit(X, y))
    model.set_params(estimator=trained, prior=[0.2, 0.3, 0.5])
    with pytest.raises(InputError, match="prior: class c did not occur in the rows of fit"):
        model.fit(X[:800], y[:800])
