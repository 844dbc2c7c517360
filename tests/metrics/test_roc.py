from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from sklearn.metrics import roc_auc_score, roc_curve

from isoroc.metrics import roc_auc, roc_convex_hull, symmetric_roc_curve
from strategies import binary_data, hull_oracle


def exact_points(scores, y, weights):
    """Symmetric ROC points from their definition, in exact arithmetic."""
    w = [Fraction(1)] * len(y) if weights is None else [Fraction(v) for v in weights]
    total = [sum(v for v, c in zip(w, y, strict=True) if c == k) for k in (0, 1)]
    return [
        (
            sum(v for v, s, c in zip(w, scores, y, strict=True) if c == 0 and s <= t) / total[0],
            sum(v for v, s, c in zip(w, scores, y, strict=True) if c == 1 and s > t) / total[1],
        )
        for t in [-np.inf, *sorted(set(scores))]
    ]


@given(binary_data())
def test_the_curve_matches_its_definition(data):
    scores, y, weights = data
    curve = symmetric_roc_curve(y, scores, sample_weight=weights)
    assert curve.thresholds.tolist() == [-np.inf, *sorted(set(scores.tolist()))]
    expected = np.array(exact_points(scores, y, weights), dtype=float)
    np.testing.assert_allclose(np.column_stack([curve.p0, curve.p1]), expected, atol=1e-15)


@given(binary_data())
def test_hull_vertices_are_those_of_the_convex_hull(data):
    scores, y, weights = data
    hull = roc_convex_hull(y, scores, sample_weight=weights)
    expected = np.array(hull_oracle(exact_points(scores, y, weights)), dtype=float)
    np.testing.assert_allclose(np.column_stack([hull.p0, hull.p1]), expected, atol=1e-15)


@given(binary_data())
def test_areas(data):
    scores, y, weights = data
    value = roc_auc(y, scores, sample_weight=weights)
    assert value == pytest.approx(roc_auc_score(y, scores, sample_weight=weights))
    w = np.ones(len(y)) if weights is None else weights
    above = np.sign(scores[y == 1][:, None] - scores[y == 0][None, :]) / 2 + 0.5
    pairs = w[y == 1][:, None] * w[y == 0][None, :]
    assert value == pytest.approx((above * pairs).sum() / pairs.sum())
    assert roc_convex_hull(y, scores, sample_weight=weights).area() >= value - 1e-12


def test_it_is_the_usual_curve_mirrored():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    scores = rng.normal(size=300)
    fpr, tpr, _ = roc_curve(y, scores, drop_intermediate=False)
    curve = symmetric_roc_curve(y, scores)
    np.testing.assert_allclose(np.column_stack([1 - curve.p0, curve.p1])[::-1], np.c_[fpr, tpr])


def test_two_columns_and_the_second_column_are_equivalent():
    P = np.array([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]])
    assert roc_auc([0, 1, 0], P) == roc_auc([0, 1, 0], P[:, 1]) == 1
    assert roc_auc(["a", "b", "a"], P, labels=["b", "a"]) == 0


def test_the_papers_forecasts(cover2):
    for part, expected in (("cal", 0.8733), ("test", 0.8223)):
        value = roc_convex_hull(cover2[f"labels_{part}"], cover2[f"probas_{part}"]).area()
        assert value == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([0, 1], np.full((2, 3), 1 / 3), "y_prob: 3 columns; a ROC curve needs two classes"),
        ([0, 0], [0.1, 0.2], "y_true: no row of class .*1"),
        ([0, 1, 1], [0.1, 0.2], "y_true: 3 rows, but y_prob has 2"),
    ],
)
def test_bad_input(y, p, message):
    with pytest.raises(ValueError, match=message):
        roc_auc(y, p, labels=np.arange(max(np.ndim(p), 1) + 1))
