import json
import os
import time
from pathlib import Path

import polars as pl
import pytest
from sklearn.metrics import log_loss


def test_report_writes_a_page_and_prints_the_verdict(model, run_cli):
    ran = run_cli("report", "data.csv", "-m", model, "-o", "page.html")
    assert ran.code == 0, ran.err
    assert "fitted to these very rows" in ran.text
    page = (model.parent / "page.html").read_text(encoding="utf-8")
    assert "<title>Calibration report: data.csv</title>" in page
    assert "page.html" in ran.err


def test_report_prints_the_summary(model, run_cli):  # noqa: ARG001
    ran = run_cli("report", "data.csv", "--json", "--title", "Mine")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.text)
    assert (summary["title"], summary["model"]) == ("Mine", None)
    assert summary["clinical"] is None
    ran = run_cli("report", "data.csv", "--json", "--clinical")
    assert set(json.loads(ran.text)["clinical"]) == {"before"}


def test_reports_of_logits_with_and_without_a_model(table, run_cli):
    logits = table.select(pl.col("^p_.*$").log() + 0.7, "y")  # a constant changes nothing
    logits.write_csv("logits.csv")
    words = ("logits.csv", "--unit", "logit")
    assert run_cli("fit", *words, "-o", "model.json", "-c", "temperature").code == 0
    expected = log_loss(table["y"], table.select("^p_.*$").to_numpy())
    for more in ((), ("-m", "model.json")):
        ran = run_cli("report", *words, "--json", *more)
        assert ran.code == 0, ran.err
        first = json.loads(ran.text)["headline"]["rows"][0]
        assert (first["measure"], set(first) >= {"after"}) == ("log_loss", bool(more))
        assert first["before"]["value"] == pytest.approx(expected)


def test_report_needs_a_target(model, run_cli):
    ran = run_cli("report", "data.csv", "-m", model)
    assert ran.code == 2
    assert "-o report.html" in ran.err


def test_report_from_counts_and_from_many_rows(model, table, run_cli, monkeypatch):
    assert run_cli("count", "data.csv", "-o", "data.counts.parquet").code == 0
    words = ("-m", model, "--json")
    ran = run_cli("report", "--counts", "data.counts.parquet", *words)
    assert ran.code == 0, ran.err
    counted = json.loads(ran.text)
    monkeypatch.setattr("isoroc._cli.reading.MANY", 10)
    table.write_parquet("data.parquet")
    many = json.loads(run_cli("report", "data.parquet", *words).text)
    assert counted["data"]["counted"]
    assert counted["data"] == many["data"]
    assert counted["headline"] == many["headline"]
    ran = run_cli("report", "--counts", "data.counts.parquet", "--label", "y", *words)
    assert "--counts: rows and columns were chosen" in ran.err


def test_the_same_input_gives_the_same_bytes(model, run_cli, monkeypatch):
    words = ["report", "data.csv", "--model", model, "-o"]
    os.utime("data.csv", (0, 86400 * 365.25 * 80))
    for name in ("a.html", "b.html"):
        ran = run_cli(*words, name)
        assert ran.code == 0, ran.err
        time.sleep(1.1 if name == "a.html" else 0)  # times in files are in seconds
    assert Path("a.html").read_bytes() == Path("b.html").read_bytes()
    assert "2050-01-01 00:00 UTC" in Path("a.html").read_text()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert run_cli(*words, "d.html").code == 0
    assert "1970-01-01 00:00 UTC" in Path("d.html").read_text()
