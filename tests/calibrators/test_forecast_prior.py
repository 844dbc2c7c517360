"""Bins that are pulled towards the mean forecast of their own rows."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from isoroc import (
    IRPCalibrator,
    load,
)
from isoroc._growth.grow import likeliest_pseudocount
from isoroc._maps.monotonicity import certify
from strategies import arbitrary, binary_data, labelled_forecasts
from truths import distorted

PSEUDOCOUNTS = st.one_of(st.just("auto"), st.floats(0, 200))
FREE = {"min_bin_weight": 0, "min_lift": 0, "random_state": 0}


def overconfident(n, n_classes):
    """Forecasts that are too sharp, and labels."""
    P, _, y = distorted(n, n_classes, power=1.5, seed=0)
    return P, y


def expected_values(cal, P, y, weights):
    """Values of the bins from the formula in the docstring, row by row."""
    K = P.shape[1]
    w = np.ones(len(y)) if weights is None else weights
    bin_of = cal.apply(P)
    constant = min(cal.pseudocount_, 1.0)
    values = np.empty((cal.n_bins_, K))
    for b in range(cal.n_bins_):
        rows = bin_of == b
        labels = np.bincount(y[rows], w[rows], K)
        mean = np.average(P[rows], axis=0, weights=w[rows])
        total = labels + constant / K + (cal.pseudocount_ - constant) * mean
        values[b] = total / total.sum() if total.sum() else labels
    return values


@arbitrary
@given(
    labelled_forecasts(),
    PSEUDOCOUNTS,
    st.sampled_from(["tree", "global", None]),
    st.sampled_from([0, 2]),
)
def test_values_are_pulled_to_the_mean_forecast_of_the_bin(data, pseudocount, scope, weight):
    P, y, weights = data
    cal = IRPCalibrator(
        prior="forecast", pseudocount=pseudocount, monotonicity=scope, top=None, values="constant",
        **FREE | {"min_bin_weight": weight},
    ).fit(P, y, labels=range(P.shape[1]), sample_weight=weights, weighting="frequency")  # fmt: skip
    expected = expected_values(cal, P, y, weights)
    # Next to 1, scores of two columns stand for probabilities within 1e-6.
    np.testing.assert_allclose(cal.bin_values_, expected, atol=1e-9 if P.shape[1] > 2 else 1e-6)
    np.testing.assert_array_equal(cal.predict_proba(P), cal.bin_values_[cal.apply(P)])
    if pseudocount != "auto":
        assert cal.pseudocount_ <= pseudocount
        if P.shape[1] == 2 or scope is None:
            assert cal.pseudocount_ == pseudocount
    else:
        assert 1 <= cal.pseudocount_ <= 101
        assert (cal.bin_values_ > 0).all()
    if scope is not None:
        assert cal.verify(P, y, sample_weight=weights)


@arbitrary
@given(labelled_forecasts(min_classes=3), PSEUDOCOUNTS, st.sampled_from(["tree", "global"]))
def test_the_weight_is_the_largest_that_keeps_the_certificate(data, pseudocount, scope):
    P, y, weights = data
    params = {"pseudocount": pseudocount, "top": None, "values": "constant", **FREE}
    given_ = {"labels": range(P.shape[1]), "sample_weight": weights, "weighting": "frequency"}
    cal = IRPCalibrator(monotonicity=scope, **params).fit(P, y, **given_)
    if pseudocount in ("auto", cal.pseudocount_):
        return
    params |= {"prior": "uniform", "pseudocount": min(pseudocount, 1.0)}
    tree = IRPCalibrator(monotonicity=scope, **params).fit(P, y, **given_).tree_
    np.testing.assert_array_equal(tree.thresholds, cal.tree_.thresholds)
    cal.pseudocount_ = pseudocount
    values = expected_values(cal, P, y, weights)
    slack = certify(tree, values, P if scope == "global" else None).slack
    assert slack.min() < 1e-9


@arbitrary
@given(binary_data(), PSEUDOCOUNTS)
def test_two_classes_increase_at_every_stage(data, pseudocount):
    scores, y, weights = data
    cal = IRPCalibrator(pseudocount=pseudocount).fit(scores, y, sample_weight=weights)
    order = np.argsort(scores)
    for m, Q in enumerate(cal.staged_predict_proba(scores), start=1):
        assert (np.diff(Q[order, 1]) >= 0).all()
        few = IRPCalibrator(pseudocount=pseudocount, max_bins=m)
        few.fit(scores, y, sample_weight=weights)
        np.testing.assert_array_equal(few.predict_proba(scores), Q)
    assert (np.diff(cal.bin_values_[:, 1]) > 0).all()
    assert cal.verify(scores, y, sample_weight=weights)


@arbitrary
@given(binary_data(), st.floats(0, 1))
def test_a_pseudocount_up_to_one_is_the_uniform_prior(data, pseudocount):
    scores, y, weights = data
    maps = [
        IRPCalibrator(pseudocount=pseudocount, prior=prior).fit(scores, y, sample_weight=weights)
        for prior in ("forecast", "uniform")
    ]
    forecast, uniform = (m.predict_proba(scores) for m in maps)
    np.testing.assert_array_equal(forecast, uniform)


@given(st.integers(0, 2**32), st.integers(2, 5))
def test_the_pseudocount_has_the_largest_evidence(seed, K):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 20, (6, K)).astype(float)
    means = rng.dirichlet(np.ones(K), 6)
    constant = np.full(K, 1 / K)

    def evidence(c):
        """By the chain rule: the probability of one label after the other."""
        total = 0.0
        for row, mean in zip(labels, means, strict=True):
            added = constant + c * mean
            counts = np.zeros(K)
            for k in range(K):
                for _ in range(int(row[k])):
                    total += np.log((counts[k] + added[k]) / (counts + added).sum())
                    counts[k] += 1
        return total

    found = likeliest_pseudocount(labels, means, constant)
    assert 0 <= found <= 100
    assert all(evidence(found) >= evidence(c) - 1e-9 for c in (0, 0.01, 0.1, 1, 10, 100))


def test_the_model_is_trusted_as_far_as_it_deserves():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = rng.random(2000) < p
    good = IRPCalibrator().fit(p, y)
    bad = IRPCalibrator().fit(expit(8 * logit(p)), y)
    assert good.pseudocount_ > 50
    assert bad.pseudocount_ < 10
    # Scores outside [0, 1] are log odds: the same forecasts, the same map.
    logits = IRPCalibrator().fit(logit(p), y)
    assert logits.pseudocount_ == good.pseudocount_
    np.testing.assert_allclose(logits.predict_proba(logit(p)), good.predict_proba(p), atol=1e-12)


@pytest.mark.parametrize("K", [2, 3])
def test_few_rows_of_a_calibrated_model_lose_less(K):
    rng = np.random.default_rng(1)

    def draw(n):
        P = rng.dirichlet(np.ones(K), n)
        return P, (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)

    P_new, y_new = draw(5000)
    losses = []
    for prior in ("uniform", "forecast"):
        cal = IRPCalibrator(prior=prior, random_state=0).fit(*draw(150))
        losses.append(-np.log(cal.predict_proba(P_new)[np.arange(5000), y_new]).mean())
    assert losses[1] < losses[0] - 0.01


@pytest.mark.parametrize("K", [2, 3, 6])
def test_files_and_stages_keep_the_priors(tmp_path, K):
    P, y = overconfident(800, K)
    cal = IRPCalibrator(random_state=0).fit(P, y)
    assert cal.prior_.shape == (len(cal.tree_.class_weights), cal.tree_.n_classes)
    np.testing.assert_allclose(cal.prior_.sum(axis=1), 1)
    cal.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict_proba(P), cal.predict_proba(P))
    pairs = zip(again.staged_predict_proba(P), cal.staged_predict_proba(P), strict=True)
    assert all((a == b).all() for a, b in pairs)
    *_, last = cal.staged_predict_proba(P)
    np.testing.assert_array_equal(last, cal.predict_proba(P))


def test_one_prior_does_not_depend_on_the_bin():
    P, y = overconfident(400, 3)
    for prior in ("uniform", "marginal", [0.2, 0.3, 0.5]):
        cal = IRPCalibrator(prior=prior, random_state=0).fit(P, y)
        assert cal.prior_.shape == (3,)
        assert cal.pseudocount_ == 1.0


def test_a_larger_weight_is_nearer_to_the_forecasts():
    P, y = overconfident(500, 2)
    distances = []
    for pseudocount in (1, 5, 25, 125):
        cal = IRPCalibrator(pseudocount=pseudocount).fit(P, y)
        mean = np.bincount(cal.apply(P), P[:, 1]) / np.bincount(cal.apply(P))
        distances.append(np.abs(cal.bin_values_[:, 1] - mean)[cal.apply(P)].mean())
    assert all(near < far for far, near in pairwise(distances))
