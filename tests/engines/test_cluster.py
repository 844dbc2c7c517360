"""A cluster of two workers that lose what they have computed while they count."""

import os
import signal
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from isoroc import Counts, TemperatureCalibrator

#: All partitions together, columns of 8 bytes, are larger than the memory of one worker.
PARTS = 12
ROWS = 30_000
IDLE = 260
MEMORY = 700_000_000
NAMES = ["p0", "p1", "p2"]


@pytest.fixture(autouse=True)
def _deadline():
    """A limit of time: what waits for a lost worker for ever must not stop all other tests."""

    def expire(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, expire)
    signal.alarm(150)
    yield
    signal.alarm(0)


@pytest.fixture
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": MEMORY}
    with LocalCluster(**options, dashboard_address=None) as cluster, Client(cluster):
        yield cluster


def make_part(seed, idle=IDLE):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(3), ROWS)
    P = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < rng.random((ROWS, 1))).sum(axis=1).clip(max=2)
    columns = dict(zip(NAMES, P.T, strict=True)) | {"y": y, "key": np.arange(ROWS) + seed * ROWS}
    return pd.DataFrame(columns | {f"idle_{j}": np.ones(ROWS) for j in range(idle)})


def load_part(seed, folder):
    """A partition. Its worker is killed with all that it holds, once in each of two passes."""
    Path(tempfile.mkstemp(dir=folder)[1]).touch()
    loads = len(list(Path(folder).iterdir()))
    for number, at in enumerate((PARTS // 2, PARTS + PARTS // 2 + 2)):
        mark = Path(folder).with_suffix(f".killed-{number}")
        if loads >= at and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return make_part(seed)


def test_killed_workers_change_nothing(cluster, tmp_path):
    assert PARTS * ROWS * (5 + IDLE) * 8 > MEMORY
    before = {worker.process.pid for worker in cluster.workers.values()}
    folder = tmp_path / "loads"
    folder.mkdir()
    df = dd.from_map(partial(load_part, folder=str(folder)), range(PARTS), meta=make_part(0)[:0])
    options: dict[str, Any] = {"resolution": 32, "labels": [0, 1, 2]}
    counts = Counts.from_frame(df, NAMES, "y", fold_by="key", **options)
    assert len(list(tmp_path.glob("loads.killed-*"))) == 2
    assert before != {worker.process.pid for worker in cluster.workers.values()}
    whole = pd.concat([make_part(seed, idle=0) for seed in range(PARTS)])
    expected = Counts.from_frame(whole, NAMES, "y", fold_by="key", **options)
    np.testing.assert_array_equal(counts.cells.keys, expected.cells.keys)
    np.testing.assert_array_equal(counts.fold, expected.fold)
    np.testing.assert_array_equal(counts.rows, expected.rows)
    np.testing.assert_array_equal(counts.class_weights, expected.class_weights)
    of_cluster, of_pandas = (TemperatureCalibrator().fit_counts(c) for c in (counts, expected))
    assert of_cluster.temperature_ == pytest.approx(of_pandas.temperature_, rel=1e-12)
