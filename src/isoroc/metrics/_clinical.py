"""The clinical panel: observed/expected ratio, intercept, slope, ICI and its relatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from isoroc._core.intervals import UNKNOWN, Estimate, half_width, variance_of_sum
from isoroc._core.newton import logistic_regression
from isoroc._core.special import chi2_quantile, expit, f_quantile, find_root, logit
from isoroc._core.types import Floats, Ints
from isoroc._input import Sample, check_confidence, check_probabilities
from isoroc._support.table import Table
from isoroc.metrics._calibration import event_of

SUMMARY_MEASURES = ("observed_expected", "intercept", "slope", "ici", "e50", "e90", "emax")
#: Printed with the distances. Measured by benchmarks/simulations.py panel.
ROUGH = "intervals of e50, e90 and emax are rough: in simulations they covered 79 to 100 %"


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationSummary:
    """The clinical panel.

    ``summary["slope"]`` is the value of a measure, for the last class, and
    ``summary["slope", label]`` for any class. Names of columns give columns of `table`:
    ``summary["measure"]`` is the array of all measures.
    """

    table: Table
    """Columns ``class``, ``measure``, ``value``, ``low`` and ``high``."""
    confidence: float
    excluded: int
    """Number of forecasts of exactly 0 or 1, which only count in the observed/expected ratio."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str) and key in self.table:
            return self.table[key]
        measure, label = key if isinstance(key, tuple) else (key, self.table["class"][-1])
        rows = (self.table["measure"] == measure) & (self.table["class"] == label)
        if not rows.any():
            known = f"measures are {', '.join(SUMMARY_MEASURES)}, columns {', '.join(self.table)}"
            raise KeyError(f"{key!r}: {known}")
        return float(self.table["value"][rows][0])

    def __repr__(self) -> str:
        ends = {name: self.table[name].round(4) for name in ("value", "low", "high")}
        note = f"\n  forecasts of exactly 0 or 1: {self.excluded:,}" if self.excluded else ""
        return f"{Table(self.table | ends)!r}\n  {ROUGH}{note}"


def calibration_summary(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
) -> CalibrationSummary:
    """Measures of calibration that are usual in reports on clinical prediction models.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, sorted by default.
    clusters : array-like of shape (n,), default=None
        Cluster of each row, such as the patient of a visit, if rows of a cluster depend on each
        other.
    confidence : float, default=0.95
        Probability that an interval covers the true value.

    Returns
    -------
    CalibrationSummary
        For the second of two classes, or for each class against the rest.

    See Also
    --------
    calibration_error : The expectation of the ICI, without what chance adds to it.

    Notes
    -----
    With p the forecast of a class and y whether it occurred:

    observed_expected
        Number of occurrences divided by the sum of the forecasts, 1 if calibrated.
    intercept
        Calibration in the large: a in ``logit P(y) = a + logit(p)``, with the slope fixed at 1. It
        is 0 if calibrated, above 0 if forecasts are too low.
    slope
        b in ``logit P(y) = a + b logit(p)``, below 1 if forecasts are too extreme.
    ici, e50, e90, emax
        Mean (integrated calibration index, Eavg of rms), median, 90 % quantile and maximum over the
        rows of the distance between forecasts and a smooth calibration curve (Austin and Steyerberg
        2019). The curve is a logistic regression on a restricted cubic spline of ``logit(p)`` with
        five knots, three if an outcome has fewer than 100 rows, and none below 20.

    The intervals of ratio and intercept contain the shifts of log odds that a score test does not
    reject. The interval of the slope is normal. Chance makes distances too large. Their intervals
    come from curves drawn around the fitted one, and start at 0 if a test does not reject
    calibration. `emax` is mostly the distance at the most extreme forecast, which is estimated from
    few rows.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import calibration_summary
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> summary = calibration_summary(y, p)
    >>> round(summary["intercept"], 3), round(summary["slope"], 3), round(summary["ici"], 3)
    (-1.054, 1.317, 0.169)
    """
    check_confidence(confidence)
    sample = check_probabilities(y_true, y_prob, sample_weight, labels, clusters)
    lines: list[Any] = []
    excluded = 0
    for k in range(int(sample.n_classes == 2), sample.n_classes):
        every = _Events.of(event_of(sample, k))
        rows = every.inside()
        excluded += len(every.z) - len(rows.z)
        estimates = [_ratio(every, confidence), _shift(rows, confidence)]
        estimates += [_slope(rows, confidence), *_distances(rows, confidence)]
        named = zip(SUMMARY_MEASURES, estimates, strict=True)
        lines += [(sample.classes[k], name, *estimate) for name, estimate in named]
    table = Table.from_rows(lines, "class", "measure", "value", "low", "high")
    return CalibrationSummary(table, confidence, excluded)


class _Events(NamedTuple):
    """Log odds of the forecasts, whether the class occurred, weights and clusters."""

    z: Floats
    y: Floats
    weights: Floats
    clusters: Ints | None

    @classmethod
    def of(cls, event: Sample) -> Self:
        """Rows of an event."""
        z = logit(event.forecasts)
        y = event.codes.astype(np.float64)
        return cls(z, y, event.row_weights(), event.clusters)

    def inside(self) -> Self:
        """The rows with forecasts other than 0 and 1."""
        rows = np.isfinite(self.z)
        columns: Any = (None if column is None else column[rows] for column in self)
        return type(self)(*columns)


def _shift(rows: _Events, confidence: float, farthest: float = 40.0) -> Estimate:
    """Shift of log odds with which the forecasts have the observed sum, infinite if `farthest`."""
    z, y, weights, clusters = rows
    observed = float(weights @ y)
    width = half_width(confidence)
    factor = 1.0

    def deviation(a: float) -> float:
        """Observed less expected, in standard deviations of forecasts that are shifted by a."""
        q = expit(z + a)
        spread = float(np.sqrt(factor * (weights**2 @ (q * (1 - q)))))
        return (observed - float(weights @ q)) / max(spread, 1e-150)

    def solve(wanted: float) -> float:
        if not len(z) or deviation(-farthest) <= wanted:
            return -np.inf
        if deviation(farthest) >= wanted:
            return np.inf
        return float(find_root(lambda a: deviation(a) - wanted, -farthest, farthest))

    if np.isfinite(shift := solve(0.0)):
        q = expit(z + shift)
        spread = float(weights**2 @ (q * (1 - q)))
        factor = max(1.0, float(variance_of_sum(weights * (y - q), clusters)) / spread)
    return Estimate(shift, solve(width), solve(-width))


def _ratio(rows: _Events, confidence: float) -> Estimate:
    z, y, weights, _ = rows
    expected = weights @ expit(z)
    if not expected:
        return UNKNOWN
    _, *shifts = _shift(rows, confidence)
    # Log odds may also be infinite, and infinite shifts would cancel them out.
    low, high = (weights @ expit(z + np.clip(shift, -1e9, 1e9)) / expected for shift in shifts)
    value = float(weights @ y / expected)
    return Estimate(value, min(float(low), value), max(float(high), value))


def _slope(rows: _Events, confidence: float) -> Estimate:
    if len(rows.z) < 3 or not np.ptp(rows.z):
        return UNKNOWN
    (_, slope), covariance, robust = _fit(np.column_stack([np.ones_like(rows.z), rows.z]), rows)
    half = half_width(confidence) * float(np.sqrt(max(covariance[1, 1], robust[1, 1])))
    return Estimate(float(slope), float(slope) - half, float(slope) + half)


def _distances(rows: _Events, confidence: float) -> list[Estimate]:
    """Mean, median, 90 % quantile and maximum of the distance between forecasts and curve."""
    z, y, weights, clusters = rows
    if not len(z):
        return [UNKNOWN] * 4
    X, _ = _basis(z, y)
    beta, covariance, robust = _fit(X, rows)
    if np.isnan(beta).any():
        return [UNKNOWN] * 4
    value = _distance_measures(_distance(X @ beta, z), weights)[:, 0]
    p = expit(z)
    limit = float(chi2_quantile(X.shape[1], 1 - confidence))
    scores = X * (weights * (y - p))[:, None]
    information = (X.T * (weights**2 * p * (1 - p))) @ X
    df = np.inf
    if clusters is not None:
        information = _meat(scores, rows)
        d = X.shape[1]
        df = len(np.unique(clusters)) - 1
        left = max(df + 1 - d, 1)
        limit = d * df / left * f_quantile(d, left, confidence)  # Hotelling (1931)
    score = scores.sum(axis=0)
    is_rejected = score @ np.linalg.lstsq(information, score, rcond=None)[0] > limit
    # 500 curves around the fitted one, at 200 points that stand for about as many rows each.
    u = np.random.default_rng(0).normal(size=(X.shape[1], 500))
    values, vectors = np.linalg.eigh(covariance if clusters is None else robust)
    shifts = (vectors * np.sqrt(values.clip(min=0))) @ u
    points = np.unique(np.linspace(0, len(z) - 1, 200).round().astype(np.intp))
    some = np.argsort(z, kind="stable")[points]
    curves = X[some] @ (beta[:, None] + shifts)
    drawn = _distance_measures(_distance(curves, z[some]), weights[some])
    half = half_width(confidence, df) * drawn.std(axis=1)
    # The fitted curve is farther from the forecasts than the true one, so drawn curves move away
    # from them by about half of what it did.
    bias = 2 * np.maximum(drawn.mean(axis=1) - value, 0.0)
    low = (value - bias - half).clip(min=0) * is_rejected
    high = (value + half).clip(max=1)
    return [Estimate(*ends) for ends in np.transpose([value, low, high]).tolist()]


def smooth_curve(
    event: Sample, confidence: float = 0.95, n_points: int = 120
) -> tuple[Table, float]:
    """The curve that the ICI is based on, with pointwise intervals, and the ICI.

    Columns are ``forecast``, ``rate``, ``low`` and ``high``. Empty if the outcomes are separable.
    With more than 200 rows the curve ends at the tenth forecast from either side, as in rms, and
    always where the interval of its log odds is wider than 2 to either side: few rows are there.
    """
    rows = _Events.of(event).inside()
    z = rows.z
    beta = np.full(1, np.nan)
    if len(z):
        X, evaluate = _basis(z, rows.y)
        beta, *covariances = _fit(X, rows)
    if np.isnan(beta).any():
        none = np.zeros(0)
        return Table(forecast=none, rate=none, low=none, high=none), np.nan
    cut = 9 if len(z) > 200 else 0
    ends = [cut, len(z) - 1 - cut]
    first, last = np.partition(z, ends)[ends]
    at = np.unique(np.linspace(first, last, n_points))
    B = evaluate(at)
    variance = np.max([np.einsum("ij,jk,ik->i", B, V, B) for V in covariances], axis=0)
    half = half_width(confidence) * np.sqrt(variance)
    wide = np.flatnonzero(half > 2)
    middle = int(half.argmin())
    kept = slice(max([0, *(wide[wide < middle] + 1)]), min([len(at), *wide[wide >= middle]]))
    at = at[kept]
    B = B[kept]
    half = half[kept]
    rate, low, high = (expit(B @ beta + shift) for shift in (0.0, -half, half))
    ici = float(np.average(_distance(X @ beta, z)[:, 0], weights=rows.weights))
    return Table(forecast=expit(at), rate=rate, low=low, high=high), ici


def _distance(eta: Floats, z: Floats) -> Floats:
    """Distance of curves from the forecasts, all given by log odds, shape (n, m)."""
    return np.abs(expit(eta.reshape(len(z), -1)) - expit(z)[:, None])


def _distance_measures(distance: Floats, weights: Floats) -> Floats:
    """Mean, median, 90 % quantile and maximum over the rows, shape (4, m)."""
    mean = weights @ distance / weights.sum()
    shares = np.array([0.5, 0.9]) - 1e-12  # for sums of weights that are rounded
    quantiles = np.quantile(distance, shares, axis=0, weights=weights, method="inverted_cdf")
    return np.vstack([mean, quantiles, distance.max(axis=0)])


def _meat(scores: Floats, rows: _Events) -> Floats:
    """Sum of squares and products of the scores of the rows or clusters."""
    if rows.clusters is not None:
        n = len(np.unique(rows.clusters))
        scores = np.column_stack([np.bincount(rows.clusters, column) for column in scores.T])
        scores = scores * np.sqrt(n / max(n - 1, 1))
    return np.asarray(scores.T @ scores)


def _fit(X: Floats, rows: _Events) -> tuple[Floats, Floats, Floats]:
    """Coefficients of a logistic regression, their model-based and their robust covariances."""
    weights = rows.weights
    # Rounding errors of the log likelihood are larger, and log odds change by less than 1e-9.
    least_gain = max(1e-16, 1e-20 * float(weights.sum()))
    fitted = logistic_regression(X.T, rows.y, weights, least_gain=least_gain)
    (beta,), (loss,), (information,) = fitted
    if loss < 1e-6 * weights.sum() or np.linalg.cond(information) > 1e14:  # separable outcomes
        unknown = np.full(information.shape, np.nan)
        return unknown[0], unknown, unknown
    q: Any = expit(X @ beta)
    inverse = np.linalg.inv(information)
    model_based = (X.T * (weights**2 * q * (1 - q))) @ X
    robust = _meat(X * (weights * (rows.y - q))[:, None], rows)
    return beta, inverse @ model_based @ inverse, inverse @ robust @ inverse


def _basis(z: Floats, y: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Orthonormal columns that span the spline, and a function that evaluates them elsewhere."""
    fewest = min(np.count_nonzero(y), np.count_nonzero(y == 0))
    knots = np.zeros(0)
    if fewest >= 20:  # quantiles of Harrell (2015)
        five = (0.05, 0.275, 0.5, 0.725, 0.95)
        three = (0.1, 0.5, 0.9)
        knots = np.unique(np.quantile(z, five if fewest >= 100 else three))
    columns = _spline(z, knots)
    R = np.linalg.qr(columns, mode="r")
    diagonal = np.abs(np.tril(R)).sum(axis=0)  # 0 for more columns than rows
    kept = diagonal > 1e-9 * np.linalg.norm(R, axis=0)
    if not kept.all():  # knots may be close, and columns nearly the same
        R = np.linalg.qr(columns[:, kept], mode="r")
    inverse = np.linalg.inv(R)

    def orthonormal(columns: Floats) -> Floats:
        return np.asarray((inverse.T @ columns[:, kept].T).T)

    return orthonormal(columns), lambda at: orthonormal(_spline(at, knots))


def _spline(z: Floats, knots: Floats) -> Floats:
    """Columns 1 and z, and of a cubic spline that is linear beyond its knots (Harrell 2015)."""
    columns = [np.ones_like(z), z]
    excess = np.maximum(z - knots[:, None], 0.0)
    cubes = excess * excess * excess  # several times as fast as a power
    for knot, cube in zip(knots[:-2], cubes, strict=False):
        share = (knots[-1] - knot) / (knots[-1] - knots[-2])
        tail = share * cubes[-2] - (share - 1) * cubes[-1]
        columns.append((cube - tail) / (knots[-1] - knots[0]) ** 2)
    return np.stack(columns).T
