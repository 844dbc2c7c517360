from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier

from isoroc import CalibratedClassifier, IdentityCalibrator, TemperatureCalibrator
from isoroc._calibrators import parts
from isoroc._calibrators.floors import FLOORS
from isoroc._calibrators.tempering import LogRows
from isoroc._input import Sample
from strategies import arbitrary, labelled_forecasts

PLAIN: Any = {"floor": 1e-300, "pseudocount": 0}


def noisy(n, K, seed=0, power=2.0):
    """Forecasts that are too sure of themselves, and outcomes."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(K, 0.7), size=n)
    y = np.array([rng.choice(K, p=p) for p in truth])
    P = truth**power
    return P / P.sum(axis=1, keepdims=True), y


@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_finds_the_exponent(power):
    P, y = noisy(5000, 3, power=power)
    cal = TemperatureCalibrator(**PLAIN).fit(P, y)
    assert cal.temperature_ == pytest.approx(power, rel=0.05)
    np.testing.assert_allclose(
        cal.predict_proba(P), softmax(np.log(P) / cal.temperature_, axis=1), rtol=1e-10
    )


@given(st.integers(0, 1000), st.integers(2, 5), st.booleans())
def test_no_other_temperature_is_likelier(seed, n_classes, weighted):
    P, y = noisy(60, n_classes, seed)
    P = P.clip(min=1e-7)  # what is below 1e-8 may count as noise in place of zeros
    P /= P.sum(axis=1, keepdims=True)
    weights = np.random.default_rng(seed).random(60) + 0.1 if weighted else None

    def loss(log_t):
        q = log_softmax(np.log(P) * np.exp(log_t), axis=1)
        return -np.average(q[np.arange(60), y], weights=weights)

    cal = TemperatureCalibrator(**PLAIN).fit(P, y, sample_weight=weights)
    best = minimize_scalar(loss, bounds=(-8, 8), method="bounded")
    assert loss(-np.log(cal.temperature_)) <= best.fun + 1e-9


def test_perfect_and_perverse_forecasts_have_a_finite_temperature():
    scores = np.array([-2.0, -1.0, 1.0, 2.0])
    sure = TemperatureCalibrator().fit(scores, [0, 0, 1, 1])
    assert sure.temperature_ == pytest.approx(0.5 / np.log(2 * 5))  # half of the rows: odds 100
    half = TemperatureCalibrator(pseudocount=1).fit(scores, [0, 0, 1, 1])
    assert half.predict_proba([2.0])[0, 1] == pytest.approx(0.9, abs=1e-3)  # (4 + 1 / 2) / (4 + 1)
    perverse = TemperatureCalibrator().fit(scores, [1, 1, 0, 0])
    np.testing.assert_allclose(perverse.predict_proba(scores), 0.5, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e3, 1e50])
@pytest.mark.parametrize("start", [1e-5, 1.0, 1e5])
def test_the_search_converges_from_afar(scale, start):
    """Log forecasts of any scale: 1 / T, kept in its range, has slope 0 or is at its end."""
    rng = np.random.default_rng(0)
    z = scale * rng.normal(size=(3, 300))
    y = (z / scale + rng.gumbel(size=(3, 300))).argmax(axis=0)
    t = LogRows(z, y, np.ones(300)).inverse_temperature(start=start)

    def loss(t):
        return -log_softmax(t * z, axis=0)[y, np.arange(300)].mean()

    assert loss(t) <= min(loss(t * factor) for factor in (0.99, 1.01) if t * factor < 1e6) + 1e-10


def test_the_floor_is_the_likeliest():
    rng = np.random.default_rng(0)
    p = rng.integers(0, 11, 2000) / 10  # ten neighbours: 0 and 1 are said too often
    y = rng.random(2000) < 0.05 + 0.9 * p
    auto = TemperatureCalibrator().fit(p, y)
    losses = {
        floor: log_loss(y, TemperatureCalibrator(floor=floor).fit(p, y).predict_proba(p))
        for floor in FLOORS
    }
    assert auto.floor_ == min(losses, key=losses.__getitem__) > 1e-3
    assert losses[auto.floor_] < losses[1e-300] - 0.05
    assert losses[auto.floor_] == pytest.approx(log_loss(y, auto.predict_proba(p)))


def test_a_floor_must_be_worth_two_nats():
    P, y = noisy(500, 3, power=0.3)
    assert TemperatureCalibrator().fit(P, y).floor_ == 1e-300
    p = np.full(50, 0.4)
    assert TemperatureCalibrator().fit(p, np.arange(50) % 2).floor_ == 1e-300
    P, y = noisy(60, 3, seed=1, power=1.0)
    losses = {}
    for floor in FLOORS:
        cal = TemperatureCalibrator(floor=floor).fit(P, y)
        losses[floor] = 60 * log_loss(y, cal.predict_proba(P))
    chosen = TemperatureCalibrator().fit(P, y).floor_
    assert losses[chosen] <= min(losses.values()) + 2 + 1e-3
    assert all(losses[f] > min(losses.values()) + 2 - 1e-3 for f in losses if f < chosen)


def test_a_large_temperature_under_one_floor_does_not_hold_under_the_next():
    """Without a floor, a few false zeros call for a temperature of several hundred."""
    P, y = noisy(400, 3, seed=2)
    P[np.arange(6), y[:6]] = 0.0
    P /= P.sum(axis=1, keepdims=True)
    assert TemperatureCalibrator(floor=1e-300).fit(P, y).temperature_ > 300
    losses = [
        log_loss(y, TemperatureCalibrator(floor=floor).fit(P, y).predict_proba(P))
        for floor in FLOORS
    ]
    auto = TemperatureCalibrator().fit(P, y)
    assert log_loss(y, auto.predict_proba(P)) <= min(losses) + 2 / 400 + 1e-5


def test_rows_at_the_floor_do_not_bound_the_temperature():
    """A forest that is too timid, and whose zeros are right: T is far below 1."""
    rng = np.random.default_rng(0)
    p = rng.choice([0.3, 0.7], 200)
    P = np.column_stack([p, 1 - p, np.zeros(200)])
    P[::2] = P[::2, [0, 2, 1]]
    y = P.argmax(axis=1)
    y[:4] = np.argsort(P[:4], axis=1)[:, 1]
    cal = TemperatureCalibrator().fit(P, y)
    assert cal.temperature_ < 0.4
    assert log_loss(y, cal.predict_proba(P)) < 0.12


def split(data, seed):
    X, y = data
    parts = np.array_split(np.random.default_rng(seed).permutation(len(y)), 3)
    return [(X[part], y[part]) for part in parts]


MODELS = {
    "forest": RandomForestClassifier(50, random_state=0),
    "extra trees": ExtraTreesClassifier(50, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=15, random_state=0),
    "naive Bayes": GaussianNB(),
    "network": MLPClassifier((20,), max_iter=60, random_state=0),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(load_digits(return_X_y=True), marks=pytest.mark.slow, id="ten classes"),
        pytest.param(
            make_classification(1500, n_informative=5, flip_y=0.1, random_state=0), id="two classes"
        ),
    ],
)
def test_not_worse_than_that_of_scikit_learn(data, name):
    for seed in range(2):
        (X, y), (X_cal, y_cal), (X_test, y_test) = split(data, seed)
        model = FrozenEstimator(clone(MODELS[name]).fit(X, y))
        peer = CalibratedClassifierCV(model, method="temperature").fit(X_cal, y_cal)
        expected = log_loss(y_test, peer.predict_proba(X_test))
        cal = TemperatureCalibrator().fit(model.predict_proba(X_cal), y_cal)
        found = log_loss(y_test, cal.predict_proba(model.predict_proba(X_test)))
        assert found <= 1.01 * expected
        ours = CalibratedClassifier(model, method="temperature").fit(X_cal, y_cal)
        assert log_loss(y_test, ours.predict_proba(X_test)) <= 1.01 * expected


def test_many_rows_choose_their_floor_by_a_part(monkeypatch):
    monkeypatch.setattr(parts, "PART_NUMBERS", 1000)
    monkeypatch.setattr(parts, "PART_ROWS", 50)
    P, y = noisy(2000, 4)
    cal = TemperatureCalibrator().fit(P, y)
    part = parts.draw_part(Sample(P, y.astype(np.uint8)))
    assert len(part.codes) == 250
    again = TemperatureCalibrator(floor=cal.floor_).fit(P, y)
    assert cal.temperature_ == pytest.approx(again.temperature_)


@arbitrary
@given(labelled_forecasts(max_rows=30), st.floats(0.1, 5))
def test_smoothing_is_a_mixture_with_the_uniform_forecast(data, pseudocount):
    P, y, weights = data
    K = P.shape[1]
    plain = TemperatureCalibrator(floor=0.01, pseudocount=0)
    plain.fit(P, y, labels=range(P.shape[1]), sample_weight=weights)
    smooth = TemperatureCalibrator(floor=0.01, pseudocount=pseudocount)
    smooth.fit(P, y, labels=range(P.shape[1]), sample_weight=weights)
    total = len(y) if weights is None else weights.sum() ** 2 / (weights**2).sum()
    expected = (total * plain.predict_proba(P) + pseudocount / K) / (total + pseudocount)
    np.testing.assert_allclose(smooth.predict_proba(P), expected, rtol=1e-9)


def test_log_odds_are_taken_as_such():
    rng = np.random.default_rng(0)
    scores = rng.normal(scale=3, size=300)
    y = rng.random(300) < expit(scores)
    a = TemperatureCalibrator().fit(scores, y)
    b = TemperatureCalibrator().fit(expit(scores), y)
    assert a.temperature_ == pytest.approx(b.temperature_)
    far = a.predict_proba([-1e300, 1e300])
    np.testing.assert_allclose(far[:, 1], [0, 1], atol=0.01)
    np.testing.assert_allclose(
        IdentityCalibrator().fit(scores, y).predict_proba(scores)[:, 1], expit(scores)
    )


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"floor": 0}, ValueError, "floor: is .*; expected .* >= 1e-300"),
        ({"floor": 1.0}, ValueError, "floor: .* below 1"),
        ({"floor": "low"}, ValueError, "floor"),
        ({"pseudocount": -1}, ValueError, "pseudocount"),
    ],
)
def test_bad_parameters(params, error, message):
    with pytest.raises(error, match=message):
        TemperatureCalibrator(**params).fit([0.1, 0.9], [0, 1])
