"""``isoroc demo``: the whole job on generated data."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from isoroc._cli.app import run
from isoroc._cli.terminal import say
from isoroc._simplex import Floats

CLASSES = ("bird", "cat", "dog")


def demo(*, keep: str | None = None) -> int:
    """The whole job on generated data: fit, evaluate, apply.

    Parameters
    ----------
    keep
        Folder to leave the files in; by default they are removed.
    """
    if keep is not None:
        Path(keep).mkdir(parents=True, exist_ok=True)
        return _play(Path(keep))
    with tempfile.TemporaryDirectory() as folder:
        return _play(Path(folder))


def _play(folder: Path) -> int:
    say("A model tells birds, cats and dogs apart, but is too sure of itself. It has logged")
    say("its forecasts; for March and April the outcomes are known, for May not yet.")
    for k, month in enumerate(("march", "april", "may")):
        table = pl.DataFrame(forecasts_of_a_month(600, seed=k))
        table = table.drop("animal") if month == "may" else table
        table.write_csv(folder / f"{month}.csv")
    model = folder / "model.json"
    steps = [
        ["fit", folder / "march.csv", "--label", "animal", "-o", model],
        ["evaluate", folder / "april.csv", "--model", model, "--resamples", "20"],
        ["apply", model, folder / "may.csv", "-o", folder / "calibrated.csv"],
    ]
    for step in steps:
        words = [str(word) for word in step]
        say(f"\n$ isoroc {shlex.join(words)}")
        code = run(words)
        if code:
            return code
    say("\nThe first rows of calibrated.csv:\n")
    lines = (folder / "calibrated.csv").read_text(encoding="utf-8").splitlines()[:4]
    say("\n".join(lines))
    say("\nMore: isoroc inspect, isoroc export; isoroc --help.")
    return 0


def forecasts_of_a_month(n_rows: int, seed: int) -> dict[str, object]:
    """Forecasts that are sharper than the truth, and what came true."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(3, 0.8), n_rows)
    outcome = (truth.cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)
    P: Floats = truth**2.5
    P = (P / P.sum(axis=1, keepdims=True)).round(6)
    columns = {f"p_{name}": P[:, k] for k, name in enumerate(CLASSES)}
    return {"id": np.arange(n_rows), **columns, "animal": np.array(CLASSES)[outcome]}
