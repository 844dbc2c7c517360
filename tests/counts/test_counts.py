"""Counts: a statistic that merges, nests and loses nothing but the place within a cell."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoroc import (
    AutoCalibrator,
    Counts,
    InputError,
    IsotonicCalibrator,
    SplineCalibrator,
    TemperatureCalibrator,
)
from isoroc._backends import NUMPY
from isoroc._counts import cells, files, grid
from isoroc._input import Sample
from strategies import labelled_forecasts

RESOLUTIONS = st.sampled_from(["exact", 1, 4, 64, 1024])


def assert_equal(a, b):
    assert a.grid == b.grid
    assert a.n_folds == b.n_folds
    assert a.classes.tolist() == b.classes.tolist()
    np.testing.assert_array_equal(a.cells.keys, b.cells.keys)
    np.testing.assert_array_equal(a.fold, b.fold)
    np.testing.assert_array_equal(a.rows, b.rows)
    np.testing.assert_allclose(a.class_weights, b.class_weights, rtol=1e-13)
    np.testing.assert_allclose(a.forecasts, b.forecasts, rtol=1e-9, atol=1e-300)


def count(P, y, weights, **options):
    return Counts.from_arrays(P, y, sample_weight=weights, labels=range(P.shape[1]), **options)


@given(labelled_forecasts(), RESOLUTIONS, st.integers(1, 4))
def test_parts_merge_into_the_whole(data, resolution, folds):
    P, y, weights = data
    options = {"resolution": resolution, "folds": folds}
    cut = len(y) // 2
    first, second = (
        count(P[part], y[part], None if weights is None else weights[part], **options)
        for part in (slice(cut), slice(cut, None))
        if len(y[part])
    )
    whole = count(P, y, weights, **options)
    assert_equal(first + second, whole)
    assert_equal(second.merge(first), whole)
    assert whole.n_rows == len(y)
    total = np.bincount(y, weights, P.shape[1])
    np.testing.assert_allclose(whole.class_weights.sum(axis=0), total)


@given(labelled_forecasts(max_classes=14), RESOLUTIONS, st.sampled_from([1, 4, 32]))
def test_resolutions_nest(data, fine, coarse):
    P, y, weights = data
    counts = count(P, y, weights, resolution=fine)
    if fine != "exact" and fine < coarse:
        with pytest.raises(InputError, match="cannot be divided"):
            counts.coarsen(coarse)
    else:
        assert_equal(counts.coarsen(coarse), count(P, y, weights, resolution=coarse))


@given(labelled_forecasts(max_classes=14), st.sampled_from([1, 64, 2**16]), st.integers(1, 1000))
def test_compiled_loops_find_the_cells_and_folds_of_the_formulas(data, N, n_folds):
    P, *_ = data
    for columns in (P, np.ascontiguousarray(P[:, 1:2])):
        chosen = grid.Grid.choose(columns.shape[1], N)
        np.testing.assert_array_equal(chosen.cells_of(columns), grid.cells(NUMPY, columns, chosen))
        [folds] = grid.fold(NUMPY, columns, n_folds).T
        np.testing.assert_array_equal(grid.folds_of(columns, n_folds), folds)


@given(labelled_forecasts(max_classes=14), st.sampled_from([4, 64]))
def test_forecasts_of_a_cell_are_close_to_their_mean(data, N):
    P, y, weights = data
    for forecast, label in zip(P, y, strict=True):
        one = count(forecast[None], [label], None, resolution=N, folds=1)
        mean = np.sqrt(one.forecasts[0])
        np.testing.assert_allclose(mean, np.sqrt(forecast), atol=1e-6)
        if 2 < P.shape[1] <= 12:
            rest = N * max(1 - forecast.max(), 0.0) ** 0.25
            assert abs(one.cells.keys[0, -1] + 0.5 - rest) <= 0.5 + 1e-6
    counts = count(P, y, weights, resolution=N, folds=1)
    if P.shape[1] <= 12:
        apart = np.abs(np.sqrt(counts.forecasts) * N - counts.cells.keys[:, : P.shape[1]] - 0.5)
        assert (apart <= 0.5 + 1e-6).all()


@given(labelled_forecasts())
def test_equal_keys_share_a_fold(data):
    P, y, weights = data
    key = np.arange(len(y)) % 7 - 3
    counts = count(P, y, weights, fold_by=key, folds=3, resolution="exact")
    alone = [
        count(P[key == k], y[key == k], None, fold_by=key[key == k], folds=3) for k in set(key)
    ]
    assert all(len(set(part.fold)) == 1 for part in alone)
    assert set(counts.fold) == {part.fold[0] for part in alone}


def test_folds_of_keys_are_the_same_in_every_version():
    """Counts of different days merge, so the hash must not change."""
    keys = [0, 1, 12_345, 2**26, 2**40 + 7, 2**53 - 1]
    p = np.linspace(0.1, 0.9, len(keys))
    found = Counts.from_arrays(p, [0, 1] * 3, folds=7, fold_by=keys, resolution="exact")
    expected = []
    for key in keys:
        state = (44_485_709 + key % 2**26) % 67_108_859
        for limb in (key // 2**26 % 2**26, 0):
            state = (state * 44_485_709 + limb) % 67_108_859
        expected.append(state % 7)
    assert found.fold[np.argsort(found.forecasts)].tolist() == expected


def test_a_thousand_folds_are_possible():
    assert Counts.from_arrays([0.1, 0.9], [0, 1], folds=1000).n_folds == 1000


def test_folds_are_even():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([0.1, 0.1, 0.1], 50_000)
    y = rng.integers(0, 3, 50_000)
    for key in (None, np.arange(50_000), 1000 * np.arange(50_000)):
        counts = Counts.from_arrays(P, y, fold_by=key)
        weight = np.bincount(counts.fold, counts.rows)
        assert (np.abs(weight / 10_000 - 1) < 0.04).all()


def test_two_classes_are_exact_as_long_as_they_are_few(monkeypatch):
    p = np.arange(1, 100) / 100
    y = np.arange(99) % 2
    assert Counts.from_arrays(p, y).resolution == "exact"
    monkeypatch.setattr("isoroc._counts.counts.MOST_EXACT", 98)
    counts = Counts.from_arrays(p, y)
    assert counts.resolution == 2**16
    np.testing.assert_allclose(np.sort(counts.forecasts), p)


def test_files(tmp_path):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 500)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 500)]
    for number, labels in enumerate((["a", "b", "c"], ["c", "a", "b"])):
        counts = Counts.from_arrays(P, y, labels=labels, sample_weight=rng.random(500) + 0.5)
        counts.to_parquet(tmp_path / f"{number}.parquet")
        assert_equal(Counts.from_parquet(tmp_path / f"{number}.parquet"), counts)
    with pytest.raises(InputError, match=r"classes differ: .*'a', 'b', 'c'.* and .*'c', 'a', 'b'"):
        Counts.from_parquet(tmp_path / "0.parquet", tmp_path / "1.parquet")
    twice = Counts.from_parquet(tmp_path / "1.parquet", tmp_path / "1.parquet")
    assert twice.weight == pytest.approx(2 * counts.weight)
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="holds no counts"):
        Counts.from_parquet(tmp_path / "other.parquet")
    (tmp_path / "text.parquet").write_text("text")
    with pytest.raises(InputError, match="is not a Parquet file"):
        Counts.from_parquet(tmp_path / "text.parquet")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        Counts.from_parquet(tmp_path / "absent.parquet")


def test_what_does_not_fit_together_is_not_merged():
    counts = Counts.from_arrays([0.1, 0.9], [0, 1])
    for other, message in [
        (Counts.from_arrays([0.1, 0.9], ["n", "y"]), r"classes differ: \[0, 1\] and \['n', 'y'\]"),
        (counts.coarsen(64), "grids differ: exact forecasts .* and cells of resolution 64"),
        (Counts.from_arrays([0.1, 0.9], [0, 1], folds=2), "folds differ: 5 and 2"),
    ]:
        with pytest.raises(InputError, match=message):
            counts.merge(other)


def test_decay_weighs_all_rows_down():
    counts = Counts.from_arrays([0.1, 0.9, 0.4], [0, 1, 1], resolution=16)
    decayed = counts.decay(0.25)
    np.testing.assert_array_equal(decayed.class_weights, counts.class_weights / 4)
    np.testing.assert_allclose(decayed.forecasts, counts.forecasts)
    assert decayed.n_rows == 3
    old = counts
    for _ in range(100):
        old = old.decay(0.9)
    IsotonicCalibrator().fit_counts(old)
    with pytest.raises(ValueError, match="factor"):
        counts.decay(0)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_frames(frame):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 400)
    y = np.array(["b", "a", "c"])[rng.integers(0, 3, 400)]
    df = frame({"b": P[:, 0], "a": P[:, 1], "c": P[:, 2], "y": y, "w": np.full(400, 2.0)})
    expected = Counts.from_arrays(P, y, labels=["b", "a", "c"], sample_weight=np.full(400, 2.0))
    assert_equal(Counts.from_frame(df, ["b", "a", "c"], "y", weight="w"), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": [0.5, None, 0.2]}, "probs: 1 of 3 rows are bad"),
        ({"p": [0.5, 7.0, 8.0]}, r"probs: 2 of 3 rows are bad, such as 7.0"),
        ({"p": [0.5, float("nan"), 0.3]}, "probs: 1 of 3 rows are bad, such as nan"),
        ({"y": ["a", None, "b"]}, "label: 1 of 3 rows are bad"),
        ({"w": [1.0, -1.0, 1.0]}, "weight: 1 of 3 rows are bad, such as -1.0"),
        ({"y": ["a", "a", "a"]}, "one class only"),
    ],
)
@pytest.mark.parametrize("frame", [pl.DataFrame, pl.LazyFrame])
def test_bad_rows_are_refused_before_anything_is_counted(frame, change, message):
    good = {"p": [0.1, 0.5, 0.9], "y": ["a", "b", "b"], "w": [1.0, 2.0, 0.0], "key": [1, 2, 3]}
    df = frame(good | change)
    with pytest.raises(InputError, match=message):
        Counts.from_frame(df, "p", "y", weight="w")
    kept = Counts.from_frame(frame(good), "p", "y", weight="w", fold_by="key")
    assert kept.weight == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probs": "q"}, "probs: no column 'q'; there are p, y"),
        ({"label": "z"}, "label: no column 'z'"),
        ({"fold_by": "y"}, "fold_by: y is not a column of integers"),
        ({"resolution": 3}, "resolution: is 3"),
        ({"folds": 0}, "folds"),
        ({"folds": 1001}, "folds: is 1001; expected at most 1000"),
    ],
)
def test_arguments_of_frames(options, message):
    df = pl.DataFrame({"p": [0.1, 0.9], "y": ["a", "b"]})
    with pytest.raises(ValueError, match=message):
        Counts.from_frame(df, **{"probs": "p", "label": "y"} | options)


def test_folds_of_the_counts_are_those_of_cross_validation():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    counts = Counts.from_arrays(p, rng.random(3000) < p, resolution=64, folds=4)
    cal = AutoCalibrator(members=[TemperatureCalibrator()], random_state=0).fit_counts(counts)
    assert list(cal.cv_results_) == ["member", "fold0", "fold1", "fold2", "fold3"]
    assert cal.summary_["rows"] == 3000
    with pytest.raises(InputError, match="all rows are in one fold"):
        AutoCalibrator().fit_counts(Counts.from_arrays(p, rng.random(3000) < p, folds=1))


@pytest.mark.parametrize("K", [2, 4])
def test_tied_forecasts_are_in_several_folds(K):
    """A map that learns each forecast by itself is judged on forecasts that it has seen."""
    rng = np.random.default_rng(0)
    levels = rng.dirichlet(np.ones(K), 20)
    truth = 0.6 * levels + 0.4 * rng.dirichlet(np.ones(K), 20)
    i = rng.integers(0, 20, 20_000)
    P = levels[i]
    y = (truth[i].cumsum(axis=1) > rng.random((20_000, 1))).argmax(axis=1)
    counts = Counts.from_arrays(P, y)
    sample = counts.sample(per_fold=True)
    forecasts, cell = np.unique(sample.forecasts, axis=0, return_inverse=True)
    assert len(forecasts) == 20
    assert all(len(np.unique(sample.fold[cell.ravel() == c])) == 5 for c in range(20))
    together = counts.sample(per_fold=False)
    for k in range(K):
        expected = together.row_weights()[together.codes == k].sum()
        assert sample.row_weights()[sample.codes == k].sum() == pytest.approx(expected)
    from_rows = AutoCalibrator().fit(P, y)
    from_counts = AutoCalibrator().fit_counts(counts)
    np.testing.assert_allclose(
        from_counts.predict_proba(levels), from_rows.predict_proba(levels), atol=0.01
    )


def test_folds_by_a_key_stay():
    rng = np.random.default_rng(0)
    p = rng.choice([0.2, 0.5, 0.7], 3000)
    user = rng.integers(0, 100, 3000)
    counts = Counts.from_arrays(p, rng.random(3000) < p, fold_by=user)
    np.testing.assert_array_equal(
        np.bincount(counts.sample(per_fold=True).fold, counts.sample(per_fold=True).weights),
        np.bincount(counts.fold, counts.rows),
    )


def test_only_counts_are_counts():
    with pytest.raises(ValueError, match="is list; expected Counts; pass rows to fit"):
        IsotonicCalibrator().fit_counts([0.1, 0.9])  # type: ignore[arg-type]


def test_cells_that_nearly_every_row_has_for_itself_are_refused(monkeypatch):
    monkeypatch.setattr(cells, "MOST_ENTRIES", 300)
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(10), 1000)
    y = rng.integers(0, 10, 1000)
    names = [f"p{k}" for k in range(10)]
    df = pl.LazyFrame(P, schema=names).with_columns(y=y)
    for count_them in (
        lambda **options: Counts.from_arrays(P, y, **options),
        lambda **options: Counts.from_frame(df, names, "y", **options),
    ):
        with pytest.raises(InputError, match="resolution: gives more than 300 cells"):
            count_them()
        assert count_them(resolution=1, folds=1).n_rows == 1000


def test_batches():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 4))
    P = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = rng.integers(0, 3, 300)
    batches = [(z[i : i + 64], y[i : i + 64]) for i in range(0, 300, 64)]
    counts = Counts.from_batches(batches, unit="logit", resolution=8)
    whole = Counts.from_arrays(z, y, labels=range(4), resolution=8, unit="logit")
    assert_equal(counts, whole)
    with pytest.raises(InputError, match="there are none"):
        Counts.from_batches([])
    with pytest.raises(InputError, match="labels: 4 entries"):
        Counts.from_batches([(P, y), (np.eye(3), [0, 1, 2])])


@pytest.mark.parametrize("weighting", ["importance", "frequency"])
@pytest.mark.parametrize("calibrator", [IsotonicCalibrator, TemperatureCalibrator])
def test_counts_of_weighted_rows_keep_the_number_of_effective_rows(calibrator, weighting):
    rng = np.random.default_rng(0)
    p = rng.random(300).round(2)  # several rows share a cell
    y = rng.random(300) < p
    weights = rng.integers(1, 30, 300) / 4
    of_rows = calibrator().fit(p, y, sample_weight=weights, weighting=weighting)
    counts = Counts.from_arrays(p, y, sample_weight=weights)
    of_counts = calibrator().fit_counts(counts, weighting=weighting)
    expected = weights.sum() ** 2 / (weights**2).sum()
    expected = expected if weighting == "importance" else weights.sum()
    assert of_rows.summary_["weight"] == pytest.approx(expected)
    assert of_counts.summary_["weight"] == pytest.approx(expected)
    np.testing.assert_allclose(of_counts.predict_proba(p), of_rows.predict_proba(p), atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_fits_do_not_turn_on_the_order_in_which_rows_are_added_up(weighted):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 4000)
    y = rng.integers(3, size=4000)
    w = rng.random(4000) + 0.5 if weighted else np.ones(4000)

    every = [slice(0, None, 1), *(slice(k, None, 7) for k in range(7))]
    whole, *parts = (count(P[rows], y[rows], w[rows], resolution=8) for rows in every)
    merged = parts[0].merge(*parts[1:])
    assert (merged.cells.sums != whole.cells.sums).any()
    found = [SplineCalibrator().fit_counts(each).predict_proba(P) for each in (whole, merged)]
    np.testing.assert_array_equal(found[0], found[1])


def test_many_scores_are_drawn_rather_than_joined_in_cells_larger_than_1024():
    p = np.random.default_rng(0).random(20_000)
    sample = Sample(p, (np.arange(20_000) % 2).astype(np.uint8))
    found = cells.in_cells(sample, 30, 1000)
    assert len(found) <= 1000
    assert len(np.unique(np.floor(1024 * np.sqrt(found.forecasts)))) > 500
    assert found.row_weights().sum() == pytest.approx(20_000)


def test_limited_cells_keep_the_weights_and_means_of_folds_and_classes():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([20.0, 10.0, 5.0], 40_000)
    y = np.arange(40_000) % 3
    full = Counts.from_arrays(P, y).sample(per_fold=True)
    few = cells.limit_cells(full, 5000)
    assert len(few) <= 3 * 5000 < len(full)
    assert cells.limit_cells(few, len(few)) is few

    def sums(sample):
        weighted = np.column_stack([sample.forecasts, np.ones(len(sample))])
        weighted *= sample.row_weights()[:, None]
        folds = [weighted[sample.fold == fold].sum(axis=0) for fold in range(5)]
        return np.array(folds), sample.class_weights(), sample.squares.sum()

    for expected, found in zip(sums(full), sums(few), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_both_libraries_read_the_same_file(tmp_path, monkeypatch, library):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), size=500)
    counts = Counts.from_arrays(P, rng.choice(["ant", "bee", "cat"], 500), resolution=16)
    counts.to_parquet(tmp_path / "counts.parquet")
    monkeypatch.setattr(files, "_library", lambda: library)
    assert_equal(Counts.from_parquet(tmp_path / "counts.parquet"), counts)
    pl.DataFrame({"score": [0.5]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="holds no counts"):
        Counts.from_parquet(tmp_path / "other.parquet")
