"""The paper's experiment for one number of classes, and measurements of its claims."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from isoroc import metrics
from isoroc._calibrators.irp import IRPCalibrator
from isoroc._progress import Report
from isoroc._simplex import Floats, Ints
from isoroc._table import Table
from isoroc.metrics._surface.volumes import Hull
from isoroc.paper._cache import Arrays, Cache
from isoroc.paper._data import Forecasts
from isoroc.paper._reference import ReferenceIRP
from isoroc.paper._runs import (
    PROCEDURES,
    PUBLISHED,
    Run,
    Scores,
    grid_size_of,
    normalise,
    score,
    score_as_published,
    surface_points,
    volume,
)

#: The search of isoroc that the figures show.
OURS = "isoroc, sweep"


class Outcome(NamedTuple):
    """Scores of a procedure: a row of the table of results."""

    procedure: str
    n_bins: int | None
    #: Scores of values that do not sum to one; None if they do.
    as_published: Scores | None
    normalised: Scores
    cal_volume: float
    test_volume: float


class Experiment(NamedTuple):
    """Forecasts, and the results of all procedures on them."""

    forecasts: Forecasts
    runs: dict[str, Run]
    #: For each procedure a table with one row per stage: bins, scores in both ways, volumes.
    stages: dict[str, Table]
    #: Hull volumes of calibration and test rows before calibration.
    volumes: tuple[float, float]

    @property
    def n_classes(self) -> int:
        """K."""
        return self.forecasts.n_classes

    def outcomes(self) -> list[Outcome]:
        """Rows of the table of results: before, and the last stage of each procedure."""
        P, _, P_test, _, _ = self.forecasts
        before = Outcome(
            "before",
            None,
            score_as_published(P, P_test, self.forecasts),
            score(P, P_test, self.forecasts),
            *self.volumes,
        )
        return [before, *map(self._outcome, self.runs)]

    def _outcome(self, name: str) -> Outcome:
        last = {column: float(values[-1]) for column, values in self.stages[name].items()}
        as_published, normalised = (
            Scores(*(last[f"{field}_{way}"] for field in Scores._fields))
            for way in ("as_published", "normalised")
        )
        return Outcome(
            name,
            int(last["n_bins"]),
            as_published if name in PUBLISHED else None,
            normalised,
            last["cal_volume"],
            last["test_volume"],
        )


def experiment(
    forecasts: Forecasts,
    cache: Cache,
    *,
    n_jobs: int | None = None,
    report: Report = lambda _: None,
) -> Experiment:
    """Run all procedures on forecasts.

    Parameters
    ----------
    forecasts : Forecasts
        The number of classes must be small enough for a grid.
    cache : Cache
        Keeps trees and volumes.
    n_jobs : int, default=None
        Number of processes, as in joblib, for the volumes of four classes or more; other volumes
        are quick to compute.
    report : callable
        Called with a short text on the progress.
    """
    P, y, P_test, y_test, _ = forecasts
    K = forecasts.n_classes
    runs, volumes = {}, {}
    for name, procedure in PROCEDURES.items():
        report(f"K = {K}, {name}")

        def compute(procedure: Any = procedure) -> Arrays:
            return procedure(forecasts)._asdict()  # type: ignore[no-any-return]

        runs[name] = Run.of_arrays(cache.get(f"tree-{K}", (name, P, y, P_test), compute))
    stages = {"before": [(P, P_test)]}
    stages |= {name: list(zip(run.cal, run.test, strict=True)) for name, run in runs.items()}
    for name, pairs in stages.items():
        report(f"K = {K}, ROC surfaces, {name}")

        def measure(pairs: list[tuple[Floats, Floats]] = pairs) -> Arrays:
            tasks = (delayed(_volumes)(a, y, b, y_test) for a, b in pairs)
            return {"volumes": np.array(Parallel(n_jobs=n_jobs if K > 3 else None)(tasks))}

        key = (np.concatenate([np.vstack(pair) for pair in pairs]), y, y_test)
        volumes[name] = cache.get(f"volumes-{K}", key, measure)["volumes"]
    tables = {name: _stages(run, volumes[name], forecasts) for name, run in runs.items()}
    return Experiment(forecasts, runs, tables, tuple(volumes["before"][0].tolist()))


def _stages(run: Run, volumes: Floats, forecasts: Forecasts) -> Table:
    pairs = list(zip(run.cal, run.test, strict=True))
    ways = {
        "as_published": [score_as_published(cal, test, forecasts) for cal, test in pairs],
        "normalised": [score(normalise(cal), normalise(test), forecasts) for cal, test in pairs],
    }
    table = Table(n_bins=run.n_bins)
    for way, scores in ways.items():
        for field, values in zip(Scores._fields, zip(*scores, strict=True), strict=True):
            table[f"{field}_{way}"] = np.array(values)
    table["cal_volume"], table["test_volume"] = volumes.T
    return table


def _volumes(cal: Floats, y: Ints, test: Floats, y_test: Ints) -> tuple[float, float]:
    return volume(cal, y), volume(test, y_test)


def claims(done: Experiment, cache: Cache) -> dict[str, Any]:
    """Measurements of the paper's claims, as a JSON value."""
    P, y, P_test, y_test, _ = done.forecasts
    K = done.n_classes
    columns = np.arange(K)

    def compute() -> Arrays:
        irp = ReferenceIRP(grid_size_of(K), lam=0.0).fit(P, y)
        ours = IRPCalibrator(pseudocount=0, random_state=0).fit(P, y)
        *_, fitted = [np.tile(irp.stages[0][0].value, (len(P), 1)), *irp.fitted()]
        return {"IRP": fitted, "isoroc": ours.predict_proba(P)}

    raw = cache.get(f"unsmoothed-{K}", (P, y), compute)
    last = done.runs[PUBLISHED[0]]
    smooth = normalise(last.cal[-1]), normalise(last.test[-1])

    def error(labels: Any, Q: Floats, bins: Any) -> float:
        return metrics.calibration_error(labels, Q, bins=bins, labels=columns)

    found: dict[str, Any] = {
        "calibration_error": {
            "calibration rows, IRP without smoothing": error(y, raw["IRP"], "exact"),
            "calibration rows, isoroc without smoothing": error(y, raw["isoroc"], "exact"),
            "calibration rows, published IRP": error(y, smooth[0], "exact"),
            "test rows, before": error(y_test, P_test, "irp"),
            "test rows, published IRP": error(y_test, smooth[1], "irp"),
        },
        "stop": {name: _stop(stages, name) for name, stages in done.stages.items()},
        "volume": {
            "before": done.volumes[0],
            "published IRP, all thresholds": float(done.stages[PUBLISHED[0]]["cal_volume"][-1]),
            "published IRP, its splits only": split_volume(done),
            "isoroc, all thresholds": float(done.stages[OURS]["cal_volume"][-1]),
        },
    }
    if K == 2:
        found["hull"] = {
            "AUC before": metrics.auc(y, P),
            "AUC of the hull before": metrics.hull_auc(y, P),
            "AUC, isoroc without smoothing": metrics.auc(y, raw["isoroc"]),
            "AUC, IRP without smoothing": metrics.auc(y, raw["IRP"]),
        }
    return found


def _stop(stages: Table, name: str) -> dict[str, Any]:
    """Number of bins and test cross entropy of the last stage and of the best stage."""
    found: dict[str, Any] = {"n_bins": int(stages["n_bins"][-1])}
    for way in ("as_published", "normalised") if name in PUBLISHED else ("normalised",):
        losses = stages[f"test_cross_entropy_{way}"]
        best = int(losses.argmin())
        found[way] = {
            "at_the_end": float(losses[-1]),
            "at_best": float(losses[best]),
            "n_bins_at_best": int(stages["n_bins"][best]),
        }
    return found


def split_volume(done: Experiment) -> float:
    """Hull volume, on calibration rows, of the ROC points of the splits of published IRP.

    These points lie on the ROC surface before and after calibration.
    """
    P, y, _, _, _ = done.forecasts
    return Hull(surface_points(P, y, done.runs[PUBLISHED[0]].thresholds)).volume
