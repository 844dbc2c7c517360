"""Observed rates against forecasts: groups, the isotonic curve and its consistency band."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.optimize import isotonic_regression

from isoroc._counts import BinaryCounts
from isoroc._estimation.grouping import group_quantile, group_uniform
from isoroc._input import Sample
from isoroc._intervals import wilson
from isoroc._simplex import Ints
from isoroc._table import Table

#: Largest number of groups of forecasts for which outcomes are simulated.
_MAX_GROUPS = 2000
#: Largest number of points of the band.
_MAX_POINTS = 200
_EDGES = np.linspace(0, 1, 21)


#: Groups of about equal weight, or of equal width.
Strategy = Literal["quantile", "uniform"]


def default_n_bins(n_rows: int) -> int:
    """Number of groups of rows whose rates are shown: the cube root of the rows, 2 to 15."""
    return int(np.clip(np.rint(np.cbrt(n_rows)), 2, 15))


def reliability(
    sample: Sample,
    *,
    n_bins: int,
    strategy: Strategy = "quantile",
    confidence: float = 0.95,
    n_resamples: int = 400,
    seed: int = 0,
) -> dict[str, Table]:
    """Tables of a reliability diagram: "rates", "curve", "histogram", "scores" and "band".

    Without simulations there is no band.
    """
    tables = {
        "rates": observed_rates(sample, n_bins=n_bins, strategy=strategy, confidence=confidence),
        "curve": isotonic_curve(sample),
        "histogram": histogram(sample),
        "scores": brier_parts(sample),
    }
    if n_resamples:
        tables["band"] = consistency_band(
            sample, confidence=confidence, n_resamples=n_resamples, seed=seed
        )
    return tables


def observed_rates(
    sample: Sample, *, n_bins: int, confidence: float, strategy: Strategy = "quantile"
) -> Table:
    """Observed rates of groups of about equal weight or equal width, with Wilson's intervals.

    Equal forecasts are in the same group. The intervals take a weight as a number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 1, 0, 1, 1], dtype=np.uint8)
    >>> sample = Sample(np.array([0.2, 0.2, 0.4, 0.4, 0.9]), y, None)
    >>> observed_rates(sample, n_bins=5, confidence=0.9)
      forecast  rate      low     high  weight
           0.2   0.5  0.12087  0.87913       2
           0.4   0.5  0.12087  0.87913       2
           0.9     1  0.26987        1       1
    """
    p, weights = sample.forecasts, sample.row_weights()
    group = _groups(sample, n_bins, strategy)
    weight = np.bincount(group, weights).astype(np.float64)
    rate = (np.bincount(group, weights * sample.codes) / weight).clip(0, 1)
    low, high = wilson(rate, weight, confidence)
    forecast = np.bincount(group, weights * p) / weight
    return Table(forecast=forecast, rate=rate, low=low, high=high, weight=weight)


def isotonic_curve(sample: Sample) -> Table:
    """Isotonic regression of outcomes on forecasts: both ends of each of its bins.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 1, 0, 1], dtype=np.uint8)
    >>> isotonic_curve(Sample(np.array([0.1, 0.4, 0.5, 0.9]), y, None))
      forecast  rate
           0.1     0
           0.1     0
           0.4   0.5
           0.5   0.5
           0.9     1
           0.9     1
    """
    low, high, class_weights = BinaryCounts.from_arrays(*sample.arrays).isotonic_blocks()
    rate = class_weights[:, 1] / class_weights.sum(axis=1)
    return Table(forecast=np.column_stack([low, high]).ravel(), rate=np.repeat(rate, 2))


def brier_parts(sample: Sample) -> Table:
    """Parts of the Brier score of an event: miscalibration, discrimination and uncertainty.

    The score is miscalibration - discrimination + uncertainty, where the isotonic curve stands for
    the calibrated forecasts (Dimitriadis, Gneiting and Jordan 2021, with the same data for the
    curve and the score).

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 1, 0, 1], dtype=np.uint8)
    >>> brier_parts(Sample(np.array([0.1, 0.4, 0.5, 0.9]), y, None))
      miscalibration  discrimination  uncertainty
              0.0325           0.125         0.25
    """
    weights = sample.row_weights()
    score = float(np.average((sample.forecasts - sample.codes) ** 2, weights=weights))
    _, _, class_weights = BinaryCounts.from_arrays(*sample.arrays).isotonic_blocks()
    total = class_weights.sum()
    recalibrated = float((class_weights.prod(axis=1) / class_weights.sum(axis=1)).sum() / total)
    share = float(class_weights[:, 1].sum() / total)
    uncertainty = share * (1 - share)
    parts = (score - recalibrated, uncertainty - recalibrated, uncertainty)
    return Table.from_rows([parts], "miscalibration", "discrimination", "uncertainty")


def consistency_band(sample: Sample, *, confidence: float, n_resamples: int, seed: int) -> Table:
    """Range of the isotonic curve of these forecasts under the hypothesis that they are calibrated.

    Outcomes are simulated with the forecasts as probabilities and the curve is fitted to each
    simulation; at each forecast the band contains the given share of these curves (Dimitriadis,
    Gneiting and Jordan 2021). Simulation under the hypothesis needs no asymptotic theory, whereas
    the usual bootstrap is not consistent for isotonic regression.

    Many forecasts are first merged into groups of equal weight. The number of outcomes simulated
    for a group is its effective sample size, ``(sum of w)**2 / sum of w**2``.

    Examples
    --------
    >>> import numpy as np
    >>> sample = Sample(np.repeat([0.25, 0.75], 400), np.zeros(800, dtype=np.uint8), None)
    >>> band = consistency_band(sample, confidence=0.95, n_resamples=500, seed=0)
    >>> band["low"].round(1), band["high"].round(1)
    (array([0.2, 0.7]), array([0.3, 0.8]))
    """
    weights = sample.row_weights()
    group = _groups(sample, _MAX_GROUPS)
    weight = np.bincount(group, weights)
    forecast = (np.bincount(group, weights * sample.forecasts) / weight).clip(0, 1)
    n_outcomes = np.rint(weight**2 / np.bincount(group, weights**2)).astype(np.int64)
    size = (n_resamples, len(weight))
    rng = np.random.default_rng(seed)
    rates = rng.binomial(n_outcomes, forecast, size) / n_outcomes
    fits = np.array([isotonic_regression(rate, weights=weight).x for rate in rates])
    kept = np.unique(np.linspace(0, len(weight) - 1, _MAX_POINTS).astype(np.intp))
    tail = (1 - confidence) / 2
    low, high = np.quantile(fits[:, kept], [tail, 1 - tail], axis=0)
    return Table(forecast=forecast[kept], low=low, high=high)


def histogram(sample: Sample) -> Table:
    """Share of rows in twenty bins of equal width, in percent."""
    counted, _ = np.histogram(sample.forecasts, _EDGES, weights=sample.weights)
    return Table(left=_EDGES[:-1], right=_EDGES[1:], percent=100 * counted / counted.sum())


def _groups(sample: Sample, n_groups: int, strategy: Strategy = "quantile") -> Ints:
    """Group of each forecast; groups are in ascending order and none is empty."""
    if strategy == "uniform":
        group = group_uniform(sample.forecasts, n_groups)
    else:
        group = group_quantile(sample.forecasts, sample.weights, n_groups)
    return np.asarray(np.unique(group, return_inverse=True)[1])
