import numpy as np
import pytest

from isoroc._counts import by_content, deal_by_content
from isoroc._input import Sample, check_segments, deal_folds


def test_folds_are_of_equal_size():
    fold = deal_folds(52, 5, np.random.RandomState(0))
    assert sorted(np.bincount(fold).tolist()) == [10, 10, 10, 11, 11]
    assert fold.tolist() != sorted(fold.tolist())
    assert sorted(deal_folds(3, 5, np.random.RandomState(0)).tolist()) == [0, 1, 2]


def rows_of(dealt, columns=slice(None)):
    """What each row holds, with its fold."""
    P = dealt.forecasts.reshape(len(dealt), -1)
    segment = dealt.segments.columns["segment"].values
    parts = P[:, columns], dealt.weights, dealt.squares, segment, dealt.fold
    label = P[np.arange(len(P)), dealt.codes] if P.shape[1] > 1 else dealt.codes
    return np.column_stack([label, *parts])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_folds_depend_on_neither_the_order_of_rows_nor_of_columns(n_classes):
    rng = np.random.default_rng(n_classes)
    P = rng.dirichlet(np.ones(n_classes), 60)[rng.integers(60, size=200)]  # many rows are equal
    codes = rng.integers(n_classes, size=200)
    weights = rng.integers(1, 3, size=200) / 2
    segments = check_segments(rng.integers(2, size=200).astype(str), 200)

    def deal(rows, columns):
        place = np.argsort(columns)
        forecasts = P[rows][:, columns]
        own = place[codes[rows]]
        sample = Sample(forecasts, own, weights[rows], segments=segments[rows])
        return deal_by_content(sample, 5)

    as_given = np.arange(n_classes)
    expected = rows_of(deal(np.arange(200), as_given))
    np.testing.assert_array_equal(rows_of(deal(rng.permutation(200), as_given)), expected)
    turned = np.roll(as_given, 1)
    found = rows_of(deal(rng.permutation(200), turned), columns=np.argsort(turned))
    np.testing.assert_array_equal(found, expected)


def test_a_row_that_changes_leaves_the_folds_of_others_alone():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 500)
    codes = rng.integers(3, size=500, dtype=np.uint8)
    noise = 1 + 1e-10 * rng.normal(size=P.shape)
    others = {tuple(p): 0 for p in P[1:].round(6)}
    folds = []
    for forecasts in (P, np.vstack([[[0.2, 0.3, 0.5]], P[1:]]), P * noise):
        dealt = deal_by_content(Sample(forecasts, codes), 5)
        rows = zip(dealt.forecasts.round(6).tolist(), dealt.fold.tolist(), strict=True)
        folds.append({tuple(p): f for p, f in rows if tuple(p) in others})
    assert folds[1] == folds[0]
    assert folds[2] == folds[0]


def test_last_digits_of_many_numbers_change_no_fold():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(50), 5000)
    codes = rng.integers(50, size=5000, dtype=np.uint8)

    def folds_in_order(forecasts):
        dealt = deal_by_content(Sample(forecasts, codes), 5)
        return dealt.fold[np.argsort(dealt.forecasts[:, 0])].tolist()

    assert folds_in_order(P * (1 + 1e-9 * rng.normal(size=P.shape))) == folds_in_order(P)


def test_rows_that_differ_by_a_permutation_have_an_order():
    rng = np.random.default_rng(0)
    P = np.eye(4)[rng.integers(4, size=40)]
    codes = rng.integers(4, size=40, dtype=np.uint8)
    expected = by_content(Sample(P, codes))
    for _ in range(5):
        rows = rng.permutation(40)
        found = by_content(Sample(P[rows], codes[rows]))
        np.testing.assert_array_equal(found.forecasts, expected.forecasts)
        np.testing.assert_array_equal(found.codes, expected.codes)


def test_equal_rows_spread_over_the_folds():
    sample = Sample(np.full(500, 0.3), np.repeat([0, 1], [350, 150]))
    dealt = deal_by_content(sample, 5)
    in_fold = [dealt.codes[dealt.fold == f] for f in range(5)]
    sizes = np.array([len(codes) for codes in in_fold])
    assert np.abs(sizes - 100).max() < 4 * np.sqrt(500 * 0.2 * 0.8)
    # As many of a class as chance puts there, not as many as stratification would.
    ones = np.array([codes.sum() for codes in in_fold])
    assert ones.sum() == 150
    assert 0 < np.abs(ones - 30).max() < 5 * np.sqrt(100 * 0.3 * 0.7)
