from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoroc import IRPCalibrator
from isoroc.metrics import bootstrap, brier_score_loss, calibration_error, decompose, log_loss
from isoroc.metrics._estimation.calibration_terms import _secant
from strategies import labelled_forecasts
from truths import distorted

LOSSES: dict[str, Callable[..., float]] = {"log": log_loss, "brier": brier_score_loss}


def entropy(g, loss):
    g = g[g > 0]
    return -(g * np.log(g)).sum() if loss == "log" else 1 - (g**2).sum()


def scale(loss, n_classes):
    """The Brier score of two classes is half of the sum over the classes."""
    return 0.5 if loss == "brier" and n_classes == 2 else 1.0


def divergence(g, p, loss):
    if loss == "brier":
        return ((g - p) ** 2).sum()
    p = np.maximum(p, np.finfo(float).eps)
    return sum(a * (np.log(a) - np.log(b)) for a, b in zip(g, p, strict=True) if a > 0)


@given(labelled_forecasts(), st.sampled_from(["log", "brier"]))
def test_loss_and_uncertainty_match_their_definitions(data, loss):
    P, y, weights = data
    K = P.shape[1]
    w = np.ones(len(y)) if weights is None else weights
    options = {"sample_weight": weights, "labels": np.arange(K)}
    parts = decompose(y, P, loss=loss, bins="ties", **options)
    shares = np.bincount(y, w, K) / w.sum()
    assert parts.loss == pytest.approx(LOSSES[loss](y, P, **options))
    assert parts.uncertainty == pytest.approx(scale(loss, K) * entropy(shares, loss), abs=1e-9)


@given(labelled_forecasts(), st.sampled_from(["log", "brier"]), st.sampled_from(["ties", "irp"]))
def test_parts_add_up(data, loss, bins):
    P, y, weights = data
    labels = np.arange(P.shape[1])
    parts = decompose(y, P, loss=loss, bins=bins, sample_weight=weights, labels=labels)
    assert (parts.of, parts.bins) == (loss, bins)
    assert parts.calibration + parts.refinement == pytest.approx(parts.loss, abs=1e-12)
    assert parts.uncertainty - parts.resolution == pytest.approx(parts.refinement, abs=1e-12)
    assert np.isfinite(np.asarray(parts)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["log", "brier"])
def test_the_loss_of_calibrated_forecasts_is_refinement(n_classes, loss):
    P, _, y = distorted(1000, n_classes, 2.0, seed=0)
    Q = IRPCalibrator(values="constant", pseudocount=0, random_state=0).fit(P, y).predict_proba(P)
    parts = decompose(y, Q, loss=loss)
    assert parts.bins == "ties"
    assert parts.calibration < 0  # closer to the labels than chance would have it
    assert parts.table()["low"][1] < 0 < parts.table()["high"][1]
    assert parts.resolution > 0.05


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("loss", ["log", "brier"])
def test_continuous_forecasts(n_classes, loss):
    P, truth, y = distorted(4000, n_classes, 2.0, seed=0)
    parts = decompose(y, P, loss=loss)
    assert parts.bins == "irp"
    half = scale(loss, n_classes)
    expected = half * np.mean([divergence(g, p, loss) for g, p in zip(truth, P, strict=True)])
    rest = half * np.mean([entropy(g, loss) for g in truth])
    _, calibration_se, refinement_se, _, _ = parts.standard_errors
    assert abs(parts.calibration - expected) < 3 * calibration_se
    assert abs(parts.refinement - rest) < 3 * refinement_se
    assert calibration_se < 0.2 * expected


def test_the_brier_calibration_term_is_twice_the_squared_l2_error():
    P, _, y = distorted(800, 3, 2.0, seed=0)
    error = calibration_error(y, P, norm="l2")
    assert decompose(y, P, loss="brier").calibration == pytest.approx(2 * error**2)
    rough = P.round(1)
    rough /= rough.sum(axis=1, keepdims=True)
    _, group, size = np.unique(rough, axis=0, return_inverse=True, return_counts=True)
    several = size[group.ravel()] > 1
    y = y[several]
    rough = rough[several]
    error = calibration_error(y, rough, norm="l2", bins="ties")
    ties = decompose(y, rough, loss="brier", bins="ties")
    assert ties.calibration == pytest.approx(2 * error**2)


def test_an_outcome_of_probability_0_is_calibration():
    y = np.arange(40) % 2
    p = np.linspace(0, 0.9, 40)
    before = decompose(y, p)
    y[0] = 1
    after = decompose(y, p)
    cost = -np.log(np.finfo(float).eps) / 40
    assert after.loss == pytest.approx(before.loss + cost)
    assert after.calibration > before.calibration + cost / 2
    # What is learned from 40 rows gives no outcome less than 1 / 64, which costs 0.1 of 0.9.
    assert after.refinement == pytest.approx(before.refinement, abs=0.15)
    assert np.isfinite(after.table()["low"]).all()


def test_standard_errors_are_those_of_resampling():
    P, _, y = distorted(500, 2, 2.0, seed=1)
    rough = P.round(1)
    weights = np.linspace(0.5, 1.5, 500)
    parts = decompose(y, rough, sample_weight=weights, loss="brier")
    assert parts.bins == "ties"
    resampled = bootstrap(
        lambda y, P, sample_weight=None: decompose(
            y, P, sample_weight=sample_weight, loss="brier", bins="ties"
        ),
        y,
        rough,
        sample_weight=weights,
        n_resamples=200,
        random_state=0,
    )
    np.testing.assert_allclose(resampled.value, np.asarray(parts))
    np.testing.assert_allclose(parts.standard_errors, resampled.standard_error, rtol=0.3)


def test_result():
    parts = decompose([0, 1, 1, 0], [0.2, 0.2, 0.8, 0.8], loss="brier", bins="ties")
    assert np.asarray(parts, dtype=np.float32).dtype == np.float32
    frame = parts.table(confidence=0.5)
    assert frame["term"].tolist() == [
        "loss",
        "calibration",
        "refinement",
        "uncertainty",
        "resolution",
    ]
    # Two rows of each forecast, one right and one wrong: chance accounts for 0.25 of 0.09.
    np.testing.assert_allclose(frame["value"], [0.34, -0.16, 0.5, 0.25, -0.25], atol=1e-12)
    assert (frame["low"] <= frame["value"]).all()
    assert (frame["high"] >= frame["value"]).all()
    half = (frame["high"] - frame["low"])[0] / 2
    # Student's distribution with two degrees of freedom, the rows of either class.
    assert half == pytest.approx(0.81650 * frame["standard_error"][0], rel=1e-4)
    assert str(parts).startswith("brier loss 0.3400 = calibration -0.1600 + refinement 0.5000 (")


@given(st.floats(1e-6, 1), st.floats(1e-6, 1))
def test_secant_times_difference_is_the_divergence(g, p):
    value = _secant(np.array([g]), np.array([p]))[0] * (g - p)
    assert value == pytest.approx(g * np.log(g / p) - g + p, rel=1e-6, abs=1e-15)


def test_secant_is_smooth_where_it_changes_form():
    at = 1 + 1e-4 * np.array([-1.000001, -0.999999, 0.999999, 1.000001])
    below, above, _, _ = value = _secant(at, np.ones(4))
    np.testing.assert_allclose(value, (at - 1) / 2 - (at - 1) ** 2 / 6, rtol=1e-8)
    assert below == pytest.approx(above, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "loss: expected one of .*'log', 'brier'"),
        ({"bins": 10}, "bins: expected one of .*'ties', 'irp'"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        decompose([0, 1], [0.2, 0.7], **options)
