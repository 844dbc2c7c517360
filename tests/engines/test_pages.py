"""The walk-throughs of docs/scale.md, each on its engine."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
#: Blocks that need an engine are marked ``py``, so that other tests leave them out.
BLOCKS = dict(re.findall(r"### (\w+)\n.*?```py\n(.*?)```", PAGE.read_text(), re.DOTALL))


@pytest.mark.parametrize("engine", ["DuckDB", "Dask", "Spark"])
def test_walk_throughs(engine, request, tmp_path):
    (tmp_path / "logs").mkdir()
    rng = np.random.default_rng(0)
    for day in range(2):
        truth = rng.dirichlet(np.ones(3), 2000)
        y = (truth.cumsum(axis=1) < rng.random((2000, 1))).sum(axis=1).clip(max=2)
        P = truth**2 / (truth**2).sum(axis=1, keepdims=True)
        table = pl.DataFrame(P, schema=["p_0", "p_1", "p_2"])
        user_id = rng.integers(0, 500, 2000)
        table.with_columns(y=y, user_id=user_id).write_parquet(tmp_path / f"logs/{day}.parquet")
    names = {"spark": request.getfixturevalue("spark")} if engine == "Spark" else {}
    block = BLOCKS[engine]
    for name in ("logs", "calibrated"):  # Spark keeps the folder in which it was started
        block = block.replace(f'"{name}', f'"{tmp_path}/{name}')
    exec(compile(block, engine, "exec"), names)  # noqa: S102
    assert names["counts"].n_rows == 4000
    files = sorted(tmp_path.glob("calibrated*/*.parquet")) or [tmp_path / "calibrated.parquet"]
    Q = pl.concat([pl.read_parquet(file) for file in files]).select(pl.col("^calibrated_.*$"))
    assert Q.shape == (4000, 3)
    np.testing.assert_allclose(Q.sum_horizontal(), 1.0)
