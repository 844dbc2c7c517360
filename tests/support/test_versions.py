"""Formats of files: stored files of each version stay readable, newer ones name what to install."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from isoroc import CalibrationMonitor, Counts
from isoroc._support.versions import migrate

DATA = Path(__file__).resolve().parents[1] / "data"


def test_each_step_leads_to_the_next_version():
    steps = [lambda d: d | {"b": d["a"] + 1}, lambda d: d | {"c": d["b"] + 1}]
    assert migrate({"version": 3, "a": 1}, 5, steps) == {"version": 5, "a": 1, "b": 2, "c": 3}
    assert migrate({"version": 4, "b": 1}, 5, steps) == {"version": 5, "b": 1, "c": 2}
    assert migrate({"version": 5}, 5, steps) == {"version": 5}


@pytest.mark.parametrize("version", [2, 0, None, "5", True, 5.0])
def test_unknown_versions_are_refused(version):
    with pytest.raises(ValueError, match="expected format version 5 or from 4 on, got"):
        migrate({"version": version}, 5, [dict])


def test_the_error_names_the_version_to_install():
    newer = {"version": 6, "library": "1.4.0"}
    with pytest.raises(ValueError, match=r"6 is newer than 5.*Install isoroc 1\.4\.0 or later"):
        migrate(newer, 5)
    with pytest.raises(ValueError, match="Install the latest isoroc"):
        migrate(newer | {"library": "\n; rm"}, 5)


@pytest.mark.parametrize("path", sorted(DATA.glob("counts-*.parquet")), ids=lambda path: path.name)
def test_stored_counts(path, tmp_path):
    """Of 200 rows of Dirichlet forecasts, seed 0."""
    counts = Counts.from_parquet(path)
    assert counts.n_rows == 200
    assert counts.classes.tolist() == ["a", "b", "c"]
    P = np.random.default_rng(0).dirichlet([0.6, 0.6, 0.6], 200)
    mean = counts.class_weights.sum(axis=1) @ counts.forecasts / 200
    np.testing.assert_allclose(mean, P.mean(axis=0), rtol=1e-8)
    frame = pl.read_parquet(path)
    about = json.loads(frame["isoroc"][0]) | {"format": 99, "library": "9.0"}
    newer = tmp_path / "newer.parquet"
    frame.with_columns(isoroc=pl.lit(json.dumps(about))).write_parquet(newer)
    with pytest.raises(ValueError, match=r"format version 99 is newer.*Install isoroc 9\.0"):
        Counts.from_parquet(newer)


@pytest.mark.parametrize("path", sorted(DATA.glob("monitor-*.json")), ids=lambda path: path.name)
def test_stored_states_of_monitors(path, tmp_path):
    monitor = CalibrationMonitor.load(path)
    assert monitor.totals.rows == 200
    assert monitor.n_batches == 1
    newer = tmp_path / "newer.json"
    newer.write_text(json.dumps(json.loads(path.read_text()) | {"version": 99, "library": "9.0"}))
    with pytest.raises(ValueError, match=r"format version 99 is newer.*Install isoroc 9\.0"):
        CalibrationMonitor.load(newer)
