import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from isoroc import IRPCalibrator, IsotonicCalibrator
from isoroc._counts import N_BITS, rounded
from strategies import arbitrary, binary_data, labelled_forecasts


@arbitrary
@given(binary_data(), st.floats(0, 5))
def test_two_classes_as_recursive_partitioning_has_them(data, pseudocount):
    scores, y, weights = data
    params = {"pseudocount": pseudocount}
    options = {"sample_weight": weights, "unit": "logit"}
    ours = IsotonicCalibrator(**params).fit(scores, y, **options)
    tree = IRPCalibrator(prior="uniform", **params).fit(scores, y, **options)
    grid = np.concatenate([scores, scores * 0.99, [-1e308, 0, 1e308]])
    np.testing.assert_allclose(ours.predict_proba(grid), tree.predict_proba(grid), atol=1e-14)


@arbitrary
@given(labelled_forecasts(min_classes=3))
def test_more_classes_are_regressions_divided_by_their_sum(data):
    P, y, weights = data
    cal = IsotonicCalibrator(pseudocount=1e-9).fit(
        P, y, labels=range(P.shape[1]), sample_weight=weights
    )
    # scikit-learn takes scores closer than 1e-15 for ties, and isoroc takes forecasts that agree in
    # 40 bits. Ranks of rounded forecasts keep the ties alike.
    columns = rounded(P, N_BITS).T
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] for column in columns])
    rates = np.column_stack(
        [
            IsotonicRegression().fit(r, y == k, sample_weight=weights).predict(r)
            for k, r in enumerate(ranks.T.astype(float))
        ]
    )
    total = rates.sum(axis=1, keepdims=True)
    known = total[:, 0] > 1e-3
    np.testing.assert_allclose(cal.predict_proba(P)[known], (rates / total)[known], atol=1e-5)


@arbitrary
@given(labelled_forecasts(min_classes=3))
def test_each_class_keeps_its_order(data):
    P, y, weights = data
    cal = IsotonicCalibrator().fit(P, y, labels=range(P.shape[1]), sample_weight=weights)
    for cuts, values in zip(cal.cuts_, cal.values_, strict=True):
        assert (np.diff(cuts) > 0).all()
        assert (np.diff(values) > 0).all()
        assert (values > 0).all()


def test_more_than_two_classes_need_smoothing():
    P = np.full((4, 3), 1 / 3)
    with pytest.raises(ValueError, match=r"pseudocount: is 0, .*; expected a number > 0"):
        IsotonicCalibrator(pseudocount=0).fit(P, [0, 1, 2, 2])
    with pytest.raises(ValueError, match=r"pseudocount: is .*; expected .* >= 0"):
        IsotonicCalibrator(pseudocount=-1).fit(P, [0, 1, 2, 2])
