"""Procedures on forecasts: what each gives at every stage, and how that scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isoroc import metrics
from isoroc._calibrators.irp import IRPCalibrator
from isoroc._simplex import Floats, Ints
from isoroc.metrics._surface.surface import volume_under_surface
from isoroc.paper import _procedure as procedure
from isoroc.paper._cache import Arrays
from isoroc.paper._data import Forecasts
from isoroc.paper._procedure import GRID_SIZES
from isoroc.paper._reference import ReferenceBinning, ReferenceIRP

#: Probabilities below this count as this in cross entropies: uncalibrated models give zeros.
CLIP = 1e-6
#: Strength of smoothing of the procedures as published.
LAM = 0.05


class Run(NamedTuple):
    """What a procedure gives at every stage, from one bin to its end; S stages, K classes."""

    n_bins: Ints  #: (S,)
    cal: Floats  #: values of the calibration rows, as the procedure gives them, (S, n_cal, K)
    test: Floats  #: the same of the test rows, (S, n_test, K)
    thresholds: Floats  #: of each split, (S - 1, K)

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> Self:
        """Run from what `Cache.get` returns."""
        return cls(**arrays)

    @property
    def n_stages(self) -> int:
        """S."""
        return len(self.n_bins)


def grid_size_of(K: int) -> int:
    """Grid of the experiments; beyond them one of about as many points as with four classes."""
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


#: By name: the published ones first, then isoroc's with its defaults. With two classes both of
#: isoroc's searches are isotonic regression.
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
    """Rows that sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> normalise(np.array([[0.05, 1.0, 0.05]])).round(3)
    array([[0.045, 0.909, 0.045]])
    """
    return np.asarray(R / R.sum(axis=-1, keepdims=True))


def score(cal: Floats, test: Floats, forecasts: Forecasts) -> Scores:
    """Plain scores of forecasts that sum to one, cross entropies clipped at `CLIP`."""
    _, y, _, y_test, _ = forecasts
    columns = np.arange(forecasts.n_classes)
    return Scores(
        metrics.cross_entropy(y, cal, eps=CLIP, labels=columns),
        metrics.cross_entropy(y_test, test, eps=CLIP, labels=columns),
        metrics.brier_score(y, cal, labels=columns),
        metrics.brier_score(y_test, test, labels=columns),
    )


def score_as_published(cal: Floats, test: Floats, forecasts: Forecasts) -> Scores:
    """The experiments' scores: rows as they are, calibration cross entropy regularised."""
    _, y, _, y_test, _ = forecasts
    return Scores(
        procedure.cross_entropy(cal, y, LAM),
        procedure.cross_entropy(test, y_test),
        procedure.brier_score(cal, y),
        procedure.brier_score(test, y_test),
    )


def volume(R: Floats, y: NDArray[Any]) -> float:
    """Hull volume under the ROC surface, over all thresholds, whatever the rows sum to.

    Rows of one run have one sum, and values that are all scaled alike have the same surface.
    """
    K = R.shape[1]
    # Rows of one bin have one value: one row for each bin and label, with a weight, says the same.
    values, level = np.unique(normalise(R), axis=0, return_inverse=True)
    weights = np.bincount(level * K + y, minlength=len(values) * K)
    (some,) = weights.nonzero()
    found = volume_under_surface(
        some % K,
        values[some // K],
        volume="hull",
        sample_weight=weights[some],
        labels=np.arange(K),
    )
    return float(found)
