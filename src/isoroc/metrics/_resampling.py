"""Bootstrap intervals of any metric, and of its difference between two forecasts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike

from isoroc._core.types import Floats, Ints
from isoroc._input import (
    InputError,
    check_clusters,
    check_confidence,
    check_length,
    check_number,
    check_weights,
    rows_by_group,
    to_array,
)
from isoroc._support.seeds import check_random_state


@dataclass(frozen=True, eq=False, repr=False)
class BootstrapResult:
    """A metric with its interval. Arrays if the metric returns several values."""

    value: Any
    """The metric on all rows, or its difference between two forecasts."""
    low: Any
    """Lower end of the interval."""
    high: Any
    """Upper end of the interval."""
    confidence: float
    standard_error: Any
    """Standard deviation over the resamples."""
    distribution: Floats
    """The metric on each resample, one row per resample."""

    @property
    def n_resamples(self) -> int:
        """Number of resamples."""
        return len(self.distribution)

    def __repr__(self) -> str:
        figures = (self.value, self.low, self.high)
        value, low, high = (np.array2string(np.asarray(x), precision=4) for x in figures)
        return f"{value}, {100 * self.confidence:g} % interval {low} to {high}"


def bootstrap(
    metric: Callable[..., Any],
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    after: ArrayLike | None = None,
    n_resamples: int = 999,
    confidence: float = 0.95,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> BootstrapResult:
    """Bootstrap interval of a metric, or of its difference between two forecasts of the same rows.

    Rows are drawn with replacement, and the interval lies between quantiles of the resampled
    values. It is not reliable for binned calibration errors: resampling repeats their bias. A
    metric that takes `sample_weight` gets all rows, weighted by how often each was drawn, so that
    copies of a row are held out together. Any other metric gets the drawn rows.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_prob)`` or ``metric(y_true, y_prob, sample_weight=...)``, returning a
        number or several.
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts.
    after : array-like of shape (n, K) or (n,), default=None
        Other forecasts of the same rows. Then ``metric(y_true, after) - metric(y_true, y_prob)`` is
        estimated, with both terms on the same resamples.
    n_resamples : int, default=999
        Number of resamples.
    confidence : float, default=0.95
        Probability that the interval covers the true value.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row, for a metric that takes weights.
    clusters : array-like of shape (n,), default=None
        Cluster of each row, such as the patient of a visit, if rows of a cluster depend on each
        other. Whole clusters are drawn.
    random_state : int, RandomState or None, default=0
        Seed of the draws. The result depends on the order of the rows, but not on `n_jobs`.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib.

    Returns
    -------
    BootstrapResult

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import bootstrap, brier_score_loss
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p**2
    >>> bootstrap(brier_score_loss, y, p, random_state=0)
    0.1703, 95 % interval 0.1593 to 0.1817
    >>> bootstrap(brier_score_loss, y, p, after=p**2, random_state=0)
    -0.0278, 95 % interval -0.0378 to -0.018
    """
    check_number("n_resamples", n_resamples, int, minimum=2)
    check_confidence(confidence)
    y = to_array(y_true, name="y_true")
    forecasts = [to_array(y_prob, name="y_prob")]
    check_length(y, len(forecasts[0]), name="y_true", of="y_prob")
    if after is not None:
        forecasts.append(to_array(after, name="after"))
        check_length(forecasts[1], len(y), name="after", of="y_prob")
    weights = check_weights(sample_weight, len(y))
    try:
        takes_weights = "sample_weight" in inspect.signature(metric).parameters
    except ValueError:  # some compiled functions have no signature
        takes_weights = False
    if weights is not None and not takes_weights:
        raise InputError("sample_weight", None, "the metric takes no sample_weight")
    numbers = check_clusters(clusters, len(y), of="y_prob")
    units = None if numbers is None else [rows for _, rows in rows_by_group(numbers)]

    def measure(rows: Ints | None) -> Floats:
        """The metric, or the difference of two, on some rows, or on all if `rows` is None."""
        outcomes = y
        given = forecasts
        options = {"sample_weight": weights}
        if rows is not None and takes_weights:
            times = np.bincount(rows, minlength=len(y)).astype(np.float64)
            options["sample_weight"] = times if weights is None else times * weights
        elif rows is not None:
            outcomes = y[rows]
            given = [P[rows] for P in forecasts]
        options = options if takes_weights else {}
        first, *second = (np.asarray(metric(outcomes, P, **options), np.float64) for P in given)
        return np.asarray(second[0] - first) if second else first

    def resample(seed: np.random.SeedSequence) -> Floats:
        n = len(y if units is None else units)
        drawn = np.random.default_rng(seed).integers(n, size=n)
        return measure(drawn if units is None else np.concatenate([units[i] for i in drawn]))

    root = np.random.SeedSequence(check_random_state(random_state).randint(2**31 - 1))
    values = Parallel(n_jobs=n_jobs)(delayed(resample)(seed) for seed in root.spawn(n_resamples))
    return bootstrap_result(measure(None), np.array(values), confidence)


def bootstrap_result(value: Floats, distribution: Floats, confidence: float) -> BootstrapResult:
    """Result of a value and its values on resamples."""
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    # Quantiles are observed values, not interpolated: a loss may be infinite on some resamples.
    low, high = np.quantile(distribution, tails, axis=0, method="inverted_cdf")
    with np.errstate(invalid="ignore"):
        error = distribution.std(axis=0, ddof=1)
    plain = float if value.ndim == 0 else np.asarray
    ends = plain(low), plain(high)
    return BootstrapResult(plain(value), *ends, confidence, plain(error), distribution)
