"""Forecasts of rows without themselves or their cluster, against fits to all others."""

import numpy as np
import pytest

from isoroc import (
    AutoCalibrator,
    BetaCalibrator,
    KernelCalibrator,
    MonotoneCalibrator,
    SigmoidCalibrator,
    SplineCalibrator,
    TemperatureCalibrator,
)
from isoroc._calibrators import monotone, parts
from isoroc._calibrators.leave_one_out import (
    MOST_LEVERAGE,
    MOST_SHARE,
    LeftOut,
    joint_changes,
    left_out,
    likelihood_changes,
    odds_changes,
    score_changes,
    separate_changes,
    separate_leverages,
    with_changes,
    with_losses,
)
from isoroc._counts import deal_by_content
from isoroc._input import check_sample


def rows_of(K, n=120, *, tied=False, weighted=False, seed=0, clusters=None):
    rng = np.random.default_rng([K, seed])
    z = 1.5 * rng.normal(size=(n, K))
    P = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    truth = np.exp(z / 1.5) / np.exp(z / 1.5).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(K, p=p) for p in truth])
    if tied:
        P = (8 * P).round() + 0.5
        P /= P.sum(axis=1, keepdims=True)
    weights = rng.uniform(0.5, 2.0, size=n) if weighted else None
    sample = check_sample(P, y, weights, labels=range(K), clusters=clusters)
    return deal_by_content(sample.effective(), 5)


def mixed_clusters(n, seed=0):
    """Clusters of 1 to 10 rows."""
    sizes = np.random.default_rng(seed).integers(1, 11, size=n)
    return np.repeat(np.arange(n), sizes)[:n]


def without(calibrator, sample):
    """Forecasts of rows by a fit to other clusters, which shares what was learned from all."""
    clusters = np.arange(len(sample)) if sample.clusters is None else sample.clusters
    inside = [clusters == cluster for cluster in np.unique(clusters)]
    Q = np.empty((len(sample), sample.n_classes))
    if not hasattr(calibrator, "_solve"):
        for rows in inside:
            Q[rows] = calibrator._fit(sample.take(~rows)).apply(sample.forecasts[rows])
        return Q
    problem, whole = calibrator._solve(sample)
    for rows in inside:
        part = problem.take(~rows)
        if hasattr(part, "settle"):
            theta = part.settle(whole.theta, rounds=30, n_steps=60, ftol=1e-9).theta
        else:
            theta = part.solve_near(whole)
        Q[rows] = part.map_of(theta).apply(sample.forecasts[rows])
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


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize(
    "kind",
    ["plain", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("tied", "weighted"))],
)
@pytest.mark.parametrize(("calibrator", "K", "tolerance"), CASES)
def test_what_is_left_out_is_forecast_as_by_fits_without_it(
    calibrator, K, tolerance, kind, clustered
):
    n = 240 if clustered else 120
    clusters = mixed_clusters(n) if clustered else None
    sample = rows_of(K, n, tied=kind == "tied", weighted=kind == "weighted", clusters=clusters)
    assert left_out(sample) is not None
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
    some = rows[:: max(n // 30, 1)]
    parts = [calibrator()._fit(sample.take(rows != i)) for i in some]
    exact = np.vstack([f.apply(sample.forecasts[[i]]) for i, f in zip(some, parts, strict=True)])
    each = np.arange(len(some)), sample.codes[some]
    losses = [-np.log(forecasts[each]).mean() for forecasts in (Q[some], exact)]
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


@pytest.mark.parametrize("K", [2, 3])
def test_rows_that_were_merged_for_the_fit_are_left_out_one_by_one(K, monkeypatch):
    sample = rows_of(K, 240).take(np.repeat(np.arange(240), 2))
    fold = sample.folds()
    whole, Q = MonotoneCalibrator()._fit_out_of_fold(sample, fold)
    monkeypatch.setattr(parts, "UNGROUPED_ROWS", 100)
    monkeypatch.setattr(monotone, "WIDTH", 1e-7)  # so that only equal rows merge
    assert len(MonotoneCalibrator()._solve(sample)[0].codes) == 240
    merged, of_merged = MonotoneCalibrator()._fit_out_of_fold(sample, fold)
    assert np.abs(Q - whole.apply(sample.forecasts)).max() > 0.003
    np.testing.assert_allclose(of_merged, Q, atol=1e-5)
    np.testing.assert_allclose(merged.biases, whole.biases, atol=1e-3)


@pytest.mark.parametrize("K", [2, 3, 8])
@pytest.mark.parametrize("calibrator", sorted({case[0] for case in CASES}, key=str))
def test_clusters_of_one_row_change_nothing(calibrator, K):
    names = np.random.default_rng(0).permutation(120)
    alone = rows_of(K, weighted=True, clusters=names)
    plain = rows_of(K, weighted=True)
    one = calibrator()._fit_out_of_fold(alone, alone.folds())[1]
    other = calibrator()._fit_out_of_fold(plain, alone.folds())[1]
    np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("K", [2, 3, 8])
def test_neither_the_order_of_rows_nor_the_names_of_clusters_matter(K):
    rng = np.random.default_rng(K)
    clusters = mixed_clusters(240)
    P = rng.dirichlet(np.ones(K), size=240)
    y = np.array([rng.choice(K, p=p) for p in P])
    order = rng.permutation(240)
    names = rng.permutation(240)[clusters]
    one = AutoCalibrator().fit(P, y, clusters=clusters)
    other = AutoCalibrator().fit(P[order], y[order], clusters=names[order])
    np.testing.assert_allclose(other.weights_, one.weights_, atol=1e-6)
    np.testing.assert_allclose(other.predict_proba(P), one.predict_proba(P), atol=1e-6)


@pytest.mark.parametrize("K", [2, 3, 8])
@pytest.mark.parametrize(
    "calibrator", [SplineCalibrator, MonotoneCalibrator, TemperatureCalibrator]
)
def test_copies_of_a_row_leave_with_its_cluster(calibrator, K):
    copies = 1 + np.arange(120) % 3
    sample = rows_of(K, clusters=np.arange(120) // 4)
    repeated = sample.take(np.repeat(np.arange(120), copies))
    repeated = type(repeated)(**vars(repeated) | {"weights": None, "squares": None})
    counts = copies.astype(float)
    counted = type(sample)(**vars(sample) | {"weights": counts, "squares": counts})
    one = calibrator()._fit_out_of_fold(repeated, repeated.folds())[1]
    other = calibrator()._fit_out_of_fold(counted, counted.folds())[1]
    np.testing.assert_allclose(one, np.repeat(other, copies, axis=0), atol=2e-3)


def test_clusters_that_are_too_large_for_one_step_are_forecast_in_folds():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    largest = int(MOST_SHARE * 200)
    clusters = np.maximum(np.arange(200), largest - 1)  # the last rows are single
    clusters[:largest] = 0
    assert left_out(check_sample(p, y, clusters=clusters)) is not None
    clusters[largest] = 0
    assert left_out(check_sample(p, y, clusters=clusters)) is None


def test_parts_hold_whole_clusters_of_one_size():
    clusters = np.random.default_rng(0).permutation(mixed_clusters(120))
    left = LeftOut(np.ones(120), clusters)
    times_seen = np.zeros(120)
    for rows, size in left.parts(30):
        for together in np.arange(120)[rows].reshape(-1, size):
            assert set(together) == set(np.flatnonzero(clusters == clusters[together[0]]))
        times_seen[rows] += 1
    assert times_seen.tolist() == [1.0] * 120
    assert left.largest == np.bincount(clusters).max()
    expected = [clusters[clusters == cluster].sum() for cluster in clusters]
    np.testing.assert_allclose(left.total(clusters), expected)


def test_changes_of_scores_solve_their_equation():
    rng = np.random.default_rng(0)
    K = 4
    n = 30
    q = rng.dirichlet(np.ones(K), size=n).T.copy()
    codes = rng.integers(K, size=n, dtype=np.uint8)
    removed = rng.uniform(0.5, 1.5, size=n)
    diagonal = rng.uniform(0.0, 0.4, size=(K, n))
    joint = score_changes(q, codes, removed, np.einsum("kn,kj->nkj", diagonal, np.eye(K)))
    separate = separate_changes(q, codes, removed, diagonal[..., None, None], 1)
    np.testing.assert_allclose(separate, joint)
    for i in range(n):
        W = np.diag(q[:, i]) - np.outer(q[:, i], q[:, i])
        A = removed[i] * np.diag(diagonal[:, i])
        residual = q[:, i] - np.eye(K)[codes[i]]
        np.testing.assert_allclose((np.eye(K) - A @ W) @ joint[:, i], A @ residual, atol=1e-12)


@pytest.mark.parametrize("size", [1, 3, 10])  # 10 rows have more scores than parameters
def test_changes_of_clusters_solve_their_equation(size):
    rng = np.random.default_rng(size)
    K = 4
    P = 13
    n = 30
    q = rng.dirichlet(np.ones(K), size=n).T.copy()
    codes = rng.integers(K, size=n, dtype=np.uint8)
    removed = rng.uniform(0.5, 1.5, size=n)
    J = rng.normal(size=(K, P, n)) / 20
    changes = joint_changes(q, codes, removed, J, size)
    leverage = np.stack([separate_leverages(J[k], size) for k in range(K)])
    separate = separate_changes(q, codes, removed, leverage, size)
    for first in range(0, n, size):
        rows = np.arange(first, first + size)
        W = np.zeros((size, K, size, K))
        for i, row in enumerate(rows):
            W[i, :, i] = removed[row] * (np.diag(q[:, row]) - np.outer(q[:, row], q[:, row]))
        r = (removed * (q - np.eye(K)[:, codes]))[:, rows].T.ravel()
        of_rows = J[:, :, rows].transpose(2, 0, 1)
        A = np.einsum("ikp,jlp->ikjl", of_rows, of_rows)
        among = A * np.eye(K)[:, None, :]
        for found, leverages in ((changes, A), (separate, among)):
            A_c = leverages.reshape(size * K, -1)
            kept = np.eye(size * K) - A_c @ W.reshape(size * K, -1)
            expected = np.linalg.solve(kept, A_c @ r).reshape(size, K).T
            np.testing.assert_allclose(found[:, rows], expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 10])
def test_changes_of_odds_are_steps_without_the_rows(size):
    rng = np.random.default_rng(size)
    p = rng.random(20)
    y = rng.integers(2, size=20).astype(float)
    removed = rng.uniform(0.5, 1.5, size=20)
    J = rng.normal(size=(3, 20)) / 10
    odds = odds_changes(p, y, removed, J, size)
    losses = likelihood_changes(removed, J, size)
    for first in range(0, 20, size):
        rows = slice(first, first + size)
        X = J[:, rows]
        weights = removed[rows]
        H = np.eye(3) - (X * weights * p[rows] * (1 - p[rows])) @ X.T
        step = np.linalg.solve(H, X @ (weights * (p - y)[rows]))
        np.testing.assert_allclose(odds[rows], X.T @ step)
        step = np.linalg.solve(np.eye(3) - (X * weights) @ X.T, X @ weights)
        np.testing.assert_allclose(losses[rows], X.T @ step)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_cluster_that_holds_all_curvature_changes_odds_by_a_finite_number(size):
    p = np.full(10, 0.5)
    J = np.full((1, 10), 2 / np.sqrt(size))
    changes = odds_changes(p, np.zeros(10), np.ones(10), J, size)
    np.testing.assert_allclose(changes, 2 / (1 - MOST_LEVERAGE))


def test_outcomes_become_less_likely_and_others_keep_their_ratios():
    Q = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    unseen = with_losses(Q, np.array([0, 0]), np.array([0.25, 0.0]))
    np.testing.assert_allclose(unseen.sum(axis=1), 1)
    assert unseen[0, 0] == pytest.approx(0.5 * np.exp(-0.25))
    assert unseen[0, 1] / unseen[0, 2] == pytest.approx(1.5)
    np.testing.assert_array_equal(unseen[1], Q[1])


def test_gains_make_no_outcome_more_than_certain():
    Q = np.tile([0.5, 0.3, 0.2], (3, 1))
    unseen = with_losses(Q, np.array([1, 1, 1]), np.array([-1e-6, -1.0, -20.0]))
    np.testing.assert_allclose(unseen.sum(axis=1), 1)
    np.testing.assert_allclose(unseen[:, 0] / unseen[:, 2], 2.5)
    assert np.log(unseen[0, 1] / 0.3) == pytest.approx(1e-6)
    assert 0.3 < unseen[1, 1] < unseen[2, 1] < 1
