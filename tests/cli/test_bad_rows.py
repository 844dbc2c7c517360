"""``isoroc apply --on-bad`` and ``--where``, and files that a format cannot store."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import isoroc
from isoroc import InputError
from isoroc.__main__ import main
from isoroc._input import check_forecasts, valid_rows
from isoroc._input.kinds import kind_of

BAD = {3: ["nan", "0.5", "0.5"], 40: ["", "0.5", "0.5"], 41: ["x", "0.5", "0.5"],
       250: ["0.9", "0.9", "0.9"], 299: ["-0.5", "1", "0.5"]}  # fmt: skip


@pytest.fixture
def spoilt(model):  # noqa: ARG001
    """A file with bad rows, whose numbers are returned."""
    rows = [line.split(",") for line in Path("data.csv").read_text().splitlines()]
    for row, values in BAD.items():
        rows[row + 1][1:4] = values
    Path("spoilt.csv").write_text("\n".join(map(",".join, rows)) + "\n")
    return sorted(BAD)


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_bad_rows_are_skipped_or_null(spoilt, table, run_cli, end):
    words = ["apply", "model.json", "spoilt.csv", "-o", f"out.{end}", "--on-bad"]
    read = pl.read_csv if end == "csv" else pl.read_parquet
    good = [row for row in range(len(table)) if row not in spoilt]
    P = table.select("^p_.*$").to_numpy()[good]
    expected = isoroc.load("model.json").predict_proba(P)

    ran = run_cli(*words, "null")
    assert ran.code == 0
    assert "5 of 300 rows have no valid forecast and got null; spoilt.csv: row 3, column" in ran.err
    found = read(f"out.{end}").select("^.*_cal$")
    assert found["p_cat_cal"].is_null().arg_true().to_list() == spoilt
    np.testing.assert_array_equal(found[good].to_numpy(), expected)

    ran = run_cli(*words, "skip")
    assert "5 of 300 rows have no valid forecast and were left out" in ran.err
    np.testing.assert_array_equal(read(f"out.{end}").select("^.*_cal$").to_numpy(), expected)

    ran = run_cli(*words, "fail")
    assert ran.code == 2
    assert ran.err.startswith("isoroc: error: spoilt.csv: row 3, column 'p_bird' is nan")


@pytest.mark.usefixtures("spoilt")
def test_conditions_and_shares_leave_bad_rows_out(run_cli):
    words = ["apply", "model.json", "spoilt.csv", "-o", "out.csv"]
    ran = run_cli(*words, "--where", "id BETWEEN '00050' AND '00059'", "--adapt-prior")
    assert ran.code == 0, ran.err
    assert pl.read_csv("out.csv").height == 10
    ran = run_cli(*words, "--on-bad", "null", "--adapt-prior")
    assert (ran.code, "5 of 300 rows" in ran.err) == (0, True)


def test_rows_without_a_segment_are_not_bad(run_cli):
    rng = np.random.default_rng(0)
    p = rng.random(600)
    g = rng.choice(["a", "b"], 600)
    y = rng.random(600) < np.where(g == "a", p**3, p**0.3)
    table = pl.DataFrame({"p": p, "g": g, "y": y})
    table.write_parquet("x.parquet")
    words = ["-c", "temperature", "--segments", "g"]
    assert run_cli("fit", "x.parquet", "-o", "m.json", *words).code == 0
    table = table.with_columns(g=pl.when(pl.int_range(pl.len()) > 2).then("g"))
    table.write_parquet("x.parquet")
    ran = run_cli("apply", "m.json", "x.parquet", "-o", "out.parquet")
    assert ran.code == 0
    assert "g: 3 of 600 rows are missing or unknown to fit" in ran.err
    assert not pl.read_parquet("out.parquet")["p_cal"].is_null().any()


NUMBERS = st.sampled_from([-1.0, -1e-5, -1e-9, 0.0, 0.5, 0.9995, 0.998, 1.0, 1.0001, 7.0,
                           np.nan, np.inf, -np.inf, 1e308])  # fmt: skip


@given(st.lists(NUMBERS, min_size=1, max_size=3), st.sampled_from(["probability", "logit"]))
@example([np.inf, -np.inf], "logit")
def test_a_row_is_valid_if_and_only_if_it_is_accepted(row, scores):
    values = np.array(row if len(row) == 1 else [row])
    try:
        check_forecasts(values, unit=scores)
    except InputError:
        accepted = False
    else:
        accepted = True
    assert valid_rows(values, kind_of(len(row), scores)).tolist() == [accepted]


@pytest.mark.parametrize(
    ("column", "ends"),
    [
        (pl.lit(b"\xff"), ["csv", "ndjson"]),
        (pl.lit(b"\xff").implode(), ["ndjson"]),
        (pl.struct("w"), ["csv"]),
    ],
)
@pytest.mark.usefixtures("model")
def test_columns_that_a_format_cannot_store_are_errors(run_cli, table, column, ends):
    table.with_columns(odd=column).write_parquet("x.parquet")
    for end in ends:
        ran = run_cli("apply", "model.json", "x.parquet", "-o", f"out.{end}")
        assert ran.code == 2
        assert "column 'odd' has the type" in ran.err
        assert f"which {end} files cannot store" in ran.err


def test_a_panic_is_an_internal_error(run_cli, monkeypatch):
    class PanicException(BaseException):
        """Like the panics of polars, which are no Exception."""

    def panic(*_):
        raise PanicException("not yet implemented")

    monkeypatch.setattr("isoroc._cli.app.build", lambda: panic)
    ran = run_cli("calibrators")
    assert (ran.code, "PanicException: not yet implemented" in ran.err) == (3, True)


def test_an_interrupt_during_imports_has_its_code(monkeypatch, capsys):
    class Interrupting:
        def find_spec(self, name, *_):
            if name == "isoroc._cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "isoroc._cli.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert main(["--version"]) == 130
    assert capsys.readouterr().err == "isoroc: ended by SIGINT\n"


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["calibrators"]])
def test_closed_pipes_have_their_code(words):
    command = [sys.executable, "-m", "isoroc", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        assert ran.stdout
        assert ran.stderr
        ran.stdout.close()
        assert ran.stderr.read() == b""
        assert ran.wait() == 141
