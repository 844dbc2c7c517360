from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning

from isoroc import SplineCalibrator, TemperatureCalibrator
from isoroc._backends import NUMPY
from isoroc._calibrators import spline
from isoroc._calibrators.spline import SplineLoss
from isoroc._input import Sample
from strategies import arbitrary, labelled_forecasts
from truths import ill_conditioned


def overconfident(n, K, seed=0, power=3.0):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(K), size=n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1).clip(max=K - 1)
    P = truth**power
    return P / P.sum(axis=1, keepdims=True), y, truth


def loss_of_map(P, y, calibrator, coef, *, slopes, intercept):
    """The likelihood of the map as the class documents it, written down again."""
    K = P.shape[1]
    logs = np.log(P)
    odds = logs - np.log(np.array([[p[np.arange(K) != k].sum() for k in range(K)] for p in P]))
    hinges = np.maximum(odds[:, :, None] - calibrator.knots_, 0)
    z = logs @ coef.T + (hinges * slopes).sum(axis=2) + intercept
    return -log_softmax(z, axis=1)[np.arange(len(y)), y].sum(), logs, hinges


@pytest.mark.parametrize("n_knots", [0, 2])
def test_solution_is_the_minimum_of_an_independent_objective(n_knots):
    P, y, _ = overconfident(80, 3)
    cal = SplineCalibrator(n_knots=n_knots, pseudocount=0).fit(P, y)
    K = 3
    m = len(cal.knots_)
    B = 1 + m
    _, logs, hinges = loss_of_map(
        P, y, cal, np.eye(K), slopes=np.zeros((K, m)), intercept=np.zeros(K)
    )
    features = np.concatenate([logs[:, :, None], hinges], axis=2)
    centre = features.mean(axis=(0, 1))
    scale = np.maximum(features.std(axis=(0, 1)) / 2, 1)

    def unpack(theta):
        shared = theta[:B]
        own = theta[B : B + K * B].reshape(K, B)
        intercept = theta[B + K * B : B + K * B + K]
        matrix = theta[-K * K :].reshape(K, K)
        return shared, own, intercept, matrix * (1 - np.eye(K))

    def objective(theta):
        shared, own, intercept, matrix = unpack(theta)
        total = (shared + own) / scale
        coef = np.diag(total[:, 0]) + matrix @ (np.eye(K) - 1 / K)
        loss, _, _ = loss_of_map(
            P, y, cal, coef, slopes=total[:, 1:], intercept=intercept - total @ centre
        )
        ridge = (shared[1:] ** 2).sum() + K * (own**2).sum() + K * (intercept**2).sum()
        return loss + ridge + K * (K - 1) * (matrix**2).sum()

    start = np.zeros(B + K * B + K + K * K)
    start[0] = scale[0]
    found = minimize(objective, start, method="BFGS", options={"gtol": 1e-4})
    shared, own, intercept, matrix = unpack(found.x)
    total = (shared + own) / scale
    z = logs @ (np.diag(total[:, 0]) + matrix @ (np.eye(K) - 1 / K)).T
    z += (hinges * total[:, 1:]).sum(axis=2) + intercept - total @ centre
    np.testing.assert_allclose(cal.predict_proba(P), np.exp(log_softmax(z, axis=1)), atol=2e-3)


def test_undoes_what_a_power_did():
    P, y, truth = overconfident(4000, 3)
    Q = SplineCalibrator().fit(P, y).predict_proba(P)
    assert np.abs(Q - truth).mean() < 0.03 < np.abs(P - truth).mean()


def test_bends_where_a_matrix_cannot():
    rng = np.random.default_rng(0)
    odds = rng.normal(scale=2, size=6000)
    truth = expit(np.where(odds > 0, 0.2 * odds, 2 * odds))
    y = (rng.random(6000) < truth).astype(int)
    P = np.column_stack([expit(-odds), expit(odds)])
    bent, straight = (
        np.abs(SplineCalibrator(n_knots=m).fit(P, y).predict_proba(P)[:, 1] - truth).mean()
        for m in (8, 0)
    )
    assert bent < 0.02 < straight


def test_a_strong_penalty_leaves_temperature_scaling():
    P, y, _ = overconfident(500, 4)
    stiff = SplineCalibrator(penalty=1e8, pseudocount=0).fit(P, y)
    tempered = TemperatureCalibrator(floor=1e-300, pseudocount=0).fit(P, y)
    np.testing.assert_allclose(stiff.predict_proba(P), tempered.predict_proba(P), atol=2e-3)


@arbitrary
@given(data=labelled_forecasts(max_rows=30))
def test_rows_sum_to_one_and_nothing_is_certain(data):
    P, y, weights = data
    Q = (
        SplineCalibrator()
        .fit(P, y, labels=range(P.shape[1]), sample_weight=weights)
        .predict_proba(P)
    )
    np.testing.assert_allclose(Q.sum(axis=1), 1, atol=1e-12)
    assert (Q > 0).all()


def test_a_frequency_of_two_is_the_row_twice():
    P, y, _ = overconfident(200, 3)
    weights = np.random.default_rng(1).integers(1, 4, size=200)
    weighted = SplineCalibrator().fit(P, y, sample_weight=weights, weighting="frequency")
    repeated = SplineCalibrator().fit(np.repeat(P, weights, axis=0), np.repeat(y, weights))
    # Sums in another order end the iteration elsewhere, where the likelihood is as good.
    Q = weighted.predict_proba(P)
    R = repeated.predict_proba(P)
    np.testing.assert_allclose(Q, R, atol=5e-3)
    losses = [np.average(-np.log(q[np.arange(200), y]), weights=weights) for q in (Q, R)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)


def test_scores_are_log_odds_where_they_cannot_be_probabilities():
    P, y, _ = overconfident(300, 2)
    odds = np.log(P[:, 1] / P[:, 0])
    of_odds = SplineCalibrator().fit(odds, y)
    assert of_odds.unit_ == "logit"
    np.testing.assert_allclose(
        of_odds.predict_proba(odds), SplineCalibrator().fit(P, y).predict_proba(P), atol=1e-3
    )
    with pytest.raises(ValueError, match="row 1 is 7"):
        SplineCalibrator().fit(P[:, 1], y).predict_proba([0.5, 7.0])


def test_odds_of_sure_forecasts_keep_their_digits():
    for K in (3, 100):
        P = np.full((2, K), 1e-40)
        P[:, :3] = [[1.0, 1e-25, 3e-25], [0.3, 0.3, 0.4]]
        odds = NUMPY.log_odds(np.log(P))
        np.testing.assert_allclose(odds[:, 0], [-np.log(4e-25), np.log(0.3 / 0.7)], rtol=1e-6)
        np.testing.assert_allclose(odds[:, 2], [np.log(3e-25), np.log(0.4 / 0.6)], rtol=1e-6)


def test_zeros_are_raised_to_the_smallest_forecast_seen():
    P, y, _ = overconfident(300, 3)
    P[:5] = [1, 0, 0]
    cal = SplineCalibrator().fit(P, y)
    assert cal.floor_ == np.clip(P[P > 0].min(), 1e-30, 1e-3)
    np.testing.assert_array_equal(
        cal.predict_proba([[1, 0, 0]]), cal.predict_proba([[1 - 1e-300, 1e-300, 0]])
    )


def test_with_many_classes_only_their_own_probability_moves_them(monkeypatch):
    monkeypatch.setattr(spline, "MATRIX_CLASSES", 4)
    P, y, _ = overconfident(400, 5)
    coef = SplineCalibrator().fit(P, y).coef_
    assert (coef == np.diag(np.diag(coef))).all()


def test_of_many_rows_some_are_enough(monkeypatch):
    P, y, truth = overconfident(4000, 3)
    monkeypatch.setattr(SplineLoss, "most_features", 2000 * 3 * 9)
    thinned = SplineCalibrator()
    sample = Sample(P, y.astype(np.uint8), None)
    whole, Q = thinned._fit_out_of_fold(sample, np.arange(4000) % 5)
    assert np.abs(Q - truth).mean() < 0.03
    assert whole.smoothing == pytest.approx(1 / 4001)
    weights: Any = {"sample_weight": np.full(4000, 2.0), "weighting": "frequency"}
    assert SplineCalibrator().fit(P, y, **weights).smoothing_ == pytest.approx(1 / 8001)


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"n_knots": -1}, ValueError, "n_knots"),
        ({"n_knots": 1.5}, ValueError, "n_knots"),
        ({"penalty": -1}, ValueError, "penalty"),
        ({"pseudocount": "1"}, ValueError, "pseudocount"),
    ],
)
def test_bad_parameters(params, error, match):
    with pytest.raises(error, match=match):
        SplineCalibrator(**params).fit([0.1, 0.9], [0, 1])


# The optimiser


@pytest.mark.parametrize("K", [2, 3, 5])
def test_gradient_and_curvature(K, monkeypatch):
    monkeypatch.setattr(spline, "MATRIX_CLASSES", 4)  # five classes have no matrix
    monkeypatch.setattr(SplineLoss, "chunk_numbers", 64 * K * (4 + 2 * K))  # several parts of rows
    P, y, _ = overconfident(200, K)
    weights = np.random.default_rng(1).random(200) + 0.5
    problem = SplineLoss(Sample(P, y, weights), 2, 0.5, 1.0)
    free = np.ones(len(problem.strengths), dtype=bool)  # the diagonal of the matrix stays 0
    if len(problem.others):
        free[-K * K :: K + 1] = False
    theta = problem.start() + free * np.random.default_rng(2).normal(scale=0.3, size=len(free))
    steps = 1e-5 * np.eye(len(free))[free]
    ahead, behind = ([problem.loss(theta + sign * step) for step in steps] for sign in (1, -1))
    slopes = [(there[0] - here[0]) / 2e-5 for there, here in zip(ahead, behind, strict=True)]
    gradient = problem.loss(theta)[1]
    np.testing.assert_allclose(gradient[free], slopes, rtol=1e-5, atol=1e-4)
    assert not gradient[~free].any()
    slopes_2 = [(there[1] - here[1]) / 2e-5 for there, here in zip(ahead, behind, strict=True)]
    H = np.array(slopes_2)[:, free] - np.diag(2 * problem.strengths[free])
    q = softmax(problem._scores(theta), axis=0)
    if len(problem.others):
        hessian = problem._hessian(q)
        np.testing.assert_allclose(hessian[np.ix_(free, free)], H, rtol=1e-5, atol=1e-4)
        assert not hessian[~free].any()
        return
    arrow = problem._arrow(q)  # what a class shares with the others changes its own scores alike
    expected = [H[np.ix_(own, own)] for own in arrow.positions]
    np.testing.assert_allclose(arrow.blocks, expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(arrow.arms, arrow.blocks[..., :3])
    np.testing.assert_allclose(arrow.shared, arrow.blocks[:, :3, :3].sum(axis=0))


@pytest.mark.parametrize(("K", "matrix"), [(2, True), (4, True), (6, False), (10, False)])
def test_sharp_forecasts_are_fitted_to_the_optimum(K, matrix, monkeypatch):
    """Log forecasts of naive Bayes reach from 0 to hundreds, where plain L-BFGS stops early."""
    if not matrix:
        monkeypatch.setattr(spline, "MATRIX_CLASSES", 2)
    P, y, _ = overconfident(400, K, power=30.0)
    keep = []
    solve = SplineLoss.solve

    def keeping(problem, *args):
        keep.append((problem, solve(problem, *args)))
        return keep[-1][1]

    monkeypatch.setattr(SplineLoss, "solve", keeping)
    SplineCalibrator(penalty=1.0).fit(P, y)
    [(problem, (theta, _, converged))] = keep
    assert converged
    found = problem.loss(theta)[0]
    better = minimize(
        problem.loss,
        theta,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 10_000, "maxfun": 20_000, "ftol": 1e-12},
    )
    assert found - better.fun <= 400 * 2e-6


@arbitrary
@pytest.mark.parametrize("K", [2, 3, 5])
def test_converges_on_ill_conditioned_data(K):
    for P, y in ill_conditioned(K):
        cal = SplineCalibrator().fit(P, y, labels=range(K))  # a warning would be an error
        assert np.isfinite(np.log(cal.predict_proba(P))).all()


def test_certain_forecasts_that_are_wrong():
    """Their curvature is nearly 0 at the start, so a Newton step would be endless."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(6), size=400) ** 3000 + 1e-290
    y = rng.integers(6, size=400)
    P /= P.sum(axis=1, keepdims=True)
    cal = SplineCalibrator().fit(P, y)  # a warning would be an error
    losses = -np.log(cal.predict_proba(P)[np.arange(400), y])
    assert losses.mean() < np.log(6)


def test_it_warns_if_the_fit_did_not_converge(monkeypatch):
    monkeypatch.setattr(SplineLoss, "rounds", 1)
    P, y, _ = overconfident(200, 3)
    with pytest.warns(ConvergenceWarning, match="SplineCalibrator: the fit did not converge"):
        SplineCalibrator().fit(P, y)


def test_two_classes_swapped_are_calibrated_alike():
    P, y, _ = overconfident(300, 2)
    cal = SplineCalibrator().fit(P, y)
    swapped = SplineCalibrator().fit(P[:, ::-1], 1 - y)
    np.testing.assert_allclose(
        swapped.predict_proba(P[:, ::-1]), cal.predict_proba(P)[:, ::-1], atol=1e-6
    )


def test_evidence_keeps_calibrated_forecasts_and_corrects_a_shift():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < p).astype(int)
    assert np.abs(SplineCalibrator().fit(p, y).predict_proba(p)[:, 1] - p).max() < 0.05
    shifted = p / (p + 20 * (1 - p))
    assert np.abs(SplineCalibrator().fit(shifted, y).predict_proba(shifted)[:, 1] - p).max() < 0.05
