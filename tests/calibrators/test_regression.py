import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from isoroc._backends import NUMPY
from isoroc._calibrators import descent
from isoroc._calibrators.matrix import Regression, Terms
from isoroc._input import Sample
from isoroc._input.kinds import PROBABILITIES
from isoroc._maps import TemperatureMap
from isoroc._maps.scaling import transform

#: Leaves the forecasts unchanged.
STAGE = TemperatureMap(kind=PROBABILITIES, floor=1e-300, temperature=1.0, smoothing=0.0)
ALL_TERMS = [
    Terms(K, full=full, quadratic=quadratic)
    for K in (2, 4)
    for full in (True, False)
    for quadratic in (True, False)
]


def problem(terms, seed=0, n=50, *, weighted=True, penalty=None):
    rng = np.random.default_rng(seed)
    K = terms.n_classes
    z = np.log(rng.dirichlet(np.ones(K), size=n).T)
    y = rng.integers(0, K, n).astype(np.uint8)
    weights = rng.random(n) * 2 if weighted else None
    penalty = PENALTY if penalty is None else penalty
    return Regression(terms, STAGE, Sample(np.exp(z.T), y, weights), penalty)


def plain_loss(regression, theta, penalty):
    """The loss, row by row and class by class."""
    terms = regression.terms
    kind, class_of, feature = terms.places()
    total = 0.0
    for z, y, w in zip(regression.z.T, regression.codes, regression.weights, strict=True):
        features = [*z, *(z**2 / 4), 1.0]
        scores = z.copy()
        for value, k, f in zip(theta, class_of, feature, strict=True):
            scores[k] += value * features[f]
        total -= w * (scores[y] - logsumexp(scores))
    return total + (penalty[kind] * theta**2).sum() / 2


PENALTY = np.array([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("terms", ALL_TERMS, ids=str)
@settings(max_examples=10)
@given(seed=st.integers(0, 1000))
def test_loss_and_derivatives(terms, seed):
    regression = problem(terms, seed, n=15)
    theta = np.random.default_rng(seed).normal(scale=0.5, size=len(terms))
    value, q = regression.value(theta)
    assert value == pytest.approx(plain_loss(regression, theta, PENALTY))
    again, gradient = regression.loss(theta)
    assert again == pytest.approx(value)
    hessian = regression.hessian(q)
    step = 1e-5
    for i in range(len(theta)):
        move = step * np.eye(len(theta))[i]
        ahead, behind = theta + move, theta - move
        slope = (regression.loss(ahead)[0] - regression.loss(behind)[0]) / step
        assert gradient[i] == pytest.approx(slope / 2, abs=1e-4)
        change = [regression.loss(there)[1] for there in (ahead, behind)]
        np.testing.assert_allclose(hessian[i], (change[0] - change[1]) / (2 * step), atol=1e-4)


def test_the_hessian_is_summed_in_chunks():
    regression = problem(ALL_TERMS[0])
    _, q = regression.value(np.zeros(len(ALL_TERMS[0])))
    whole = regression.hessian(q)
    np.testing.assert_allclose(regression.hessian(q, chunk=7), whole)


@pytest.mark.parametrize("terms", ALL_TERMS, ids=str)
def test_both_methods_find_the_minimum(terms, monkeypatch):
    regression = problem(terms, n=200, weighted=False)
    start = np.zeros(len(terms))
    expected = minimize(lambda theta: regression.loss(theta)[0], start).fun
    by_newton = regression.newton(start).theta
    assert regression.penalty is PENALTY
    assert regression.loss(by_newton)[0] <= expected + 1e-5
    # The descent knows the diagonal of the curvature only, so what is left when a Newton step
    # promises 1e-6 per row is more: with a smaller promise it finds the minimum too.
    options = {"rounds": 20, "n_steps": 25}
    by_descent = regression.settle(start, ftol=regression.near_ftol, **options).theta
    assert regression.loss(by_descent)[0] <= expected + 1.2e-5 * regression.total
    monkeypatch.setattr(regression, "tolerance", 1e-9)
    by_descent = regression.settle(start, ftol=1e-12, **options).theta
    assert regression.loss(by_descent)[0] <= expected + 1e-5


def test_newton_halves_steps_that_go_too_far():
    terms = Terms(2, full=False, quadratic=True)
    z = np.log(np.array([[1 - 1e-12, 1e-12, 0.5, 1e-9], [1e-12, 1 - 1e-12, 0.5, 1 - 1e-9]]))
    sample = Sample(np.exp(z.T), np.array([1, 0, 1, 0], dtype=np.uint8), None)
    regression = Regression(terms, STAGE, sample, np.full(4, 1e-3))
    theta = regression.newton(np.zeros(len(terms))).theta
    assert np.abs(regression.loss(theta)[1]).max() < 1e-2
    # where no loss is good enough it ends all the same
    again = regression.newton(theta, tolerance=-1.0).theta
    assert regression.loss(again)[0] <= regression.loss(theta)[0] + 1e-9


def test_learned_penalties_are_consistent():
    """At the end a penalty is what the evidence of its terms says, up to the last round."""
    terms = Terms(3, full=True, quadratic=True)
    given_penalty = np.array([6.0, 6, 6, 12])
    regression = problem(terms, n=2000, weighted=False, penalty=given_penalty)
    theta = regression.newton(np.zeros(len(terms)), learn=True).theta
    penalty = regression.penalty
    kind, _, _ = terms.places()
    _, q = regression.value(theta)
    variance = np.diag(np.linalg.inv(regression.hessian(q)))
    for k in range(4):
        own = kind == k
        determined = (1 - penalty[k] * variance[own]).sum()
        square = (theta[own] ** 2).sum()
        evidence = (determined + 1) / (square + 1 / given_penalty[k])
        assert penalty[k] == pytest.approx(evidence, rel=0.1)


def test_terms_that_tell_nothing_are_penalised_more():
    """Outcomes drawn from the forecasts themselves: every correction is noise."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), size=3000)
    y = np.array([rng.choice(3, p=p) for p in P]).astype(np.uint8)
    terms = Terms(3, full=True, quadratic=True)
    start = np.array([6.0, 6, 6, 12])
    regression = Regression(terms, STAGE, Sample(P, y, None), start)
    free = regression.newton(np.zeros(len(terms))).theta
    theta = regression.newton(np.zeros(len(terms)), learn=True).theta
    assert (regression.penalty > start).all()
    assert np.abs(theta).sum() < np.abs(free).sum()


def test_transform_of_vectors_is_that_of_diagonal_matrices():
    z = np.log(np.random.default_rng(0).dirichlet(np.ones(3), size=5))
    coef, a, b = np.array([1.0, 2, 3]), np.array([0.1, 0, -0.1]), np.array([1.0, 0, 2])
    of_vector = transform(NUMPY, z, coef, a, b)
    np.testing.assert_allclose(of_vector, transform(NUMPY, z, np.diag(coef), a, b))
    np.testing.assert_allclose(of_vector[:, 2], 3 * z[:, 2] - 0.1 * z[:, 2] ** 2 + 2)


def test_a_descent_ends_where_the_gradient_is_zero():
    class Flat(descent.PenalisedLoss):
        weights = np.ones(3)

        def loss(self, theta):
            return 1.0, np.zeros(len(theta))

        def factor(self, theta):
            return descent.factor_of(np.eye(len(theta)), np.zeros(len(theta)))

    flat, start = Flat(), np.array([1.0, 2.0])
    found = flat.descend(flat.at(start), flat.factor(start), n_steps=5, ftol=1e-6)
    np.testing.assert_array_equal(found.theta, start)


def test_arms_that_exceed_the_shared_curvature_are_shortened():
    """Classes that act alike take more than there is, as what is between them is neglected."""
    arrow = descent.Arrow(np.ones((1, 1)), np.ones((5, 1, 1)), np.ones((5, 1, 1)), np.c_[1:6])
    factor = descent.factor_of(arrow, np.full(6, 0.1))
    assert np.isfinite(factor.variances()).all()
    gradient = np.arange(6.0)
    step = factor.step(-factor.gradient(gradient))
    assert step @ gradient < 0
    assert factor.gain(gradient) == pytest.approx(-step @ gradient / 2)


def test_the_factor_of_an_arrow_is_that_of_the_whole_matrix():
    rng = np.random.default_rng(0)
    own = 2 + rng.permutation(12).reshape(4, 3)
    H, roots = np.zeros((14, 14)), rng.normal(size=(4, 5, 20))
    for places, root in zip(own, roots, strict=True):  # each class acts on itself and the shared
        both = np.append([0, 1], places)
        at = np.ix_(both, both)
        H[at] += root @ root.T
    blocks = np.stack([H[np.ix_(places, places)] for places in own])
    arms = np.stack([H[places, :2] for places in own])
    precision, gradient = rng.random(14), rng.normal(size=14)
    factor = descent.factor_of(descent.Arrow(H[:2, :2], arms, blocks, own), precision)
    inverse = np.linalg.inv(H + np.diag(precision))
    np.testing.assert_allclose(factor.step(factor.gradient(gradient)), inverse @ gradient)
    np.testing.assert_allclose(factor.gain(gradient), gradient @ inverse @ gradient / 2)
    np.testing.assert_allclose(factor.variances(), np.diag(inverse))
