"""The experiment repeated on many random splits and with several classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.special import stdtrit

from isoroc import metrics
from isoroc._progress import Report
from isoroc._simplex import Floats
from isoroc.paper import _procedure as procedure
from isoroc.paper._cache import Arrays, Cache
from isoroc.paper._data import CLASSIFIERS, SIZES, Forecasts, Rows
from isoroc.paper._runs import CLIP, PROCEDURES, PUBLISHED, normalise, volume

#: Up to this many classes the hull volume is exact, and quick enough to compute for every split.
_VOLUME_UP_TO = 3

#: Measures of `measure_split` over splits, by number of classes and classifier.
Repetition = dict[tuple[int, str], Arrays]


class Difference(NamedTuple):
    """Mean of paired differences over splits, with its interval."""

    mean: float
    low: float
    high: float
    #: Number of splits with a difference below zero.
    n_below: int
    n_splits: int

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ({self.low:+.4f} to {self.high:+.4f})"


def paired(a: Floats, b: Floats, confidence: float = 0.95) -> Difference:
    """Mean of a - b over random splits of one data set.

    Splits share rows, so their differences are not independent and the usual interval is too
    narrow. The variance of the mean is that of Nadeau and Bengio (2003): (1/m + test/rest) times
    the variance over the m splits, with the paper's sizes.

    Examples
    --------
    >>> import numpy as np
    >>> print(paired(np.array([1.0, 2.0, 3.0]), np.zeros(3)))
    +2.0000 (-1.1422 to +5.1422)
    """
    differences = a - b
    m = len(differences)
    train, cal, test = SIZES
    error = np.sqrt((1 / m + test / (train + cal)) * differences.var(ddof=1))
    half = float(stdtrit(m - 1, 0.5 + confidence / 2) * error)
    mean = float(differences.mean())
    return Difference(mean, mean - half, mean + half, int((differences < 0).sum()), m)


def measure_split(forecasts: Forecasts) -> dict[str, float]:
    """Measures of all procedures on one split.

    Names are ``procedure/measure``. Forecasts are normalised, except in `as_published`, the test
    cross entropy as the experiments compute it. `best` is the lowest test cross entropy of all
    stages, `best_bins` the number of bins of that stage, and `regret` by how much the last stage is
    above it. `cal_volume` is the hull volume of the calibration rows, if it is exact.
    """
    y, labels = forecasts.y_test, np.arange(forecasts.n_classes)

    def loss(Q: Floats) -> float:
        return metrics.log_loss(y, Q, eps=CLIP, labels=labels)

    exact = forecasts.n_classes <= _VOLUME_UP_TO
    found = {
        "before/cross_entropy": loss(forecasts.P_test),
        "before/brier": metrics.brier_score_loss(
            y, forecasts.P_test, scale_by_half=False, labels=labels
        ),
    }
    if exact:
        found["before/cal_volume"] = volume(forecasts.P_cal, forecasts.y_cal)
    for name, run_on in PROCEDURES.items():
        run = run_on(forecasts)
        losses = np.array([loss(Q) for Q in normalise(run.test)])
        best = int(losses.argmin())
        found |= {
            f"{name}/bins": float(run.n_bins[-1]),
            f"{name}/cross_entropy": float(losses[-1]),
            f"{name}/brier": metrics.brier_score_loss(
                y, normalise(run.test[-1]), scale_by_half=False, labels=labels
            ),
            f"{name}/best": float(losses[best]),
            f"{name}/regret": float(losses[-1] - losses[best]),
            f"{name}/best_bins": float(run.n_bins[best]),
        }
        if name in PUBLISHED:
            found[f"{name}/as_published"] = procedure.cross_entropy(run.test[-1], y)
        if exact and name == PUBLISHED[0]:
            found[f"{name}/cal_volume"] = volume(run.cal[-1], forecasts.y_cal)
    return found


def repeat(
    rows: Rows,
    classes: Sequence[int],
    seeds: Sequence[int],
    *,
    classifiers: Sequence[str] = tuple(CLASSIFIERS),
    cache: Cache,
    n_jobs: int | None = None,
    report: Report = lambda _: None,
) -> Repetition:
    """Measures of `measure_split` for each number of classes and classifier, one entry per seed.

    Parameters
    ----------
    rows : Rows
        The data.
    classes : sequence of int
        Numbers of classes.
    seeds : sequence of int
        Seeds of the splits.
    classifiers : sequence of str
        Names of `CLASSIFIERS`.
    cache : Cache
        Keeps the measures.
    n_jobs : int, default=None
        Number of processes, as in joblib.
    report : callable
        Called with a short text on the progress.
    """
    found = {}
    for K in classes:
        for classifier in classifiers:

            def compute(K: int = K, classifier: str = classifier) -> Arrays:
                tasks = (delayed(_task)(rows, K, seed, classifier) for seed in seeds)
                results: list[dict[str, float]] = []
                for result in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
                    results.append(result)
                    report(f"K = {K}, {classifier}: split {len(results)} of {len(seeds)}")
                return {name: np.array([r[name] for r in results]) for name in results[0]}

            key = (rows.X, rows.y, rows.joined, K, classifier, tuple(seeds))
            found[K, classifier] = cache.get("repetition", key, compute)
    return found


def _task(rows: Rows, K: int, seed: int, classifier: str) -> dict[str, float]:
    return measure_split(rows.forecasts(K, seed, classifier))


#: Comparisons in the table of the repetition: a title, and two measures to subtract.
COMPARISONS: tuple[tuple[str, str, str], ...] = (
    (
        "published IRP - before, as published",
        "published IRP/as_published",
        "before/cross_entropy",
    ),
    ("published IRP - before", "published IRP/cross_entropy", "before/cross_entropy"),
    (
        "published IRP - recursive binning",
        "published IRP/cross_entropy",
        "recursive binning/cross_entropy",
    ),
    (
        "published IRP - recursive binning at its best",
        "published IRP/cross_entropy",
        "recursive binning/best",
    ),
    ("isoroc - before", "isoroc, sweep/cross_entropy", "before/cross_entropy"),
    (
        "isoroc - published IRP",
        "isoroc, sweep/cross_entropy",
        "published IRP/cross_entropy",
    ),
)


def compare(measures: Arrays) -> dict[str, Difference]:
    """`COMPARISONS` of one entry of a repetition."""
    return {title: paired(measures[a], measures[b]) for title, a, b in COMPARISONS}


def summary(repetition: Repetition) -> list[dict[str, Any]]:
    """One entry for each number of classes and classifier, as a JSON value."""
    return [
        {
            "classes": K,
            "classifier": classifier,
            "means": {name: float(values.mean()) for name, values in measures.items()},
            "differences": {
                title: difference._asdict() for title, difference in compare(measures).items()
            },
        }
        for (K, classifier), measures in repetition.items()
    ]
