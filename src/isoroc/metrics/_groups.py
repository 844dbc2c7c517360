"""Calibration by group of rows, before and after calibration, and a test for each group."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from isoroc._cell_errors import error_in_cells, sum_in_cells
from isoroc._input import (
    Sample,
    check_after,
    check_confidence,
    check_groups,
    check_length,
    check_probabilities,
    check_weights,
    rows_by_group,
    to_array,
)
from isoroc._intervals import half_width
from isoroc._losses import log_losses, mean
from isoroc._random import check_random_state
from isoroc._simplex import Floats
from isoroc._table import Table
from isoroc.metrics._resampling import Metric, bootstrap
from isoroc.metrics._significance import calibration_test


@dataclass(frozen=True, eq=False, repr=False)
class GroupReport:
    """Calibration by group; ``print`` shows the table.

    Attributes
    ----------
    table : Table
        One row per group: its name and number of rows, and for the forecasts, or those before and
        after calibration, the log loss, the calibration error with its interval, and the p-value of
        the test of calibration. Names of columns end in ``_before`` and ``_after`` if there are
        two forecasts.
    confidence : float
        Probability that an interval covers the true value.
    """

    table: Table
    confidence: float

    def __repr__(self) -> str:
        return repr(self.table)

    def miscalibrated(self, level: float = 0.05) -> list[str]:
        """Groups whose last forecasts are not calibrated.

        If all groups are calibrated, the probability that any is named is at most `level`.
        """
        p_value = self.table["p_value_after" if "p_value_after" in self.table else "p_value"]
        return [str(name) for name in self.table["group"][p_value <= level]]


def group_report(
    y_true: Any,
    y_prob: Any,
    groups: Any,
    *,
    after: Any = None,
    sample_weight: Any = None,
    labels: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 999,
    random_state: Any = None,
) -> GroupReport:
    """Calibration of forecasts in each group of rows.

    Forecasts that are calibrated on average can be too high in one group and too low in another.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    groups : array-like of shape (n,)
        Group of each row: strings, whole numbers or booleans.
    after : array-like of shape (n, K) or (n,), default=None
        Forecasts of the same rows after calibration.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.
    confidence : float, default=0.95
        Probability that an interval covers the true calibration error.
    n_resamples : int, default=999
        Number of times labels are drawn for the tests.
    random_state : int, RandomState or None, default=None
        Seed of the draws.

    Returns
    -------
    GroupReport

    Notes
    -----
    The calibration error is the root mean square difference between frequencies and forecasts, in
    ten cells of the forecasts of each class, without what chance adds to it. Its interval is normal
    for the square. The p-values are those of `calibration_test`, corrected for the number of groups
    by Holm's method. The smallest possible one is the number of groups divided by
    ``n_resamples + 1``. Groups of one row have NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import group_report
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> region = rng.choice(["north", "south"], 3000)
    >>> y = rng.random(3000) < np.where(region == "north", p, p**2)
    >>> report = group_report(y, p, region, random_state=0)
    >>> report.table.select("group", "rows", "calibration_error", "low", "high", "p_value")
      group  rows  calibration_error      low      high  p_value
      north  1505                  0        0  0.024379    0.824
      south  1495            0.17011  0.14411   0.19263    0.002
    >>> report.miscalibrated()
    ['south']
    """
    check_confidence(confidence)
    sample = check_probabilities(y_true, y_prob, sample_weight, labels, keep_zeros=True)
    names = check_groups(groups, len(sample), of="y_prob")
    series = {"": sample.forecasts}
    if after is not None:
        later = check_after(after, sample, probabilities=True)
        series = {"_before": sample.forecasts, "_after": later.forecasts}
    by_group = {name: rows for name, rows in rows_by_group(names) if _has_weight(sample, rows)}
    table = Table(
        group=np.array(list(by_group)), rows=np.array([len(r) for r in by_group.values()])
    )
    width = half_width(confidence)
    seed = check_random_state(random_state).randint(2**31 - 1)
    for ending, forecasts in series.items():
        parts = [Sample(forecasts, *sample.arrays[1:]).take(rows) for rows in by_group.values()]
        measured = [_measure(part, width, n_resamples, seed) for part in parts]
        columns = np.array(measured, dtype=np.float64).reshape(-1, 5).T
        columns[-1] = correct_p_values(columns[-1])
        names_of = ("log_loss", "calibration_error", "low", "high", "p_value")
        table |= {f"{name}{ending}": column for name, column in zip(names_of, columns, strict=True)}
    return GroupReport(Table(table), confidence)


def _has_weight(sample: Sample, rows: Any) -> bool:
    return sample.weights is None or bool(sample.weights[rows].any())


def _measure(sample: Sample, width: float, n_resamples: int, seed: int) -> tuple[float, ...]:
    """Log loss, calibration error, its interval, and the p-value of one group."""
    sample = sample.positive()
    loss = mean(log_losses(sample.forecasts, sample.codes), sample.weights)
    if len(sample) < 2:
        return loss, np.nan, np.nan, np.nan, np.nan
    test = calibration_test(
        sample.codes,
        sample.forecasts,
        labels=np.arange(sample.n_classes),
        sample_weight=sample.weights,
        n_resamples=n_resamples,
        random_state=seed,
    )
    error = error_in_cells(sum_in_cells(*sample.arrays), width)
    return loss, *error, test.p_value


def correct_p_values(p_values: Floats) -> Floats:
    """Holm's correction: rejecting those <= a makes any error with probability a at most.

    NaN stands for no test.

    Examples
    --------
    >>> import numpy as np
    >>> correct_p_values(np.array([0.01, 0.04, np.nan, 0.03]))
    array([0.03, 0.06,  nan, 0.06])
    """
    corrected = np.full(len(p_values), np.nan)
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested], kind="stable")]
    steps = p_values[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


def by_group(
    metric: Metric,
    y_true: Any,
    y_prob: Any,
    groups: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    n_resamples: int = 200,
    confidence: float = 0.95,
    random_state: Any = None,
) -> Table:
    """A metric in each group of rows, with bootstrap intervals.

    Parameters
    ----------
    metric : callable
        Any metric of `isoroc.metrics` that returns a number, or another function
        ``metric(y_true, y_prob)``.
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts.
    groups : array-like of shape (n,)
        Group of each row: strings, whole numbers or booleans.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row, for metrics that take weights.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, for metrics that take them; sorted by default.
    n_resamples : int, default=200
        Number of resamples; 0 for no intervals.
    confidence : float, default=0.95
        Probability that an interval covers the true value.
    random_state : int, RandomState or None, default=None
        Seed of the resamples.

    Returns
    -------
    Table
        One row per group: ``group``, ``rows``, ``value``, ``low`` and ``high``.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import brier_score_loss, by_group
    >>> y, p = [0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4]
    >>> by_group(brier_score_loss, y, p, ["a", "a", "b", "b"], n_resamples=0)
      group  rows  value  low  high
          a     2  0.065  nan   nan
          b     2   0.16  nan   nan
    """
    y, P = to_array(y_true, name="y_true"), to_array(y_prob, name="y_prob")
    check_length(y, len(P), name="y_true", of="y_prob")
    names = check_groups(groups, len(P), of="y_prob")
    weights = check_weights(sample_weight, len(P))
    if labels is None and "labels" in inspect.signature(metric).parameters:
        labels = np.unique(y) if P.ndim == 1 or len(np.unique(y)) == P.shape[1] else None
    options = {} if labels is None else {"labels": labels}
    measured = partial(metric, **options)
    lines = []
    for name, rows in rows_by_group(names):
        part, of_rows = (y[rows], P[rows]), None if weights is None else weights[rows]
        given = {} if of_rows is None else {"sample_weight": of_rows}
        value, low, high = float(measured(*part, **given)), np.nan, np.nan
        if n_resamples:
            found = bootstrap(
                measured,
                *part,
                n_resamples=n_resamples,
                confidence=confidence,
                sample_weight=of_rows,
                random_state=random_state,
            )
            low, high = found.low, found.high
        lines.append((name, len(rows), value, low, high))
    return Table.from_rows(lines, "group", "rows", "value", "low", "high")
