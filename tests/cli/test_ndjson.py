"""NDJSON files: other columns pass through unchanged, or the command names the row and stops."""

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import isoroc
from cli_tables import listing, make_forecasts
from isoroc.__main__ import main

ROWS = [dict(zip(("p_bird", "p_cat", "p_dog"), p, strict=True)) for p in np.eye(3).tolist()]
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
OTHERS = {
    'a "b\\': st.none() | NUMBERS | TEXT,
    "list": st.lists(NUMBERS, max_size=3),
    "{object}": st.dictionaries(TEXT, NUMBERS, max_size=3),
}


@pytest.fixture
def write(model):
    """Function that writes rows with forecasts and other values to ``x.ndjson``."""
    assert model.exists()

    def write(others, separators=(",", ":")):
        rows = [{"id": i} | ROWS[i % 3] | other for i, other in enumerate(others)]
        lines = [json.dumps(row, separators=separators) for row in rows]
        Path("x.ndjson").write_text("\n".join(lines) + "\n")
        return lines

    return write


def apply(run_cli, output, *words):
    return run_cli("apply", "model.json", "x.ndjson", "-o", output, *words)


def test_fields_that_come_late_nested_ones_and_large_numbers_pass_through(write, run_cli):
    others: list[dict[str, object]] = [{} for _ in range(12_000)]
    others[11_000] = {"late": "text", "nested": {"a": [1, {"b": None}]}}
    others[11_001] = {"nested": {"c": 0.1}, "count": 2**53 + 1}
    others[11_002] = {"count": 0.5}
    others[11_003] = {"count": "many"}
    lines = write(others)
    ran = apply(run_cli, "out.ndjson")
    assert ran.code == 0, ran.err
    written = Path("out.ndjson").read_text().splitlines()
    for before, after in zip(lines, written, strict=True):
        assert after.startswith(before[:-1] + ',"p_bird_cal":')
    expected = isoroc.load("model.json").predict_proba(np.eye(3))
    found = [list(json.loads(line).values())[-3:] for line in written[:3]]
    np.testing.assert_array_equal(found, expected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.fixed_dictionaries({}, optional=OTHERS), min_size=1, max_size=4),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]),
    st.booleans(),
)
def test_all_other_values_are_the_same(write, others, separators, replace):
    lines = write(others, separators)
    words = ["--replace"] if replace else []
    assert main(["apply", "model.json", "x.ndjson", "-o", "out.ndjson", *words]) == 0
    for before, after in zip(
        lines, Path("out.ndjson").read_text().rstrip("\n").split("\n"), strict=True
    ):
        old = json.loads(before)
        new = json.loads(after)
        names = [f"{name}{'' if replace else '_cal'}" for name in ROWS[0]]
        assert abs(sum(new.pop(name) for name in names) - 1) < 1e-9
        if replace:
            old = {name: value for name, value in old.items() if name not in names}
        assert json.dumps(new) == json.dumps(old)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([2**53 + 1, 0.5], "row 0, column 'extra' is 9007199254740993, which Float64 cannot hold"),
        ([1, True], "row 1, column 'extra' is true, which Int64 cannot hold exactly"),
        (["a", 5], "row 1, column 'extra' is 5, which String cannot hold exactly"),
        ([{"a": 1}, {"a": "b"}], "row 0, column 'extra' is {\"a\": 1}, which Struct"),
        ([[1], 5], "row 1 is not a JSON object, or unlike earlier rows"),
        ([-1, 2**63], "row 0, column 'extra' is -1, which UInt64 cannot hold exactly"),
        ([1, 2**64], "row 1, column 'extra' is 18446744073709551616, which UInt64 cannot hold"),
        ([1, 2**200], "row 1 is not a JSON object"),
    ],
)
@pytest.mark.parametrize("target", ["out.parquet", "out.csv"])
def test_types_that_would_change_a_value_stop_the_command(write, run_cli, values, message, target):
    write([{"extra": value} for value in values])
    ran = apply(run_cli, target)
    assert (ran.code, f"x.ndjson: {message}" in ran.err) == (2, True), ran.err
    assert target not in listing()


def test_typed_outputs_keep_every_field(write, run_cli):
    others: list[dict[str, object]] = [{"count": 1} for _ in range(12_000)]
    others[11_000] = {"count": 0.5, "late": "text", "nested": {"a": 2**60}}
    write(others)
    assert apply(run_cli, "out.parquet").code == 0
    row = pl.read_parquet("out.parquet").row(11_000, named=True)
    assert (row["count"], row["late"], row["nested"]) == (0.5, "text", {"a": 2**60})
    write([{"hash": 1}, {"hash": 2**64 - 1}])
    assert apply(run_cli, "out.parquet").code == 0
    assert pq.read_table("out.parquet")["hash"].to_pylist() == [1, 2**64 - 1]


@pytest.mark.parametrize("line", ['{"p_bird": 1', "[1]", '{"p_bird": NaN}', '{"extra": 1e400}'])
def test_broken_rows_are_named(model, run_cli, line):
    Path("x.ndjson").write_text(f"{json.dumps(ROWS[0])}\n\n{line}\n")
    ran = apply(run_cli, "out.ndjson")
    assert (ran.code, "x.ndjson: row 1 is not a JSON object" in ran.err) == (2, True), ran.err
    assert model.exists()
    assert "out.ndjson" not in listing()


def test_bad_rows_conditions_groups_and_compression(write, run_cli):
    lines = write([{"k": k, "s": "x"} for k in range(6)])
    lines[1] = lines[1].replace('"p_cat":1.0', '"p_cat":"many"')
    lines[2] = lines[2].replace('"p_dog":1.0', '"p_dog":"1.0"')
    with gzip.open("x.ndjson.gz", "wt") as file:
        file.write("\n".join(lines))
    words = ["apply", "model.json", "x.ndjson.gz", "-o", "out.ndjson", "--where", "k <> 4"]
    ran = run_cli(*words)
    assert (ran.code, "row 1, column 'p_cat' is 'many', not a number" in ran.err) == (2, True)
    assert run_cli(*words, "--on-bad", "null").code == 0
    rows = [json.loads(line) for line in Path("out.ndjson").read_text().splitlines()]
    assert [row["k"] for row in rows] == [0, 1, 2, 3, 5]
    assert (rows[1]["p_cat"], rows[1]["p_cat_cal"], rows[2]["p_dog"]) == ("many", None, "1.0")
    assert run_cli(*words, "--on-bad", "skip", "--replace").code == 0
    rows = [json.loads(line) for line in Path("out.ndjson").read_text().splitlines()]
    assert [row["k"] for row in rows] == [0, 2, 3, 5]
    assert isinstance(rows[1]["p_dog"], float)
    Path("x.ndjson").write_text(f"{lines[0]}\n {{ }} \n")
    assert apply(run_cli, "out.ndjson", "--on-bad", "null").code == 0
    last = Path("out.ndjson").read_text().splitlines()[1]
    assert list(json.loads(last)) == ["p_bird_cal", "p_cat_cal", "p_dog_cal"]


def test_segments_of_copied_lines(folder, run_cli):
    table = make_forecasts(400).with_columns(site=pl.int_range(400) % 2)
    table.write_ndjson("x.ndjson")
    words = ["-c", "temperature", "--segments", "site", "-o", "model.json"]
    assert run_cli("fit", "x.ndjson", *words).code == 0
    assert apply(run_cli, "out.ndjson").code == 0
    assert apply(run_cli, "out.parquet").code == 0
    found = [pl.read_ndjson("out.ndjson"), pl.read_parquet("out.parquet")]
    assert found[0].equals(found[1])
    assert (folder / "x.ndjson").exists()
