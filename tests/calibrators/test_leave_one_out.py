"""Forecasts of rows without themselves, against fits to all rows but one."""

from functools import partial

import numpy as np
import pytest

from isoroc import (
    BetaCalibrator,
    KernelCalibrator,
    MonotoneCalibrator,
    SigmoidCalibrator,
    SplineCalibrator,
    TemperatureCalibrator,
)
from isoroc._calibrators.leave_one_out import (
    left_out_weights,
    score_changes,
    separate_changes,
    with_changes,
    with_lower_outcomes,
)
from isoroc._counts import deal_by_content
from isoroc._input import check_sample


def rows_of(K, n=120, *, tied=False, weighted=False, seed=0):
    rng = np.random.default_rng([K, seed])
    z = 1.5 * rng.normal(size=(n, K))
    P = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    truth = np.exp(z / 1.5) / np.exp(z / 1.5).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(K, p=p) for p in truth])
    if tied:
        P = (8 * P).round() + 0.5
        P /= P.sum(axis=1, keepdims=True)
    weights = rng.uniform(0.5, 2.0, size=n) if weighted else None
    sample = check_sample(P, y, weights, labels=range(K))
    return deal_by_content(sample.effective(), 5)


def without(calibrator, sample):
    """Forecasts of each row by a fit to the others, which shares what was learned from all."""
    rows = np.arange(len(sample))
    if not hasattr(calibrator, "_solve"):
        parts = [calibrator._fit(sample.take(rows != i)) for i in rows]
        return np.vstack([m.apply(sample.forecasts[[i]]) for i, m in zip(rows, parts, strict=True)])
    problem, whole = calibrator._solve(sample)
    Q = np.empty((len(rows), sample.n_classes))
    for i in rows:
        part = problem.take(rows != i)
        solve = partial(part.solve_near, whole)
        if hasattr(part, "settle"):
            theta = part.settle(whole.theta, rounds=30, n_steps=60, ftol=1e-9).theta
        else:
            theta = solve()
        Q[i] = part.map_of(theta).apply(sample.forecasts[[i]])[0]
    return Q


CASES = [
    (SplineCalibrator, 2, 0.01),
    (SplineCalibrator, 3, 0.02),
    (SplineCalibrator, 8, 0.03),
    (MonotoneCalibrator, 2, 0.01),
    (MonotoneCalibrator, 3, 0.02),
    (KernelCalibrator, 2, 0.02),
    (SigmoidCalibrator, 2, 0.01),
    (BetaCalibrator, 2, 0.03),
    (TemperatureCalibrator, 2, 0.01),
    (TemperatureCalibrator, 4, 0.01),
]


@pytest.mark.parametrize("kind", ["plain", "tied", "weighted"])
@pytest.mark.parametrize(("calibrator", "K", "tolerance"), CASES)
def test_left_out_rows_are_forecast_as_by_fits_without_them(calibrator, K, tolerance, kind):
    sample = rows_of(K, tied=kind == "tied", weighted=kind == "weighted")
    fitted, Q = calibrator()._fit_out_of_fold(sample, sample.folds())
    exact = without(calibrator(), sample)
    assert np.abs(Q.sum(axis=1) - 1).max() < 1e-9
    assert np.abs(Q - exact).mean() < tolerance / 4
    assert np.quantile(np.abs(Q - exact), 0.98) < tolerance
    losses = [
        -np.log(forecasts[np.arange(len(sample)), sample.codes]).mean()
        for forecasts in (fitted.apply(sample.forecasts), Q, exact)
    ]
    # The correction for rows that a fit has seen is about right.
    assert losses[1] - losses[0] == pytest.approx(losses[2] - losses[0], rel=0.3, abs=1e-3)


@pytest.mark.parametrize("calibrator", [SplineCalibrator, TemperatureCalibrator])
@pytest.mark.parametrize(("K", "n"), [(3, 30), (3, 200), (4, 20), (10, 20)])
def test_separable_outcomes_do_not_make_left_out_rows_impossible(calibrator, K, n):
    rng = np.random.default_rng([K, n])
    P = rng.dirichlet(np.ones(K), size=n)
    sample = deal_by_content(check_sample(P, P.argmax(axis=1), labels=range(K)).effective(), 5)
    rows = np.arange(n)
    Q = calibrator()._fit_out_of_fold(sample, sample.folds())[1]
    parts = [calibrator()._fit(sample.take(rows != i)) for i in rows]
    exact = np.vstack([f.apply(sample.forecasts[[i]]) for i, f in zip(rows, parts, strict=True)])
    losses = [-np.log(forecasts[rows, sample.codes]).mean() for forecasts in (Q, exact)]
    assert losses[0] == pytest.approx(losses[1], abs=0.02)


def test_long_changes_of_scores_are_shortened_and_leave_the_uniform_share():
    Q = np.full((3, 3), 1 / 3)
    short = np.array([[0.0, 1.0, -1.0], [0.0, 0.0, 0.0], [0.0, -1.0, 1.0]])
    expected = np.exp(short.T)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(with_changes(Q, short), expected)
    np.testing.assert_allclose(with_changes(Q, short, 0.3), 0.7 * expected + 0.1)
    odds = []
    for factor in (1.0, 2.0, 100.0, 1e6):
        unseen = with_changes(Q, 3.0 * factor * np.array([[1.0], [0.0], [0.5]]) @ np.ones((1, 3)))
        odds.append(np.log(unseen[0, 0] / unseen[0, 1]))
    np.testing.assert_allclose(odds, 3 * (1 + np.log([1.0, 2.0, 100.0, 1e6])))
    assert with_changes(Q, 1e6 * short, 0.3).min() >= 0.1 - 1e-12


@pytest.mark.parametrize("calibrator", [SplineCalibrator, MonotoneCalibrator, SigmoidCalibrator])
def test_a_cell_of_equal_rows_loses_one_of_them(calibrator):
    sample = rows_of(2, 40)
    rows = np.repeat(np.arange(40), 3)
    repeated = sample.take(rows)
    cells = sample.take(np.arange(40))
    counts = np.full(40, 3.0)
    cells = type(cells)(**vars(cells) | {"weights": counts, "squares": counts})
    one = calibrator()._fit_out_of_fold(repeated, np.arange(120) % 5)[1]
    other = calibrator()._fit_out_of_fold(cells, np.arange(40) % 5)[1]
    np.testing.assert_allclose(one, other[rows], atol=2e-3)


def test_rows_of_a_cluster_are_not_left_out_one_by_one():
    rng = np.random.default_rng(0)
    p = rng.random(60)
    sample = check_sample(p, rng.random(60) < p, clusters=np.arange(60) // 2)
    assert left_out_weights(sample) is None
    alone = check_sample(p, rng.random(60) < p, clusters=np.arange(60))
    found = left_out_weights(alone)
    assert found is not None
    assert found.tolist() == [1.0] * 60


def test_changes_of_scores_solve_their_equation():
    rng = np.random.default_rng(0)
    K = 4
    n = 30
    q = rng.dirichlet(np.ones(K), size=n).T.copy()
    codes = rng.integers(K, size=n, dtype=np.uint8)
    removed = rng.uniform(0.5, 1.5, size=n)
    diagonal = rng.uniform(0.0, 0.4, size=(K, n))
    joint = score_changes(q, codes, removed, np.einsum("kn,kj->nkj", diagonal, np.eye(K)))
    np.testing.assert_allclose(separate_changes(q, codes, removed, diagonal), joint)
    for i in range(n):
        W = np.diag(q[:, i]) - np.outer(q[:, i], q[:, i])
        A = removed[i] * np.diag(diagonal[:, i])
        residual = q[:, i] - np.eye(K)[codes[i]]
        np.testing.assert_allclose((np.eye(K) - A @ W) @ joint[:, i], A @ residual, atol=1e-12)


def test_outcomes_become_less_likely_and_others_keep_their_ratios():
    Q = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    unseen = with_lower_outcomes(Q, np.array([0, 0]), np.array([0.2, 0.0]))
    np.testing.assert_allclose(unseen.sum(axis=1), 1)
    assert unseen[0, 0] == pytest.approx(0.5 * np.exp(-0.25))
    assert unseen[0, 1] / unseen[0, 2] == pytest.approx(1.5)
    np.testing.assert_array_equal(unseen[1], Q[1])
