"""``isoroc demo``: fit, evaluate and apply on generated data."""

import shlex
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import polars as pl

from isoroc._cli.app import run
from isoroc._cli.errors import CommandError
from isoroc._cli.terminal import print_text
from isoroc._core.types import Floats
from isoroc._support.files import temporary_folder


def demo(*, keep: str | None = None) -> int:
    """Fit, evaluate and apply on generated data.

    Parameters
    ----------
    keep
        Folder in which the files are kept. Default: they are removed.
    """
    if keep is not None:
        Path(keep).mkdir(parents=True, exist_ok=True)
    print_text("A model classifies birds, cats and dogs, and is overconfident. Its forecasts were")
    print_text("logged. The outcomes of March and April are known, but none of May yet.")
    with temporary_folder() if keep is None else nullcontext(Path(keep)) as folder:
        months = (folder / f"{month}.csv" for month in ("march", "april", "may"))
        tables = {path: _forecasts_of_a_month(600, seed=k) for k, path in enumerate(months)}
        march, april, may = tables
        model = folder / "model.json"
        calibrated = folder / "calibrated.csv"
        existing = [path for path in (*tables, model, calibrated) if path.exists()]
        if existing and (existing[0] != march or march.read_text() != tables[march].write_csv()):
            raise CommandError(f"{existing[0]}: exists already; name another folder with --keep.")
        tables[may] = tables[may].drop("animal")
        for path, table in tables.items():
            table.write_csv(path)
        for step in (
            ["fit", march, "--label", "animal", "-o", model],
            ["evaluate", april, "--model", model],
            ["apply", model, may, "-o", calibrated],
        ):
            words = [str(word) for word in step]
            print_text(f"\n$ isoroc {shlex.join(words)}")
            if code := run(words):
                return code
        print_text("\nThe first rows of calibrated.csv:\n")
        print_text("\n".join(calibrated.read_text(encoding="utf-8").splitlines()[:4]))
    print_text("\nNext: isoroc inspect, isoroc export, isoroc --help.")
    return 0


def _forecasts_of_a_month(n_rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(3, 0.8), n_rows)
    outcome = (truth.cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)
    P: Floats = truth**2.5
    P = (P / P.sum(axis=1, keepdims=True)).round(6)
    names = np.array(["bird", "cat", "dog"])
    columns = {f"p_{name}": P[:, k] for k, name in enumerate(names)}
    camera = np.array(["garden", "roof"])[rng.integers(2, size=n_rows)]
    animal = names[outcome]
    return pl.DataFrame({"id": range(n_rows), "camera": camera, **columns, "animal": animal})
