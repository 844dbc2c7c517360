import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from isoroc._backends import NUMPY
from isoroc._calibrators import descent
from isoroc._calibrators.matrix import MatrixLoss, Terms
from isoroc._calibrators.precisions import Priors
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
    return MatrixLoss(terms, STAGE, Sample(np.exp(z.T), y, weights), priors(terms, penalty))


def priors(terms, penalty=None):
    penalty = PENALTY if penalty is None else penalty
    return Priors(terms.sizes(), dict(zip(terms.sizes(), penalty, strict=True)), set())


def plain_loss(regression, theta, penalty):
    """The loss, row by row: b, the diagonal of A, a, and the other entries of A."""
    K = regression.terms.n_classes
    values = iter(theta)
    sizes = regression.terms.sizes().values()
    parts = [np.array([next(values) for _ in range(size)]) for size in sizes]
    b, diagonal, a, others = parts
    A = np.diag(1 + diagonal)
    off_diagonal = [(i, j) for i in range(K) for j in range(K) if i != j]
    for place, value in zip(off_diagonal, others, strict=False):
        A[place] = value
    total = 0.0
    for z, y, w in zip(regression.z.T, regression.codes, regression.weights, strict=True):
        scores = A @ z + b + (a * z**2 / 4 if len(a) else 0.0)
        total -= w * (scores[y] - logsumexp(scores))
    return total + sum(c * (part**2).sum() for c, part in zip(penalty, parts, strict=True)) / 2


PENALTY = np.array([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("terms", ALL_TERMS, ids=str)
@settings(max_examples=10)
@given(seed=st.integers(0, 1000))
def test_loss_and_derivatives(terms, seed):
    regression = problem(terms, seed, n=15)
    theta = np.random.default_rng(seed).normal(scale=0.5, size=len(terms))
    value, gradient = regression.loss(theta)
    assert value == pytest.approx(plain_loss(regression, theta, PENALTY))
    hessian = regression.curvature(theta) + np.diag(regression.priors.precision())
    step = 1e-5
    for i in range(len(theta)):
        move = step * np.eye(len(theta))[i]
        ahead = theta + move
        behind = theta - move
        slope = (regression.loss(ahead)[0] - regression.loss(behind)[0]) / step
        assert gradient[i] == pytest.approx(slope / 2, abs=1e-4)
        change = [regression.loss(there)[1] for there in (ahead, behind)]
        np.testing.assert_allclose(hessian[i], (change[0] - change[1]) / (2 * step), atol=1e-4)


def test_the_hessian_is_summed_in_chunks():
    regression = problem(ALL_TERMS[0])
    theta = np.zeros(len(ALL_TERMS[0]))
    np.testing.assert_allclose(regression.curvature(theta, chunk=7), regression.curvature(theta))


@pytest.mark.parametrize("few_terms", [True, False])
@pytest.mark.parametrize("terms", ALL_TERMS, ids=str)
def test_the_minimum_is_found_with_the_hessian_and_with_its_diagonal(terms, few_terms, monkeypatch):
    monkeypatch.setattr(MatrixLoss, "newton_terms", (400, 400) if few_terms else (0, 0))
    regression = problem(terms, n=200, weighted=False)
    start = np.zeros(len(terms))
    expected = minimize(lambda theta: regression.loss(theta)[0], start).fun
    theta = regression.maximise(start, learn=False).theta
    np.testing.assert_array_equal(regression.priors.precisions, PENALTY)
    assert regression.loss(theta)[0] <= expected + 1e-5 * regression.total
    monkeypatch.setattr(regression, "tolerance", 1e-9)
    theta = regression.settle(start, rounds=20, n_steps=25, ftol=1e-12).theta
    assert regression.loss(theta)[0] <= expected + 1e-5


def test_steps_that_go_too_far_are_shortened():
    terms = Terms(2, full=False, quadratic=True)
    z = np.log(np.array([[1 - 1e-12, 1e-12, 0.5, 1e-9], [1e-12, 1 - 1e-12, 0.5, 1 - 1e-9]]))
    sample = Sample(np.exp(z.T), np.array([1, 0, 1, 0], dtype=np.uint8), None)
    regression = MatrixLoss(terms, STAGE, sample, priors(terms, np.full(4, 1e-3)))
    theta = regression.maximise(np.zeros(len(terms)), learn=False).theta
    assert np.abs(regression.loss(theta)[1]).max() < 1e-2


def test_learned_penalties_are_consistent():
    """At the end a penalty is what the evidence of its terms says, up to the last round."""
    terms = Terms(3, full=True, quadratic=True)
    given_penalty = np.array([6.0, 6, 6, 12])
    regression = problem(terms, n=2000, weighted=False, penalty=given_penalty)
    theta = regression.maximise(np.zeros(len(terms)), learn=True).theta
    penalty = regression.priors.precisions
    precision = regression.priors.precision()
    variance = np.diag(np.linalg.inv(regression.curvature(theta) + np.diag(precision)))
    ends = np.cumsum(list(terms.sizes().values()))
    for k, entries in enumerate(np.split(np.arange(len(theta)), ends[:-1])):
        determined = (1 - penalty[k] * variance[entries]).sum()
        square = (theta[entries] ** 2).sum()
        evidence = (determined + 1) / (square + 1 / given_penalty[k])
        assert penalty[k] == pytest.approx(evidence, rel=0.1)


def test_terms_that_tell_nothing_are_penalised_more():
    """Outcomes drawn from the forecasts themselves: every correction is noise."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), size=3000)
    y = np.array([rng.choice(3, p=p) for p in P]).astype(np.uint8)
    terms = Terms(3, full=True, quadratic=True)
    start = np.array([6.0, 6, 6, 12])
    regression = MatrixLoss(terms, STAGE, Sample(P, y, None), priors(terms, start))
    free = regression.maximise(np.zeros(len(terms)), learn=False).theta
    theta = regression.maximise(np.zeros(len(terms)), learn=True).theta
    assert (regression.priors.precisions > start).all()
    assert np.abs(theta).sum() < np.abs(free).sum()


def test_transform_of_vectors_is_that_of_diagonal_matrices():
    z = np.log(np.random.default_rng(0).dirichlet(np.ones(3), size=5))
    coef = np.array([1.0, 2, 3])
    a = np.array([0.1, 0, -0.1])
    b = np.array([1.0, 0, 2])
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

    flat = Flat()
    start = np.array([1.0, 2.0])
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
    H = np.zeros((14, 14))
    roots = rng.normal(size=(4, 5, 20))
    for places, root in zip(own, roots, strict=True):  # each class acts on itself and the shared
        both = np.append([0, 1], places)
        at = np.ix_(both, both)
        H[at] += root @ root.T
    blocks = np.stack([H[np.ix_(places, places)] for places in own])
    arms = np.stack([H[places, :2] for places in own])
    precision = rng.random(14)
    gradient = rng.normal(size=14)
    factor = descent.factor_of(descent.Arrow(H[:2, :2], arms, blocks, own), precision)
    inverse = np.linalg.inv(H + np.diag(precision))
    np.testing.assert_allclose(factor.step(factor.gradient(gradient)), inverse @ gradient)
    np.testing.assert_allclose(factor.gain(gradient), gradient @ inverse @ gradient / 2)
    np.testing.assert_allclose(factor.variances(), np.diag(inverse))
