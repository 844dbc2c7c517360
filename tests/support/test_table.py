import numpy as np
import pandas as pd
import polars as pl
import pytest

from isoroc._support.table import Table

TABLE = Table(name=np.array(["a<b", "c"]), rate=np.array([0.123456789, 1e-9]))


def test_text():
    assert repr(TABLE).splitlines() == ["  name     rate", "   a<b  0.12346", "     c    1e-09"]


def test_long_tables_are_cut_in_text_only():
    table = Table(i=np.arange(1000))
    assert len(repr(table).splitlines()) == 62
    assert repr(table).endswith("940 more rows")
    assert table.n_rows == len(table["i"]) == 1000


def test_html_is_escaped():
    assert "<td>a&lt;b</td><td>0.12346</td>" in TABLE._repr_html_()


def test_frames():
    pd.testing.assert_frame_equal(TABLE.frame(), pd.DataFrame(TABLE))
    assert TABLE.frame("polars").equals(pl.DataFrame(dict(TABLE)))
    assert TABLE.frame("pyarrow").column_names == ["name", "rate"]


def test_an_empty_table_has_no_rows():
    assert Table().n_rows == 0


def test_rows_become_columns():
    table = Table.from_rows(zip(TABLE["name"], TABLE["rate"], strict=True), "name", "rate")
    pd.testing.assert_frame_equal(table.frame(), TABLE.frame())
    with pytest.raises(ValueError, match="zip"):
        Table.from_rows([("a", 1), ("b",)], "name", "count")
    with pytest.raises(ValueError, match="zip"):
        Table.from_rows([("a", 1)], "name")


def test_no_rows_still_have_columns():
    table = Table.from_rows([], "name", "rate")
    assert list(table) == ["name", "rate"]
    assert table.n_rows == 0
    assert repr(table) == "  name  rate"


def test_selected_columns_come_in_the_order_of_the_selection():
    assert list(TABLE.select("rate", "name")) == ["rate", "name"]
    assert list(TABLE.select("rate")) == ["rate"]
