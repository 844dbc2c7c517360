"""Files that are not what they seem end in one line and exit code 2, or work."""

import json
from pathlib import Path

import polars as pl
import pytest

from cli_tables import make_forecasts


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("name", ["__row__", "line", "row", "isoroc"])
@pytest.mark.parametrize("end", ["csv", "parquet", "ndjson"])
def test_columns_may_have_any_name(run_cli, name, end):
    table = make_forecasts(20).with_columns(pl.int_range(20).alias(name))
    getattr(table, f"write_{end}")(f"x.{end}")
    words = ["apply", "model.json", f"x.{end}", "-o", "out.parquet", "--where", f"{name} >= 10"]
    ran = run_cli(*words)
    assert ran.code == 0, ran.err
    assert pl.read_parquet("out.parquet")[name].cast(pl.Int64).to_list() == list(range(10, 20))


@pytest.mark.usefixtures("model")
def test_names_that_the_command_uses_itself_are_refused(run_cli):
    make_forecasts(20).with_row_index("isoroc: row").write_csv("x.csv")
    ran = run_cli("apply", "model.json", "x.csv", "-o", "out.csv")
    assert (ran.code, "'isoroc: row' is reserved" in ran.err) == (2, True)


@pytest.mark.usefixtures("model")
def test_lines_that_end_in_cr(run_cli):
    text = Path("data.csv").read_text()
    Path("crlf.csv").write_bytes(text.replace("\n", "\r\n").encode())
    assert run_cli("apply", "model.json", "crlf.csv", "-o", "out.csv").code == 0
    Path("cr.csv").write_bytes(text.replace("\n", "\r").encode())
    ran = run_cli("apply", "model.json", "cr.csv", "-o", "out.csv")
    assert (ran.code, "cr.csv: lines end in CR alone" in ran.err) == (2, True)


@pytest.mark.usefixtures("model")
def test_a_quoted_field_may_be_long(run_cli):
    texts = ["short", "two,\nlines " * 20_000, "end"]
    make_forecasts(3).with_columns(note=pl.Series(texts)).write_csv("x.csv")
    ran = run_cli("apply", "model.json", "x.csv", "-o", "out.csv")
    assert ran.code == 0, ran.err
    assert pl.read_csv("out.csv")["note"].to_list() == texts


@pytest.mark.usefixtures("model")
def test_links_that_lead_nowhere(run_cli):
    Path("a").symlink_to("b")
    Path("b").symlink_to("a")
    Path("gone").symlink_to("nothing")
    for words in (["apply", "model.json", "a", "-o", "x.csv"], ["fit", "gone", "-o", "m.json"]):
        ran = run_cli(*words)
        assert (ran.code, "is a link to no file" in ran.err) == (2, True)
    for target in ("a", "a/x.csv"):
        ran = run_cli("apply", "model.json", "data.csv", "-o", target)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert run_cli("apply", "model.json", "data.csv", "-o", "gone").code == 0
    assert Path("nothing").is_file()


@pytest.mark.usefixtures("model")
def test_a_deeply_nested_state(run_cli):
    text = json.dumps({"format": "isoroc-monitor", "totals": None})
    Path("state.json").write_text(text.replace("null", "[" * 100_000))
    ran = run_cli("monitor", "model.json", "data.csv", "--state", "state.json")
    assert (ran.code, "not the state of a monitor" in ran.err) == (2, True)


def test_too_little_memory_is_not_a_bug(run_cli, monkeypatch):
    def fail():
        raise MemoryError

    monkeypatch.setattr("isoroc._cli.commands.demo.demo", fail)
    ran = run_cli("demo")
    assert (ran.code, "not enough memory" in ran.err) == (2, True)
