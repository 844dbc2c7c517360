"""Clusters of rows on the command line: ``--clusters`` of evaluate, report and fit."""

import json

import numpy as np
import polars as pl
import pytest

import isoroc


@pytest.fixture
def visits(run_cli, monkeypatch):  # noqa: ARG001  # its folder
    """A table of visits, which is read in batches that divide the visits of a patient."""
    monkeypatch.setattr("isoroc._cli.batches.BATCH", 64)
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(60), 5)
    p = rng.random(60)[patient]
    y = (rng.random(60) < p[::5])[patient]  # all visits of a patient end alike
    columns = {"p": p, "patient": [f"#{k}" for k in patient], "y": np.where(y, "yes", "no")}
    table = pl.DataFrame(columns).sample(fraction=1.0, shuffle=True, seed=0)
    table.write_csv("visits.csv")
    return table


def test_evaluate_and_report_with_clusters(run_cli, visits):
    y = visits["y"].to_numpy()
    p = visits["p"].to_numpy()
    patient = visits["patient"].to_list()
    expected = isoroc.evaluate(y, p, clusters=patient).measures["log_loss"]["before"]
    words = ["visits.csv", "--clusters", "patient", "--json"]
    found = json.loads(run_cli("evaluate", *words).text)["measures"]["log_loss"]["before"]
    assert list(found.values()) == pytest.approx(list(expected))
    headline = json.loads(run_cli("report", *words).text)["headline"]["rows"][0]
    assert headline["before"]["high"] == pytest.approx(expected.high)
    plain = isoroc.evaluate(y, p).measures["log_loss"]["before"]
    assert expected.high - expected.low > 2 * (plain.high - plain.low)


def test_fit_with_clusters(run_cli, visits):
    words = ["fit", "visits.csv", "--clusters", "patient", "--random-state", "0", "-o", "m.json"]
    assert run_cli(*words).code == 0
    errors = isoroc.load("m.json").member_scores_["log_loss_se"]
    y = visits["y"].to_numpy()
    p = visits["p"].to_numpy()
    plain = isoroc.AutoCalibrator(random_state=0).fit(p, y).member_scores_["log_loss_se"]
    assert errors[0] > 2 * plain[0]


@pytest.mark.usefixtures("visits")
def test_refusals(run_cli):
    ran = run_cli("evaluate", "visits.csv", "--clusters", "person")
    assert ran.code == 2
    assert "--clusters: no column 'person'" in ran.err
    pl.read_csv("visits.csv").with_columns(patient=pl.lit("#1")).write_csv("one.csv")
    ran = run_cli("evaluate", "one.csv", "--clusters", "patient")
    assert "at least two clusters are needed" in ran.err
    ran = run_cli("fit", "counts.parquet", "--counts", "--clusters", "patient", "-o", "m.json")
    assert "--segments and --clusters need rows" in ran.err
