"""The paper's experiment for one number of classes, its claims, and repetition on many splits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import stdtrit

from isoroc import IRPCalibrator, metrics
from isoroc._core.simplex import regions
from isoroc._core.types import Floats, Ints
from isoroc._support.table import Table
from isoroc.metrics._surface.bodies import Hull
from reproduction.data import CLASSIFIERS, SIZES, Forecasts, Rows
from reproduction.published import (
    GRID_SIZES,
    ReferenceBinning,
    ReferenceIRP,
    brier_score,
    cross_entropy,
)

log = logging.getLogger(__name__)

#: Cross entropies clip probabilities at this value, because uncalibrated models forecast zeros.
CLIP = 1e-6
#: Strength of the smoothing in the published procedures.
LAM = 0.05
#: The search of isoroc that the figures show.
OURS = "isoroc, sweep"
#: Up to this many classes the hull volume is exact, and quick enough to compute for every split.
_VOLUME_UP_TO = 3


class Run(NamedTuple):
    """Values of a procedure at each of S stages, from one bin to the end, for K classes."""

    n_bins: Ints  #: (S,)
    cal: Floats  #: values of the calibration rows, not normalised, (S, n_cal, K)
    test: Floats  #: values of the test rows, not normalised, (S, n_test, K)
    thresholds: Floats  #: thresholds of the splits, (S - 1, K)

    @property
    def n_stages(self) -> int:
        """S."""
        return len(self.n_bins)


def grid_size_of(K: int) -> int:
    """Grid size of the experiments. Beyond four classes, about as many points as for four."""
    return GRID_SIZES.get(K, 20 if K == 5 else 8)


def _published(kind: type[ReferenceIRP | ReferenceBinning]) -> Callable[[Forecasts], Run]:
    def run(forecasts: Forecasts) -> Run:
        P, y, P_test, _, _ = forecasts
        fitted = kind(grid_size_of(forecasts.n_classes), LAM).fit(P, y)
        root = fitted.stages[0][0].value
        return Run(
            n_bins=np.append(1, fitted.path["n_bins"]),
            cal=np.array([np.tile(root, (len(P), 1)), *fitted.fitted()]),
            test=np.array([np.tile(root, (len(P_test), 1)), *fitted.staged_predict(P_test)]),
            thresholds=fitted.thresholds,
        )

    return run


def _isoroc(search: Literal["sweep", "grid"]) -> Callable[[Forecasts], Run]:
    def run(forecasts: Forecasts) -> Run:
        P, y, P_test, _, _ = forecasts
        K = forecasts.n_classes
        calibrator = IRPCalibrator(
            values="constant", search=search, grid_size=grid_size_of(K), random_state=0
        )
        calibrator.fit(P, y)
        return Run(
            n_bins=calibrator.path_["n_bins"],
            cal=np.array(list(calibrator.staged_predict_proba(P))),
            test=np.array(list(calibrator.staged_predict_proba(P_test))),
            thresholds=calibrator.tree_.thresholds,
        )

    return run


#: Procedures by name: the published ones, then isoroc's calibrator with its default parameters. For
#: two classes both of its searches are isotonic regression.
PROCEDURES: dict[str, Callable[[Forecasts], Run]] = {
    "published IRP": _published(ReferenceIRP),
    "recursive binning": _published(ReferenceBinning),
    "isoroc, sweep": _isoroc("sweep"),
    "isoroc, grid": _isoroc("grid"),
}
PUBLISHED = ("published IRP", "recursive binning")


class Scores(NamedTuple):
    """Losses of forecasts on calibration and test rows."""

    cal_cross_entropy: float
    test_cross_entropy: float
    cal_brier: float
    test_brier: float


def normalise(R: Floats) -> Floats:
    """Values divided by the sums of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> normalise(np.array([[0.05, 1.0, 0.05]])).round(3)
    array([[0.045, 0.909, 0.045]])
    """
    return np.asarray(R / R.sum(axis=-1, keepdims=True))


def score(cal: Floats, test: Floats, forecasts: Forecasts) -> Scores:
    """Scores of normalised values. Cross entropies are clipped at `CLIP`."""
    cal = normalise(cal)
    test = normalise(test)
    return Scores(
        cross_entropy(np.maximum(cal, CLIP), forecasts.y_cal),
        cross_entropy(np.maximum(test, CLIP), forecasts.y_test),
        brier_score(cal, forecasts.y_cal),
        brier_score(test, forecasts.y_test),
    )


def score_as_published(cal: Floats, test: Floats, forecasts: Forecasts) -> Scores:
    """Scores as in the experiments: not normalised, calibration cross entropy regularised."""
    return Scores(
        cross_entropy(cal, forecasts.y_cal, LAM),
        cross_entropy(test, forecasts.y_test),
        brier_score(cal, forecasts.y_cal),
        brier_score(test, forecasts.y_test),
    )


def surface_points(P: Floats, y: NDArray[Any], gammas: Floats) -> Floats:
    """ROC points at the given thresholds, dominated ones included, of shape (len(gammas), K).

    Examples
    --------
    >>> import numpy as np
    >>> surface_points(np.eye(3), np.arange(3), np.array([[1 / 3, 1 / 3, 1 / 3], [2, -0.5, -0.5]]))
    array([[1., 1., 1.],
           [0., 1., 1.]])
    """
    classes = range(P.shape[1])
    sides = (regions(P, gamma) for gamma in gammas)
    points = [[(side[y == k] == k).mean() for k in classes] for side in sides]
    return np.array(points).reshape(-1, P.shape[1])


def volume(R: Floats, y: NDArray[Any]) -> float:
    """Hull volume under the ROC surface over all thresholds. The rows need not sum to one.

    All rows of a run have the same sum, and scaling all values alike does not change the surface.
    For four classes it is a lower bound.
    """
    K = R.shape[1]
    # Rows of one bin have the same value, so one weighted row per bin and label is enough.
    values, level = np.unique(normalise(R), axis=0, return_inverse=True)
    weights = np.bincount(level.ravel() * K + y, minlength=len(values) * K)
    (some,) = weights.nonzero()
    found = metrics.volume_under_surface(
        some % K, values[some // K], sample_weight=weights[some], labels=np.arange(K)
    )
    return float(found)


class Outcome(NamedTuple):
    """Scores of a procedure: a row of the table of results."""

    procedure: str
    n_bins: int | None
    #: Scores of values that do not sum to one, or None if they do.
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


def experiment(forecasts: Forecasts) -> Experiment:
    """Run all procedures on calibration rows and score every stage.

    For each procedure, the number of classes must be small enough for a grid.
    """
    P, y, P_test, y_test, _ = forecasts
    K = forecasts.n_classes
    runs = {}
    for name, procedure in PROCEDURES.items():
        log.info("K = %d, %s", K, name)
        runs[name] = procedure(forecasts)

    def volumes(pairs: Iterable[tuple[Floats, Floats]]) -> Floats:
        tasks = (delayed(_volumes)(cal, y, test, y_test) for cal, test in pairs)
        return np.array(Parallel()(tasks))

    tables = {}
    for name, run in runs.items():
        log.info("K = %d, ROC surfaces, %s", K, name)
        tables[name] = _stages(run, volumes(zip(run.cal, run.test, strict=True)), forecasts)
    (before,) = volumes([(P, P_test)])
    return Experiment(forecasts, runs, tables, tuple(before.tolist()))


def _stages(run: Run, volumes: Floats, forecasts: Forecasts) -> Table:
    pairs = list(zip(run.cal, run.test, strict=True))
    ways = {
        "as_published": [score_as_published(cal, test, forecasts) for cal, test in pairs],
        "normalised": [score(cal, test, forecasts) for cal, test in pairs],
    }
    table = Table(n_bins=run.n_bins)
    for way, scores in ways.items():
        for field, values in zip(Scores._fields, zip(*scores, strict=True), strict=True):
            table[f"{field}_{way}"] = np.array(values)
    table["cal_volume"], table["test_volume"] = volumes.T
    return table


def _volumes(cal: Floats, y: Ints, test: Floats, y_test: Ints) -> tuple[float, float]:
    return volume(cal, y), volume(test, y_test)


def claims(done: Experiment) -> dict[str, Any]:
    """Measurements of the paper's claims, as a JSON value."""
    P, y, P_test, y_test, _ = done.forecasts
    K = done.n_classes
    columns = np.arange(K)
    irp = ReferenceIRP(grid_size_of(K), lam=0.0).fit(P, y)
    *_, published = [np.tile(irp.stages[0][0].value, (len(P), 1)), *irp.fitted()]
    ours = IRPCalibrator(values="constant", pseudocount=0, random_state=0)
    calibrated = ours.fit(P, y).predict_proba(P)
    last = done.runs[PUBLISHED[0]]
    smooth = normalise(last.cal[-1]), normalise(last.test[-1])

    def error(labels: Any, Q: Floats, bins: Any) -> float:
        return metrics.calibration_error(labels, Q, bins=bins, labels=columns)

    found: dict[str, Any] = {
        "calibration_error": {
            "calibration rows, IRP without smoothing": error(y, published, "exact"),
            "calibration rows, isoroc without smoothing": error(y, calibrated, "exact"),
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
            "AUC before": metrics.roc_auc(y, P),
            "AUC of the hull before": metrics.roc_convex_hull(y, P).area(),
            "AUC, isoroc without smoothing": metrics.roc_auc(y, calibrated),
            "AUC, IRP without smoothing": metrics.roc_auc(y, published),
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


#: Measures of `measure_split` over splits, by number of classes and classifier.
Repetition = dict[tuple[int, str], dict[str, Floats]]


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
    narrow. The variance of the mean is from Nadeau and Bengio (2003): (1/m + test/rest) times
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
    y = forecasts.y_test

    def loss(Q: Floats) -> float:
        return cross_entropy(np.maximum(Q, CLIP), y)

    exact = forecasts.n_classes <= _VOLUME_UP_TO
    found = {
        "before/cross_entropy": loss(forecasts.P_test),
        "before/brier": brier_score(forecasts.P_test, y),
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
            f"{name}/brier": brier_score(normalise(run.test[-1]), y),
            f"{name}/best": float(losses[best]),
            f"{name}/regret": float(losses[-1] - losses[best]),
            f"{name}/best_bins": float(run.n_bins[best]),
        }
        if name in PUBLISHED:
            found[f"{name}/as_published"] = cross_entropy(run.test[-1], y)
        if exact and name == PUBLISHED[0]:
            found[f"{name}/cal_volume"] = volume(run.cal[-1], forecasts.y_cal)
    return found


def repeat(
    rows: Rows,
    classes: Sequence[int],
    seeds: Sequence[int],
    classifiers: Sequence[str] = tuple(CLASSIFIERS),
) -> Repetition:
    """Measures of `measure_split` for each number of classes and classifier, one entry per seed."""
    found = {}
    for K in classes:
        for classifier in classifiers:
            log.info("K = %d, %s: %d splits", K, classifier, len(seeds))
            tasks = (delayed(_task)(rows, K, seed, classifier) for seed in seeds)
            results = Parallel()(tasks)
            found[K, classifier] = {
                name: np.array([result[name] for result in results]) for name in results[0]
            }
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


def compare(measures: dict[str, Floats]) -> dict[str, Difference]:
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
