"""Rows that a fit has seen are recognised, and rows that resemble them are not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoroc import Counts, IsotonicCalibrator, TemperatureCalibrator
from isoroc._input import check_sample, share_seen
from isoroc._input.seen import SIZE, Fingerprint, recall_output


def draw(rng, n, K=2, digits=15):
    P = rng.dirichlet(np.ones(K), n).round(digits)
    P = P if K > 2 else np.column_stack([1 - P[:, 1], P[:, 1]])
    codes = (P[:, :-1].cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return P, codes


def sample_of(P, y, **options):
    return check_sample(P, y, labels=range(2 if P.ndim == 1 else P.shape[1]), **options)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(5, 400), K=st.integers(2, 5))
def test_the_share_of_rows_that_were_seen(seed, n, K):
    rng = np.random.default_rng(seed)
    P, y = draw(rng, 2 * n, K)
    summary = Fingerprint.of(sample_of(P[:n], y[:n])).entry()
    order = rng.permutation(n)
    assert share_seen(summary, sample_of(P[order], y[order])) == 1
    assert share_seen(summary, sample_of(P[n:], y[n:])) == 0
    # Of all rows, half were seen. The estimate is exact if the fingerprint has room for more.
    share = share_seen(summary, sample_of(P, y))
    if n < SIZE:
        assert share == 0.5
    else:
        assert abs(share - 0.5) < 6 * np.sqrt(0.25 / SIZE)


@pytest.mark.parametrize("digits", [1, 2])
@pytest.mark.parametrize("n", [30, 300])
def test_coarse_forecasts_are_not_recognised_by_chance(digits, n):
    rng = np.random.default_rng(0)
    for _ in range(50):
        own, other = (draw(rng, n, 2, digits) for _ in range(2))
        summary = Fingerprint.of(sample_of(*own)).entry()
        assert share_seen(summary, sample_of(*own)) == 1
        assert share_seen(summary, sample_of(*other)) == 0


def test_other_outcomes_of_the_same_forecasts_are_new():
    rng = np.random.default_rng(0)
    P, y = draw(rng, 500)
    again = (rng.random(500) < P[:, 1]).astype(int)
    summary = Fingerprint.of(sample_of(P, y)).entry()
    assert share_seen(summary, sample_of(P, again)) == 0


def test_the_same_rows_in_another_form():
    rng = np.random.default_rng(0)
    P, y = draw(rng, 400)
    weights = rng.random(400)
    shares = np.eye(2)[y] * 0.9 + 0.05
    of_scores = IsotonicCalibrator().fit(P[:, 1], y)
    for sample in (
        sample_of(P, y, sample_weight=weights),
        sample_of(P[:, 1], y),
        Counts.from_arrays(P[:, 1], y).sample(per_fold=False),
    ):
        assert share_seen(of_scores.summary_, sample) == 1
    assert share_seen(of_scores.summary_, sample_of(P, shares)) == 0
    soft = TemperatureCalibrator().fit(P, shares)
    assert share_seen(soft.summary_, sample_of(P, shares)) == 1
    P, y = draw(rng, 400, 3)
    of_logits = TemperatureCalibrator().fit(np.log(P), y, unit="logit")
    assert share_seen(of_logits.summary_, sample_of(P, y)) == 1


@pytest.mark.parametrize(
    "summary",
    [
        None,
        {},
        {"fingerprint": 3},
        {"fingerprint": {"tied": 0.0}},
        {"fingerprint": {"tied": "0", "rows": 10 * "0"}},
        {"fingerprint": {"tied": 0.0, "rows": "0x12345678"}},
        {"fingerprint": {"tied": 0.0, "rows": 10 * SIZE * "00"}},
        {"fingerprint": {"tied": float("nan"), "rows": SIZE * "0123456789"}},
    ],
)
def test_what_an_altered_file_may_hold(summary):
    P, y = draw(np.random.default_rng(0), 50)
    assert share_seen(summary, sample_of(P, y)) == 0


def test_forecasts_lead_back_to_the_rows_of_the_fit():
    P, y = draw(np.random.default_rng(0), 300)
    Q = IsotonicCalibrator().fit(P, y).predict_proba(P)  # the calibrator is gone
    for given_back in (Q, Q.copy(), Q[:, 1], Q.tolist()):
        found = recall_output(given_back)
        assert found is not None
        assert found.share_of(sample_of(P, y)) == 1
    assert recall_output(Q[::-1]) is None
