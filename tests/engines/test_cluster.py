"""A cluster of two workers, of which one is killed while it counts."""

import os
import signal
import threading
import time

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from isoroc import Counts, TemperatureCalibrator

#: 36 bytes per row: all parts together are larger than the memory of one worker.
PARTS, ROWS, MEMORY = 34, 500_000, "600MB"


def part(seed):
    rng = np.random.default_rng(seed)
    truth = rng.standard_exponential((ROWS, 3))
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < rng.random((ROWS, 1))).sum(axis=1).clip(max=2)
    P = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    names = {"p0": P[:, 0], "p1": P[:, 1], "p2": P[:, 2]}
    return pd.DataFrame(names | {"y": y, "key": np.arange(ROWS) + seed * ROWS})


@pytest.fixture
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": MEMORY}
    with LocalCluster(**options, dashboard_address=None) as cluster, Client(cluster):
        yield cluster


def kill_one(cluster, killed):
    """Kill the first worker once it has work; the cluster's nanny starts another."""
    time.sleep(4)
    process = cluster.workers[0].process.process
    killed.append(process.pid)
    os.kill(process.pid, signal.SIGKILL)


def test_a_killed_worker_changes_nothing(cluster):
    df = dd.from_map(part, range(PARTS))
    killed = []
    thread = threading.Thread(target=kill_one, args=(cluster, killed))
    thread.start()
    options = {"resolution": 32, "labels": [0, 1, 2]}
    counts = Counts.from_frame(df, ["p0", "p1", "p2"], "y", fold_by="key", **options)
    thread.join()
    assert killed
    assert counts.n_rows == PARTS * ROWS
    columns = (part(seed) for seed in range(PARTS))
    expected = None
    for frame in columns:
        P, y = frame[["p0", "p1", "p2"]].to_numpy(), frame["y"].to_numpy()
        more = Counts.from_arrays(P, y, fold_by=frame["key"].to_numpy(), **options)
        expected = more if expected is None else expected + more
    np.testing.assert_array_equal(counts.cells.keys, expected.cells.keys)
    np.testing.assert_array_equal(counts.rows, expected.rows)
    np.testing.assert_array_equal(counts.class_weights, expected.class_weights)
    of_cluster, of_numpy = (TemperatureCalibrator().fit_counts(c) for c in (counts, expected))
    assert of_cluster.temperature_ == pytest.approx(of_numpy.temperature_, rel=1e-9)
