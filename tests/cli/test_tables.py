"""Tables as they occur in production: identifiers, headers, dates, part files, damaged rows."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from cli_tables import make_forecasts
from isoroc._cli.io.formats import check_fields

pytestmark = pytest.mark.usefixtures("folder")

DAYS = [dt.date(2024, 12, 31) + dt.timedelta(k // 100) for k in range(300)]


@pytest.mark.usefixtures("model")
def test_identifiers_of_csv_files_reach_typed_formats_unchanged(run_cli):
    ids = ["01234", "1e3", "", "0x1F", " 7", "true", "1_000"] + ["12"] * 292 + ["late"]
    table = make_forecasts().with_columns(id=pl.Series(ids))
    table.write_csv("ids.csv")
    read: dict[str, Any] = {
        "parquet": pl.read_parquet,
        "ndjson": pl.read_ndjson,
        "arrow": pl.read_ipc,
    }
    for end, reader in read.items():
        assert run_cli("apply", "model.json", "ids.csv", "-o", f"out.{end}").code == 0
        found = reader(Path(f"out.{end}").read_bytes())
        assert found["id"].to_list() == ids
        assert found["p_cat"].dtype == pl.Float64


def test_quotes_in_headers_and_classes_survive(run_cli):
    classes = ('say "hi"', "a, b", "c")
    table = make_forecasts(classes=classes).with_columns(pl.lit("x").alias('the "note"'))
    table.write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp").code == 0
    assert json.loads(Path("m.json").read_bytes())["summary"]["columns"][2] == 'p_say "hi"'
    for source, target in (("x.csv", "y.csv"), ("y.csv", "z.csv")):
        assert run_cli("apply", "m.json", source, "-o", target, "--replace").code == 0
    header = Path("x.csv").read_text().splitlines()[0]
    assert Path("z.csv").read_text().splitlines()[0] == header
    assert '"the ""note"""' in header


def test_two_columns_of_the_same_name_are_an_error(run_cli):
    Path("x.csv").write_text("y,p_0,p_1,p_0\n0,0.5,0.5,0.5\n")
    ran = run_cli("fit", "x.csv", "-o", "m.json")
    assert (ran.code, "x.csv: two columns are named 'p_0'" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("kind", "where", "n_rows"),
    [
        (pl.Date, "day >= '2025-01-01'", 200),
        (pl.Date, "day IN ('2025-01-01', '2025-02-01')", 100),
        (pl.Datetime("ns"), "day >= '2025-01-01' AND day < '2025-01-02T00:00:00'", 100),
        (pl.Datetime("us", "Europe/Berlin"), "day BETWEEN '2025-01-01' AND '2025-01-02'", 200),
        (pl.Datetime("us", "UTC"), "day >= '2025-01-01 01:00+01:00'", 200),
        (pl.String, "day >= '2025-01-01' AND id <> '2025-01-01'", 200),
        (pl.Date, "day >= '2025-01-01' AND id <> '2025-01-01'", 200),
    ],
)
def test_text_is_compared_with_dates(run_cli, kind, where, n_rows):
    days = pl.Series("day", DAYS)
    zone = getattr(kind, "time_zone", None)
    if zone:
        days = days.cast(pl.Datetime("us")).dt.replace_time_zone(zone)
    make_forecasts().with_columns(days.cast(kind)).write_parquet("x.parquet")
    ran = run_cli("fit", "x.parquet", "-o", "m.json", "-c", "temperature", "--where", where)
    assert ran.code == 0, ran.err
    assert f"fitted to {n_rows} rows" in ran.err


@pytest.mark.parametrize(
    ("where", "n_rows"),
    [
        ("zip = '01234'", 150),
        ("zip = '01234' AND n > 9", 145),
        ("n > 9 AND n IS NOT NULL", 290),
        ("n > 9.5", 290),
        ("part BETWEEN 9.5 AND 10.5", 100),
        ("NOT flag", 150),
        ("flag", 150),
    ],
)
def test_columns_of_csv_files_get_the_type_that_a_condition_needs(run_cli, where, n_rows):
    table = make_forecasts().with_columns(
        zip=pl.Series(["01234", "1234"] * 150), n=pl.Series(range(300)),
        flag=pl.Series(["True", "False"] * 150), part=pl.Series(["9", "10", "n/a"] * 100),
    )  # fmt: skip
    table.write_csv("x.csv")
    ran = run_cli("fit", "x.csv", "-o", "m.json", "-c", "temperature", "--where", where)
    assert f"fitted to {n_rows} rows" in ran.err, ran.err
    assert run_cli("apply", "m.json", "x.csv", "-o", "out.csv", "--where", where).code == 0
    found = pl.read_csv("out.csv", infer_schema=False)
    assert found.height == n_rows
    assert set(found["zip"]) <= {"01234", "1234"}  # copied without a change


def test_a_condition_whose_types_do_not_fit_is_an_error(run_cli):
    make_forecasts().write_parquet("x.parquet")
    ran = run_cli("fit", "x.parquet", "-o", "m.json", "--where", "w > 'a'")
    assert (ran.code, "--where \"w > 'a'\": cannot compare" in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    "where", ["y = 'cat') OR (y = 'dog'", "y = 'cat' LIMIT 1", "y = 'cat'; SELECT 1"]
)
def test_only_a_condition_is_a_condition(run_cli, where):
    make_forecasts().write_parquet("x.parquet")
    ran = run_cli("fit", "x.parquet", "-o", "m.json", "--where", where)
    assert (ran.code, "--where " in ran.err) == (2, True), ran.err


@pytest.mark.parametrize("end", ["parquet", "arrow"])
def test_part_files_in_folders_may_have_more_columns(run_cli, end):
    write = {"arrow": "write_ipc"}.get(end, f"write_{end}")
    tables = [make_forecasts(100), make_forecasts(100).with_columns(extra=pl.lit("x"))]
    for day, table in zip(("2024-12-31", "2025-01-01"), tables, strict=True):
        inside = Path("t", f"day={day}")
        inside.mkdir(parents=True)
        getattr(table, write)(inside / f"part.{end}")
    words = ("fit", "t", "-o", "m.json", "-c", "temperature")
    ran = run_cli(*words, "--where", "day >= '2025-01-01' AND extra = 'x'")
    assert "fitted to 100 rows" in ran.err, ran.err
    assert run_cli("apply", "m.json", "t", "-o", "out.parquet").code == 0
    found = pl.read_parquet("out.parquet")
    assert found.schema["day"] == pl.Date
    assert found["extra"].null_count() == 100


@pytest.mark.parametrize("end", ["csv", "ndjson", "parquet", "arrow"])
def test_folders_are_columns_in_every_format(run_cli, end):
    write = {"arrow": "write_ipc"}.get(end, f"write_{end}")
    for zone, day in (("01", "2024-12-31"), ("2 b", "2025-01-01"), ("01", "2025-01-02")):
        inside = Path("t", f"zone={zone.replace(' ', '%20')}", f"day={day}")
        inside.mkdir(parents=True)
        getattr(make_forecasts(100), write)(inside / f"part.{end}")
    where = "day >= '2025-01-01' AND zone = '2 b'"
    ran = run_cli("fit", "t", "-o", "m.json", "-c", "temperature", "--where", where)
    assert "fitted to 100 rows" in ran.err, ran.err
    assert run_cli("apply", "m.json", "t", "-o", "out.ndjson").code == 0
    zones = pl.read_ndjson("out.ndjson")["zone"].to_list()
    assert zones == ["01"] * 200 + ["2 b"] * 100


@pytest.mark.parametrize("end", ["csv", "ndjson", "parquet", "arrow"])
def test_part_files_may_have_more_columns_other_orders_and_types(run_cli, end):
    table = make_forecasts()
    small = table[100:].cast({"w": pl.Float32}).with_columns(extra=pl.lit("x"))
    write = {"arrow": "write_ipc"}.get(end, f"write_{end}")
    getattr(table[:100], write)(f"a.{end}")
    getattr(small.select(reversed(small.columns)), write)(f"b.{end}")
    getattr(table, write)(f"all.{end}")
    for target, files in (("parts", [f"a.{end}", f"b.{end}"]), ("whole", [f"all.{end}"])):
        ran = run_cli("fit", *files, "-o", f"{target}.json", "-c", "temperature")
        assert ran.code == 0, ran.err
    parts, whole = (json.loads(Path(f"{n}.json").read_bytes()) for n in ("parts", "whole"))
    assert parts["model"]["state"] == whole["model"]["state"]
    assert run_cli("apply", "parts.json", f"a.{end}", f"b.{end}", "-o", "out.parquet").code == 0
    assert pl.read_parquet("out.parquet")["extra"].null_count() == 100


@pytest.mark.parametrize(
    ("rows", "row", "n_fields"),
    [
        ("0,.5,.5\n1,.2", 1, 2),
        ("0,.5,.5\n1,.2,.8,\n", 1, 4),
        ("0,.5,.5\n\n1,.2,.8\n", 1, 0),
        ('"0,\n""",.5,.5\n1,"",.5\n"1,2"\n', 2, 1),
    ],
)
def test_rows_with_missing_or_extra_fields_are_errors(run_cli, rows, row, n_fields):
    Path("x.csv").write_text("y,p_0,p_1\n" + rows)
    ran = run_cli("fit", "x.csv", "-o", "m.json")
    assert ran.code == 2
    assert f"x.csv: row {row} has {n_fields} fields, but the header has 3" in ran.err


def test_quotes_hide_separators_and_line_breaks():
    rows = ['5" pipe,b', '"a,""b",c', '"a\n,b",', '"","x"', "é,ü"]
    Path("x.csv").write_text("\n".join(["a,b", *rows]))
    check_fields(Path("x.csv"), "x.csv", 2, ",")


@pytest.mark.parametrize(("sign", "words"), [(";", []), ("|", []), ("~", ["--separator", "~"])])
def test_other_separators(run_cli, sign, words):
    table = make_forecasts().with_columns(note=pl.lit("a, b"))
    table.write_csv("x.csv", separator=sign)
    assert run_cli("fit", "x.csv", "-o", "m.json", "-c", "temperature", *words).code == 0
    assert run_cli("apply", "m.json", "x.csv", "-o", "out.csv", "--replace", *words).code == 0
    assert pl.read_csv("out.csv", separator=sign).columns == table.columns
    ran = run_cli("apply", "m.json", "x.csv", "-o", "out.csv", "--separator", "ab")
    assert (ran.code, "--separator ab: expected one ASCII character" in ran.err) == (2, True)
