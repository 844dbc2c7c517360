from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, check_grad, linear_sum_assignment, minimize
from scipy.special import expit, logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss, roc_auc_score

from isoroc import IdentityCalibrator, MonotoneCalibrator, TemperatureCalibrator
from isoroc._backends import NUMPY
from isoroc._calibrators import monotone, parts
from isoroc._calibrators.descent import Arrow
from isoroc._calibrators.monotone import Departures, Posterior
from isoroc._calibrators.parts import gather
from isoroc._input import Sample
from isoroc._input.kinds import PROBABILITIES
from isoroc._maps.cyclic import check_cyclic
from strategies import arbitrary, binary_data, labelled_forecasts
from truths import ill_conditioned

few = settings(max_examples=settings().max_examples // 2)


def violation(z, Q):
    """By how much some permutation of the rows of Q fits z better: 0 iff cyclically monotone."""
    z = z - z.mean(axis=1, keepdims=True)
    rows, columns = linear_sum_assignment(z @ Q.T, maximize=True)
    return (z @ Q.T)[rows, columns].sum() - np.einsum("nk,nk->", z, Q)


def overconfident(n, K, seed=0):
    """Forecasts sharper than the truth that favour the last classes, with outcomes."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(K, 0.7), size=n)
    y = np.array([rng.choice(K, p=p) for p in truth])
    P = truth**2 * np.arange(1, K + 1)
    return P / P.sum(axis=1, keepdims=True), y


def adversarial(K, seed=0):
    """Vertices, zeros, ties, tiny and nearly equal forecasts, with outcomes at random."""
    rng = np.random.default_rng(seed)
    tiny = 10.0 ** -rng.integers(0, 320, size=(40, K))
    tiny[:, 0] = 1.0
    lattice = rng.multinomial(3, np.ones(K) / K, size=40)
    close = 1 / K + rng.integers(-2, 3, size=(20, K)) * 1e-15
    smooth = rng.dirichlet(np.full(K, 0.1), size=40)
    P = np.vstack([np.eye(K), tiny, lattice, close, smooth])
    P = np.vstack([P, P[::7]])
    P /= P.sum(axis=1, keepdims=True)
    y = rng.integers(0, K, len(P))
    y[:K] = np.arange(K)
    return P, y


def random_potential(K, seed):
    """A potential far from temperature scaling."""
    rng = np.random.default_rng(seed)
    family = Departures(K, 1 / 101)
    return family.map_of(rng.normal(scale=0.8, size=family.n_parameters), PROBABILITIES, 0.1)


def posterior(family, P, y, weights):
    """The posterior of rows without a floor to speak of."""
    return Posterior(family, Sample(P, y, weights), 1e-12)


# The guarantee


@arbitrary
@few
@given(data=st.data(), K=st.integers(2, 10))
def test_every_fitted_map_is_cyclically_monotone(data, K):
    P, y, weights = data.draw(labelled_forecasts(n_classes=K, max_rows=30))
    cal = MonotoneCalibrator().fit(P, y, labels=range(K), sample_weight=weights)
    new = np.vstack([P, np.random.default_rng(0).dirichlet(np.full(K, 0.3), 30)])
    check = cal.verify(new)
    assert check
    assert check.exact
    assert check.rows == len(new)
    assert violation(cal.coordinates(new), cal.predict_proba(new)) <= 1e-9


@arbitrary
@pytest.mark.parametrize("K", range(2, 11))
def test_on_adversarial_forecasts(K):
    P, y = adversarial(K)
    cal = MonotoneCalibrator().fit(P, y)
    Q = cal.predict_proba(P)
    assert ((Q > 0) & (Q < 1)).all()
    np.testing.assert_allclose(Q.sum(axis=1), 1, rtol=1e-12)
    assert cal.verify(P)
    assert violation(cal.coordinates(P), Q) <= 1e-9


@arbitrary
@few
@given(data=binary_data(max_rows=30))
def test_two_classes_keep_the_order_of_any_scores(data):
    scores, y, weights = data
    cal = MonotoneCalibrator().fit(scores, y, unit="logit", sample_weight=weights)
    q = cal.predict_proba(scores)[:, 1][np.argsort(scores)]
    assert (np.diff(q) >= -1e-12 * q[1:]).all()
    assert cal.verify(scores)


@pytest.mark.parametrize("kind", ["probability", "columns", "logit"])
def test_two_classes_keep_the_roc_curve_without_ties(kind):
    rng = np.random.default_rng(0)
    odds = np.round(rng.normal(scale=4, size=3000), 3)
    y = rng.random(3000) < 1 / (1 + np.exp(-odds / 2))
    p = 1 / (1 + np.exp(-odds))
    P = {"probability": p, "columns": np.column_stack([1 - p, p]), "logit": odds}[kind]
    cal = MonotoneCalibrator().fit(P, y, unit="logit" if kind == "logit" else "probability")
    q = cal.predict_proba(P)[:, 1]
    assert roc_auc_score(y, q) == roc_auc_score(y, odds)
    assert len(np.unique(q)) == len(np.unique(odds))
    order = np.argsort(odds)
    assert (np.diff(q[order])[np.diff(odds[order]) > 0] > 0).all()


def test_zeros_and_forecasts_below_the_floor_stay_apart():
    rng = np.random.default_rng(0)
    p = np.concatenate([np.full(50, 0.0), 10.0 ** -rng.integers(1, 40, 500), rng.random(500)])
    y = rng.random(len(p)) < 0.1 + 0.8 * p
    cal = MonotoneCalibrator().fit(p, y)
    assert cal.floor_ > 1e-3
    assert len(np.unique(cal.predict_proba(p)[:, 1])) == len(np.unique(p))


def test_other_maps_fail_the_check():
    P, y = overconfident(300, 3)
    cal = MonotoneCalibrator().fit(P, y)
    z = cal.coordinates(P)
    Q = cal.predict_proba(P)
    assert check_cyclic(z, Q)
    assert not check_cyclic(z, Q[:, [1, 0, 2]])
    assert not check_cyclic(z, Q[:, [1, 2, 0]])
    damaged = Q.copy()
    damaged[[0, 1]] = damaged[[1, 0]]
    assert not check_cyclic(z, damaged)


def test_averages_with_the_identity_and_among_each_other_are_monotone():
    P, y = overconfident(400, 4)
    cal = MonotoneCalibrator().fit(P, y)
    z = cal.coordinates(P)
    Q = cal.predict_proba(P)
    others = [random_potential(4, seed).gradient(NUMPY, z) for seed in range(3)]
    parts = [Q, IdentityCalibrator().fit(P, y).predict_proba(P), *others]
    for weights in np.random.default_rng(0).dirichlet(np.ones(len(parts)), 5):
        mixture = np.tensordot(weights, parts, axes=1)
        assert check_cyclic(z, mixture)
        assert violation(z, mixture) <= 1e-9


# The potential


def value(F, z):
    """``log(sum over j, k of x_j exp(J_jk) x_k) / (2 a)``, x_k the sum of exponentials s_kl."""
    s = F.scale * np.einsum("nc,klc->nkl", z, F.prototypes) + F.biases
    logs = logsumexp(s, axis=2)
    pairs = logs[:, :, None] + logs[:, None] + (0 if F.interactions is None else F.interactions)
    return logsumexp(pairs, axis=(1, 2)) / (2 * F.scale)


@few
@given(seed=st.integers(0, 2**32), K=st.integers(2, 10))
def test_the_map_is_the_gradient_of_its_potential(seed, K):
    F = random_potential(K, seed)
    z = np.random.default_rng(seed).normal(scale=3, size=K)
    numerical = approx_fprime(z, lambda v: value(F, v[None])[0], 1e-6)
    np.testing.assert_allclose(F.gradient(NUMPY, z[None])[0], numerical, atol=1e-5)


@few
@given(seed=st.integers(0, 2**32), K=st.integers(2, 10))
def test_the_potential_is_convex_and_ignores_constants(seed, K):
    F = random_potential(K, seed)
    rng = np.random.default_rng(seed)
    a, b = rng.normal(scale=5, size=(2, 50, K))
    s = rng.random((50, 1))
    chord = s[:, 0] * value(F, a) + (1 - s[:, 0]) * value(F, b)
    assert (value(F, s * a + (1 - s) * b) <= chord + 1e-12 * (1 + np.abs(chord))).all()
    np.testing.assert_allclose(value(F, a + 2), value(F, a) + 2, rtol=1e-9)
    np.testing.assert_allclose(F.gradient(NUMPY, a + 2), F.gradient(NUMPY, a), rtol=1e-9)


def test_the_fitted_map_is_the_gradient_of_its_potential():
    P, y = overconfident(300, 3)
    cal = MonotoneCalibrator().fit(P, y)
    z = cal.coordinates(P[:20])
    certificate = cal.certificate_
    np.testing.assert_allclose(cal.map_.gradient(NUMPY, z), cal.predict_proba(P[:20]))
    for point, q in zip(z[:5], cal.predict_proba(P[:5]), strict=True):
        numerical = approx_fprime(point, lambda v: value(cal.map_, v[None])[0], 1e-6)
        np.testing.assert_allclose(numerical, q, atol=1e-5)
    assert "Cyclically monotone" in str(certificate)
    assert f"{cal.floor_:g}" in str(certificate)
    assert certificate.table()["guarantee"][0] == str(certificate)
    assert "Strictly increasing" in str(MonotoneCalibrator().fit(P[:, 0], y == 0).certificate_)
    with pytest.raises(NotFittedError):
        MonotoneCalibrator().certificate_  # noqa: B018


def test_the_map_is_the_documented_formula():
    P, y = overconfident(300, 4)
    cal = MonotoneCalibrator().fit(P, y)
    z = (1 - 1e-4) * np.log(P + cal.floor_) + 1e-4 * np.log(P)
    np.testing.assert_allclose(cal.coordinates(P), z)
    K, L = cal.softness_.shape
    R = cal.prototypes_.reshape(K * L, K)
    np.testing.assert_allclose(R.sum(axis=1), 1)
    assert cal.interactions_ is not None
    J = np.repeat(np.repeat(cal.interactions_, L, axis=0), L, axis=1)
    s = cal.scale_ * z @ R.T + cal.biases_.ravel()
    pairs = s[:, :, None] + s[:, None, :] + J
    w = softmax(pairs.reshape(len(P), -1), axis=1).reshape(pairs.shape)
    middle = (R[:, None] + R[None, :]) / 2
    np.testing.assert_allclose(cal.predict_proba(P), np.tensordot(w, middle, axes=2), rtol=1e-9)


@pytest.mark.parametrize("K", [2, 3, 5])
def test_vertices_alone_are_temperature_scaling_with_biases(K):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(40, K))
    biases = rng.normal(size=(K, 1))
    numbers = {"scale": 0.6, "softness": np.zeros((K, 1)), "biases": biases}
    F = replace(random_potential(K, 0), directions=None, interactions=None, **numbers)
    np.testing.assert_allclose(F.gradient(NUMPY, z), softmax(0.6 * z + biases[:, 0], axis=1))


def test_without_departures_forecasts_of_two_classes_stay_as_they_are():
    z = np.random.default_rng(0).normal(scale=2, size=(40, 2))
    family = Departures(2, 1e-12)
    q = family.map_of(np.zeros(family.n_parameters), PROBABILITIES, 0.1).gradient(NUMPY, z)
    np.testing.assert_allclose(q, softmax(z, axis=1), atol=1e-9)


# The fit


@pytest.mark.parametrize("K", [2, 3, 5, 7])
def test_gradient_and_curvature_of_the_posterior(K, monkeypatch):
    monkeypatch.setattr(Departures, "pair_classes", 5)  # seven classes do not interact
    monkeypatch.setattr(Posterior, "gradient_numbers", 40)  # several parts of rows
    P, y = overconfident(150, K)
    weights = np.random.default_rng(1).random(150) + 0.5
    family = Departures(K, 0.01)
    rows = posterior(family, P, y, weights)
    theta = np.random.default_rng(2).normal(scale=0.3, size=family.n_parameters)
    q = rows.map_of(theta).apply(P)[np.arange(150), y]
    prior = family.priors.precision() @ theta**2 / 2
    np.testing.assert_allclose(rows.loss(theta)[0], prior - weights @ np.log(q), rtol=1e-10)
    off = check_grad(lambda t: rows.loss(t)[0], lambda t: rows.loss(t)[1], theta)
    assert off < 1e-4 * np.linalg.norm(rows.loss(theta)[1])
    # The curvature is the sum of outer products of single rows' gradients.
    H = np.zeros((family.n_parameters, family.n_parameters))
    for i in range(150):
        one = posterior(family, P[i : i + 1], y[i : i + 1], np.ones(1))
        g = one.loss(theta)[1] - family.priors.precision() * theta
        H += weights[i] * np.outer(g, g)
    found = rows.curvature(theta)
    if isinstance(found, Arrow):  # without the products of gradients of different classes
        shared = np.arange(5)
        parts = [(H[np.ix_(own, shared)], H[np.ix_(own, own)]) for own in found.positions]
        np.testing.assert_allclose(found.shared, H[:5, :5], rtol=1e-7, atol=1e-9)
        for k, (arm, block) in enumerate(parts):
            np.testing.assert_allclose(found.arms[k], arm, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(found.blocks[k], block, rtol=1e-7, atol=1e-9)
        assert sorted([*shared, *found.positions.ravel()]) == list(range(len(theta)))
        return
    np.testing.assert_allclose(found, H, rtol=1e-7, atol=1e-9)
    monkeypatch.setattr(Posterior, "dense", 1)
    np.testing.assert_allclose(rows.curvature(theta), np.diag(H), rtol=1e-7, atol=1e-9)


def test_few_rows_of_sharp_calibrated_forecasts_change_little():
    """Neither the temperature nor the softness of prototypes takes much from them."""
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = expit(rng.normal(scale=4, size=300))
        y = (rng.random(300) < p).astype(int)
        truth = expit(rng.normal(scale=4, size=20_000))
        P = np.column_stack([1 - truth, truth])
        Q = MonotoneCalibrator().fit(p, y).predict_proba(truth)
        ratios.append((P * np.log(Q)).sum() / (P * np.log(P)).sum())
    assert np.mean(ratios) < 1.01
    assert max(ratios) < 1.05


@pytest.mark.parametrize("K", [2, 3, 6])
def test_it_beats_temperature_scaling_on_new_rows(K):
    P, y = overconfident(4000, K)
    cal = slice(2000)
    rest = slice(2000, None)
    after = log_loss(y[rest], MonotoneCalibrator().fit(P[cal], y[cal]).predict_proba(P[rest]))
    tempered_loss = log_loss(
        y[rest], TemperatureCalibrator().fit(P[cal], y[cal]).predict_proba(P[rest])
    )
    assert after < tempered_loss - 0.005


@pytest.mark.parametrize("K", [2, 4])
def test_the_fit_is_the_maximum_of_the_posterior(K):
    P, y = overconfident(300, K)
    family = Departures(K, 1 / 301)
    rows = posterior(family, P, y, np.ones(300))
    theta, _, converged = rows.maximise(np.zeros(family.n_parameters), learn=True)
    assert converged
    other = minimize(rows.loss, theta, jac=True, method="BFGS", options={"maxiter": 500})
    assert rows.loss(theta)[0] - other.fun <= 300 * 2 * rows.tolerance


@pytest.mark.parametrize("n", [60, 200, 1000])
def test_forecasts_do_not_fall_by_rounding(n):
    p = np.random.default_rng(n).random(n)
    calibrator = MonotoneCalibrator().fit(p, p > 0.5)  # separable rows: the map saturates
    q = calibrator.predict_proba(np.linspace(0, 1, 20_001))
    assert (np.diff(q, axis=0) * [-1, 1] >= 0).all()


def test_frequencies_are_repeated_rows():
    P, y = overconfident(200, 3)
    counts = np.random.default_rng(0).integers(0, 4, 200)
    weighted = MonotoneCalibrator().fit(P, y, sample_weight=counts, weighting="frequency")
    repeated = MonotoneCalibrator().fit(np.repeat(P, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.predict_proba(P), repeated.predict_proba(P), atol=1e-6)


def test_logits_are_log_forecasts():
    P, y = overconfident(300, 3)
    P = 0.99 * P + 0.01 / 3
    by_logits = MonotoneCalibrator().fit(np.log(P) + 5, y, unit="logit")
    Q = MonotoneCalibrator().fit(P, y).predict_proba(P)
    np.testing.assert_allclose(by_logits.predict_proba(np.log(P) - 7), Q, rtol=1e-6)
    assert by_logits.verify(np.log(P))


@arbitrary
def test_logits_beyond_the_range_of_probabilities():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=2000, size=(300, 3))
    y = (logits + rng.normal(scale=2000, size=(300, 3))).argmax(axis=1)
    cal = MonotoneCalibrator().fit(logits, y, unit="logit")
    assert np.isfinite(log_loss(y, cal.predict_proba(logits)))
    assert cal.verify(logits)


@arbitrary
@pytest.mark.parametrize("K", [2, 3, 5])
def test_converges_on_ill_conditioned_data(K):
    for P, y in ill_conditioned(K):
        cal = MonotoneCalibrator().fit(P, y, labels=range(K))  # a warning would be an error
        assert np.isfinite(log_loss(y, cal.predict_proba(P), labels=range(K)))
        assert cal.verify(P)


def test_it_warns_if_the_fit_did_not_converge(monkeypatch):
    monkeypatch.setattr(Posterior, "rounds", 1)
    P, y = overconfident(200, 3)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        cal = MonotoneCalibrator().fit(P, y)
    assert cal.verify(P)


def test_many_rows_start_from_a_part_and_end_at_the_same_fit(monkeypatch):
    P, y = overconfident(20_000, 3)
    whole = MonotoneCalibrator().fit(P, y).predict_proba(P)
    monkeypatch.setattr(parts, "PART_ROWS", 5000)
    monkeypatch.setattr(parts, "PART_NUMBERS", 15_000)
    np.testing.assert_allclose(MonotoneCalibrator().fit(P, y).predict_proba(P), whole, atol=0.002)


def centred(z):
    return z - z.mean(axis=0)


@pytest.mark.parametrize("K", [2, 3])
def test_many_rows_are_gathered_in_cells(K, monkeypatch):
    P, y = overconfident(20_000, K)
    weights = np.random.default_rng(0).integers(1, 3, 20_000).astype(float)
    whole = MonotoneCalibrator().fit(P, y, sample_weight=weights).predict_proba(P)
    monkeypatch.setattr(parts, "UNGROUPED_ROWS", 1000)
    monkeypatch.setattr(monotone, "WIDTH", 1 / 16 if K == 2 else 1 / 4)  # few rows per cell
    z = centred(np.log(P.T))
    _, codes, gathered = gather(z, y, weights, np.floor(z / monotone.WIDTH))
    assert len(codes) < 10_000
    np.testing.assert_allclose(np.bincount(codes, gathered), np.bincount(y, weights))
    of_cells = MonotoneCalibrator().fit(P, y, sample_weight=weights)
    np.testing.assert_allclose(of_cells.predict_proba(P), whole, atol=5e-3)


def test_cells_hold_rows_of_one_class_that_are_close(monkeypatch):
    monkeypatch.setattr(parts, "UNGROUPED_ROWS", 10)
    centres = np.array([[0.0, 0, -3.0, 0], [0.0, 0, 0, 0]])
    z = centred(np.repeat(centres, 10, axis=1) + 5.01)
    codes = np.repeat(np.array([0, 1, 1, 0], dtype=np.uint8), 10)
    z, codes, weights = gather(z, codes, np.full(40, 0.5), np.floor(16 * z))
    found = sorted(zip((z[0] - z[1]).round(12), codes.tolist(), weights, strict=True))
    assert found == [(-3.0, 1, 5.0), (0.0, 0, 10.0), (0.0, 1, 5.0)]
    apart = np.linspace(0, 100, 40)
    z = np.stack([apart, -apart])
    z, _, _ = gather(z, codes.repeat(14)[:40], np.ones(40), np.floor(16 * z))
    assert z.shape == (2, 40)


def test_of_very_many_rows_a_part_is_used(monkeypatch):
    P, y = overconfident(2000, 3)
    whole = MonotoneCalibrator().fit(P, y).predict_proba(P)
    monkeypatch.setattr(MonotoneCalibrator, "_most_numbers", 9000)
    part = MonotoneCalibrator().fit(P, y).predict_proba(P)
    assert (part != whole).any()
    np.testing.assert_allclose(part, whole, atol=0.1)


@pytest.mark.parametrize("K", [101, 300])
def test_many_classes(K):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(K, 0.05), size=400)
    y = np.array([rng.choice(K, p=p / p.sum()) for p in P])
    sharp = P**1.5 + 1e-12
    sharp /= sharp.sum(axis=1, keepdims=True)
    cal = MonotoneCalibrator().fit(sharp, y, labels=range(K))
    own = np.arange(len(y)), y
    assert np.log(cal.predict_proba(sharp)[own]).mean() > np.log(sharp[own]).mean()
    assert cal.directions_ is None
    assert cal.interactions_ is None
    assert cal.verify(sharp)


def test_uniform_directions_are_a_short_form(monkeypatch):
    P, y = overconfident(300, 4)
    monkeypatch.setattr(Departures, "pair_classes", 3)
    cal = MonotoneCalibrator().fit(P, y)
    z = cal.coordinates(P)
    long = replace(cal.map_, directions=(1 - np.eye(4)) / 3, interactions=np.zeros((4, 4)))
    np.testing.assert_allclose(long.gradient(NUMPY, z), cal.predict_proba(P), rtol=1e-9)
    np.testing.assert_allclose(value(long, z), value(cal.map_, z), rtol=1e-9)


def test_floors_that_a_temperature_makes_up_for_tie():
    """All log forecasts are 0 or the floor, so rounding errors must not choose the floor."""
    P = np.eye(3)[[0, 2, 0, 0, 0]]
    y = [0, 2, 0, 2, 0]
    w = [1, 1, 3, 1, 1]
    weighted = MonotoneCalibrator().fit(P, y, labels=range(3), sample_weight=w)
    repeated = MonotoneCalibrator().fit(P.repeat(w, axis=0), np.repeat(y, w), labels=range(3))
    assert weighted.floor_ == repeated.floor_ == 1e-4
