import numpy as np
import pandas as pd
import polars as pl

from isoroc._table import Table

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
