"""The compiled smooth maps against exact logarithms and against the formulas in plain NumPy."""

from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from isoroc._backends import NUMPY
from isoroc._core import smooth
from isoroc._input.kinds import kind_of
from isoroc._maps import SigmoidMap

LEAST_NORMAL = 2.0**-1022
EDGES = [LEAST_NORMAL, 1e-300, 0.5, 1.0, np.nextafter(1, 0), np.nextafter(1, 2), 2.0, 1.7e308]
EDGES += [2**0.5, np.nextafter(2**0.5, 0), 0.5**0.5, np.nextafter(0.5**0.5, 0), np.pi]


def ulps(found, exact):
    """Distance from an exact number in units of its last place."""
    return abs(float((Decimal(found) - exact) / Decimal(float(np.spacing(abs(float(exact)))))))


def some_forecasts(K, n=37, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.3), n)
    P[::5] = np.eye(K)[rng.integers(K, size=len(P[::5]))]  # zeros and ones
    return P


@given(st.floats(LEAST_NORMAL, 1e308) | st.floats(0.5, 2) | st.sampled_from(EDGES))
def test_logarithms_are_right_to_an_ulp(x):
    [[found]] = smooth.logs_of(np.array([[x]]))
    with localcontext(prec=40):
        exact = Decimal(x).ln()
        assert found == 0 if exact == 0 else ulps(found, exact) <= 1


def test_what_has_no_finite_logarithm_counts_as_the_least_normal_number():
    found = smooth.logs_of(np.array([[0.0, 5e-324, 1e-308, LEAST_NORMAL]]))
    np.testing.assert_array_equal(found, np.log(LEAST_NORMAL))


@given(st.floats(-707.9, 0) | st.floats(-1, 0))
def test_the_softmax_is_right_to_a_few_ulps(x):
    z = np.array([[0.0], [x]])
    smooth.softmax(z)
    with localcontext(prec=40):
        odds = Decimal(x).exp()
        assert ulps(z[0, 0], 1 / (1 + odds)) <= 2
        assert ulps(z[1, 0], odds / (1 + odds)) <= 4


@pytest.mark.parametrize("n", [0, 1, 8, 37])
def test_the_logistic_function(n):
    x = 20 * np.random.default_rng(n).normal(size=n)
    np.testing.assert_allclose(smooth.expit(x), special.expit(x), rtol=1e-15)


def test_the_logistic_function_far_out():
    q = smooth.expit(np.array([-1e300, -707.0, -0.0, 0.0, 40.0, 1e300]))
    expected = [0.0, np.exp(-707.0), 0.5, 0.5, 1.0, 1.0]
    np.testing.assert_allclose(q, expected, rtol=1e-15, atol=1e-307)


def test_the_softmax_far_out():
    z = np.array([[-1e100, 0.0, 1e300, -800.0], [0.0, 0.0, -1e300, 0.0]])
    smooth.softmax(z)
    np.testing.assert_array_equal(z[:, 1], 0.5)
    np.testing.assert_array_equal(z[[1, 0, 1], [0, 2, 3]], 1.0)
    np.testing.assert_array_less(z[[0, 1, 0], [0, 2, 3]], 1e-307)


@pytest.mark.parametrize("K", [2, 3, 8, 11])
def test_tempered_forecasts(K):
    P = some_forecasts(K)
    logs = smooth.log_forecasts(P, 1e-300)
    np.testing.assert_allclose(logs, np.log(np.maximum(P, 1e-300)).T, rtol=3e-16)
    raised = np.maximum(P, 1e-3).T ** (1 / 1.7)
    expected = 0.99 * raised / raised.sum(axis=0) + 0.01 / K
    found = smooth.tempered(logs, np.log(1e-3), 1.7, 0.01)
    np.testing.assert_allclose(found, expected.T, rtol=1e-14)
    found = smooth.log_tempered(logs, np.log(1e-3), 1.7, 0.01)
    np.testing.assert_allclose(found, np.log(expected), atol=1e-14)
    found = smooth.powered(P, 1e-3, 1 / 1.7, 0.01)
    np.testing.assert_allclose(found, expected.T, rtol=1e-14)
    np.testing.assert_array_equal(smooth.by_row(logs), logs.T)


@pytest.mark.parametrize("K", [1, 2, 3, 8, 11])
def test_logarithms_of_a_softmax(K):
    z = np.random.default_rng(K).normal(scale=300, size=(13, K))
    z[:3] = [[1e300], [-1e300], [0.0]]
    z[:2, 0] = 0.0
    found = smooth.log_softmax(z)
    np.testing.assert_allclose(found, special.log_softmax(z, axis=1), rtol=1e-14, atol=1e-14)
    logs = smooth.log_tempered(z[3:].T.copy(), -400.0, 1.7, 0.0)
    raised = np.maximum(z[3:], -400.0) / 1.7
    np.testing.assert_allclose(logs, special.log_softmax(raised, axis=1).T, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("K", [2, 3, 8, 11])
def test_powers_of_forecasts(K):
    P = some_forecasts(K)
    raised = np.maximum(P, 1e-3) ** 1.7
    expected = raised / raised.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(smooth.powered(P, 1e-3, 1.7), expected, rtol=1e-13)


def softmax(z):
    e = np.exp(z - z.max(axis=0))
    return (e / e.sum(axis=0)).T


@pytest.mark.parametrize("K", [2, 3, 30])
def test_moments_are_those_of_the_softmax(K):
    z = np.random.default_rng(K).normal(scale=5, size=(K, 13))
    raised = np.maximum(z, -4)
    q = special.softmax(1.3 * raised, axis=0)
    weights = np.random.default_rng(1).random(13)
    mean = (q * raised).sum(axis=0)
    expected = weights @ mean, weights @ (q * (raised - mean) ** 2).sum(axis=0)
    np.testing.assert_allclose(smooth.moments(z, weights, 1.3, -4.0), expected, rtol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.01])
@pytest.mark.parametrize("K", [2, 3, 30])
def test_the_loss_of_a_power(K, share):
    rng = np.random.default_rng(K)
    z = rng.normal(scale=5, size=(K, 13))
    codes = rng.integers(0, K, 13)
    weights = rng.random(13)
    q = special.softmax(1.3 * np.maximum(z, -4), axis=0)[codes, np.arange(13)]
    expected = -weights @ np.log((1 - share) * q + share / K)
    found = smooth.power_loss(z, codes, weights, 1.3, -4.0, share)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_loss_of_a_power_is_finite_where_probabilities_underflow():
    z = np.array([[0.0, 0.0], [-1e5, -3.0]])
    found = smooth.power_loss(z, np.array([1, 0]), np.ones(2), 2.0, -np.inf, 0.0)
    np.testing.assert_allclose(found, 2e5 + np.log1p(np.exp(-6.0)))


@pytest.mark.parametrize("K", [2, 3, 11])
def test_softened_logarithms_are_their_formula(K):
    logs = np.log(np.maximum(some_forecasts(K), 1e-300)).T.copy()
    expected = 0.9 * np.log(np.exp(logs) + 1e-3) + 0.1 * logs
    np.testing.assert_allclose(smooth.softened(logs, 1e-3, 0.1), expected, atol=1e-13)


@pytest.mark.parametrize("n_knots", [0, 1, 8])
@pytest.mark.parametrize("K", [2, 3, 4, 9])
def test_spline_scaling_is_its_formula(K, n_knots):
    rng = np.random.default_rng(K)
    P = some_forecasts(K)
    floor = 1e-4
    coef = np.eye(K) + rng.normal(scale=0.1, size=(K, K))
    intercept = rng.normal(size=K)
    knots = np.sort(rng.normal(size=n_knots))
    slopes = rng.normal(size=(n_knots, K)).T
    p = np.maximum(P, floor).T
    odds = np.log(p) - np.log(p.sum(axis=0) - p)
    hinges = np.maximum(odds[:, None] - knots[:, None], 0)
    z = coef @ np.log(p) + np.einsum("km,kmn->kn", slopes, hinges) + intercept[:, None]
    logs = smooth.log_forecasts(P, 1e-300)
    numbers = smooth.spline_numbers(coef, knots, slopes, intercept)
    found = smooth.spline(P, logs, floor, *numbers, 0.02)
    np.testing.assert_allclose(found, 0.98 * softmax(z) + 0.02 / K, rtol=1e-11)
    diagonal = np.diag(coef)[:, None]
    found, joint = (
        smooth.spline(P, logs, floor, *smooth.spline_numbers(c, knots, slopes, intercept), 0.02)
        for c in (diagonal, np.diagflat(diagonal))
    )
    np.testing.assert_allclose(found, joint, rtol=1e-14)


@pytest.mark.parametrize("n_centres", [1, 4, 7, 100])
@pytest.mark.parametrize("K", [2, 3, 4, 9])
def test_kernel_scaling_is_its_formula(K, n_centres):
    rng = np.random.default_rng(K)
    P = some_forecasts(K)
    z = smooth.log_forecasts(P, 1e-3)
    logs = smooth.log_forecasts(P, 1e-300)
    knots = np.sort(rng.uniform(-9, 0, size=(K, 9)), axis=1)
    origin = rng.normal(scale=0.3, size=(2, K))
    stretch = np.array([0.7, 1.3])
    centres = rng.normal(size=(n_centres, 2, K))
    weights = rng.normal(size=(n_centres, K)).T
    coef = rng.normal(scale=0.1, size=(K, K))
    intercept = rng.normal(size=K)
    ranks = [np.interp(logs[k], knots[k], np.linspace(0, 1, 9)) for k in range(K)]
    x = (np.stack([z - z.mean(axis=0), ranks]) - origin[:, :, None]) * stretch[:, None, None]
    heights = 1 / (1 + ((x - centres[..., None]) ** 2).sum(axis=(1, 2)) / 2)
    trust = np.clip(2 * heights.max(axis=0) / 0.4 - 1, 0, 1)
    logits = z + trust * (coef @ z + weights @ heights + intercept[:, None])
    numbers = smooth.kernel_numbers(knots, origin, stretch, centres, weights, coef, intercept)
    found = smooth.kernel(z, logs, *numbers, 0.4)
    np.testing.assert_allclose(found, softmax(logits), rtol=1e-12)


def test_kernel_scaling_far_from_all_centres():
    z = np.array([[0.0, -1e100], [-1e100, 0.0]])
    knots = np.tile(np.arange(-8.0, 1.0), (2, 1))
    zeros = np.zeros((2, 2))
    centres = np.zeros((3, 2, 2))
    weights = np.array([[1e3] * 3, [0.0] * 3])
    numbers = smooth.kernel_numbers(knots, zeros, np.ones(2), centres, weights, zeros, np.zeros(2))
    found = smooth.kernel(z, z, *numbers, 0.1)
    np.testing.assert_allclose(found, np.eye(2), atol=1e-300)


@pytest.mark.parametrize("with_factors", [False, True])
@pytest.mark.parametrize("with_directions", [False, True])
@pytest.mark.parametrize(("K", "L"), [(2, 3), (3, 1), (4, 2), (9, 2)])
def test_a_monotone_map_is_its_formula(K, L, with_directions, with_factors):
    rng = np.random.default_rng(K)
    P = some_forecasts(K)
    floor = 1e-4
    trace = 0.01
    softness = rng.random((K, L))
    biases = rng.normal(size=(K, L))
    uniform = (1 - np.eye(K)) / (K - 1)
    directions = rng.dirichlet(np.ones(K), size=K) if with_directions else uniform
    factors = np.exp(rng.normal(size=(K, K))) if with_factors else np.ones((K, K))
    logs = smooth.log_forecasts(P, 1e-300)
    z = (1 - trace) * np.log(np.exp(logs) + floor) + trace * logs
    points = (1 - softness)[..., None] * np.eye(K)[:, None]
    points += softness[..., None] * directions[:, None]
    e = np.exp(3.0 * np.einsum("klj,jn->kln", points, z) + biases[..., None])
    w = e * (factors @ e.sum(axis=1))[:, None]
    expected = np.einsum("kln,klj->nj", w, points) / w.sum(axis=(0, 1))[:, None]
    found = smooth.gradient(
        logs,
        floor,
        trace,
        3.0,
        softness,
        biases,
        smooth.in_groups(directions) if with_directions else None,
        smooth.in_groups(directions.T) if with_directions else None,
        smooth.in_groups(factors) if with_factors else None,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("K", [2, 3, 9])
def test_a_sigmoid_map_is_its_formula(K):
    rng = np.random.default_rng(K)
    coef, rest, intercept = rng.normal(size=(3, K))
    p = np.maximum(some_forecasts(K), 1e-4)
    others = p @ (1 - np.eye(K))
    log_rest = np.log(others)
    q = special.expit(coef * np.log(p) - rest * log_rest + intercept)
    logs = np.ascontiguousarray(np.log(some_forecasts(K).clip(min=1e-9)).T)
    found = smooth.sigmoid(logs, 1e-4, coef, rest, intercept)
    np.testing.assert_allclose(found, q / q.sum(axis=1, keepdims=True), rtol=1e-11)


@pytest.mark.parametrize("numbers", [(1.3, 0.4, -0.2), (0.0, 2.0, 1.0), (-5.0, 6.0, 30.0)])
def test_a_sigmoid_map_of_two_classes_with_opposite_log_odds(numbers):
    coef, rest, intercept = np.array(numbers)
    of_both = np.array([(rest, coef, -intercept), (coef, rest, intercept)]).T.copy()
    logs = smooth.log_forecasts(some_forecasts(2), 1e-300)
    found = smooth.logistic(logs, 1e-4, coef, rest, intercept)
    np.testing.assert_allclose(found, smooth.sigmoid(logs, 1e-4, *of_both), rtol=1e-11)
    fitted_map = SigmoidMap(
        kind=kind_of(2, "probability"),
        floor=1e-4,
        coef=of_both[0],
        rest=of_both[1],
        intercept=of_both[2],
        linear=False,
    )
    np.testing.assert_array_equal(fitted_map.apply(some_forecasts(2)), found)
    uneven = replace(fitted_map, rest=fitted_map.rest + 1)
    expected = uneven.formula(NUMPY, some_forecasts(2))
    np.testing.assert_allclose(uneven.apply(some_forecasts(2)), expected, rtol=1e-11)


@pytest.mark.parametrize("K", [2, 3, 9])
@pytest.mark.parametrize("curvature", [0.0, 0.1])
def test_a_matrix_map_is_its_formula(K, curvature):
    rng = np.random.default_rng(K)
    z = smooth.log_forecasts(some_forecasts(K), 1e-4)
    coef = rng.normal(size=(K, K))
    quadratic = curvature * rng.normal(size=K)
    intercept = rng.normal(size=K)
    rest = z.T**2 * quadratic + intercept
    found = smooth.matrix(z, smooth.in_groups(coef), np.zeros(K), quadratic, intercept)
    np.testing.assert_allclose(found, special.softmax(z.T @ coef.T + rest, axis=1), rtol=1e-11)
    found = smooth.matrix(z, None, coef[0], quadratic, intercept)
    np.testing.assert_allclose(found, special.softmax(z.T * coef[0] + rest, axis=1), rtol=1e-11)


@pytest.mark.parametrize("K", [2, 7])
def test_a_row_does_not_depend_on_the_others(K):
    rng = np.random.default_rng(0)
    P = some_forecasts(K, 29)
    knots = np.tile(np.arange(-8.0, 1.0), (K, 1))
    coef = rng.normal(size=(K, K))
    intercept = rng.normal(size=K)
    centres = rng.normal(size=(10, 2, K))
    weights = rng.normal(size=(K, 10))
    softness = rng.random((K, 3))
    biases = rng.normal(size=(K, 3))

    def maps(P):
        logs = smooth.log_forecasts(P, 1e-30)
        z = smooth.log_tempered(logs, -20.0, 1.3, 0.01)
        bends = smooth.spline_numbers(coef, knots[0], knots, intercept)
        bent = smooth.spline(P, logs, 1e-3, *bends, 0.1)
        zero = np.zeros((2, K))
        numbers = smooth.kernel_numbers(knots, zero, np.ones(2), centres, weights, coef, intercept)
        monotone = smooth.gradient(logs, 1e-3, 0.01, 2.0, softness, biases, None, None, None)
        sigmoid = smooth.sigmoid(logs, 1e-9, intercept, intercept, intercept)
        logistic = smooth.logistic(logs[:2].copy(), 1e-9, 1.0, 2.0, 3.0)
        matrix = smooth.matrix(z, smooth.in_groups(coef), intercept, intercept, intercept)
        kernel = smooth.kernel(z, logs, *numbers, 0.4)
        return bent, kernel, monotone, sigmoid, logistic, matrix

    for whole, *parts in zip(maps(P), maps(P[:1]), maps(P[:7]), maps(P[:8]), strict=True):
        for part in parts:
            np.testing.assert_array_equal(part, whole[: len(part)])


@pytest.mark.parametrize(("K", "n"), [(2, 1), (3, 37), (40, 16)])
def test_softmax_loss_and_its_derivatives(K, n):
    rng = np.random.default_rng(0)
    z = rng.normal(scale=9, size=(K, n))
    codes = rng.integers(K, size=n)
    weights = rng.random(n)
    q = special.softmax(z, axis=0)
    own = np.eye(K)[:, codes]
    expected = weights @ (special.logsumexp(z, axis=0) - (own * z).sum(axis=0))
    found = smooth.softmax_loss(z, codes, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(z, weights * (q - own), atol=1e-15)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_softmax_loss_of_numbers_that_are_not_finite(bad):
    z = np.zeros((3, 20))
    z[1, 11] = bad
    assert np.isnan(smooth.softmax_loss(z, np.zeros(20, dtype=np.intp), np.ones(20)))


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("n", [5, 77, 9000])
def test_sums_of_logistic_regressions(n, own):
    """Several share features and outcomes, or each has its own."""
    rng = np.random.default_rng(0)
    G = 5
    B = 3
    X = rng.normal(size=(G if own else 1, B, n))
    y = rng.random((len(X), n)).round(1)
    weights = rng.random(n)
    offset = rng.normal(scale=9, size=n)
    offset[:2] = [800.0, -800.0]
    theta = rng.normal(size=(G, B))
    odds = offset + (theta[:, None] @ X)[:, 0]
    q = special.expit(odds)
    slopes = weights * (q - y)
    curvature = weights * q * special.expit(-odds)
    losses = (weights * (np.logaddexp(0, odds) - y * odds)).sum(axis=1)
    hessian = (X * curvature[:, None]) @ X.transpose(0, 2, 1)
    sums = smooth.logistic_sums(X, y, weights, offset, theta)
    np.testing.assert_allclose(sums[:, 0], losses, rtol=1e-13)
    np.testing.assert_allclose(sums[:, 1:4], (X * slopes[:, None]).sum(axis=2), atol=1e-12)
    i, j = np.triu_indices(B)
    np.testing.assert_allclose(sums[:, 4:], hessian[:, i, j], atol=1e-12)
