"""What users pass: forecasts, labels and weights of every kind, and those that are refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from isoroc import IsotonicCalibrator, _input

PROBABILITIES = [[0.25, 0.75], [0.5, 0.5]]


@pytest.mark.parametrize(
    "P",
    [
        PROBABILITIES,
        tuple(map(tuple, PROBABILITIES)),
        np.array(PROBABILITIES),
        np.array(PROBABILITIES, dtype=np.float32),
        np.asfortranarray(PROBABILITIES),
        pd.DataFrame(PROBABILITIES, columns=["no", "yes"]),
        pl.DataFrame(PROBABILITIES, schema=["no", "yes"], orient="row"),
        pa.table({"no": [0.25, 0.5], "yes": [0.75, 0.5]}),
    ],
)
def test_matrices_of_every_kind(P):
    values = _input.check_forecasts(P)
    assert values.tolist() == PROBABILITIES
    assert values.flags.c_contiguous
    assert values.dtype == np.float64


@pytest.mark.parametrize(
    "scores",
    [
        [-3, 0.5],
        np.array([[-3], [0.5]]),
        np.array(["-3", "0.5"], dtype=object),
        pd.Series([-3, 0.5]),
        pl.Series([-3.0, 0.5]),
        pa.chunked_array([[-3.0], [0.5]]),
    ],
)
def test_scores_of_every_kind(scores):
    assert _input.check_forecasts(scores).tolist() == [-3, 0.5]


def test_rows_nearly_on_the_simplex_are_normalised_and_exact_ones_left_alone():
    exact = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    assert (exact.sum(axis=1) != 1).any()  # in the last digit
    values = _input.check_forecasts(np.vstack([[0.2, 0.3, 0.5005], exact]))
    np.testing.assert_allclose(values[0], np.array([0.2, 0.3, 0.5005]) / 1.0005, rtol=1e-15)
    np.testing.assert_array_equal(values[1:], exact)


def test_huge_scores_are_no_infinity():
    assert _input.check_forecasts([1e308, 1e308, -1e308]).tolist() == [1e308, 1e308, -1e308]


@pytest.mark.parametrize(
    ("P", "message"),
    [
        ([[0.5, 0.5], [np.nan, 1]], "P: row 1 holds NaN"),
        ([[0.5, 0.5], [np.inf, 0]], "P: row 1 holds infinity"),
        ([[0.5, 0.5], [1.5, -0.5]], "P: row 1 holds -0.5; Negative"),
        ([[0.5, 0.5], [0.5, 0.502]], "P: row 1 sums to 1.002, not to 1"),
        ([0.1, np.nan], "P: row 1 is NaN"),
        ([0.1, 3.0, -np.inf], "P: row 2 is -infinity"),
        ([], "P: no rows"),
        (np.empty((0, 3)), "P: no rows"),
        (np.empty((3, 0)), "P: 0 feature"),
        (np.zeros((2, 2, 2)), "P: 3 dimensions; expected a 2-D array"),
        (0.5, "P: 0 dimensions; expected a 2-D array"),
        ([["a", "b"]], "P: forecasts must be numbers"),
        ([[0.5 + 1j, 0.5]], "P: Complex data not supported"),
    ],
)
def test_bad_forecasts(P, message):
    with pytest.raises(ValueError, match=message):
        _input.check_forecasts(P)


def test_sparse_forecasts():
    with pytest.raises(ValueError, match=r"P: sparse input .* P.toarray\(\)"):
        _input.check_forecasts(csr_array([[0.5, 0.5]]))


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([0, 1, 0], [0, 1]),
        ([-1, 1, -1], [-1, 1]),
        ([2.0, 7.0, 2.0], [2, 7]),
        ([False, True, False], [False, True]),
        (["a", "b", "a"], ["a", "b"]),
        (np.array(["a", "b", "a"], dtype=object), ["a", "b"]),
        (pd.Series(["a", "b", "a"], dtype="category"), ["a", "b"]),
        (pd.Series(["a", "b", "a"], dtype="string"), ["a", "b"]),
        (pl.Series(["a", "b", "a"]), ["a", "b"]),
        (pa.chunked_array([["a", "b", "a"]]), ["a", "b"]),
        (np.array([3, 250, 3], dtype=np.uint8), [3, 250]),
    ],
)
def test_labels_of_every_kind(y, classes):
    found, codes = _input.encode_labels(y, 2)
    assert found.tolist() == classes
    assert codes.tolist() == [0, 1, 0]


def test_many_labels_and_given_labels():
    y = np.array([5, 3, 9, 3])
    found, codes = _input.encode_labels(y, 3)
    assert (found.tolist(), codes.tolist()) == ([3, 5, 9], [1, 0, 2, 0])
    found, codes = _input.encode_labels(y, 3, labels=[9, 5, 3])
    assert (found.tolist(), codes.tolist()) == ([9, 5, 3], [1, 2, 0, 2])
    found, codes = _input.encode_labels(np.arange(1000) % 300, 300)
    assert codes.tolist() == (np.arange(1000) % 300).tolist()


@pytest.mark.parametrize("kind", ["O", "U"])
def test_many_rows_of_text_labels(kind):
    rng = np.random.default_rng(0)
    y = rng.choice(["dog", "horse", "ant", "cat"], 150_000).astype(kind)  # several slices
    found, codes = _input.encode_labels(y, 4)
    assert found.dtype == y.dtype
    assert found.tolist() == ["ant", "cat", "dog", "horse"]
    assert (found[codes] == y).all()
    found, codes = _input.encode_labels(y, 5, labels=["horse", "emu", "dog", "cat", "ant"])
    assert (found[codes] == y).all()
    y[140_000:] = "fox"
    with pytest.raises(ValueError, match="y: row 140000 is 'fox', which is not among the labels"):
        _input.encode_labels(y, 4, labels=["ant", "cat", "dog", "horse"])


def test_missing_objects_are_refused_at_their_first_row():
    y = np.array(["a", "b", None, "a", None], dtype=object)
    with pytest.raises(ValueError, match="y: row 2 is None"):
        _input.encode_labels(y, 2)
    y[2] = np.float64("nan")
    with pytest.raises(ValueError, match="y: row 2 is nan"):
        _input.encode_labels(y, 2)


def test_absent_classes_are_named_by_labels_or_columns():
    found, codes = _input.encode_labels([3, 0, 3], 5, labels=range(5))
    assert (found.tolist(), codes.tolist()) == ([0, 1, 2, 3, 4], [3, 0, 3])
    found, codes = _input.encode_labels([3, 1, 3], 3, names=["3", "2", "1"])
    assert (found.tolist(), codes.tolist()) == ([3, 2, 1], [0, 2, 0])
    found, codes = _input.encode_labels(["c", "a", "c"], 3, names=["c", "b", "a"])
    assert (found.tolist(), codes.tolist()) == (["c", "b", "a"], [0, 2, 0])


@pytest.mark.parametrize(
    ("y", "n_classes", "labels", "message"),
    [
        ([0, 1, 2], 2, None, "y: 3 classes, but the forecasts have 2"),
        (
            [1, 3],
            3,
            None,
            "y: 2 of the 3 classes .* which column is which class with labels=, 3 labels",
        ),
        (["a", "a"], 2, None, "y: one class only, .*a"),
        ([], 2, None, "y: no rows"),
        ([0.0, np.nan], 2, None, "y: row 1 is NaN"),
        (["a", None], 2, None, "y: row 1 is None"),
        ([0.1, 0.25, 0.7], 3, None, "Unknown label type: continuous"),
        ([0, 5], 2, [0, 1], "y: row 1 is .*5.*, which is not among the labels"),
        ([0, 1], 2, [0, 1, 2], "labels: .*; expected a list of 2 distinct classes"),
        ([0, 1], 2, [1, 1], "labels: .*; expected a list of 2 distinct classes"),
        ([0, 1], 2, "ab", "labels: 1 entries; expected a list of 2"),
        ([0, 1], 2, {0, 1}, "labels: 1 entries; expected a list of 2"),
        ([0, 1], 2, [[0, 1]], "labels: 2 entries; expected a list of 2"),
        ([0, 1], 2, [0, None], "labels: row 1 is None; labels must be known"),
        ([0, 1], 2, ["0", "1"], "y: row 0 is 0, which is not among the labels; known are '0', '1'"),
        (np.array(["a", 1], dtype=object), 2, None, "y: labels of several types; make them all st"),
        ([[0, 1], [1, 0]], 2, None, "1d array"),
    ],
)
def test_bad_labels(y, n_classes, labels, message):
    with pytest.raises(ValueError, match=message):
        _input.encode_labels(y, n_classes, labels=labels)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "sample_weight: 2 rows, but P has 3"),
        ([1, np.nan, 1], "sample_weight: row 1 is nan"),
        ([1, 1, np.inf], "sample_weight: row 2 is inf"),
        ([-1, 1, 1], "sample_weight: row 0 is -1"),
        ([1e-300, 1, 1], "sample_weight: row 0 is 1e-300"),
        ([0, 0, 0], "sample_weight: all weights are zero"),
        ([[1], [1], [1]], "sample_weight: .*; Sample weights must be 1D"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        _input.check_weights(weights, 3)


def test_weights_of_every_kind():
    assert _input.check_weights(None, 3) is None
    np.testing.assert_array_equal(_input.check_weights(2, 3), [2, 2, 2])
    np.testing.assert_array_equal(_input.check_weights(pd.Series([0, 1, 2]), 3), [0, 1, 2])


def test_names_that_are_strings_of_numpy_are_names():
    P = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    names = np.array(["b", "a"])
    y = names[[1, 0, 1, 0]]
    frame = pd.DataFrame(P)
    frame.columns = pd.Index(list(names), dtype=object)  # as pandas 2 keeps them
    cal = IsotonicCalibrator().fit(frame, y)
    assert cal.feature_names_in_.tolist() == ["b", "a"]
    assert all(type(name) is str for name in cal.feature_names_in_)
    np.testing.assert_array_equal(cal.predict_proba(frame[["a", "b"]]), cal.predict_proba(frame))
