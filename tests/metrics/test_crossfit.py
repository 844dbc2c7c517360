import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoroc._core.tree import BinTree
from isoroc._growth import GrowthOptions, grow_tree
from isoroc._input import Sample
from isoroc.metrics import calibration_error
from isoroc.metrics._estimation.crossfit import (
    SHRINKAGE,
    CrossFit,
    fit_bins,
    fit_cells,
    fit_linear,
    fit_multiple,
    raise_to_power,
    residuals_by_class,
    shrink_factor,
    tilt,
)
from strategies import labelled_forecasts
from truths import distorted


def sample_of(P, y, weights=None):
    """As in the metrics: two classes are scores."""
    forecasts = np.ascontiguousarray(P[:, 1]) if P.shape[1] == 2 else P
    return Sample(forecasts, y.astype(np.uint8), weights)


def calibrated(sample):
    return CrossFit(sample).values


def residual_signs(sample):
    return np.sign(calibrated(sample) - sample.forecasts)


def mean_product(sample, learned):
    products = learned * sample.residuals()
    return products.mean() if products.ndim == 1 else products.sum(axis=1).mean() / 2


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "n", "times"), [(2, 150, 120), (3, 150, 40), (6, 150, 40)])
@pytest.mark.parametrize("learn", [residual_signs, lambda s: calibrated(s) - s.forecasts])
def test_products_have_mean_zero_for_calibrated_forecasts(n_classes, n, times, learn):
    products = []
    for seed in range(times):
        P, _, y = distorted(n, n_classes, 1.0, seed)
        sample = sample_of(P, y)
        products.append(mean_product(sample, learn(sample)))
    error = np.std(products) / np.sqrt(times)
    assert abs(np.mean(products)) < 3 * error


@given(labelled_forecasts())
def test_what_is_learned_are_forecasts(data):
    P, y, weights = data
    sample = sample_of(P, y, weights)
    g = calibrated(sample)
    assert g.shape == sample.forecasts.shape
    assert ((g > 0) & (g < 1)).all()
    if g.ndim == 2:
        np.testing.assert_allclose(g.sum(axis=1), 1)


def test_no_label_is_used_for_its_own_row():
    P, _, y = distorted(60, 3, 2.0, seed=0)
    before = calibrated(sample_of(P, y))
    for row in range(0, 60, 7):
        changed = y.copy()
        changed[row] = (y[row] + 1) % 3
        np.testing.assert_array_equal(calibrated(sample_of(P, changed))[row], before[row])


def together(fit):
    """The residuals that a stage finds in the rows, and in rows of which equal ones are one."""
    P, _, y = distorted(600, 3, 2.0, seed=0)
    P = np.round(2 * P) + 0.1
    P /= P.sum(axis=1, keepdims=True)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0], 600)
    _, first, same = np.unique(
        np.column_stack([P, y]), axis=0, return_index=True, return_inverse=True
    )
    same = same.ravel()
    sums, squares = (np.bincount(same, w) for w in (weights, weights**2))
    left = residuals_by_class(P.T, y)
    apart = fit(P.T, left, weights, weights**2)
    return apart, fit(P[first].T, left[:, first], sums, squares)[:, same]


@pytest.mark.parametrize(
    "fit",
    [fit_multiple, fit_linear, lambda P, *rest: fit_cells((P[0] > 0.3) * 1, 1, *rest)],
    ids=["multiple", "linear", "cells"],
)
def test_equal_rows_are_as_good_as_one(fit):
    apart, joined = together(fit)
    assert apart.any()
    np.testing.assert_allclose(joined, apart, atol=1e-12)


def test_rows_with_the_same_forecast_are_in_several_folds():
    p = np.repeat([0.2, 0.7], 100)
    g = calibrated(Sample(p, (np.arange(200) % 3 == 0).astype(np.uint8)))
    assert [len(np.unique(g[p == value])) for value in (0.2, 0.7)] == [5, 5]


def test_the_order_of_many_rows_changes_nothing():
    rng = np.random.default_rng(0)
    p = rng.random(20_000).round(5)
    codes = (rng.random(20_000) < p**2).astype(np.uint8)
    order = np.lexsort((codes, p))
    shuffled = CrossFit(Sample(p, codes))
    ordered = CrossFit(Sample(p[order], codes[order]))
    np.testing.assert_allclose(shuffled.values[order], ordered.values, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_folds_learned_from_together_and_one_by_one_agree(n_classes):
    P, _, y = distorted(300, n_classes, 2.0, seed=0)
    sample = sample_of(P, y)
    together = CrossFit(sample, most_values=2**20).values
    np.testing.assert_allclose(CrossFit(sample, most_values=1).values, together, rtol=1e-9)


def test_probabilities_of_0_become_the_share_of_such_outcomes():
    P, truth, y = distorted(3000, 3, 2.0, seed=0)
    P = P.round(1)
    zero = P == 0
    g = CrossFit(Sample(P / P.sum(axis=1, keepdims=True), y.astype(np.uint8))).values
    assert np.log(g[zero]).mean() == pytest.approx(np.log(truth[zero].mean()), abs=0.3)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_cells_of_many_scores_change_little(power):
    P, truth, y = distorted(3000, 2, power, seed=0)
    P[:5] = [0.0, 1.0]
    sample = sample_of(P, y)
    found = CrossFit(sample).values
    whole = CrossFit(sample, rows_in_cell=1).values
    assert (found != whole).any()
    assert ((found > 0) & (found < 1)).all()
    errors = [np.sqrt(np.mean((g - truth[:, 1]) ** 2)) for g in (found, whole)]
    assert abs(errors[0] - errors[1]) < 0.01


def inverted(P):
    return P[:, ::-1] if P.shape[1] == 2 else (1 - P) / (P.shape[1] - 1)


def confused(P):
    return np.roll(P, 1, axis=1)


def waves(P):
    """The probability of the first class moves up and down several times."""
    shift = 0.6 * P[:, 0] * (1 - P[:, 0]) * np.sin(12 * P[:, 0])
    first = P[:, 0] + shift
    others = P[:, 1:] * ((1 - first) / (1 - P[:, 0]))[:, None]
    return np.column_stack([first, others])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("departure", [inverted, confused, waves])
@pytest.mark.parametrize("weighted", [False, True])
def test_departures_that_no_monotone_map_finds_are_found(departure, n_classes, weighted):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(n_classes), 6000)
    truth = departure(P)
    y = (truth.cumsum(axis=1) > rng.random((6000, 1))).argmax(axis=1)
    weights = rng.choice([0.5, 2.0], 6000) if weighted else None
    error = np.average(np.abs(truth - P).sum(axis=1) / 2, weights=weights)
    found = calibration_error(y, P, bins="irp", sample_weight=weights, labels=range(n_classes))
    assert found == pytest.approx(error, abs=0.03)
    assert error > 0.05


def test_rows_of_weight_0_and_the_scale_of_weights_do_not_matter():
    P, _, y = distorted(400, 3, 3.0, seed=0)
    weights = np.arange(400) % 4 / 2
    found = calibration_error(y, P, sample_weight=weights)
    other = np.where(weights > 0, y, (y + 1) % 3)
    assert calibration_error(other, P, sample_weight=weights) == pytest.approx(found, rel=1e-9)
    assert calibration_error(y, P, sample_weight=1000 * weights) == pytest.approx(found, rel=1e-9)
    assert found > 0.05


@pytest.mark.slow
def test_calibrated_forecasts_mostly_have_an_error_near_0():
    errors = []
    for seed in range(40):
        P, _, y = distorted(300, 3, 1.0, seed)
        errors.append(calibration_error(y, P))
    assert np.median(errors) < 0.02
    assert np.mean(np.array(errors) > 0.06) < 0.1


@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_constant_forecasts_are_compared_with_the_rate(rate):
    y = np.arange(1000) % 10 < 10 * rate
    found = calibration_error(y, np.full(1000, 0.2), bins="irp")
    assert found == pytest.approx(rate - 0.2, abs=0.02)


@pytest.mark.parametrize("n_classes", [2, 3, 8])
@pytest.mark.parametrize("power", [0.5, 2.0])
def test_the_power_of_the_truth_is_undone(n_classes, power):
    P, truth, y = distorted(20_000, n_classes, power, seed=0)
    weights = (np.arange(20_000) % 4 > 0).astype(np.float64)
    columns = np.ascontiguousarray(P.T)
    found = raise_to_power(columns, y, weights[None], weights[None])
    np.testing.assert_allclose(found[:, 0].T, truth, atol=0.02)
    changed = np.where(weights > 0, y, 0)
    again = raise_to_power(columns, changed, weights[None], weights[None])
    np.testing.assert_array_equal(again, found)


def test_calibrated_forecasts_mostly_keep_their_power():
    kept = 0
    for seed in range(60):
        P, _, y = distorted(300, 3, 1.0, seed)
        found = raise_to_power(np.ascontiguousarray(P.T), y, *np.ones((2, 1, 300)))
        kept += np.allclose(found[:, 0].T, P, atol=1e-12)
    assert kept > 30  # the evidence is below its mean


@given(st.integers(0, 2**32))
def test_tilted_forecasts_keep_their_order_and_move_as_told(seed):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), 400)
    bin_of = rng.integers(0, 2, 400)
    differences = np.array([[0.05, 0.0, -0.05], [0.0, 0.0, 0.0]])
    found = tilt(P.T, bin_of, differences.T, np.ones(400)).T
    np.testing.assert_allclose(found[bin_of == 1], P[bin_of == 1])
    moved = (found - P)[bin_of == 0].mean(axis=0)
    assert moved[0] > 0 > moved[2]
    np.testing.assert_allclose(moved, differences[0], atol=0.04)
    odds = (found[:, 0] / found[:, 2] / (P[:, 0] / P[:, 2]))[bin_of == 0]
    np.testing.assert_allclose(odds, odds[0])


@given(st.integers(0, 2**32), st.integers(0, 4), st.integers(1, 3))
def test_cells_without_noise_are_means(seed, n_levels, n_columns):
    rng = np.random.default_rng(seed)
    means = rng.choice([-2.0, -1.0, 1.0, 2.0], (2**n_levels, n_columns))
    cell = np.arange(2**n_levels).repeat(400)
    residuals = means[cell].T
    found = fit_cells(cell, n_levels, residuals, *np.ones((2, len(cell))))
    np.testing.assert_allclose(found, residuals, atol=0.1)


def sums_in_bins(bin_of, left, weights, n_bins=0):
    """Of residuals, weights and noise."""
    noise = weights**2 * (left**2).sum(axis=0)
    return np.array([np.bincount(bin_of, x, n_bins) for x in (*(left * weights), weights, noise)])


def test_bins_are_shrunk_to_the_bin_above():
    p = np.repeat([0.2, 0.8], 300)
    y = (np.arange(600) % 10 < np.where(p < 0.5, 1, 9)).astype(np.uint8)
    sample = Sample(p, y)
    tree = grow_tree(sample, GrowthOptions(np.full(2, 0.5)))
    left = residuals_by_class(np.array([1 - p, p]), y)
    found = fit_bins(tree, sums_in_bins(tree.bin_of(p), left, np.ones(600)))
    # Residuals -0.1 and 0.1 with mean 0. Bins of 300 rows are trusted by 300 / 400.
    np.testing.assert_allclose(found, [[0.075, -0.075], [-0.075, 0.075]])


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_bins_of_calibrated_forecasts_are_mostly_dropped(n_classes):
    used = 0
    for seed in range(20):
        P, _, y = distorted(400, n_classes, 1.0, seed)
        sample = sample_of(P, y)
        tree = grow_tree(sample, GrowthOptions(np.full(n_classes, 1 / n_classes)))
        bin_of = tree.bin_of(sample.forecasts)
        left = residuals_by_class(P.T, y)
        found = fit_bins(tree, sums_in_bins(bin_of, left, np.ones(400)))
        used += bool(found.any())
    assert used <= 4


@given(st.floats(0, 100), st.floats(1e-9, 100), st.integers(1, 1000))
def test_shrinkage_lies_between_zero_and_one_and_grows_with_energy(energy, noise, n_terms):
    factor = shrink_factor(energy, noise, n_terms)
    assert 0 <= factor < 1
    assert (factor == 0) or energy > noise
    assert shrink_factor(2 * energy, noise, n_terms) >= factor


def weighted_rows(seed, n_rows, n_columns):
    """Residuals around a step, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_rows, n_columns)) + (np.arange(n_rows) < n_rows // 3)[:, None]
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], n_rows)
    weights[0] = 1.0
    return values, weights


def mean_in(rows_in, values, weights):
    return weights[rows_in] @ values[rows_in] / weights[rows_in].sum()


def mean_and_noise(rows_in, values, weights):
    """Weighted mean of the rows, and the sum of squares that noise alone would give it."""
    squares = weights[rows_in] ** 2 @ (values[rows_in] ** 2).sum(axis=1)
    return mean_in(rows_in, values, weights), squares / weights[rows_in].sum() ** 2


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 3), st.integers(0, 3))
def test_cells_add_what_each_level_finds_beyond_noise(seed, n_rows, n_columns, n_levels):
    values, weights = weighted_rows(seed, n_rows, n_columns)
    cell = np.arange(n_rows) * 2**n_levels // n_rows
    found = fit_cells(cell, n_levels, values.T, weights, weights**2).T
    n_free = max(n_columns - 1, 1)

    everywhere = np.ones(n_rows, dtype=bool)
    mean, noise = mean_and_noise(everywhere, values, weights)
    factor = shrink_factor(mean @ mean, noise, n_free)
    expected = np.tile(factor * mean, (n_rows, 1))
    for level in range(n_levels):
        energy = np.zeros(())
        noise = np.zeros(())
        added = np.zeros_like(values)
        pairs = 0
        for parent in range(2**level):
            halves = [cell >> (n_levels - level - 1) == 2 * parent + side for side in (0, 1)]
            heavy = [float(weights[half].sum()) for half in halves]
            if not all(heavy):
                continue
            pairs += 1
            whole = mean_in(halves[0] | halves[1], values, weights)
            for half, weight in zip(halves, heavy, strict=True):
                mean, spread = mean_and_noise(half, values, weights)
                added[half] = mean - whole
                energy += weight * ((mean - whole) ** 2).sum()
                noise += heavy[0] * heavy[1] / sum(heavy) * spread
        expected += shrink_factor(energy, noise, pairs * n_free) * added
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(st.integers(0, 2**32), st.integers(2, 60))
def test_slope_is_that_of_weighted_least_squares(seed, n_rows):
    values, weights = weighted_rows(seed, n_rows, 1)
    x = np.linspace(0, 1, n_rows)[:, None]
    weights[-1] = 1.0
    values += 4 * x
    found = fit_linear(x.T, values.T, weights, weights**2).T
    centred = x[:, 0] - np.average(x[:, 0], weights=weights)
    square = weights @ centred**2
    slope = weights @ (centred * values[:, 0]) / square
    noise = (weights * centred * values[:, 0]) @ (weights * centred * values[:, 0]) / square
    factor = shrink_factor(slope**2 * square, noise, 1)
    np.testing.assert_allclose(found[:, 0], factor * slope * centred, rtol=1e-7, atol=1e-9)


@given(st.integers(0, 2**32), st.integers(80, 120), st.integers(1, 3))
def test_bins_are_shrunk_to_every_node_above(seed, n_rows, n_columns):
    values, weights = weighted_rows(seed, n_rows, n_columns)
    # Node 0 has the bin 1 and the node 2, which has the bins 3, 4 and 5. Region 1 of 0 is empty.
    children = np.array([[1, -1, 2], [3, 4, 5]])
    split_nodes = np.array([0, 2])
    tree = BinTree(np.zeros((2, 3)), children, split_nodes, np.zeros((6, 3)))
    bin_of = np.random.default_rng(seed).integers(0, 4, n_rows)
    values += 10.0  # more than noise
    found = fit_bins(tree, sums_in_bins(bin_of, values.T, weights, 4)).T

    def shrunk(rows_in, start):
        total = weights[rows_in].sum()
        mean = mean_in(rows_in, values, weights) if total else start
        return start + total / (total + SHRINKAGE) * (mean - start)

    root = shrunk(bin_of >= 0, np.zeros(n_columns))
    inner = shrunk(bin_of > 0, root)
    for place, above in enumerate([root, inner, inner, inner]):
        here = bin_of == place
        expected = np.tile(shrunk(here, above), (here.sum(), 1))
        np.testing.assert_allclose(found[[place] * here.sum()], expected, atol=1e-12)
