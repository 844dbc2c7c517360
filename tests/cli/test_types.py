"""Types of columns that `apply` only copies."""

from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from cli_tables import READERS, make_forecasts

#: A name of a type, a text, and the value that it stands for.
CASES = [
    ("int", "01234", 1234),
    ("int", "-7", -7),
    ("float", "1e3", 1000.0),
    ("bool", "True", True),
    ("date", "2025-03-01", date(2025, 3, 1)),
    ("datetime", "2025-03-01 12:30:00.25", datetime(2025, 3, 1, 12, 30, 0, 250_000)),  # noqa: DTZ001
    ("timestamp", "2025-03-01T12:30:00+02:00", datetime(2025, 3, 1, 10, 30, tzinfo=UTC)),
    ("timestamp", "2025-03-01T12:30:00Z", datetime(2025, 3, 1, 12, 30, tzinfo=UTC)),
]
FALSE = {
    "int": ["1e3", "x", "1.5", str(2**63)],
    "float": ["1,5", "x"],
    "bool": ["1", "yes"],
    "date": ["2025-02-30", "01.03.2025", "2025-03-01T00:00:00"],
    "datetime": ["2025-03-01T12:30:00Z", "2025-03-01"],
    "timestamp": ["2025-03-01T12:30:00", "12:30"],
}


def rows_with(texts):
    return make_forecasts(len(texts)).with_columns(extra=pl.Series(texts, dtype=pl.String))


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(("kind", "text", "value"), CASES)
def test_a_column_of_text_gets_the_type_that_was_asked_for(run_cli, kind, text, value):
    rows_with([text, None, text]).write_csv("new.csv")
    for target in ("out.parquet", "out.feather"):
        ran = run_cli("apply", "model.json", "new.csv", "-o", target, "--type", f"extra={kind}")
        assert ran.code == 0, ran.err
        read = READERS[target.partition(".")[2]].read(target)
        assert read["extra"].to_list() == [value, None, value]
        assert read["id"].to_list() == ["00000", "00001", "00002"]  # not asked for
    ran = run_cli("apply", "model.json", "new.csv", "-o", "out.csv", "--type", f"extra={kind}")
    assert ran.code == 0, ran.err
    assert pl.read_csv("out.csv", infer_schema=False)["extra"].to_list() == [text, None, text]


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("kind", FALSE)
@pytest.mark.parametrize("target", ["out.parquet", "out.csv"])
def test_other_text_is_an_error_with_its_file_row_and_column(run_cli, kind, target):
    right = next(text for of_kind, text, _ in CASES if of_kind == kind)
    rows_with([right] * 5).write_csv("new1.csv")
    for wrong in FALSE[kind]:
        rows_with([right, None, wrong, wrong]).write_csv("new2.csv")
        words = ("apply", "model.json", "new1.csv", "new2.csv", "-o", target)
        ran = run_cli(*words, "--type", f"extra={kind}")
        assert ran.code == 2
        assert f"new2.csv: row 2, column 'extra' is {wrong!r}, not " in ran.err
        assert not Path(target).exists()


@pytest.mark.usefixtures("model")
def test_rows_that_are_left_out_may_hold_anything(run_cli):
    rows = rows_with(["1", "x", "y"]).with_columns(p_cat=pl.Series([0.2, None, 0.3]))
    rows = rows.with_columns(p_bird=0.5, p_dog=0.5 - pl.col("p_cat"))
    rows.write_csv("new.csv")
    words = ("apply", "model.json", "new.csv", "-o", "out.parquet", "--type", "extra=int")
    ran = run_cli(*words, "--on-bad", "skip", "--where", "extra <> 'y'")
    assert ran.code == 0, ran.err
    assert pl.read_parquet("out.parquet")["extra"].to_list() == [1]


@pytest.mark.usefixtures("model")
def test_text_in_other_formats_and_several_types(run_cli):
    rows_with(["5", "6"]).with_columns(day=pl.lit("2025-03-01"), n=1).write_parquet("new.parquet")
    words = ("apply", "model.json", "new.parquet", "-o", "out.parquet")
    ran = run_cli(*words, "--type", "extra=int,day=date", "--type", "n=int")
    assert ran.code == 2
    assert "n has the type Int32" in ran.err
    assert run_cli(*words, "--type", "extra=int,day=date", "--type", "id=float").code == 0
    schema = pl.read_parquet_schema("out.parquet")
    assert [schema[name] for name in ("extra", "day", "id")] == [pl.Int64, pl.Date, pl.Float64]


@pytest.mark.usefixtures("model")
def test_types_in_the_configuration(run_cli):
    rows_with(["5", "6"]).write_csv("new.csv")
    for text in ('[apply]\ntype = ["extra=int"]\n', '[apply.type]\nextra = "int"\n'):
        Path("isoroc.toml").write_text(text)
        assert run_cli("apply", "model.json", "new.csv", "-o", "out.parquet").code == 0
        assert pl.read_parquet("out.parquet")["extra"].to_list() == [5, 6]
        words = ("apply", "model.json", "new.csv", "-o", "out.parquet", "--type", "extra=float")
        assert run_cli(*words).code == 0
        assert pl.read_parquet_schema("out.parquet")["extra"] == pl.Float64


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("id", "expected COLUMN=TYPE"),
        ("idd=int", "no column 'idd'; did you mean 'id'?"),
        ("id=integer", "'integer' is not a type; did you mean 'int'?"),
        ("p_cat=float", "p_cat holds forecasts, which are always numbers"),
    ],
)
def test_errors_about_the_option(run_cli, word, message):
    ran = run_cli("apply", "model.json", "data.csv", "-o", "out.parquet", "--type", word)
    assert ran.code == 2
    assert message in ran.err
