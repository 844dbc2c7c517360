from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoroc import IRPCalibrator
from isoroc._input import check_probabilities
from isoroc.metrics import calibration_error
from isoroc.metrics._calibration import event_of, observed_rates
from strategies import labelled_forecasts
from truths import distorted

NORMS: tuple[Any, ...] = ("l1", "l2", "max")
BINS: tuple[Any, ...] = ("quantile", 7)
KINDS: tuple[Any, ...] = ("canonical", "classwise", "top")


def distance(P, truth, norm):
    if norm == "l1":
        return np.abs(P - truth).sum(axis=1).mean() / 2
    return np.sqrt(((P - truth) ** 2).sum(axis=1).mean() / 2)


def error_in_cells(forecasts, outcomes, weights, cells, norm):
    """Error of each cell from the definition, for forecasts and outcomes of shape (n, C)."""
    sizes = []
    errors = []
    for cell in sorted(set(cells)):
        rows = [i for i, c in enumerate(cells) if c == cell]
        w = weights[rows]
        d = (w[:, None] * (outcomes[rows] - forecasts[rows])).sum(axis=0) / w.sum()
        if norm == "l2":
            errors.append((d**2).sum() / 2)
        else:
            errors.append(np.abs(d).sum() / 2)
        sizes.append(w.sum())
    return max(errors) if norm == "max" else np.average(errors, weights=sizes)


def two_columns(p):
    return np.column_stack([1 - p, p])


def oracle(y, P, weights, *, norm, kind, n_bins):
    K = P.shape[1]
    w = np.ones(len(y)) if weights is None else weights
    edges = np.linspace(0, 1, n_bins + 1)

    def interval(p):
        return next((b for b in range(n_bins) if p <= edges[b + 1]), n_bins - 1)

    def scalar(p, hit):
        cells = [p_i if n_bins == 0 else interval(p_i) for p_i in p]
        return error_in_cells(two_columns(p), two_columns(hit), w, cells, norm)

    if kind == "top":
        best = P.argmax(axis=1)
        errors = [scalar(P.max(axis=1), (best == y).astype(float))]
    elif K == 2:
        errors = [scalar(P[:, 1], (y == 1).astype(float))]
    elif kind == "classwise":
        errors = [scalar(P[:, k], (y == k).astype(float)) for k in range(K)]
    else:
        cells = [tuple(row) if n_bins == 0 else tuple(map(interval, row)) for row in P]
        errors = [error_in_cells(P, np.eye(K)[y], w, cells, norm)]
    if norm == "max":
        return max(errors)
    return np.mean(errors) if norm == "l1" else np.sqrt(np.mean(errors))


@given(
    labelled_forecasts(max_rows=30),
    st.sampled_from(NORMS),
    st.sampled_from(KINDS),
    st.integers(0, 12),
)
def test_binned_errors_match_their_definition(data, norm, kind, n_bins):
    P, y, weights = data
    options = {"sample_weight": weights, "labels": np.arange(P.shape[1])}
    value = calibration_error(y, P, norm=norm, kind=kind, bins=n_bins or "exact", **options)
    expected = oracle(y, P, weights, norm=norm, kind=kind, n_bins=n_bins)
    assert value == pytest.approx(expected, abs=1e-9)
    assert -1e-12 <= value <= 1 + 1e-12


@given(labelled_forecasts())
def test_irp_is_calibrated_on_its_own_rows(data):
    P, y, weights = data
    top: dict[str, Any] = {"top": None} if P.shape[1] > 2 else {}
    top["values"] = "constant"
    cal = IRPCalibrator(pseudocount=0, min_bin_weight=0, min_lift=0, random_state=0, **top)
    labels = np.arange(P.shape[1])
    Q = cal.fit(P, y, labels=labels, sample_weight=weights).predict_proba(P)
    for norm in NORMS:
        options = {"norm": norm, "bins": "exact", "sample_weight": weights, "labels": labels}
        assert calibration_error(y, Q, **options) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bins", [None, 10, "quantile", "exact"])
def test_certain_and_always_wrong_is_one(n_classes, norm, kind, bins):
    y = np.arange(120) % n_classes
    P = np.eye(n_classes)[(y + 1) % n_classes]
    expected = 1
    if kind == "classwise" and n_classes > 2:  # each class has as many false positives as misses
        expected = {"l1": 2 / n_classes, "l2": (n_classes - 1) ** -0.5, "max": 1}[norm]
    error = calibration_error(y, P, norm=norm, kind=kind, bins=bins, labels=range(n_classes))
    rel = 0.01 if kind == "classwise" and bins is None else 1e-6  # less what chance adds
    assert error == pytest.approx(expected, rel=rel)
    assert calibration_error(y, np.eye(n_classes)[y], norm=norm, kind=kind, bins=bins) == 0


@given(labelled_forecasts(max_rows=30), st.sampled_from(NORMS), st.sampled_from(KINDS))
def test_exact_errors_ignore_row_order_and_weight_scale_and_weights_repeat(data, norm, kind):
    P, y, weights = data
    weights = np.ones(len(y)) if weights is None else weights
    options = {"norm": norm, "kind": kind, "bins": "exact", "labels": np.arange(P.shape[1])}
    value = calibration_error(y, P, sample_weight=weights, **options)
    backwards = calibration_error(y[::-1], P[::-1], sample_weight=weights[::-1] / 64, **options)
    assert backwards == pytest.approx(value, abs=1e-12)
    rows = np.repeat(np.arange(len(y)), (8 * weights).astype(int))
    assert calibration_error(y[rows], P[rows], **options) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n", [100, 101, 107])
def test_quantile_bins_with_unit_weights_equal_those_without(n_classes, n):
    P, _, y = distorted(n, n_classes, 2.0, seed=0)
    for norm, kind in product(NORMS, KINDS):
        options: dict[str, Any] = {"norm": norm, "kind": kind, "bins": "quantile"}
        value = calibration_error(y, P, **options)
        assert calibration_error(y, P, sample_weight=np.ones(n), **options) == value


def test_the_order_of_classes_does_not_matter():
    P, _, y = distorted(400, 3, 2.0, seed=0)
    order = [2, 0, 1]
    for norm, bins in product(NORMS, BINS):
        value = calibration_error(y, P, norm=norm, bins=bins)
        turned = calibration_error(y, P[:, order], norm=norm, bins=bins, labels=order)
        assert turned == pytest.approx(value)


def test_one_column_and_two_columns_give_the_same_error():
    P, _, y = distorted(300, 2, 2.0, seed=0)
    for bins in (None, 15, "quantile", "irp"):
        value = calibration_error(y, P, bins=bins)
        assert calibration_error(y, P[:, 1], bins=bins) == value
        assert calibration_error(y, P, bins=bins, kind="classwise") == value


def test_none_is_ties_for_squares_of_few_values_and_irp_otherwise():
    P, _, y = distorted(400, 3, 2.0, seed=0)
    rough = np.round(P * 2) + 0.01
    rough /= rough.sum(axis=1, keepdims=True)
    found = {}
    for norm in ("l1", "l2"):
        assert calibration_error(y, P, norm=norm) == calibration_error(y, P, norm=norm, bins="irp")
        found[norm] = [
            calibration_error(y, rough, norm=norm, bins=bins) for bins in (None, "ties", "irp")
        ]
        assert max(found[norm]) < calibration_error(y, rough, norm=norm, bins="exact")
    assert found["l1"][0] == found["l1"][1] == found["l1"][2]
    assert found["l2"][0] == found["l2"][1] != found["l2"][2]
    quantile = calibration_error(y, P, bins="quantile", norm="max")
    assert calibration_error(y, P, norm="max") == quantile


@pytest.mark.parametrize("n_rows", [20_000, 200_000])
def test_the_largest_error_of_few_values_is_that_of_a_value(n_rows):
    rng = np.random.default_rng(0)
    truth = rng.beta(2, 2, n_rows)
    p = truth.round(1)
    y = rng.random(n_rows) < truth
    values = [np.abs(truth[p == v].mean() - v) for v in np.unique(p)]
    found = calibration_error(y, p, norm="max")
    assert found == pytest.approx(max(values), abs=0.03 if n_rows < 10**5 else 0.01)
    exact = max(np.abs(y[p == v].mean() - v) for v in np.unique(p))
    assert found == pytest.approx(exact)
    if n_rows > 10**5:
        assert calibration_error(y, p, norm="max", bins="quantile") < found - 0.01
    # A value of one row is no evidence of an error.
    assert calibration_error(np.append(y, 1), np.append(p, 0.05), norm="max") < found + 0.001
    three = np.column_stack([p / 2, p / 2, 1 - p])
    labels = np.where(y, rng.integers(2, size=n_rows), 2)
    assert calibration_error(labels, three, norm="max") >= found


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_square_of_ties_is_the_mean_of_products_of_different_rows(n_classes):
    P, _, y = distorted(300, n_classes, 2.0, seed=1)
    cells = [tuple(row) for row in np.floor(3 * P)]
    P = np.array([np.add(cell, 1) / np.add(cell, 1).sum() for cell in cells])
    z = np.eye(n_classes)[y] - P
    total = 0.0
    for cell in set(cells):
        rows = [i for i, other in enumerate(cells) if other == cell]
        products = [z[i] @ z[j] / 2 for i in rows for j in rows if i != j]
        total += len(rows) * np.mean(products or [0.0])
    value = calibration_error(y, P, norm="l2", bins="ties")
    assert value**2 == pytest.approx(max(total / len(P), 0))


@pytest.mark.parametrize(("n_classes", "power"), [(2, 0.5), (2, 2.0), (3, 2.0), (6, 2.0)])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_irp_finds_the_truth(n_classes, power, norm):
    P, truth, y = distorted(5000, n_classes, power, seed=0)
    expected = distance(P, truth, norm)
    assert expected > 0.09
    assert calibration_error(y, P, norm=norm) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_chance_is_not_mistaken_for_error(n_classes):
    plain = []
    irp = []
    for seed in range(15):
        P, _, y = distorted(300, n_classes, 1.0, seed)
        plain.append(calibration_error(y, P, bins="quantile"))
        irp.append(calibration_error(y, P))
    assert np.mean(plain) > 0.05
    assert np.mean(irp) < 0.02


def test_irp_takes_weights():
    P, truth, y = distorted(3000, 3, 2.0, seed=0)
    weights = 1.0 * (P[:, 0] > 0.5) + 0.01
    half = P[:, 0] > 0.5
    for norm in ("l1", "l2"):
        value = calibration_error(y, P, norm=norm, sample_weight=weights)
        assert value == calibration_error(y, P, norm=norm, sample_weight=weights * 1024)
        assert value == pytest.approx(distance(P[half], truth[half], norm), abs=0.03)
        alone = calibration_error(y, P, norm=norm, sample_weight=1.0 * half)
        assert alone == calibration_error(y[half], P[half], norm=norm, sample_weight=1.0)


@pytest.mark.parametrize(
    ("error", "options", "message"),
    [
        (ValueError, {"norm": "l3"}, "norm: expected one of .*'l1', 'l2', 'max'.* got 'l3'"),
        (ValueError, {"kind": "best"}, "kind: expected one of"),
        (ValueError, {"bins": "many"}, "bins: is 'many'; expected an int >= 1 or 'quantile'"),
        (ValueError, {"bins": 0}, "bins: is 0; expected .* >= 1"),
        (ValueError, {"bins": 2.5}, "bins: is .*; expected an int"),
        (ValueError, {"n_bins": 0.5}, "n_bins: is .*; expected an int"),
        (ValueError, {"n_bins": 10}, 'n_bins: is 10, but bins is None; pass bins="quantile"'),
        (ValueError, {"n_bins": 10, "bins": "irp"}, "n_bins: is 10, but bins is 'irp'"),
        (ValueError, {"bins": "irp", "norm": "max"}, "norm: .max. is not defined for bins=.irp."),
        (
            ValueError,
            {"bins": "irp", "sample_weight": [1, 0, 0]},
            "y_prob: one row only; holding rows out takes two or more",
        ),
    ],
)
def test_bad_input(error, options, message):
    with pytest.raises(error, match=message):
        calibration_error([0, 1, 1], [0.2, 0.7, 0.6], **options)


def test_groups_of_rare_events_divide_the_tail():
    """Of 15 groups of equal weight, the last one would have most of the expected events."""
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(rng.normal(6, 2, 20_000)))
    event = event_of(check_probabilities(rng.random(20_000) < p, p), 1)
    rates = observed_rates(event)
    equal = observed_rates(event, n_bins=15)
    expected, largest = (
        (table["weight"] * table["forecast"] * (1 - table["forecast"])) for table in (rates, equal)
    )
    assert largest.max() > 0.5 * largest.sum()
    assert expected.max() < 2.5 / 15 * expected.sum()
    assert (np.diff(rates["forecast"]) > 0).all()
    for column in ("rate", "forecast"):
        total = rates["weight"] @ rates[column]
        assert total == pytest.approx(equal["weight"] @ equal[column])
    inside = (rates["low"] <= rates["forecast"]) & (rates["forecast"] <= rates["high"])
    assert inside.mean() > 0.8


def test_groups_of_common_events_have_equal_weights():
    p = np.random.default_rng(0).random(3000)
    rates = observed_rates(event_of(check_probabilities(p > 0.5, p), 1))
    assert rates.n_rows == round(3000 ** (1 / 3))
    assert np.ptp(rates["weight"]) <= 1
