from functools import partial

import numpy as np
import pytest
from joblib import parallel_config

from isoroc.metrics import (
    bootstrap,
    brier_score_loss,
    calibration_error,
    decompose,
    log_loss,
)
from truths import distorted


def count_labels(y, _):
    """A metric that takes no weights."""
    return np.bincount(y, minlength=3)


def unweighted(metric):
    return lambda y, P: metric(y, P, sample_weight=None)


def data(n=200, n_classes=2):
    P, _, y = distorted(n, n_classes, 2.0, seed=0)
    return y, P


@pytest.mark.parametrize("paired", [False, True])
def test_the_result_depends_on_the_seed_and_not_on_the_jobs(paired):
    y, P = data()
    other = {"after": P**2 / (P**2).sum(axis=1, keepdims=True)} if paired else {}
    one = bootstrap(brier_score_loss, y, P, n_resamples=30, random_state=3, **other)
    with parallel_config(backend="threading"):
        two = bootstrap(brier_score_loss, y, P, n_resamples=30, random_state=3, n_jobs=2, **other)
    assert (one.value, one.low, one.high) == (two.value, two.low, two.high)
    third = bootstrap(brier_score_loss, y, P, n_resamples=30, random_state=4, **other)
    assert third.value == one.value
    assert third.low != one.low


def test_the_interval_of_a_mean_is_the_normal_one():
    y, P = data(400)
    rows = (y - P[:, 1]) ** 2
    result = bootstrap(brier_score_loss, y, P, n_resamples=600, random_state=0)
    error = rows.std() / np.sqrt(400)
    assert result.value == pytest.approx(rows.mean())
    assert result.standard_error == pytest.approx(error, rel=0.1)
    assert result.low == pytest.approx(rows.mean() - 1.96 * error, abs=0.3 * error)
    assert result.high == pytest.approx(rows.mean() + 1.96 * error, abs=0.3 * error)
    assert result.n_resamples == 600


def test_drawing_weights_and_drawing_rows_agree():
    y, P = data()
    weighed = bootstrap(brier_score_loss, y, P, n_resamples=20, random_state=0)
    drawn = bootstrap(unweighted(brier_score_loss), y, P, n_resamples=20, random_state=0)
    np.testing.assert_allclose(weighed.distribution, drawn.distribution)


def test_weights_multiply():
    y, P = data()
    half = np.arange(200) < 100
    some = bootstrap(
        brier_score_loss, y, P, sample_weight=1.0 * half, n_resamples=300, random_state=0
    )
    assert some.value == pytest.approx(brier_score_loss(y[half], P[half]))
    alone = bootstrap(brier_score_loss, y[half], P[half], n_resamples=300, random_state=0)
    assert some.standard_error == pytest.approx(alone.standard_error, rel=0.2)


def test_copies_of_a_row_are_one_row_with_a_weight():
    # So they are held out together. A cross-fitted map must not have seen the row it is applied to.
    y = np.arange(100) % 2
    p = np.linspace(0.01, 0.99, 100)
    seen = []

    def record(y_true, y_prob, *, sample_weight):
        seen.append((y_prob, sample_weight))
        return brier_score_loss(y_true, y_prob, sample_weight=sample_weight)

    bootstrap(record, y, p, n_resamples=5, random_state=0)
    resampled = [(forecasts, weights) for forecasts, weights in seen if weights is not None]
    assert len(resampled) == 5
    for forecasts, weights in resampled:
        assert len(np.unique(forecasts)) == len(forecasts)
        assert weights.sum() == 100
        assert weights.max() > 1


def test_resampling_does_not_change_how_a_metric_is_estimated():
    y, P = data(400)
    P = P.round(2)[:, 1] // 0.05 / 20
    assert decompose(y, P).bins == "ties"
    assert len(np.unique(P)) == 20

    def metric(y, P, sample_weight=None):
        return decompose(y, P, sample_weight=sample_weight).bins == "ties"

    assert bootstrap(metric, y, P, n_resamples=20, random_state=0).distribution.all()
    ties = partial(calibration_error, bins="ties")
    ways = [bootstrap(m, y, P, n_resamples=9, random_state=0) for m in (calibration_error, ties)]
    assert ways[0].distribution.tolist() == ways[1].distribution.tolist()


def test_pairs_are_compared_on_the_same_rows():
    y, P = data(400)
    flat = np.sqrt(P) / np.sqrt(P).sum(axis=1, keepdims=True)
    difference = bootstrap(brier_score_loss, y, P, after=flat, n_resamples=300, random_state=0)
    assert difference.value == pytest.approx(brier_score_loss(y, flat) - brier_score_loss(y, P))
    assert difference.high < 0  # the forecasts were a square of the truth
    alone = bootstrap(brier_score_loss, y, P, n_resamples=300, random_state=0)
    assert difference.standard_error < alone.standard_error
    same = bootstrap(brier_score_loss, y, P, after=P, n_resamples=10)
    assert (same.value, same.low, same.high, same.standard_error) == (0, 0, 0, 0)


def test_metrics_may_return_several_values():
    y, P = data(n_classes=3)
    found = bootstrap(count_labels, y, P, n_resamples=20, random_state=0)
    assert (found.distribution.sum(axis=1) == 200).all()
    assert (found.standard_error > 0).all()
    assert found.low.shape == found.high.shape == (3,)


def test_a_class_may_be_missing_from_a_resample():
    y = np.array(["a"] + ["b"] * 9)
    result = bootstrap(brier_score_loss, y, np.full(10, 0.9), n_resamples=50, random_state=0)
    assert result.low < result.high


def test_infinite_losses():
    p = np.append(0.0, np.full(19, 0.5))
    metric = partial(log_loss, eps=0, labels=[0, 1])
    result = bootstrap(metric, np.ones(20, dtype=int), p, n_resamples=99, random_state=0)
    assert result.value == result.high == np.inf
    assert result.low == pytest.approx(np.log(2))  # the row was not drawn
    assert np.isnan(result.standard_error)


def test_the_interval_holds_its_share_of_the_resamples():
    y, P = data()
    found = bootstrap(brier_score_loss, y, P, n_resamples=99, random_state=0, confidence=0.8)
    inside = (found.distribution >= found.low) & (found.distribution <= found.high)
    assert np.mean(inside) == pytest.approx(0.8, abs=0.02)


def test_functions_without_a_signature():
    result = bootstrap(min, np.array([1.0]), np.array([0.5]), n_resamples=2)
    assert result.value.tolist() == [0.5]


def test_text():
    y, P = data()
    text = str(bootstrap(brier_score_loss, y, P, n_resamples=20, random_state=0, confidence=0.9))
    assert text.startswith(f"{brier_score_loss(y, P):.4g}, 90 % interval 0.")


@pytest.mark.parametrize(
    ("error", "options", "message"),
    [
        (ValueError, {"n_resamples": 1}, "n_resamples: is 1; expected .* >= 2"),
        (ValueError, {"confidence": 95}, "confidence: is 95; expected 0 < confidence < 1"),
        (ValueError, {"after": [0.5]}, "after: 1 rows, but y_prob has 2"),
        (ValueError, {"y_true": [1, 0, 1]}, "y_true: 3 rows, but y_prob has 2"),
        (
            ValueError,
            {"metric": count_labels, "sample_weight": [1, 1]},
            "sample_weight: the metric takes no sample_weight",
        ),
    ],
)
def test_bad_input(error, options, message):
    with pytest.raises(error, match=message):
        bootstrap(**{"metric": brier_score_loss, "y_true": [1, 0], "y_prob": [0.5, 0.5]} | options)
