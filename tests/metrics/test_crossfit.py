import numpy as np
import pytest
from hypothesis import given

from isoroc._input import Sample
from isoroc.metrics import calibration_error
from isoroc.metrics._estimation.crossfit import CrossFit
from strategies import labelled_forecasts
from truths import distorted, draw_labels


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


def test_two_rows_are_enough():
    g = calibrated(Sample(np.array([0.2, 0.7]), np.array([0, 1], dtype=np.uint8)))
    assert ((g > 0) & (g < 1)).all()


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


def distance(g, truth):
    g = np.column_stack([1 - g, g]) if g.ndim == 1 else g
    return np.sqrt(((g - truth) ** 2).sum(axis=1).mean())


def share_left(P, truth):
    """Distance of what is learned from the truth, as a share of the distance of the forecasts."""
    y = draw_labels(truth, np.random.default_rng(0))
    return distance(calibrated(sample_of(P, y)), truth) / distance(P, truth)


@pytest.mark.parametrize("n_classes", [2, 3, 8])
@pytest.mark.parametrize("power", [0.5, 2.0])
def test_a_power_of_the_truth_is_undone(n_classes, power):
    P, truth, _ = distorted(1000, n_classes, power, seed=0)
    assert share_left(P, truth) < 0.4


@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_other_shares_of_classes_are_undone(n_classes):
    _, truth, _ = distorted(1000, n_classes, 1.0, seed=0)
    P = truth * np.geomspace(1, 4, n_classes)
    assert share_left(P / P.sum(axis=1, keepdims=True), truth) < 0.3


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("departure", "n_rows", "most"),
    [(inverted, 300, 0.15), (confused, 300, 0.15), (waves, 6000, 0.8)],
)
def test_departures_that_no_monotone_map_finds_are_learned(departure, n_rows, most, n_classes):
    P = np.random.default_rng(0).dirichlet(np.ones(n_classes), n_rows)
    assert share_left(P, departure(P)) < most


def test_a_few_scores_become_their_rates_in_any_order():
    p = np.repeat([0.2, 0.4, 0.6, 0.8], 300)
    rates = [0.4, 0.1, 0.8, 0.5]
    y = np.arange(1200) % 10 < 10 * np.repeat(rates, 300)
    g = calibrated(Sample(p, y.astype(np.uint8))).reshape(4, 300)
    np.testing.assert_allclose(g, np.repeat(rates, 300).reshape(4, 300), atol=0.05)
    np.testing.assert_allclose(g.mean(axis=1), rates, atol=0.02)


def test_a_few_forecasts_of_three_classes_become_their_rates_in_any_order():
    rates = np.array([[0.1, 0.3, 0.6], [0.2, 0.2, 0.6], [0.6, 0.3, 0.1], [0.3, 0.4, 0.3]])
    P = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]])
    y = np.concatenate([np.repeat(range(3), np.rint(300 * rate).astype(int)) for rate in rates])
    g = calibrated(sample_of(P.repeat(300, axis=0), y)).reshape(4, 300, 3)
    np.testing.assert_allclose(g.mean(axis=1), rates, atol=0.05)


@pytest.mark.parametrize(("n_classes", "most"), [(2, 0.05), (3, 0.06), (8, 0.09)])
def test_little_is_learned_from_calibrated_forecasts(n_classes, most):
    """The rates of 8 bins of 300 rows would be off by about 0.1 for two classes."""
    learned = []
    for seed in range(8):
        P, _, y = distorted(300, n_classes, 1.0, seed)
        learned.append(distance(calibrated(sample_of(P, y)), P))
    assert np.mean(learned) < most


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
