import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, xlogy
from scipy.stats import binomtest
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.isotonic import IsotonicRegression

from isoroc import IRPCalibrator
from isoroc.metrics import roc_convex_hull, symmetric_roc_curve
from strategies import arbitrary, binary_data

pytestmark = arbitrary


def fit(data, **params):
    scores, y, weights = data
    return IRPCalibrator(**params).fit(scores, y, sample_weight=weights, unit="logit")


def log_loss(y, q, weights):
    return -np.average(xlogy(y, q) + xlogy(1 - y, 1 - q), weights=weights)


@given(binary_data())
def test_same_values_as_scikit_learn(data):
    scores, y, weights = data
    # scikit-learn takes scores closer than 1e-15 for ties. Ranks keep ours and its ties alike.
    ranks = np.unique(scores, return_inverse=True)[1].astype(float)
    expected = IsotonicRegression().fit(ranks, y, sample_weight=weights).predict(ranks)
    value = fit((ranks, y, weights), pseudocount=0).predict_proba(ranks)[:, 1]
    np.testing.assert_allclose(value, expected, atol=1e-12)
    cal = fit(data, pseudocount=0)  # probabilities just above 1 would become 1
    np.testing.assert_array_equal(cal.predict_proba(scores)[:, 1], value)


@given(binary_data(), st.data())
def test_no_monotone_map_has_a_lower_cross_entropy(data, rest):
    scores, y, weights = data
    ours = log_loss(y, fit(data, pseudocount=0).predict_proba(scores)[:, 1], weights)
    distinct, place = np.unique(scores, return_inverse=True)
    rival = rest.draw(st.lists(st.floats(0, 1), min_size=len(distinct), max_size=len(distinct)))
    with np.errstate(divide="ignore"):
        assert ours <= log_loss(y, np.sort(rival)[place], weights) + 1e-12


@given(binary_data())
def test_zero_calibration_error_on_the_calibration_set(data):
    scores, y, weights = data
    q = fit(data, pseudocount=0).predict_proba(scores)[:, 1]
    w = np.ones(len(y)) if weights is None else weights
    for value in np.unique(q):
        rows = q == value
        np.testing.assert_allclose(np.average(y[rows], weights=w[rows]), value, atol=1e-12)


@given(binary_data())
def test_roc_after_is_the_convex_hull_of_roc_before(data):
    scores, y, weights = data
    q = fit(data, pseudocount=0).predict_proba(scores)
    after = symmetric_roc_curve(y, q, sample_weight=weights)
    hull = roc_convex_hull(y, scores, sample_weight=weights)
    np.testing.assert_allclose(after.p0, hull.p0, atol=1e-12)
    np.testing.assert_allclose(after.p1, hull.p1, atol=1e-12)


@given(binary_data(), st.floats(0, 20), st.floats(0.01, 0.99))
def test_probabilities_are_monotone_and_sum_to_one(data, pseudocount, prior):
    scores, _, _ = data
    cal = fit(data, pseudocount=pseudocount, prior=[1 - prior, prior])
    grid = np.sort(np.concatenate([scores, scores * 0.99, [-1e308, 0, 1e308]]))
    Q = cal.predict_proba(grid)
    np.testing.assert_allclose(Q.sum(axis=1), 1, rtol=1e-15)
    assert (np.diff(Q[:, 1]) >= 0).all()
    if pseudocount > 1e-6:
        assert ((Q > 0) & (Q < 1)).all()


@given(binary_data(), st.floats(0, 20))
def test_certificates_verify(data, pseudocount):
    scores, y, weights = data
    cal = fit(data, pseudocount=pseudocount)
    certificate = cal.certificate_
    assert cal.verify(scores, y, sample_weight=weights)
    assert (certificate.slack > 0).all()
    # The thresholds on the calibrated side tell the calibrated forecasts apart.
    q = cal.predict_proba(scores)[:, 1]
    for before, after in zip(
        certificate.thresholds[:, 1], certificate.calibrated_thresholds[:, 1], strict=True
    ):
        assert ((scores > before) == (q > after)).all()


@given(binary_data(weighted=False), st.data())
def test_a_frequency_of_two_is_the_row_twice_and_of_zero_no_row(data, rest):
    scores, y, _ = data
    counts = np.array(rest.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    counts[0] = counts[-1] = 1
    weighted = IRPCalibrator().fit(scores, y, sample_weight=counts, weighting="frequency")
    repeated = IRPCalibrator().fit(np.repeat(scores, counts), np.repeat(y, counts))
    np.testing.assert_array_equal(weighted.tree_.thresholds, repeated.tree_.thresholds)
    np.testing.assert_array_equal(weighted.tree_.class_weights, repeated.tree_.class_weights)


@given(binary_data(), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(data, random):
    scores, y, weights = data
    order = list(range(len(y)))
    random.shuffle(order)
    shuffled = (scores[order], y[order], None if weights is None else weights[order])
    np.testing.assert_array_equal(
        fit(data).predict_proba(scores), fit(shuffled).predict_proba(scores)
    )


@given(binary_data(), st.floats(0, 5))
def test_stages_are_nested_and_end_at_the_fit(data, pseudocount):
    scores, y, weights = data
    cal = fit(data, pseudocount=pseudocount)
    stages = list(cal.staged_predict_proba(scores))
    path = cal.path_
    assert len(stages) == path.n_rows == cal.n_bins_
    np.testing.assert_array_equal(stages[-1], cal.predict_proba(scores))
    for m, Q in enumerate(stages, start=1):
        assert len(np.unique(Q[:, 1])) == m == path["n_bins"][m - 1]
        truncated = fit(data, pseudocount=pseudocount, max_bins=m)
        np.testing.assert_array_equal(truncated.predict_proba(scores), Q)
        np.testing.assert_allclose(
            path["log_loss"][m - 1], log_loss(y, Q[:, 1], weights), atol=1e-12
        )
    for coarse, fine in pairwise(stages):
        pairs = {(c, f) for c, f in zip(coarse[:, 1], fine[:, 1], strict=True)}
        assert len(pairs) == len({f for _, f in pairs})  # each fine bin in one coarse bin


@given(binary_data())
def test_the_table_of_bins_describes_the_rows_in_them(data):
    scores, y, weights = data
    cal = fit(data)
    table = cal.bins_
    bin_of = cal.apply(scores)
    w = np.ones(len(y)) if weights is None else weights
    for b in range(cal.n_bins_):
        rows = bin_of == b
        assert (scores[rows] > table["lower"][b]).all()
        assert (scores[rows] <= table["upper"][b]).all()
        share = table["weight"][b] / cal.summary_["weight"]
        assert share == pytest.approx(w[rows].sum() / w.sum())
        np.testing.assert_allclose(table["rate"][b], np.average(y[rows], weights=w[rows]))
        assert table["rate_low"][b] <= table["rate"][b] + 1e-12
        assert table["rate_high"][b] >= table["rate"][b] - 1e-12
    np.testing.assert_array_equal(table["value"][bin_of], cal.predict_proba(scores)[:, 1])


def test_bin_intervals_are_wilsons():
    y = np.r_[np.zeros(17), np.ones(3), np.ones(30)].astype(int)
    cal = IRPCalibrator().fit(np.r_[np.zeros(20), np.ones(30)], y)
    for k, n, low, high in zip(
        [3, 30], [20, 30], *(cal.bins_[c] for c in ("rate_low", "rate_high")), strict=True
    ):
        expected = binomtest(k, n).proportion_ci(method="wilson")
        np.testing.assert_allclose([low, high], expected)


def test_the_papers_forecasts(cover2):
    P = cover2["probas_cal"]
    y = cover2["labels_cal"]
    cal = IRPCalibrator(pseudocount=0).fit(P, y)
    assert cal.n_bins_ == 16
    assert roc_convex_hull(y, cal.predict_proba(P)).area() == pytest.approx(
        roc_convex_hull(y, P).area()
    )


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, pl.DataFrame, list])
def test_probabilities_and_their_second_column_give_the_same_fit(container):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = np.where(rng.random(300) < p**2, "yes", "no")
    P = np.column_stack([1 - p, p])
    if container is pl.DataFrame:
        cal = IRPCalibrator().fit(pl.DataFrame(P, schema=["no", "yes"]), pl.Series(y.tolist()))
        Q = cal.predict_proba(pl.DataFrame(P, schema=["no", "yes"]))
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cal = IRPCalibrator().fit(container(P), container(y) if container is list else y)
            Q = cal.predict_proba(container(P))
    np.testing.assert_array_equal(Q, IRPCalibrator().fit(p, y).predict_proba(p))


def test_labels_and_predictions():
    scores = np.linspace(-4, 4, 400)
    y = np.where(np.random.default_rng(0).random(400) < expit(scores), "spam", "ham")
    cal = IRPCalibrator().fit(scores, y)
    assert cal.classes_.tolist() == ["ham", "spam"]
    assert cal.predict([-4.0, 4.0]).tolist() == ["ham", "spam"]
    assert cal.n_features_in_ == 1
    tie = IRPCalibrator().fit([0.0, 0.0], ["b", "a"], unit="logit")
    assert tie.predict([5.0]).tolist() == ["a"]


def test_priors():
    scores = np.r_[np.zeros(10), np.ones(90)]
    y = np.r_[np.zeros(10), np.ones(90)].astype(int)
    top = {
        name: IRPCalibrator(pseudocount=10, prior=prior).fit(scores, y).bins_["value"][1]
        for name, prior in (("u", "uniform"), ("m", "marginal"), ("g", [0.8, 0.2]))
    }
    assert top == pytest.approx({"u": 95 / 100, "m": 99 / 100, "g": 92 / 100})


FITTED = IRPCalibrator().fit([[0.9, 0.1], [0.2, 0.8]], [0, 1])
SCORED = IRPCalibrator().fit([-3.0, 3.0], [0, 1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: IRPCalibrator(pseudocount=-1).fit([0.0, 1], [0, 1]),
            ValueError,
            "pseudocount: is .*; expected .* >= 0",
        ),
        (
            lambda: IRPCalibrator(pseudocount="1").fit([0.0, 1], [0, 1]),  # type: ignore[arg-type]
            ValueError,
            "pseudocount",
        ),
        (
            lambda: IRPCalibrator(pseudocount=np.nan).fit([0.0, 1], [0, 1]),
            ValueError,
            "pseudocount",
        ),
        (
            lambda: IRPCalibrator(max_bins=0).fit([0.0, 1], [0, 1]),
            ValueError,
            "max_bins: is .*; expected .* >= 1",
        ),
        (
            lambda: IRPCalibrator(max_bins=2.5).fit([0.0, 1], [0, 1]),  # type: ignore[arg-type]
            ValueError,
            "max_bins",
        ),
        (
            lambda: IRPCalibrator(min_bin_weight=-1).fit([0.0, 1], [0, 1]),
            ValueError,
            "min_bin_weight",
        ),
        (lambda: IRPCalibrator(prior="flat").fit([0.0, 1], [0, 1]), ValueError, "prior: .*flat"),
        (
            lambda: IRPCalibrator(prior=[0.2, 0.9]).fit([0.0, 1], [0, 1]),
            ValueError,
            "prior: row 0 sums",
        ),
        (
            lambda: IRPCalibrator(prior=[0.2, 0.3, 0.5]).fit([0.0, 1], [0, 1]),
            ValueError,
            "prior: 3 probabilities; expected 2",
        ),
        (lambda: IRPCalibrator().fit([0.0, 1], [0, 1, 1]), ValueError, "y: 3 rows, but P has 2"),
        (lambda: IRPCalibrator().fit([0.0, 1], None), ValueError, "y: requires y"),
        (lambda: IRPCalibrator().fit([0.0, 1], [0, 0]), ValueError, "y: one class only"),
        (
            lambda: IRPCalibrator().fit([0.0, 1], [0, 1], sample_weight=[0, 1]),
            ValueError,
            "one class only, 1",
        ),
        (
            lambda: FITTED.predict_proba([0.1, 0.2]),
            ValueError,
            "P: has one column of scores, but the calibrator was fitted to 2 columns",
        ),
        (
            lambda: SCORED.predict_proba([[0.1, 0.9]]),
            ValueError,
            "P: has 2 columns, but the calibrator was fitted to one column of scores",
        ),
        (lambda: FITTED.predict_proba(np.eye(3)), ValueError, "P: has 3 columns"),
        (lambda: FITTED.predict_proba([[0.1, np.nan]]), ValueError, "P: row 0 holds NaN"),
        (lambda: IRPCalibrator().predict_proba([0.1]), NotFittedError, "not fitted"),
        (lambda: IRPCalibrator().apply([0.1]), NotFittedError, "not fitted"),
        (lambda: IRPCalibrator().bins_, NotFittedError, "not fitted"),
        (lambda: next(IRPCalibrator().staged_predict_proba([0.1])), NotFittedError, "not fitted"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_column_vectors_of_labels_warn():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        IRPCalibrator().fit([0.0, 1], [[0], [1]])


def test_bounds_next_to_one_are_probabilities():
    rng = np.random.default_rng(0)
    first = 10.0 ** -rng.uniform(0, 14, 600)
    P = np.column_stack([first, 1 - first])
    cal = IRPCalibrator().fit(P, rng.random(600) > 0.7 * np.sqrt(first))
    bins = cal.bins_
    inner = cal.bins_["upper"][:-1]
    assert (inner > 1 - 1e-6).any()
    # A bound lies between the probabilities of the rows of the bins that it divides.
    bin_of = cal.apply(P)
    for b, bound in enumerate(inner):
        assert P[bin_of == b, 1].max() <= bound <= P[bin_of == b + 1, 1].min()
    np.testing.assert_array_equal(bins["lower"][1:], inner)
    np.testing.assert_array_equal(np.sort(cal.path_["threshold"][1:]), inner)
