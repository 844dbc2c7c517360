"""``isoroc apply --prior`` and ``--adapt-prior``."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import isoroc
from cli_tables import make_forecasts
from isoroc import adjust_prior

CALIBRATED = ["p_bird_cal", "p_cat_cal", "p_dog_cal"]


def old_shares(table):
    return table["y"].value_counts(normalize=True).sort("y")["proportion"].to_numpy()


@pytest.mark.usefixtures("model")
def test_given_shares(run_cli, table):
    words = ["--prior", "dog=0.1,bird=0.7,cat=0.2"]
    assert run_cli("apply", "model.json", "data.csv", *words, "-o", "out.csv").code == 0
    Q = isoroc.load("model.json").predict_proba(table.select("^p_.*$").to_numpy())
    expected = adjust_prior(Q, old_shares(table), [0.7, 0.2, 0.1])
    found = pl.read_csv("out.csv").select(CALIBRATED).to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("rows", [100_000, 500])
def test_estimated_shares(run_cli, monkeypatch, rows):
    adjust = "isoroc._cli.commands.apply.Calibration.adjust.__kwdefaults__"
    monkeypatch.setattr(adjust, {"n_estimated": rows})
    table = make_forecasts(4000)
    table.write_csv("data.csv")
    assert run_cli("fit", "data.csv", "-c", "temperature", "-o", "model.json").code == 0
    # Nine in ten birds are gone: a third of the rows become a twenty-first.
    few_birds = table.filter((pl.col("y") != "bird") | (pl.int_range(pl.len()) % 10 == 0))
    few_birds.drop("y").write_parquet("new.parquet")
    ran = run_cli("apply", "model.json", "new.parquet", "--adapt-prior", "-o", "out.parquet")
    assert ran.code == 0
    assert "class shares of these rows:" in ran.err
    share = pl.read_parquet("out.parquet")["p_bird_cal"].mean()
    assert share == pytest.approx(1 / 21, abs=0.04 if rows > 500 else 0.1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--prior", "dog=0.1,bird=0.7"], "--prior names dog, bird, but the classes are"),
        (
            ["--prior", "dog=0.1,bird=0.7,cat=0.3"],
            "--prior sums to 1.1, not to 1; give the share of each class",
        ),
        (
            ["--prior", "dog,bird,cat"],
            "--prior dog,bird,cat has a share that is not a number; give the share",
        ),
        (["--prior", "dog=1,bird=0,cat=0", "--adapt-prior"], "use one"),
    ],
)
@pytest.mark.usefixtures("model")
def test_bad_shares(run_cli, words, message):
    ran = run_cli("apply", "model.json", "data.csv", *words, "-o", "out.csv")
    assert ran.code == 2
    assert message in ran.err
    assert not Path("out.csv").exists()


def test_absent_classes_cannot_be_adjusted(run_cli):
    P = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    y = np.array(["bird", "cat"])[np.arange(50) % 2]
    labels = ["bird", "cat", "dog"]
    isoroc.TemperatureCalibrator().fit(P, y, labels=labels).save("model.json")
    pl.DataFrame(P, schema=["p_bird", "p_cat", "p_dog"]).write_csv("new.csv")
    ran = run_cli("apply", "model.json", "new.csv", "--adapt-prior", "-o", "out.csv")
    assert ran.code == 2
    assert "class dog did not occur in the calibration rows" in ran.err


@pytest.mark.usefixtures("model")
def test_an_empty_table_has_no_shares(run_cli, table):
    table[:0].write_csv("none.csv")
    ran = run_cli("apply", "model.json", "none.csv", "--adapt-prior", "-o", "out.csv")
    assert ran.code == 2
    assert "none.csv: no rows" in ran.err
