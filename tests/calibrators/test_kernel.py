import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from isoroc import KernelCalibrator, MatrixCalibrator, SplineCalibrator, TemperatureCalibrator
from isoroc._backends import NUMPY
from isoroc._calibrators.kernel import KernelLoss, bumps, choose_centres
from isoroc._input import Sample
from isoroc._maps import TemperatureMap


def confused(n, seed=0):
    """Forecasts that confuse two classes where the third is likely."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), size=n)
    truth = np.where(P[:, 2:] > 0.3, P[:, [1, 0, 2]], P)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return P, y, truth


def a_problem(n=60, K=3, m=5, seed=0):
    """A problem, and its inputs, computed again: bumps, the log forecasts of each class, one."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), size=n)
    codes = rng.integers(K, size=n)
    weights = rng.uniform(0.5, 2, size=n)
    sample = Sample(P, codes.astype(np.uint8), weights)
    stage = TemperatureMap(kind=sample.kind, floor=1e-300, temperature=1.5, smoothing=0.01)
    problem = KernelLoss(sample, stage, m, 0.7)
    x = problem.positions.of(NUMPY, problem.z.T, np.log(P)).T
    heights = bumps(problem.centres, x)
    trust = (2 * heights.max(axis=0) / problem.reach - 1).clip(0, 1)
    return problem, trust * np.concatenate([heights, x[:K], np.ones((1, n))])


def test_the_order_of_the_rows_does_not_matter():
    """Certain forecasts are the hardest case: all distances between different ones tie."""
    rng = np.random.default_rng(0)
    P = np.eye(5)[rng.integers(5, size=200)]
    y = rng.integers(5, size=200)
    new = rng.dirichlet(np.ones(5), size=20)
    rows = rng.permutation(200)
    expected = KernelCalibrator().fit(P, y).predict_proba(new)
    found = KernelCalibrator().fit(P[rows], y[rows]).predict_proba(new)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_it_learns_what_other_maps_cannot():
    P, y, _ = confused(3000)
    new, outcomes, truth = confused(5000, seed=1)
    best = -(truth * np.log(truth)).sum(axis=1).mean()
    losses = {
        kind: log_loss(outcomes, kind().fit(P, y).predict_proba(new))
        for kind in (KernelCalibrator, MatrixCalibrator, SplineCalibrator)
    }
    assert losses[KernelCalibrator] < best + 0.02
    assert min(losses[MatrixCalibrator], losses[SplineCalibrator]) > best + 0.03


def test_calibrated_forecasts_stay_nearly_as_they_are():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), size=4000)
    y = (P.cumsum(axis=1) > rng.random((4000, 1))).argmax(axis=1)
    assert np.abs(KernelCalibrator().fit(P, y).predict_proba(P) - P).mean() < 0.03


def test_a_strong_penalty_leaves_temperature_scaling():
    P, y, _ = confused(400)
    stiff = KernelCalibrator(penalty=1e9).fit(P, y)
    expected = TemperatureCalibrator(pseudocount=1).fit(P, y).predict_proba(P)
    np.testing.assert_allclose(stiff.predict_proba(P), expected, atol=1e-5)


def test_gradient_is_that_of_the_loss():
    problem, _ = a_problem()
    theta = np.random.default_rng(1).normal(size=len(problem.z) * len(problem.features))
    error = check_grad(lambda t: problem.loss(t)[0], lambda t: problem.loss(t)[1], theta)
    assert error < 1e-4 * np.linalg.norm(problem.loss(theta)[1])


def test_a_change_of_basis_changes_no_map():
    problem, inputs = a_problem()
    theta = np.random.default_rng(1).normal(size=(len(problem.z), len(problem.features)))
    np.testing.assert_allclose((theta @ problem.basis) @ inputs, theta @ problem.features)


def test_the_penalty_is_that_of_the_kernel():
    # The squared norm of a map is w' G w for weights w of the bumps, of Gram matrix G.
    problem, _ = a_problem()
    theta = np.random.default_rng(1).normal(size=(len(problem.z), len(problem.features)))
    w = theta @ problem.basis
    gram = np.eye(w.shape[1])
    gram[:5, :5] = bumps(problem.centres, problem.centres.T)
    np.testing.assert_allclose(np.einsum("ki,ij,kj->", w, gram, w), (theta**2).sum(), rtol=1e-6)


def test_centres_are_rows_that_explain_the_others():
    x = np.random.default_rng(0).normal(size=(2, 300))
    twice = np.concatenate([x, x], axis=1)
    places = choose_centres(twice, 1000)
    assert len(np.unique(places % 300)) == len(places) < 300
    centres = twice[:, places].T
    cross = bumps(centres, x)
    explained = np.einsum(
        "in,in->n", cross, np.linalg.lstsq(bumps(centres, centres.T), cross, rcond=None)[0]
    )
    assert (1 - explained).max() < 1e-4
    assert len(choose_centres(np.ones((2, 50)), 10)) == 1


def test_shared_positions_give_the_forecasts_of_separate_fits():
    P, y, _ = confused(1000)
    sample = Sample(P, y.astype(np.uint8), None)
    fold = np.arange(1000) % 5
    together = KernelCalibrator(penalty=1.0)
    whole, Q = together._fit_out_of_fold(sample, fold)
    for held_out in range(5):
        inside = fold == held_out
        apart = KernelCalibrator(penalty=1.0).fit(P[~inside], y[~inside]).predict_proba(P[inside])
        assert np.abs(Q[inside] - apart).mean() < 0.01
    again = KernelCalibrator(penalty=1.0).fit(P, y)
    np.testing.assert_allclose(whole.apply(P), again.predict_proba(P), atol=1e-9)


def test_far_from_the_calibration_rows_it_is_temperature_scaling():
    """No correction that a few rows in the middle ask for changes a forecast that is certain."""
    K = 5
    same = []
    corners = np.eye(K)
    near = np.concatenate([(1 - e) * corners + e / K for e in (0.01, 0.03, 0.05, 0.1)])
    for seed in range(10):
        rng = np.random.default_rng(seed)
        P = rng.dirichlet(np.full(K, 3.0), size=60)
        y = np.array([rng.choice(K, p=p) for p in P])
        cal = KernelCalibrator().fit(P, y, labels=range(K))
        tempered = TemperatureCalibrator(pseudocount=1).fit(P, y, labels=range(K))
        np.testing.assert_array_equal(cal.predict(near), near.argmax(axis=1))
        np.testing.assert_allclose(
            cal.predict_proba(corners), tempered.predict_proba(corners), atol=0.25
        )
        same.append(np.isclose(cal.predict_proba(near), tempered.predict_proba(near)).all(axis=1))
    assert np.mean(same) > 0.7


def test_of_many_rows_some_are_enough(monkeypatch):
    P, y, _ = confused(4000)
    every = KernelCalibrator(n_centres=20).fit(P, y)
    monkeypatch.setattr(KernelLoss, "most_features", 20 * 2000)
    monkeypatch.setattr(KernelLoss, "centre_rows", 500)
    thinned = KernelCalibrator(n_centres=20)
    sample = Sample(P, y.astype(np.uint8), None)
    whole, Q = thinned._fit_out_of_fold(sample, np.arange(4000) % 5)
    assert np.abs(Q - every.predict_proba(P)).mean() < 0.05
    assert whole.smoothing == pytest.approx(1 / 4001)


def test_a_fit_that_ends_early_warns(monkeypatch):
    P, y, _ = confused(300)
    monkeypatch.setattr(KernelLoss, "rounds", 1)
    with pytest.warns(ConvergenceWarning, match="KernelCalibrator: the fit did not converge"):
        KernelCalibrator().fit(P, y)


@pytest.mark.parametrize("params", [{"n_centres": 0}, {"penalty": 0.0}, {"penalty": "strong"}])
def test_parameters_are_checked(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        KernelCalibrator(**params).fit([[0.5, 0.5], [0.2, 0.8]], [0, 1])
