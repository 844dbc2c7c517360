"""Decisions and order before and after calibration, against counts over all pairs of rows."""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, roc_auc_score

from isoroc import InputError, IRPCalibrator, TemperatureCalibrator, evaluate
from isoroc._core.simplex import binary_scores
from isoroc._evaluation.order import measure_order, pairs_of_rows
from isoroc._input import Sample
from isoroc._support.table import Table
from isoroc.metrics import bootstrap, roc_auc, volume_under_surface
from strategies import labelled_forecasts

ORDER = ("accuracy", "auc", "auc_one_vs_rest", "auc_one_vs_one", "vus")
SHARES = ("decisions_changed", "pairs_reversed", "pairs_tied")
few = settings(max_examples=settings().max_examples // 4)


def order_table(result):
    """The figures of an evaluation that are about decisions and order."""
    rows = np.isin(result.table["measure"], [*ORDER, *SHARES])
    return Table({name: column[rows] for name, column in result.table.items()})


def pairs_by_definition(before, after, weights):
    ordered = reversed_ = tied = 0.0
    for i, j in combinations(range(len(before)), 2):
        if before[i] == before[j]:
            continue
        weight = weights[i] * weights[j]
        ordered += weight
        if after[i] == after[j]:
            tied += weight
        elif (before[i] < before[j]) != (after[i] < after[j]):
            reversed_ += weight
    return ordered, reversed_, tied


def total_pairs(before, after, weights):
    first, second = (np.unique(x, return_inverse=True)[1] for x in (before, after))
    return tuple(pairs_of_rows(first, second, weights) @ weights / 2)  # each pair has two rows


@given(st.lists(st.tuples(*[st.integers(-6, 6)] * 2, st.integers(0, 4)), min_size=1, max_size=40))
def test_changed_pairs_equal_counts_over_all_pairs(rows):
    before, after, weights = np.array(rows, dtype=float).T
    assert total_pairs(before, after, weights) == pairs_by_definition(before, after, weights)


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 1000])
def test_changed_pairs_of_random_orders(n):
    rng = np.random.default_rng(n)
    before = rng.permutation(n)
    after = rng.permutation(n)
    sign = np.sign(np.subtract.outer(before, before) * np.subtract.outer(after, after))
    expected = n * (n - 1) / 2, np.count_nonzero(sign < 0) / 2, 0
    assert total_pairs(before, after, np.ones(n)) == expected


@st.composite
def two_forecasts(draw):
    """Forecasts before and after, labels, and whole weights. Every class has rows."""
    P, y, _ = draw(labelled_forecasts(max_rows=20))
    K = P.shape[1]
    y = np.append(y, np.arange(K))
    P = np.vstack([P, np.eye(K)])
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    Q = P[rng.permutation(len(P))] if draw(st.booleans()) else np.sqrt(P)
    Q = np.round(Q, draw(st.sampled_from([1, 3]))) + 0.01
    return y, P, Q / Q.sum(axis=1, keepdims=True), rng.integers(1, 4, len(P))


@few
@given(two_forecasts())
def test_figures_equal_their_definitions(data):
    y, P, Q, w = data
    K = P.shape[1]
    report = evaluate(y, P, Q, sample_weight=w, labels=range(K))
    for of, R in (("before", P), ("after", Q)):
        expected = accuracy_score(y, R.argmax(axis=1), sample_weight=w)
        assert report["accuracy", of] == pytest.approx(expected)
        if K == 2:
            assert report["auc", of] == pytest.approx(roc_auc(y, R, sample_weight=w))
        else:
            areas = [roc_auc_score(y == k, R[:, k], sample_weight=w) for k in range(K)]
            assert report["auc_one_vs_rest", of] == pytest.approx(np.mean(areas))
            many = np.repeat(np.arange(len(y)), w)
            ovo = roc_auc_score(y[many], R[many], multi_class="ovo", labels=range(K))
            assert report["auc_one_vs_one", of] == pytest.approx(ovo)
        if K == 3:
            volume = float(volume_under_surface(y, R, sample_weight=w))
            assert report["vus", of] == pytest.approx(volume)
    changed = P.argmax(axis=1) != Q.argmax(axis=1)
    assert report["decisions_changed", "change"] == pytest.approx(np.average(changed, weights=w))
    columns = [(binary_scores(P), binary_scores(Q))] if K == 2 else zip(P.T, Q.T, strict=True)
    counts = np.sum([pairs_by_definition(p, q, w) for p, q in columns], axis=0)
    assert report["pairs_reversed", "change"] == pytest.approx(counts[1] / counts[0])
    assert report["pairs_tied", "change"] == pytest.approx(counts[2] / counts[0])


@few
@given(two_forecasts())
def test_weights_are_repeated_rows(data):
    y, P, Q, w = data
    many = np.repeat(np.arange(len(y)), w)
    weighted = evaluate(y, P, Q, sample_weight=w, labels=range(P.shape[1]))
    repeated = evaluate(y[many], P[many], Q[many], labels=range(P.shape[1]))
    np.testing.assert_allclose(
        order_table(weighted)["value"], order_table(repeated)["value"], atol=1e-12
    )
    none = np.zeros(len(y))
    zeros = evaluate(
        np.append(y, y),
        np.vstack([P, Q]),
        np.vstack([Q, P]),
        sample_weight=np.append(w, none),
        labels=range(P.shape[1]),
    )
    assert zeros.n_rows == len(y)
    np.testing.assert_array_equal(order_table(weighted)["value"], order_table(zeros)["value"])


@few
@given(two_forecasts())
def test_intervals_contain_the_estimate_and_are_possible(data):
    y, P, Q, _ = data
    table = order_table(evaluate(y, P, Q, labels=range(P.shape[1])))
    known = table["measure"] != "vus"  # which has no interval
    value, low, high = (table[name][known] for name in ("value", "low", "high"))
    assert (low <= value).all()
    assert (value <= high).all()
    assert (high <= 1).all()
    least = np.where(table["of"][known] == "change", -1.0, 0.0)
    assert (low >= least).all()


def example(K, n=400, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), n)
    y = (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return y, P


@pytest.mark.parametrize("K", [2, 3, 5])
def test_identity_changes_nothing(K):
    y, P = example(K)
    report = evaluate(y, P, P)
    table = order_table(report)
    change = table["of"] == "change"
    assert not table["value"][change].any()
    # Decisions on other rows may change. The order of all pairs cannot be the same by chance.
    decided = change & np.isin(table["measure"], ["accuracy", "decisions_changed"])
    ranked = change & ~decided & (table["measure"] != "vus")
    for name in ("low", "high"):
        assert not table[name][ranked].any()
    assert (table["low"][decided] <= 0).all()
    assert (table["high"][decided] > 0).all()


def test_reversed_scores_reverse_every_pair_and_every_decision():
    y, P = example(2)
    report = evaluate(y, P[:, 1], 1 - P[:, 1])
    assert report["pairs_reversed", "change"] == 1
    assert report["decisions_changed", "change"] == 1
    assert report["pairs_tied", "change"] == 0
    assert report["auc", "after"] == pytest.approx(1 - report["auc", "before"])


@pytest.mark.parametrize("K", [2, 3])
def test_constant_forecasts_tie_every_pair(K):
    y, P = example(K)
    report = evaluate(y, P, np.full_like(P, 1 / K))
    assert report["pairs_tied", "change"] == 1
    assert report["pairs_reversed", "change"] == 0
    back = evaluate(y, np.full_like(P, 1 / K), P)
    assert back["pairs_tied", "change"] == back["pairs_reversed", "change"] == 0


def test_temperature_keeps_the_order_of_two_classes_and_steps_tie():
    y, P = example(2, n=600)
    fit = slice(300)
    new = slice(300, None)
    smooth = TemperatureCalibrator().fit(P[fit], y[fit]).predict_proba(P[new])
    report = evaluate(y[new], P[new], smooth)
    assert report["pairs_reversed", "change"] == report["pairs_tied", "change"] == 0
    assert report["auc", "change"] == 0
    steps = IRPCalibrator().fit(P[fit], y[fit]).predict_proba(P[new])
    report = evaluate(y[new], P[new], steps)
    assert report["pairs_reversed", "change"] == 0
    assert report["pairs_tied", "change"] > 0


def test_forecasts_next_to_one_are_told_apart():
    P = np.array([[1e-30, 1.0], [1e-20, 1.0], [0.5, 0.5]])
    report = evaluate([1, 1, 0], P, P[:, [0, 1]] * [1.0, 1.0])
    assert report["pairs_tied", "change"] == 0
    report = evaluate([1, 1, 0], P, P[[1, 0, 2]])
    assert report["pairs_reversed", "change"] == pytest.approx(1 / 3)


def test_scores_are_read_by_their_range():
    y = [0, 1, 1, 0]
    odds = np.array([-2.0, 0.3, 1.5, 0.1])
    p = 1 / (1 + np.exp(-odds))
    report = evaluate(y, odds, p)
    assert report["decisions_changed", "change"] == 0
    both = evaluate(y, odds, np.column_stack([1 - p, p]))
    np.testing.assert_array_equal(order_table(report)["value"], order_table(both)["value"])


def test_interval_of_a_change_covers_it_as_stated():
    # A share of decisions is a mean over rows, whose standard error is known.
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    q = np.where(rng.random(2000) < 0.1, 1 - p, p)
    report = evaluate(rng.random(2000) < p, p, q)
    row = int(np.flatnonzero(order_table(report)["measure"] == "decisions_changed")[0])
    share = order_table(report)["value"][row]
    half = 1.96 * np.sqrt(share * (1 - share) / 2000)
    assert order_table(report)["high"][row] - share == pytest.approx(half, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 4])
def test_intervals_are_those_of_the_bootstrap(K):
    y, P = example(K, n=300, seed=K)
    Q = np.round(np.sqrt(P), 1) + 0.01
    Q /= Q.sum(axis=1, keepdims=True)
    w = np.random.default_rng(1).integers(1, 4, 300)

    found = evaluate(y, P, Q, sample_weight=w)
    table = order_table(found)
    ranked = ~np.isin(table["measure"], ["accuracy", "decisions_changed", "vus"])
    keys = list(zip(table["measure"][ranked], table["of"][ranked], strict=True))

    def ranking(y, rows, sample_weight):
        rows = rows.astype(int)
        before, after = (Sample(R[rows], y.astype(np.uint8), sample_weight) for R in (P, Q))
        estimates = measure_order(before, after)
        assert len(estimates) == len(keys)
        return np.array([estimates[key].value for key in keys])

    expected = bootstrap(
        ranking, y, np.arange(300.0), n_resamples=200, sample_weight=w, random_state=0
    )
    np.testing.assert_allclose(table["value"][ranked], expected.value, rtol=1e-12)
    half = (table["high"] - table["low"])[ranked] / 2
    np.testing.assert_allclose(half / 1.96, expected.standard_error, rtol=0.2)


@pytest.mark.slow
def test_many_rows_are_sampled_for_volumes_only_and_it_says_so():
    y, P = example(3, n=6000)
    Q = P**2 / (P**2).sum(axis=1, keepdims=True)
    report = evaluate(y, P, Q)
    assert report.n_rows == 6000
    assert report.notes == ("Volumes are based on 2,000 of 6,000 rows.",)
    assert all(note in repr(report) for note in report.notes)
    expected = roc_auc_score(y, Q, multi_class="ovr")
    assert report["auc_one_vs_rest", "after"] == pytest.approx(expected)


def test_classes_without_rows_leave_areas_undefined_or_out():
    y, P = example(3)
    report = evaluate(np.zeros(400), P, P, labels=[0, 1, 2])
    assert np.isnan(report["auc_one_vs_rest", "before"])
    assert np.isnan(report["vus", "change"])
    assert "-" in repr(report)
    two = y < 2
    report = evaluate(y[two], P[two], P[two], labels=[0, 1, 2])
    areas = [roc_auc_score(y[two] == k, P[two, k]) for k in (0, 1)]
    assert report["auc_one_vs_rest", "before"] == pytest.approx(np.mean(areas))


def test_columns_are_matched_by_name():
    y, P = example(3)
    names = np.array(["cat", "dog", "fox"])
    before = pd.DataFrame(P[:, ::-1], columns=names[::-1])
    report = evaluate(names[y], before, P[:, ::-1])
    assert report["accuracy", "before"] == accuracy_score(y, P.argmax(axis=1))
    assert report["accuracy", "change"] == 0
    report = evaluate(names[y], before, pd.DataFrame(P, columns=names))
    assert report["accuracy", "change"] == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"y_prob": np.full((4, 3), 0.5)}, "y_prob"),
        ({"after": np.full((4, 3), 1 / 3)}, "after"),
        ({"after": [0.1, 0.2]}, "after"),
        ({"after": [0.1, 0.2, 0.3, np.nan]}, "after"),
        ({"y_true": [0, 1, 2, 3]}, "y_true"),
        ({"y_true": [0, 1]}, "y_true"),
        ({"sample_weight": [1, 1, 1, -1]}, "sample_weight"),
        ({"labels": [0, 1, 2]}, "labels"),
        ({"confidence": 95}, "confidence"),
    ],
)
def test_bad_input_is_named(arguments, named):
    good: dict[str, Any] = {
        "y_true": [0, 1, 0, 1],
        "y_prob": [0.1, 0.6, 0.7, 0.8],
        "after": [0.2, 0.3, 0.4, 0.5],
    }
    evaluate(**good)
    with pytest.raises(InputError) as caught:
        evaluate(**good | arguments)
    assert caught.value.argument == named


def test_volumes_have_no_interval():
    y, P = example(3, n=6000)
    report = evaluate(y, P, P**2 / (P**2).sum(axis=1, keepdims=True))
    table = order_table(report)
    assert np.isfinite(table["value"]).all()
    for end in ("low", "high"):
        np.testing.assert_array_equal(np.isnan(table[end]), table["measure"] == "vus")
    assert report.notes == ("Volumes are based on 2,000 of 6,000 rows.",)


@pytest.mark.parametrize("K", [4, 6, 7])
def test_volumes_of_four_to_six_classes_are_bounds_and_it_says_so(K):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(K), 1100)
    y = P.argmax(axis=1)
    report = evaluate(y, P, after=np.sqrt(P) / np.sqrt(P).sum(axis=1, keepdims=True))
    if K == 7:
        assert "vus" not in report.measures
        return
    assert report["vus", "before"] == pytest.approx(1)
    assert np.isnan(report.measures["vus"]["before"].low)
    directions = {4: 300, 6: 150}[K]
    assert report.notes == (
        "Volumes are based on 1,000 of 1,100 rows.",
        f"Volumes of {K} classes are lower bounds, found in {directions} directions.",
    )
