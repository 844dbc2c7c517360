"""``--label-shares``: soft labels on the command line equal those in Python."""

import json

import numpy as np
import polars as pl
import pytest

import isoroc

FORECASTS = [f"p_{k}" for k in "abc"]
SHARES = [f"share_{k}" for k in "abc"]


@pytest.fixture
def rows(run_cli):  # noqa: ARG001  # which changes the folder
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 400)
    votes = np.array([rng.multinomial(4, p**2 / (p**2).sum()) for p in P]) / 4
    columns = dict(zip([*FORECASTS, *SHARES], [*P.T, *votes.T], strict=True))
    frame = pl.DataFrame(columns | {"region": rng.choice(["n", "s"], 400)})
    frame.write_csv("rows.csv")
    return frame


def test_fit_evaluate_report_and_count(run_cli, rows):
    P, votes = (rows.select(names).to_numpy() for names in (FORECASTS, SHARES))
    words = ["--label-shares", "share_c,share_a,share_b", "-c", "temperature"]
    ran = run_cli("fit", "rows.csv", *words, "-o", "model.json")
    assert ran.code == 0, ran.err
    expected = isoroc.TemperatureCalibrator().fit(P, votes, labels=list("abc"))
    found = isoroc.load("model.json")
    assert found.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(found.predict_proba(P), expected.predict_proba(P))
    ran = run_cli("evaluate", "rows.csv", "-m", "model.json", "--label-shares", "share_*", "--json")
    evaluation = isoroc.evaluate(votes, P, after=expected)
    measures = json.loads(ran.text)["measures"]
    for name in ("log_loss", "calibration_error", "accuracy"):
        shown = measures[name]["change"]
        own = evaluation.measures[name]["change"]
        assert [shown["value"], shown["low"], shown["high"]] == pytest.approx(list(own), rel=1e-6)
    ran = run_cli("report", "rows.csv", "-m", "model.json", "--label-shares", "share_*", "--json")
    assert json.loads(ran.text)["data"]["rows"] == 400
    ran = run_cli("evaluate", "rows.csv", "-m", "model.json", "--json")  # the model knows them
    assert json.loads(ran.text)["measures"] == measures
    ran = run_cli("monitor", "model.json", "rows.csv")
    assert ran.code == 2
    assert "--label-shares: monitoring needs labels; use --label." in ran.err
    ran = run_cli("evaluate", "rows.csv", "--label-shares", "share_*", "--segments", "region")
    assert ran.code == 0, ran.err
    assert run_cli("count", "rows.csv", "--label-shares", "share_*", "-o", "c.parquet").code == 0
    counts = isoroc.Counts.from_parquet("c.parquet")
    whole = isoroc.Counts.from_arrays(P, votes)
    assert counts.n_rows == whole.n_rows == 400
    np.testing.assert_allclose(counts.sample(per_fold=False).class_weights(), votes.sum(axis=0))


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(("words", "problem"), [
    (["--label-shares", "share_a,share_b"], "2 columns, but the forecasts have 3 classes"),
    (["--label-shares", "share_a,share_b,share_d"], "no column 'share_d'"),
    (["--label-shares", "share_*", "--label", "region"], "exclude each other"),
    (["--label-shares", "region,share_a,share_b"], "column 'region' is"),
    (["--label-shares", "p_a,share_b,share_c", "-p", "share_a,p_b,p_c"], "sums to"),
])  # fmt: skip
def test_mistakes(run_cli, words, problem):
    ran = run_cli("fit", "rows.csv", *words, "-o", "model.json")
    assert ran.code == 2
    assert problem in ran.err


@pytest.mark.usefixtures("rows")
def test_commands_that_need_labels(run_cli):
    run_cli("fit", "rows.csv", "--label-shares", "share_*", "-c", "temperature", "-o", "m.json")
    for words in (["monitor", "m.json", "rows.csv"], ["rate", "rows.csv"]):
        ran = run_cli(*words, "--label-shares", "share_*")
        assert ran.code == 2
        assert "--label-shares" in ran.err
