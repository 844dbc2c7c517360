import numpy as np
import pytest
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from isoroc import MatrixCalibrator, TemperatureCalibrator
from isoroc._calibrators import matrix, parts
from isoroc._calibrators.matrix import MatrixLoss


def confused(n, K, seed=0):
    """Forecasts that take some of each class for the next, and outcomes."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(K, 0.7), size=n)
    y = np.array([rng.choice(K, p=p) for p in truth])
    P = truth @ (0.75 * np.eye(K) + 0.25 * np.roll(np.eye(K), 1, axis=1))
    return P, y, truth


@pytest.mark.parametrize("params", [{}, {"structure": "vector"}, {"quadratic": False}], ids=str)
def test_the_map_is_the_documented_formula(params):
    P, y, _ = confused(300, 4)
    cal = MatrixCalibrator(**params).fit(P, y)
    z = np.log(np.maximum(P, cal.floor_)) / cal.temperature_
    z = np.log((1 - cal.smoothing_) * softmax(z, axis=1) + cal.smoothing_ / 4)
    A = np.diag(cal.coef_) if cal.coef_.ndim == 1 else cal.coef_
    expected = softmax(z @ A.T + z**2 * cal.quadratic_ + cal.intercept_, axis=1)
    np.testing.assert_allclose(cal.predict_proba(P), expected, rtol=1e-9)
    assert (cal.quadratic_ == 0).all() == (params == {"quadratic": False})
    assert cal.penalty_.shape == (4,)


def test_each_structure_mends_more():
    P, y, truth = confused(4000, 3)
    methods = {
        "temperature": TemperatureCalibrator(),
        "vector": MatrixCalibrator(structure="vector"),
        "matrix": MatrixCalibrator(),
    }
    # Kullback-Leibler divergence from the truth, which is known here.
    off = {
        name: np.mean((truth * np.log(truth / cal.fit(P, y).predict_proba(P))).sum(axis=1))
        for name, cal in methods.items()
    }
    assert off["matrix"] < off["vector"] / 2 < off["temperature"] / 2


def test_a_strong_penalty_leaves_temperature_scaling():
    P, y, _ = confused(200, 3)
    strong = MatrixCalibrator(penalty=1e9).fit(P, y)
    tempered = TemperatureCalibrator(pseudocount=1).fit(P, y)
    np.testing.assert_allclose(strong.predict_proba(P), tempered.predict_proba(P), atol=1e-5)


def test_two_classes_are_beta_calibration_of_tempered_forecasts():
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 0.7, 1000)
    y = rng.random(1000) < p**2 / (p**2 + 2 * (1 - p) ** 0.5)
    cal = MatrixCalibrator(quadratic=False, penalty=1e-3, floor=1e-300, pseudocount=0).fit(p, y)
    tempered = TemperatureCalibrator(floor=1e-300, pseudocount=0).fit(p, y)
    features = np.log(tempered.predict_proba(p))
    plain = LogisticRegression(C=1e6, tol=1e-8, max_iter=1000).fit(features, y)
    np.testing.assert_allclose(
        cal.predict_proba(p)[:, 1], plain.predict_proba(features)[:, 1], atol=1e-3
    )


def test_many_terms_are_fitted_by_another_method(monkeypatch):
    P, y, _ = confused(500, 4)
    fixed = MatrixCalibrator(penalty=1.0)
    by_newton = fixed.fit(P, y).predict_proba(P)
    monkeypatch.setattr(MatrixLoss, "newton_terms", (5, 5))
    np.testing.assert_allclose(fixed.fit(P, y).predict_proba(P), by_newton, atol=1e-3)
    auto = MatrixCalibrator().fit(P, y)  # where penalties are not learned they equal penalty=1.0
    np.testing.assert_allclose(auto.predict_proba(P), fixed.predict_proba(P))
    np.testing.assert_array_equal(auto.penalty_, 1.0)


def test_many_rows_start_from_a_part_and_end_at_the_same_fit(monkeypatch):
    P, y, _ = confused(2000, 3)
    calibrator = MatrixCalibrator(floor=1e-300, penalty=1.0)
    whole = calibrator.fit(P, y).predict_proba(P)
    monkeypatch.setattr(parts, "PART_ROWS", 100)
    monkeypatch.setattr(parts, "PART_NUMBERS", 600)
    np.testing.assert_allclose(calibrator.fit(P, y).predict_proba(P), whole, atol=1e-4)


def test_many_classes_have_a_vector(monkeypatch):
    monkeypatch.setattr(matrix, "MATRIX_CLASSES", 3)
    P, y, _ = confused(200, 4)
    assert MatrixCalibrator().fit(P, y).coef_.shape == (4,)
    assert MatrixCalibrator(structure="matrix").fit(P, y).coef_.shape == (4, 4)


def test_a_thousand_classes():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(1000, 0.05), size=300)
    y = np.array([rng.choice(1000, p=p / p.sum()) for p in P])
    sharp = P**1.5 + 1e-12
    sharp /= sharp.sum(axis=1, keepdims=True)
    cal = MatrixCalibrator().fit(sharp, y, labels=range(1000))
    own = np.arange(len(y)), y
    assert np.log(cal.predict_proba(sharp)[own]).mean() > np.log(sharp[own]).mean()


def test_forests_are_better_off_than_without_a_floor(arena):
    data = arena("covtype3-knn")
    P = data["probas_cal"]
    y = data["labels_cal"]
    test = (data["labels_test"], data["probas_test"])
    loss = {
        floor: log_loss(test[0], MatrixCalibrator(floor=floor).fit(P, y).predict_proba(test[1]))
        for floor in ("auto", 1e-300)
    }
    assert loss["auto"] < loss[1e-300] - 0.03


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"structure": "tensor"}, ValueError, "structure: expected one of"),
        ({"quadratic": "yes"}, ValueError, "quadratic"),
        ({"penalty": 0.0}, ValueError, "penalty: is .*; expected .* >= 0.001"),
        ({"penalty": "strong"}, ValueError, "penalty"),
        ({"floor": 2}, ValueError, "floor"),
    ],
)
def test_bad_parameters(params, error, message):
    with pytest.raises(error, match=message):
        MatrixCalibrator(**params).fit([0.1, 0.9], [0, 1])


@pytest.mark.parametrize("newton_terms", [0, 400])
def test_it_warns_if_the_fit_did_not_converge(newton_terms, monkeypatch):
    monkeypatch.setattr(MatrixLoss, "newton_terms", (newton_terms, newton_terms))
    monkeypatch.setattr(MatrixLoss, "rounds", 0)
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), size=200)
    with pytest.warns(ConvergenceWarning, match="MatrixCalibrator: the fit did not converge"):
        MatrixCalibrator().fit(P, rng.integers(0, 3, 200))
