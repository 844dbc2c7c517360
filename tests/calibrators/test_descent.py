import numpy as np
import pytest

from isoroc._calibrators import descent


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
