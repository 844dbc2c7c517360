"""``compatible=True``: the maps of scikit-learn, betacal and Guo et al., number by number."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from isoroc import BetaCalibrator, SigmoidCalibrator, TemperatureCalibrator


def rows(n_classes, n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 4)) + np.eye(n_classes, 4)[y], y


def theirs(model, method, X, y):
    """scikit-learn's calibrator behind a model that is not fitted again."""
    return CalibratedClassifierCV(FrozenEstimator(model), method=method).fit(X, y)


@pytest.mark.parametrize("model", [GaussianNB(), RandomForestClassifier(20, random_state=0)])
@pytest.mark.parametrize("K", [2, 3])
def test_sigmoid_is_that_of_scikit_learn(K, model):
    X, y = rows(K)
    model.fit(X[:100], y[:100])
    expected = theirs(model, "sigmoid", X[100:300], y[100:300]).predict_proba(X[300:])
    cal = SigmoidCalibrator(compatible=True).fit(model.predict_proba(X[100:300]), y[100:300])
    found = cal.predict_proba(model.predict_proba(X[300:]))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    default = SigmoidCalibrator().fit(model.predict_proba(X[100:300]), y[100:300])
    assert np.abs(default.predict_proba(model.predict_proba(X[300:])) - expected).max() > 0.01


def test_sigmoid_of_scores_is_that_of_scikit_learn():
    X, y = rows(2)
    model = LogisticRegression().fit(100 * X[:100], y[:100])  # scores far beyond any floor
    expected = theirs(model, "sigmoid", 100 * X, y).predict_proba(100 * X)
    scores = model.decision_function(100 * X)
    found = SigmoidCalibrator(compatible=True).fit(scores, y, unit="logit").predict_proba(scores)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("model", [GaussianNB(), RandomForestClassifier(20, random_state=0)])
@pytest.mark.parametrize("K", [2, 3])
def test_temperature_is_that_of_scikit_learn(K, model):
    X, y = rows(K)
    model.fit(X[:100], y[:100])
    expected = theirs(model, "temperature", X[100:300], y[100:300]).predict_proba(X[300:])
    cal = TemperatureCalibrator(compatible=True).fit(model.predict_proba(X[100:300]), y[100:300])
    found = cal.predict_proba(model.predict_proba(X[300:]))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_temperature_is_that_of_guo():
    """``softmax(logits / T)`` with the T of the least loss, also where every row is right."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(300, 5)) * 4
    y = np.array([rng.choice(5, p=softmax(row / 3)) for row in logits])

    def loss(log_t):
        return -log_softmax(logits * np.exp(log_t), axis=1)[np.arange(300), y].mean()

    best = minimize_scalar(loss, bounds=(-5, 5), method="bounded", options={"xatol": 1e-10})
    options = {"floor": 0.1, "pseudocount": 5.0}  # without effect
    cal = TemperatureCalibrator(compatible=True, **options).fit(logits, y, unit="logit")
    assert cal.temperature_ == pytest.approx(np.exp(-best.x), rel=1e-6)
    expected = softmax(logits / cal.temperature_, axis=1)
    np.testing.assert_allclose(cal.predict_proba(logits), expected, atol=1e-9)
    sorted_out = TemperatureCalibrator(compatible=True).fit(logits, logits.argmax(1), unit="logit")
    assert sorted_out.temperature_ < 0.01


@pytest.mark.parametrize(("power", "shift"), [(2.0, 0.0), (0.4, -1.0)])
def test_beta_is_a_logistic_regression_without_penalty(power, shift):
    rng = np.random.default_rng(0)
    p = np.append(rng.uniform(0, 1, 500), [0.0, 1.0])
    y = rng.random(502) < expit(power * np.log((p + 0.01) / (1.01 - p)) + shift)
    eps = np.finfo(float).eps
    X = np.column_stack([np.log(p.clip(eps)), -np.log((1 - p).clip(eps))])
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, y)
    assert peer.coef_.min() > 0
    cal = BetaCalibrator(compatible=True).fit(p, y)
    found = [cal.coef_[1], cal.rest_[1], cal.intercept_[1]]
    np.testing.assert_allclose(found, [*peer.coef_[0], peer.intercept_[0]], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(cal.predict_proba(p), peer.predict_proba(X), atol=1e-5)


def test_beta_is_that_of_betacal():
    betacal = pytest.importorskip("betacal")
    rng = np.random.default_rng(1)
    p = rng.beta(0.5, 0.5, 1000)
    for truth in (p**2, 0.3 + 0.4 * p, p):  # also where one coefficient would be negative
        y = (rng.random(1000) < truth).astype(int)
        with np.errstate(all="ignore"):
            peer = betacal.BetaCalibration("abm").fit(p, y)
        found = BetaCalibrator(compatible=True).fit(p, y).predict_proba(p)[:, 1]
        np.testing.assert_allclose(found, peer.predict(p), atol=2e-4)


def test_sigmoid_of_probabilities_is_saved_and_exported(tmp_path):
    import isoroc  # noqa: PLC0415

    X, y = rows(3)
    P = GaussianNB().fit(X[:200], y[:200]).predict_proba(X[200:])
    cal = SigmoidCalibrator(compatible=True).fit(P, y[200:])
    cal.save(tmp_path / "model.json")
    loaded = isoroc.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict_proba(P), cal.predict_proba(P))
    assert loaded.compatible


@pytest.mark.parametrize("kind", [BetaCalibrator, SigmoidCalibrator, TemperatureCalibrator])
def test_compatible_is_true_or_false(kind):
    with pytest.raises(ValueError, match="compatible"):
        kind(compatible="yes").fit([0.1, 0.9], [0, 1])
