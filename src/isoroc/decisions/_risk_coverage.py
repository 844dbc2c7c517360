"""Error of the surest rows, for every share of rows that may be accepted."""

from __future__ import annotations

from numpy.typing import ArrayLike

from isoroc._evaluation.risk_coverage import RiskCoverage, risk_coverage_curve
from isoroc._input import check_after, check_confidence, check_probabilities

__all__ = ["RiskCoverage", "risk_coverage"]


def risk_coverage(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    after: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
) -> RiskCoverage:
    """Error of the rows with the largest probabilities, against their share of all rows.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    after : array-like of shape (n, K) or (n,), default=None
        Other forecasts of the same rows, such as calibrated ones.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, sorted by default.
    clusters : array-like of shape (n,), default=None
        Cluster of each row, such as the patient of a visit, if rows of a cluster depend on each
        other.
    confidence : float, default=0.95
        Probability that an interval covers the true value, at each point.

    Returns
    -------
    RiskCoverage

    See Also
    --------
    acceptance_rule : The largest share whose error is certified.
    isoroc.plots.RiskCoverageDisplay : Draws it.

    Notes
    -----
    The area below the curve is the error on average over all shares of accepted rows (AURC). Tied
    rows are accepted in random order. If every wrong row is less sure than every right one, the
    area is ``r + (1 - r) log(1 - r)``, where r is the error rate of all rows. The excess of the
    area over this least value is then 0. An increasing map of the largest probability changes
    neither. Intervals of areas are normal, from the influence of each row on the area. The curve
    has Wilson intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.decisions import risk_coverage
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([0.3, 0.3, 0.3], 4000)
    >>> y = [rng.choice(3, p=p) for p in P]
    >>> curve = risk_coverage(y, P)
    >>> curve
                            area      low     high
              forecasts  0.09954  0.09059  0.10907
      forecasts, excess  0.06926  0.06265  0.07652
    >>> round(curve.error_at(0.5), 3)
    0.087
    """
    check_confidence(confidence)
    sample = check_probabilities(y_true, y_prob, sample_weight, labels, clusters, keep_zeros=True)
    series = {"forecasts": sample}
    if after is not None:
        series = {"before": sample, "after": check_after(after, sample, probabilities=True)}
    positive = {name: each.positive() for name, each in series.items()}
    return risk_coverage_curve(positive, confidence)
