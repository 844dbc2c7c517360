import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from isoroc import InputError
from isoroc._cli.batches import forecasts_of_batch, read_weights
from isoroc._cli.errors import CommandError
from isoroc._cli.io.formats import Format
from isoroc._cli.io.source import ROW, Source

SOURCE = Source([Path("x.parquet")], Format("parquet"), ["x.parquet"])


def make_batch(**columns):
    """Rows of a table that come after its first ten."""
    return pl.DataFrame(columns).with_row_index(ROW, offset=10)


def message(text):
    return re.escape(text)


def test_forecasts_of_one_column_are_a_vector_and_of_several_a_matrix():
    batch = make_batch(a=[0.25, 0.5], b=["0.75", "0.5"])
    assert forecasts_of_batch(batch, ["a"], SOURCE).tolist() == [0.25, 0.5]
    assert forecasts_of_batch(batch, ["b", "a"], SOURCE).tolist() == [[0.75, 0.25], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (["0.5", "x"], "is 'x', not a number"),
        (["0.5", "NaN"], "is nan, not a finite number"),
        ([0.5, None], "is empty"),
        ([0.5, np.nan], "is nan, not a finite number"),
        ([0.5, -np.inf], "is -inf, not a finite number"),
    ],
)
def test_values_that_are_not_finite_numbers_are_located(values, problem):
    expected = message(f"x.parquet: row 11, column 'b' {problem}; correct such rows, or leave them")
    with pytest.raises(CommandError, match=expected):
        forecasts_of_batch(make_batch(a=[0.5, 0.5], b=values), ["a", "b"], SOURCE)
    with pytest.raises(CommandError, match=expected):
        read_weights(make_batch(b=values), "b", SOURCE)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ([0.5, 0.9], "sums to 1.4, not to 1; each row must hold the probabilities of all classes"),
        ([-0.5, 1.5], "holds -0.5; name one column of probabilities"),
    ],
)
def test_rows_that_are_not_forecasts_are_located(row, problem):
    batch = make_batch(a=[0.5, row[0]], b=[0.5, row[1]])
    expected = message(f"x.parquet: row 11 (a, b) {problem}")
    with pytest.raises(CommandError, match=expected):
        forecasts_of_batch(batch, ["a", "b"], SOURCE)


def test_the_fix_of_an_error_about_one_column_is_kept():
    def check(scores):
        raise InputError("P", 1, f"is {scores[1]:g}", "fit the calibrator to log odds")

    expected = message("x.parquet: row 11 (s) is 3; fit the calibrator to log odds.")
    with pytest.raises(CommandError, match=expected):
        forecasts_of_batch(make_batch(s=[0.5, 3.0]), ["s"], SOURCE, check)


@pytest.mark.parametrize("error", [InputError("P", None, "too many rows"), ValueError("a bug")])
def test_errors_that_are_not_about_a_row_pass_through(error):
    def check(_):
        raise error

    with pytest.raises(type(error)) as raised:
        forecasts_of_batch(make_batch(a=[0.5], b=[0.5]), ["a", "b"], SOURCE, check)
    assert raised.value is error


def test_weights():
    assert read_weights(make_batch(w=[0, 2]), "w", SOURCE).tolist() == [0, 2]
    assert read_weights(make_batch(w=[0, 0]), "w", SOURCE).tolist() == [0, 0]
    with pytest.raises(CommandError, match=message("x.parquet: row 11 (w) is -1; weights must")):
        read_weights(make_batch(w=[1, -1]), "w", SOURCE)
