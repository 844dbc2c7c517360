import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from isoroc import MatrixCalibrator, TemperatureCalibrator
from isoroc._calibrators import matrix, parts
from isoroc._calibrators.matrix import MatrixLoss
from truths import ill_conditioned


def confused(n, K, seed=0):
    """Forecasts that take some of each class for the next, and outcomes."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(K, 0.7), size=n)
    y = np.array([rng.choice(K, p=p) for p in truth])
    P = truth @ (0.75 * np.eye(K) + 0.25 * np.roll(np.eye(K), 1, axis=1))
    return P, y, truth


def log_tempered(cal, P):
    z = np.log(np.maximum(P, cal.floor_)) / cal.temperature_
    return np.log((1 - cal.smoothing_) * softmax(z, axis=1) + cal.smoothing_ / P.shape[1])


@pytest.mark.parametrize("params", [{}, {"structure": "vector"}, {"quadratic": False}], ids=str)
def test_the_map_is_the_documented_formula(params):
    P, y, _ = confused(300, 4)
    cal = MatrixCalibrator(**params).fit(P, y)
    z = log_tempered(cal, P)
    A = np.diag(cal.coef_) if cal.coef_.ndim == 1 else cal.coef_
    expected = softmax(z @ A.T + z**2 * cal.quadratic_ + cal.intercept_, axis=1)
    np.testing.assert_allclose(cal.predict_proba(P), expected, rtol=1e-9)
    assert (cal.quadratic_ == 0).all() == (params == {"quadratic": False})
    assert cal.penalty_.shape == (4,)


class Objective:
    """The penalised log loss around a fit, written plainly, and its numerical derivatives.

    Theta has four groups: b, the diagonal of A less 1, four times a, and the other entries of A.
    """

    def __init__(self, cal, P, y, weights):
        self.z = log_tempered(cal, P)
        self.y = y
        self.weights = weights
        K = P.shape[1]
        self.others = ~np.eye(K, dtype=bool) & (cal.coef_.ndim == 2)
        A = cal.coef_ if cal.coef_.ndim == 2 else np.diag(cal.coef_)
        quadratic = 4 * cal.quadratic_[: K * cal.quadratic]
        groups = [cal.intercept_, np.diag(A) - 1, quadratic, A[self.others]]
        sizes = [len(group) for group in groups]
        self.ends = np.cumsum(sizes)[:-1]
        self.group_of = np.repeat(range(4), sizes)
        self.initial = 2.0 * K * np.array([1, 1, 1, K - 1])
        self.precision = (self.initial * cal.penalty_)[self.group_of]
        self.theta = np.concatenate(groups)

    def __call__(self, theta):
        b, diagonal, quadratic, others = np.split(theta, self.ends)
        A = np.diag(1 + diagonal)
        A[self.others] = others
        scores = self.z @ A.T + b
        if len(quadratic):
            scores += quadratic * self.z**2 / 4
        losses = logsumexp(scores, axis=1) - scores[np.arange(len(self.y)), self.y]
        return self.weights @ losses + self.precision @ theta**2 / 2

    def gradient(self, theta, step):
        steps = step * np.eye(len(theta))
        return np.array([self(theta + e) - self(theta - e) for e in steps]) / (2 * step)

    def hessian(self, step=1e-3):
        steps = step * np.eye(len(self.theta))
        there = [self.gradient(self.theta + e, step) for e in steps]
        behind = [self.gradient(self.theta - e, step) for e in steps]
        return np.subtract(there, behind) / (2 * step)

    def most_above_minimum(self):
        """Upper bound: the curvature is at least the penalty's."""
        return (self.gradient(self.theta, 1e-5) ** 2 / self.precision).sum() / 2


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("structure", ["matrix", "vector"])
@pytest.mark.parametrize("quadratic", [True, False])
@pytest.mark.parametrize("penalty", [0.1, "auto"])
def test_the_penalised_log_loss_is_smallest(n_classes, structure, quadratic, penalty):
    P, y, _ = confused(200, n_classes)
    weights = np.random.default_rng(0).random(200) * 2
    cal = MatrixCalibrator(structure=structure, quadratic=quadratic, penalty=penalty)
    cal.fit(P, y, sample_weight=weights)
    effective = weights * weights.sum() / (weights**2).sum()  # they sum to Kish's number of rows
    objective = Objective(cal, P, y, effective)
    assert len(objective.theta) == n_classes * (
        2 + quadratic + (n_classes - 1) * (structure == "matrix")
    )
    assert objective.most_above_minimum() < 1e-3
    assert objective(objective.theta) < objective(np.zeros_like(objective.theta)) - 0.1


def test_the_penalised_log_loss_of_many_terms_is_smallest():
    P, y, _ = confused(300, 31)
    cal = MatrixCalibrator().fit(P, y, labels=range(31))
    objective = Objective(cal, P, y, np.ones(300))
    assert len(objective.theta) == 93
    np.testing.assert_array_equal(cal.penalty_, 1.0)
    assert objective.most_above_minimum() < 1e-3


@pytest.mark.parametrize("case", range(5))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_loss_of_extreme_forecasts_is_smallest(n_classes, case):
    P, y = ill_conditioned(n_classes)[case]
    cal = MatrixCalibrator(penalty=1.0, floor=1e-300).fit(P, y, labels=range(n_classes))
    assert Objective(cal, P, y, np.ones(len(y))).most_above_minimum() < 1e-3


def test_learned_penalties_follow_from_what_the_rows_determine():
    """A penalty is the number of parameters that are known over the sum of their squares.

    The start counts as one more known parameter of the size that it expects.
    """
    P, y, _ = confused(500, 3)
    cal = MatrixCalibrator().fit(P, y)
    objective = Objective(cal, P, y, np.ones(500))
    variances = np.diag(np.linalg.inv(objective.hessian()))
    known = np.bincount(objective.group_of, 1 - objective.precision * variances)
    squares = np.bincount(objective.group_of, objective.theta**2)
    expected = (known + 1) / (squares + 1 / objective.initial)
    np.testing.assert_allclose(cal.penalty_ * objective.initial, expected, rtol=0.1)
    assert (known > 0.1).all()


def test_corrections_of_noise_are_penalised_more():
    """Outcomes drawn from the forecasts themselves: every correction is noise."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), size=3000)
    y = np.array([rng.choice(3, p=p) for p in P])
    learned = MatrixCalibrator().fit(P, y)
    assert (learned.penalty_ > 1.5).all()
    fixed = MatrixCalibrator(penalty=1.0).fit(P, y)
    moved = [np.abs(cal.coef_ - np.eye(3)).sum() for cal in (learned, fixed)]
    assert moved[0] < 0.8 * moved[1]


def test_frequencies_are_rows_repeated():
    P, y, _ = confused(1500, 3)
    four = np.full(1500, 4)
    once = MatrixCalibrator().fit(P, y, sample_weight=four, weighting="frequency")
    repeated = MatrixCalibrator().fit(np.repeat(P, 4, axis=0), np.repeat(y, 4))
    np.testing.assert_allclose(once.predict_proba(P), repeated.predict_proba(P), atol=1e-6)
    np.testing.assert_allclose(once.penalty_, repeated.penalty_, rtol=1e-4)


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
