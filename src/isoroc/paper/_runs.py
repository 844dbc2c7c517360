"""Runs of the procedures: values at every stage, and their scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isoroc import metrics
from isoroc._calibrators.irp import IRPCalibrator
from isoroc._simplex import Floats, Ints, regions
from isoroc.metrics import volume_under_surface
from isoroc.paper import _procedure as procedure
from isoroc.paper._cache import Arrays
from isoroc.paper._data import Forecasts
from isoroc.paper._procedure import GRID_SIZES
from isoroc.paper._reference import ReferenceBinning, ReferenceIRP

#: Cross entropies clip probabilities at this value, because uncalibrated models forecast zeros.
CLIP = 1e-6
#: Strength of the smoothing in the published procedures.
LAM = 0.05


class Run(NamedTuple):
    """Values of a procedure at every stage, from one bin to the end; S stages, K classes."""

    n_bins: Ints  #: (S,)
    cal: Floats  #: values of the calibration rows, not normalised, (S, n_cal, K)
    test: Floats  #: values of the test rows, not normalised, (S, n_test, K)
    thresholds: Floats  #: thresholds of the splits, (S - 1, K)

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> Self:
        """Run from what `Cache.get` returns."""
        return cls(**arrays)

    @property
    def n_stages(self) -> int:
        """S."""
        return len(self.n_bins)


def grid_size_of(K: int) -> int:
    """Grid size of the experiments; beyond four classes, about as many points as for four."""
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
        calibrator = IRPCalibrator(search=search, grid_size=grid_size_of(K), random_state=0)
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
    """Scores of forecasts that sum to one; cross entropies are clipped at `CLIP`."""
    _, y, _, y_test, _ = forecasts
    columns = np.arange(forecasts.n_classes)
    return Scores(
        metrics.log_loss(y, cal, eps=CLIP, labels=columns),
        metrics.log_loss(y_test, test, eps=CLIP, labels=columns),
        metrics.brier_score_loss(y, cal, scale_by_half=False, labels=columns),
        metrics.brier_score_loss(y_test, test, scale_by_half=False, labels=columns),
    )


def score_as_published(cal: Floats, test: Floats, forecasts: Forecasts) -> Scores:
    """Scores as in the experiments: not normalised, calibration cross entropy regularised."""
    _, y, _, y_test, _ = forecasts
    return Scores(
        procedure.cross_entropy(cal, y, LAM),
        procedure.cross_entropy(test, y_test),
        procedure.brier_score(cal, y),
        procedure.brier_score(test, y_test),
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
    """Hull volume under the ROC surface over all thresholds; the rows need not sum to one.

    All rows of a run have the same sum, and scaling all values alike does not change the surface.
    """
    K = R.shape[1]
    # Rows of one bin have the same value, so one weighted row per bin and label is enough.
    values, level = np.unique(normalise(R), axis=0, return_inverse=True)
    weights = np.bincount(level.ravel() * K + y, minlength=len(values) * K)
    (some,) = weights.nonzero()
    found = volume_under_surface(
        some % K,
        values[some // K],
        volume="hull",
        sample_weight=weights[some],
        labels=np.arange(K),
    )
    return float(found)
