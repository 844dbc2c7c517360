"""How often a forecast came true: groups, the isotonic curve, and what chance would show."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from isoroc._counts import BinaryCounts
from isoroc._input import Sample
from isoroc._intervals import wilson
from isoroc._simplex import Floats, Ints
from isoroc._table import Table
from isoroc.metrics._grouping import group_quantile

#: Outcomes are drawn for at most so many groups of forecasts, and the band keeps so many points.
_CELLS, _BAND = 2000, 200
_EDGES = np.linspace(0, 1, 21)


def observed_rates(view: Sample, *, n_groups: int, confidence: float) -> Table:
    """Rates in groups of about equal weight, each at its mean forecast, with Wilson's interval.

    Equal forecasts are never parted. Weights count as numbers of rows in the interval.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 1, 0, 1, 1], dtype=np.uint8)
    >>> view = Sample(np.array([0.2, 0.2, 0.4, 0.4, 0.9]), y, None)
    >>> observed_rates(view, n_groups=5, confidence=0.9)
      forecast  rate      low     high  weight
           0.2   0.5  0.12087  0.87913       2
           0.4   0.5  0.12087  0.87913       2
           0.9     1  0.26987        1       1
    """
    p, weights = view.forecasts, _weights(view)
    group = _groups(view, n_groups)
    weight = np.bincount(group, weights).astype(np.float64)
    rate = (np.bincount(group, weights * view.codes) / weight).clip(0, 1)
    low, high = wilson(rate, weight, confidence)
    forecast = np.bincount(group, weights * p) / weight
    return Table(forecast=forecast, rate=rate, low=low, high=high, weight=weight)


def isotonic_curve(view: Sample) -> Table:
    """Isotonic regression of outcomes on forecasts: the ends of each of its bins.

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
    low, high, class_weights = BinaryCounts.from_arrays(*view.arrays).isotonic_blocks()
    rate = class_weights[:, 1] / class_weights.sum(axis=1)
    return Table(forecast=np.column_stack([low, high]).ravel(), rate=np.repeat(rate, 2))


def consistency_band(view: Sample, *, confidence: float, n_resamples: int, seed: int) -> Table:
    """Where the isotonic curve of these forecasts would lie if they were calibrated.

    Outcomes are drawn from the forecasts themselves, the curve is fitted to each draw, and the
    band holds the given share of the draws at each forecast (Dimitriadis, Gneiting and Jordan
    2021). Calibrated forecasts are what is simulated, so the band needs no theory of how isotonic
    regression errs, which a bootstrap of the curve would need and lacks.

    Many forecasts are joined in groups of equal weight first. A group of unequal weights draws
    as many outcomes as its rows are worth, ``(sum of w)**2 / sum of w**2``.

    Examples
    --------
    >>> import numpy as np
    >>> view = Sample(np.repeat([0.25, 0.75], 400), np.zeros(800, dtype=np.uint8), None)
    >>> band = consistency_band(view, confidence=0.95, n_resamples=500, seed=0)
    >>> band["low"].round(1), band["high"].round(1)
    (array([0.2, 0.7]), array([0.3, 0.8]))
    """
    weights = _weights(view)
    group = _groups(view, _CELLS)
    weight = np.bincount(group, weights)
    forecast = (np.bincount(group, weights * view.forecasts) / weight).clip(0, 1)
    worth = np.rint(weight**2 / np.bincount(group, weights**2)).astype(np.int64)
    size = (n_resamples, len(weight))
    drawn = np.random.default_rng(seed).binomial(worth, forecast, size) / worth
    fits = np.array([isotonic_regression(rate, weights=weight).x for rate in drawn])
    kept = np.unique(np.linspace(0, len(weight) - 1, _BAND).astype(np.intp))
    tail = (1 - confidence) / 2
    low, high = np.quantile(fits[:, kept], [tail, 1 - tail], axis=0)
    return Table(forecast=forecast[kept], low=low, high=high)


def histogram(view: Sample) -> Table:
    """Share of rows in twenty bins of equal width, in percent."""
    counted, _ = np.histogram(view.forecasts, _EDGES, weights=view.weights)
    return Table(left=_EDGES[:-1], right=_EDGES[1:], percent=100 * counted / counted.sum())


def _weights(view: Sample) -> Floats:
    return np.ones(len(view.codes)) if view.weights is None else view.weights


def _groups(view: Sample, n_groups: int) -> Ints:
    """Group of each forecast, ascending, none of them empty."""
    group = group_quantile(view.forecasts, view.weights, n_groups)
    return np.asarray(np.unique(group, return_inverse=True)[1])
