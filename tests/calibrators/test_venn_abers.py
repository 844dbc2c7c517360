import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from isoroc import VennAbersCalibrator
from strategies import arbitrary, binary_data, isotonic_oracle, labelled_forecasts


def both_ways(scores, y, weights, new):
    """p0 and p1 by their definition: fit again with the new row, of either class."""
    weights = np.ones(len(y)) if weights is None else weights
    return [
        float(
            isotonic_oracle(np.append(scores, new), np.append(y, label), np.append(weights, 1.0))[
                -1
            ]
        )
        for label in (0, 1)
    ]


@arbitrary
@given(binary_data(max_rows=10), st.data())
def test_two_classes_by_the_definition(data, rest):
    scores, y, weights = data
    s = rest.draw(st.sampled_from(scores) | st.floats(-1e300, 1e300))
    options = {"sample_weight": weights, "weighting": "frequency"}
    cal = VennAbersCalibrator().fit(scores, y, unit="logit", **options)
    p0, p1 = both_ways(scores, y, weights, s)
    low, high = cal.predict_interval([s])
    np.testing.assert_allclose(low, [[1 - p1, p0]], atol=1e-12)
    np.testing.assert_allclose(high, [[1 - p0, p1]], atol=1e-12)
    merged = p1 / (1 - p0 + p1)
    np.testing.assert_allclose(cal.predict_proba([s]), [[1 - merged, merged]], atol=1e-12)


@arbitrary
@given(labelled_forecasts(min_classes=3, max_rows=6))
def test_more_classes_are_divided_by_their_sum(data):
    P, y, weights = data
    options = {"sample_weight": weights, "weighting": "frequency"}
    cal = VennAbersCalibrator().fit(P, y, labels=range(P.shape[1]), **options)
    low, high = cal.predict_interval(P[:2])
    expected = np.array(
        [[both_ways(P[:, k], y == k, weights, p[k]) for k in range(P.shape[1])] for p in P[:2]]
    )
    np.testing.assert_allclose(low, expected[..., 0], atol=1e-12)
    np.testing.assert_allclose(high, expected[..., 1], atol=1e-12)
    merged = high / (1 - low + high)
    merged /= merged.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(cal.predict_proba(P[:2]), merged, atol=1e-12)


@arbitrary
@given(binary_data())
def test_forecasts_lie_in_their_intervals_and_keep_the_order(data):
    scores, y, weights = data
    cal = VennAbersCalibrator().fit(scores, y, sample_weight=weights, unit="logit")
    grid = np.sort(np.concatenate([scores, scores * 0.99, [-1e308, 0, 1e308]]))
    Q = cal.predict_proba(grid)
    low, high = cal.predict_interval(grid)
    assert ((low <= Q + 1e-12) & (high + 1e-12 >= Q)).all()
    assert (np.diff(Q[:, 1]) >= -1e-12).all()


def test_intervals_shrink_as_rows_add_up():
    rng = np.random.default_rng(0)
    width = []
    for n in (30, 300, 3000):
        p = rng.random(n)
        cal = VennAbersCalibrator().fit(p, rng.random(n) < p)
        low, high = cal.predict_interval(np.linspace(0.2, 0.8, 50))
        width.append((high - low)[:, 1].mean())
    assert width[0] > 3 * width[1] > 9 * width[2]


def test_it_is_calibrated_on_average_whatever_the_scores():
    """Of exchangeable rows one of p0 and p1 is calibrated, so outcomes lie between on average."""
    rng = np.random.default_rng(0)
    lows = []
    highs = []
    outcomes = []
    for _ in range(200):
        scores = rng.normal(size=31)
        y = (rng.random(31) < 1 / (1 + np.exp(-3 * scores))).astype(int)
        y[:2] = 0, 1
        cal = VennAbersCalibrator().fit(scores[:30], y[:30])
        low, high = cal.predict_interval(scores[30:])
        lows.append(low[0, 1])
        highs.append(high[0, 1])
        outcomes.append(y[30])
    assert np.mean(lows) - 0.05 < np.mean(outcomes) < np.mean(highs) + 0.05


def test_not_fitted():
    with pytest.raises(NotFittedError):
        VennAbersCalibrator().predict_interval([0.5])
