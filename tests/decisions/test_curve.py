"""Cost curves: each point is the cost of decisions, the area is the Brier score."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoroc import InputError, IsotonicCalibrator
from isoroc.decisions import cost_curve, decide, mean_cost
from isoroc.metrics import brier_score_loss
from truths import distorted


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.booleans())
def test_points_are_costs_of_decisions(seed, weighted):
    P, _, y = distorted(12, 2, 2.0, seed=seed)
    y[:2] = 0, 1
    weights = np.arange(12) % 5 + 1 if weighted else None
    curve = cost_curve(y, P, n_ratios=6, sample_weight=weights)
    for ratio, cost, best in zip(curve.ratio, curve.cost, curve.best, strict=True):
        costs = [[0, 2 * ratio], [2 * (1 - ratio), 0]]
        # At ratios 0 and 1 one of the actions costs nothing: forecasts of 0 or 1 would tie.
        of_decisions = mean_cost(y, decide(P, costs), costs, sample_weight=weights)
        assert cost == pytest.approx(of_decisions)
        of_thresholds = [
            np.average(np.array(costs)[y, (P[:, 1] > t).astype(int)], weights=weights)
            for t in (-1, *P[:, 1])
        ]
        assert best == pytest.approx(min(of_thresholds))
    assert (curve.best <= np.minimum(curve.cost, curve.constant) + 1e-12).all()


def test_the_area_is_the_brier_score():
    P, _, y = distorted(3000, 2, 2.0, seed=0)
    expected = brier_score_loss(y, P, scale_by_half=True)
    assert cost_curve(y, P, n_ratios=20_001).area() == pytest.approx(expected, abs=1e-4)


def test_isotonic_regression_reaches_the_best_thresholds():
    P, _, y = distorted(500, 2, 3.0, seed=1)
    Q = IsotonicCalibrator(pseudocount=0).fit(P, y).predict_proba(P)
    after, before = cost_curve(y, Q), cost_curve(y, P)
    np.testing.assert_allclose(after.cost, before.best, atol=1e-12)


def test_two_classes_only():
    P, _, y = distorted(50, 3, 1.0, seed=0)
    with pytest.raises(InputError, match="y_prob: 3 classes; the curve is defined for two"):
        cost_curve(y, P)
