"""Stages of a calibrator with bins: its forecasts, and measures of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from isoroc._calibrators.binned import BinCalibrator
from isoroc._input import Sample, check_choices
from isoroc._simplex import Floats
from isoroc._table import Table
from isoroc._views.forecasts import are_probabilities
from isoroc.metrics import auc, log_loss, volume_under_surface


def _volume(*args: Any, **options: Any) -> float:
    return float(volume_under_surface(*args, **options))


MEASURES: dict[str, Callable[..., float]] = {
    "log loss": log_loss,
    "AUC": auc,
    "VUS": _volume,
}


#: Largest number of rows for the volume of forecasts that are not in bins.
_VOLUME_ROWS = 100_000


class Measured:
    """Collects measured values and returns them as the tables of a display."""

    def __init__(self, measures: Sequence[str] | None) -> None:
        if measures is not None:
            check_choices("measures", measures, MEASURES)
        self.measures = measures
        self.curves: list[tuple[str, str, str, int, float]] = []
        self.lines: list[tuple[str, str, float]] = []

    def add(self, data: str, method: str, n_bins: int, sample: Sample) -> None:
        """Measure the forecasts of one stage."""
        for measure in self._measures_of(sample):
            self.curves.append((data, measure, method, n_bins, _measure(measure, sample)))

    def add_uncalibrated(self, data: str, sample: Sample) -> None:
        """Measure the uncalibrated forecasts; scores that are not probabilities have no loss."""
        for measure in self._measures_of(sample):
            if are_probabilities(sample.forecasts) or measure != "log loss":
                rows = sample.draw(_VOLUME_ROWS) if measure == "VUS" else sample
                self.lines.append((data, measure, _measure(measure, rows)))

    def _measures_of(self, sample: Sample) -> Sequence[str]:
        if self.measures is not None:
            return self.measures
        others = {2: ("AUC",), 3: ("VUS",), 4: ("VUS",)}
        return ("log loss", *others.get(sample.n_classes, ()))

    def tables(self) -> tuple[Table, Table]:
        """Tables of the curves, sorted by measure, and of the lines."""
        # All measures of a stage are added together; PathDisplay orders panels by first appearance.
        curves = sorted(self.curves, key=lambda row: list(MEASURES).index(row[1]))
        return (
            Table.from_rows(curves, "data", "measure", "method", "n_bins", "value"),
            Table.from_rows(self.lines, "data", "measure", "value"),
        )


def _measure(measure: str, sample: Sample) -> float:
    return MEASURES[measure](
        sample.codes,
        sample.forecasts,
        sample_weight=sample.weights,
        labels=np.arange(sample.n_classes),
    )


def kept_stages(n_stages: int, most: int) -> set[int]:
    """Stages to show: all, or some that are about evenly spaced on a logarithmic scale.

    Examples
    --------
    >>> sorted(kept_stages(1000, 4))
    [0, 9, 99, 999]
    """
    if n_stages <= most:
        return set(range(n_stages))
    return set((np.rint(np.geomspace(1, n_stages, most)).astype(int) - 1).tolist())


def staged(calibrator: Any, P: Any, sample: Sample) -> Iterator[Sample]:
    """Samples of the calibrated forecasts of each stage.

    Where all rows of a bin have the same forecast, each bin and class is reduced to one row with
    the total weight.
    """
    if not isinstance(calibrator, BinCalibrator) or calibrator.map_.varies:
        for Q in calibrator.staged_predict_proba(P):
            yield replace(sample, forecasts=Q)
        return
    K = sample.n_classes
    _, first, bin_of = np.unique(calibrator.apply(P), return_index=True, return_inverse=True)
    pair: NDArray[Any] = bin_of * K + sample.codes
    weights: Floats = np.bincount(pair, sample.weights, len(first) * K).astype(np.float64)
    codes = np.tile(np.arange(K, dtype=np.uint8), len(first))
    for Q in calibrator.staged_predict_proba(_safe_indexing(P, first)):
        yield Sample(np.repeat(Q, K, axis=0), codes, weights, sample.classes)


def few_rows(calibrator: Any, P: Any, sample: Sample, most: int) -> tuple[Any, Sample]:
    """At most `most` of the rows, drawn at random, if each stage needs all rows."""
    varies = isinstance(calibrator, BinCalibrator) and calibrator.map_.varies
    if not varies or len(sample) <= most:
        return P, sample
    rows = sample.drawn_rows(most)
    return _safe_indexing(P, rows), sample.take(rows)


def is_calibration_set(calibrator: Any, P: Any, sample: Sample) -> bool:
    """Whether the bins of a calibrator have the weights of these rows: it was fitted to them.

    Examples
    --------
    >>> from isoroc import IRPCalibrator
    >>> from isoroc._input import check_sample
    >>> p, y = [0.1, 0.2, 0.8], [0, 1, 1]
    >>> cal = IRPCalibrator().fit(p, y)
    >>> is_calibration_set(cal, p, check_sample(p, y))
    True
    >>> is_calibration_set(cal, p[1:], check_sample(p[1:], y[1:], labels=[0, 1]))
    False
    """
    if not isinstance(calibrator, BinCalibrator):
        return False
    expected = calibrator.tree_.class_weights[calibrator.tree_.bins]
    counted = np.bincount(calibrator.apply(P), sample.weights, len(expected))
    if not np.allclose(counted, expected.sum(axis=1)):
        return False
    # With `top` the weights are those of ranks and not of classes.
    reduced = getattr(calibrator, "top_", None) is not None
    return reduced or bool(np.allclose(sample.class_weights(), expected.sum(axis=0)))
