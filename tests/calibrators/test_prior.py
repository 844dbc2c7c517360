"""Priors: adjusted forecasts are Bayes' rule, estimated shares are the true ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import chi2

from isoroc import InputError, SigmoidCalibrator, adjust_prior, estimate_prior
from isoroc._calibrators.prior import _share_of_variance

MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])


def population(n, prior, rng, old=None):
    """Labels, and their probabilities given features if the class shares are `old`."""
    K = len(prior)
    y = rng.choice(K, size=n, p=prior)
    x = MEANS[y] + rng.normal(size=(n, 2))
    density = np.exp(-((x[:, None] - MEANS[:K]) ** 2).sum(axis=2) / 2)
    joint = density * (prior if old is None else old)
    return y, joint / joint.sum(axis=1, keepdims=True)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_adjusted_forecasts_are_those_of_the_other_population(seed, n_classes):
    rng = np.random.default_rng(seed)
    old, new = rng.dirichlet(np.full(n_classes, 3), size=2)
    state = rng.bit_generator.state
    _, Q = population(20, new, rng, old=old)
    rng.bit_generator.state = state
    _, expected = population(20, new, rng)
    np.testing.assert_allclose(adjust_prior(Q, old, new), expected, atol=1e-12)
    np.testing.assert_allclose(adjust_prior(expected, new, old), Q, atol=1e-12)
    np.testing.assert_allclose(adjust_prior(Q, old, old), Q, atol=1e-12)


@pytest.mark.parametrize("K", [2, 4])
def test_the_p_value_is_that_of_a_likelihood_ratio(K):
    rng = np.random.default_rng(K)
    old = np.full(K, 1 / K)
    _, Q = population(300, rng.dirichlet(np.full(K, 30)), rng, old=old)
    found = estimate_prior(Q, old)
    best = (301 * found.prior - old) / 300  # without the row that was added
    lift = 2 * np.log(Q / old @ best).sum()
    assert found.p_value == pytest.approx(chi2.sf(lift, K - 1))


def test_shapes_and_names():
    Q = np.array([[0.25, 0.75], [0.5, 0.5]])
    adjusted = adjust_prior(Q, [0.5, 0.5], [0.9, 0.1])
    np.testing.assert_array_equal(adjust_prior(Q[:, 1], [0.5, 0.5], [0.9, 0.1]), adjusted[:, 1])
    by_name = adjust_prior(Q, {"a": 0.5, "b": 0.5}, {"b": 0.1, "a": 0.9}, labels=["a", "b"])
    np.testing.assert_array_equal(by_name, adjusted)
    np.testing.assert_array_equal(adjust_prior(Q, [0.5, 0.5], [1, 0]), [[1, 0], [1, 0]])


def test_one_number_is_the_share_of_the_second_class():
    p = np.array([0.2, 0.5, 0.9])
    pairs = adjust_prior(p, [0.83, 0.17], [0.998, 0.002])
    np.testing.assert_allclose(adjust_prior(p, 0.17, 0.002), pairs)
    np.testing.assert_allclose(adjust_prior(p, np.float32(0.25), [0.5, 0.5]), 3 * p / (1 + 2 * p))
    assert estimate_prior(p, 0.17).old.tolist() == pytest.approx([0.83, 0.17])
    with pytest.raises(InputError, match=r"old: has shape .*3 classes"):
        adjust_prior(np.full((2, 3), 1 / 3), 0.2, 0.1)


def test_the_estimate_maximises_the_likelihood():
    rng = np.random.default_rng(0)
    old = np.array([0.6, 0.4])
    _, Q = population(400, [0.2, 0.8], rng, old=old)

    def loss(w):
        return -np.log(Q @ (np.array([1 - w, w]) / old)).sum()

    best = minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-10}).x
    found = estimate_prior(Q, old)
    assert found.prior[1] == pytest.approx((400 * best + old[1]) / 401, abs=1e-6)
    assert found.p_value < 1e-6


@pytest.mark.parametrize("counts", [[97, 2, 1, 0], [1, 9, 0], [80, 19, 1], [0, 7, 3]])
def test_the_prior_of_certain_forecasts_is_the_share_of_their_rows(counts):
    """The class of one row must not be lost on the way, whatever the others gain at first."""
    n = sum(counts)
    old = np.array([0.4, 0.3, 0.2, 0.1])[: len(counts)]
    old /= old.sum()
    found = estimate_prior(np.eye(len(counts)).repeat(counts, axis=0), old)
    np.testing.assert_allclose(found.prior, (counts + old) / (n + 1), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 4])
def test_intervals_cover_and_the_test_keeps_its_level(n_classes):
    rng = np.random.default_rng(1)
    old = rng.dirichlet(np.full(n_classes, 5))
    new = rng.dirichlet(np.full(n_classes, 5))
    covered = []
    rejected = []
    for _ in range(40):
        _, Q = population(300, new, rng, old=old)
        found = estimate_prior(Q, old)
        covered.append((found.low <= new) & (new <= found.high))
        _, Q = population(300, old, rng)
        rejected.append(estimate_prior(Q, old).p_value < 0.05)
    assert np.mean(covered) > 0.85
    assert np.mean(rejected) < 0.15


@pytest.mark.parametrize("share", [0.0, 0.005, 0.1])
def test_forecasts_with_few_levels(share):
    """Forecasts of .2 and .8: if .8 is rarer than one in five, the likeliest share is 0."""
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(60):
        q = np.where(rng.random(500) < 0.2 + 0.6 * share, 0.8, 0.2)
        found = estimate_prior(q, [0.5, 0.5])
        likeliest = np.clip((np.mean(q == 0.8) - 0.2) / 0.6, 0, 1)
        assert found.prior[1] == pytest.approx((500 * likeliest + 0.5) / 501, abs=1e-6)
        assert found.low[1] <= found.prior[1] < found.high[1]
        covered.append(found.low[1] <= share <= found.high[1])
    assert np.mean(covered) > 0.9


def test_intervals_are_those_of_the_likelihood_ratio():
    rng = np.random.default_rng(4)
    old = np.array([0.5, 0.3, 0.2])
    _, Q = population(200, [0.3, 0.5, 0.2], rng, old=old)
    found = estimate_prior(Q, old)

    def likelihood(w):
        return np.log(Q @ (w / old)).sum()

    grid = np.arange(1, 400) / 400
    a, b = (x[grid[:, None] + grid < 1] for x in np.meshgrid(grid, grid, indexing="ij"))
    values = np.array([likelihood(np.array([x, y, 1 - x - y])) for x, y in zip(a, b, strict=True)])
    kept = a[values > values.max() - 3.841459 / 2]
    assert found.low[0] == pytest.approx(kept.min(), abs=0.004)
    assert found.high[0] == pytest.approx(kept.max(), abs=0.004)


def test_many_rows_have_scaled_intervals():
    rng = np.random.default_rng(2)
    _, Q = population(20_000, [0.3, 0.7], rng, old=np.array([0.5, 0.5]))
    few = estimate_prior(Q[:5000], [0.5, 0.5])
    many = estimate_prior(Q, [0.5, 0.5])
    ratio = (many.high - many.low) / (few.high - few.low)
    np.testing.assert_allclose(ratio, 0.5, atol=0.1)
    assert (many.low <= [0.3, 0.7]).all()
    assert (many.high >= [0.3, 0.7]).all()


def test_relative_weights():
    rng = np.random.default_rng(3)
    _, Q = population(300, [0.3, 0.7], rng, old=np.array([0.5, 0.5]))
    plain = estimate_prior(Q, [0.5, 0.5])
    weighted = estimate_prior(Q, [0.5, 0.5], sample_weight=np.full(300, 1e-3))
    np.testing.assert_allclose(weighted.prior, plain.prior)
    assert weighted.p_value == pytest.approx(plain.p_value)


def after_few_rows(seed, share, n=200):
    """Forecasts of new rows, the calibrator of few rows, and its share of positive rows."""
    rng = np.random.default_rng(seed)

    def rows(size, positive):
        y = rng.random(size) < positive
        return expit(1.2 * (np.where(y, 1, -1) + rng.normal(size=size)) + 0.4), y

    p, y = rows(n, 0.5)
    calibrator = SigmoidCalibrator().fit(p, y)
    return calibrator.predict_proba(rows(2000, share)[0]), calibrator, y.mean()


def test_few_calibration_rows_widen_the_interval():
    Q, calibrator, old = after_few_rows(0, 0.3)
    plain = estimate_prior(Q, old)
    found = estimate_prior(Q, old, calibration=calibrator)
    np.testing.assert_allclose(found.prior, plain.prior)
    width = found.high - found.low
    assert (width > 1.5 * (plain.high - plain.low)).all()
    assert plain.p_value < found.p_value < 0.05
    by_number = estimate_prior(Q, old, calibration=200)
    np.testing.assert_allclose(by_number.low, found.low)
    many = estimate_prior(Q, old, calibration=10**6)
    np.testing.assert_allclose(many.high - many.low, plain.high - plain.low, rtol=0.02)
    by_rows = estimate_prior(Q, old, calibration=Q[np.random.default_rng(0).permutation(200)])
    np.testing.assert_allclose(by_rows.high - by_rows.low, width, rtol=0.5)
    with pytest.raises(InputError, match="calibration: has 3 classes"):
        estimate_prior(Q, old, calibration=np.full((9, 3), 1 / 3))


def test_several_classes_allow_for_the_calibration():
    rng = np.random.default_rng(4)
    old = np.array([0.5, 0.3, 0.2])
    _, Q = population(500, [0.3, 0.5, 0.2], rng, old=old)
    plain = estimate_prior(Q, old)
    found = estimate_prior(Q, old, calibration=300)
    assert (found.low < plain.low).all()
    assert (found.high > plain.high).all()
    assert found.p_value > plain.p_value
    assert ((found.low >= 0) & (found.high <= 1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_priors_after_few_calibration_rows_are_covered(share):
    covered = []
    rejected = []
    for seed in range(80):
        Q, calibrator, old = after_few_rows(seed, share)
        found = estimate_prior(Q, old, calibration=calibrator)
        covered.append(found.low[1] <= share <= found.high[1])
        rejected.append(found.p_value < 0.05)
    assert np.mean(covered) > 0.9  # 51 to 61 % without
    assert np.mean(rejected) > 0.9 if share != 0.5 else np.mean(rejected) < 0.13


BAD = [
    ({"old": [0.5, 0.6], "new": [0.5, 0.5]}, "old: sums to 1.1, not to 1; divide it by its sum"),
    ({"old": [1.0, 0.0], "new": [0.5, 0.5]}, "old: is 1.0, 0.0; class shares are positive"),
    ({"old": [0.5, 0.5], "new": [1.5, -0.5]}, "new: is 1.5, -0.5; class shares are not negative"),
    ({"old": [0.5, 0.5], "new": [0.2, 0.3, 0.5]}, r"new: has shape \(3,\), but there are 2"),
    ({"old": {"a": 1.0}, "new": [0.5, 0.5]}, "old: names a, but the classes are 0, 1"),
    ({"old": [0.5, 0.5], "new": [0.0, 1.0]}, "P: row 1 is certain of classes that have no share"),
]


@pytest.mark.parametrize(("shares", "message"), BAD)
def test_bad_shares(shares, message):
    with pytest.raises(InputError, match=message):
        adjust_prior([[0.5, 0.5], [1.0, 0.0]], **shares)


def test_what_moves_all_shares_alike_leaves_the_likelihood_ratio_alone():
    """Shares sum to 1, so a common shift is none."""
    rng = np.random.default_rng(0)
    L = rng.random((50, 3))
    best = np.array([0.2, 0.3, 0.5])
    direction = np.array([1.0, -0.5, -0.5])
    for size in (0.1, 10.0):
        added = np.full((3, 3), size)
        assert _share_of_variance(L, np.ones(50), best, added, direction) == pytest.approx(1)
