"""Where forecasts are wrong: segments in which outcomes differ from forecasts beyond chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaincc, ndtr

from isoroc._core.intervals import effective_rows, wilson
from isoroc._core.simplex import two_columns
from isoroc._core.types import Floats, Ints
from isoroc._counts import Counts
from isoroc._input import (
    InputError,
    Sample,
    Segments,
    check_confidence,
    check_names,
    check_number,
    check_probabilities,
    join_samples,
    with_segments,
)
from isoroc._input.segments import bin_edges, segment_names
from isoroc._support.table import Table


def segment_report(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    segments: Any,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    pairs: bool = True,
    bins: int = 5,
    min_rows: int = 50,
    confidence: float = 0.95,
) -> Table:
    """Segments in which forecasts are wrong, the costliest first.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    segments : dataframe, mapping of names to columns, or array-like of shape (n,)
        Columns that describe the rows: strings, booleans or numbers, which are binned.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, sorted by default.
    clusters : array-like of shape (n,), default=None
        Cluster of each row, such as the patient of a visit, if rows of a cluster depend on each
        other.
    pairs : bool, default=True
        Whether to look at pairs of columns too.
    bins : int, default=5
        Bins of a column of numbers. Frequent values have bins of their own.
    min_rows : int, default=50
        Smaller segments are left out.
    confidence : float, default=0.95
        Probability that an interval covers the true ratio.

    Returns
    -------
    Table
        One row per segment and, with three classes or more, per class: ``rows``, mean ``forecast``,
        ``observed`` rate, their ``ratio`` (above 1 if forecasts are too low) with its interval,
        ``low`` to ``high``, ``p_value`` of a test that forecasts are right on average, ``adjusted``
        for the number of segments (Benjamini and Hochberg 1995), and ``cost``: how much a shift of
        the log odds in the segment would lower the mean log loss of all rows, less chance.

    See Also
    --------
    isoroc.SegmentCalibrator : Corrects forecasts within segments.

    Notes
    -----
    If the forecasts of all segments are right, the chance that any adjusted p-value is at most a is
    at most about a. Otherwise at most about a share a of the segments found in this way is right.
    The number of outcomes has the mean, variance and skewness that the forecasts imply.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import segment_report
    >>> rng = np.random.default_rng(0)
    >>> p, region = rng.random(2000), rng.choice(["north", "south"], 2000)
    >>> y = rng.random(2000) < np.where(region == "north", p, p**2)
    >>> report = segment_report(y, p, {"region": region})
    >>> report.select("segment", "rows", "forecast", "observed", "ratio")
      segment  rows  forecast  observed    ratio
        south   978   0.48972   0.31493  0.64308
        north  1022   0.50771   0.49804  0.98095
    """
    sample = check_probabilities(y_true, y_prob, sample_weight, labels, clusters, keep_zeros=True)
    sample = with_segments(sample, segments, of="y_prob")
    return report_on(sample, pairs=pairs, bins=bins, min_rows=min_rows, confidence=confidence)


def segment_report_from_counts(
    counts: Mapping[Any, Counts],
    *,
    columns: Any = "segment",
    pairs: bool = True,
    min_rows: int = 50,
    confidence: float = 0.95,
) -> Table:
    """The table of `segment_report`, from the counts of each segment.

    Parameters
    ----------
    counts : mapping
        Counts by the name of the segment, or by a tuple of names, one for each column.
    columns : str or sequence of str, default="segment"
        Names of the columns.
    pairs, min_rows, confidence
        As in `segment_report`.

    Returns
    -------
    Table
        As in `segment_report`.

    Examples
    --------
    >>> from isoroc import Counts
    >>> from isoroc.metrics import segment_report_from_counts
    >>> counts = {
    ...     "north": Counts.from_arrays([0.2, 0.4] * 100, [0, 1] * 100),
    ...     "south": Counts.from_arrays([0.2, 0.4] * 100, [0, 0, 0, 1] * 50),
    ... }
    >>> segment_report_from_counts(counts).select("segment", "rows", "forecast", "observed")
      segment  rows  forecast  observed
        north   200       0.3       0.5
        south   200       0.3      0.25
    """
    names = check_names("columns", columns)
    parts = []
    keys = []
    for key, counted in counts.items():
        if not isinstance(counted, Counts):
            raise InputError("counts", None, f"holds {type(counted).__name__}", "expected Counts")
        entries = key if isinstance(key, tuple) else (key,)
        if len(entries) != len(names):
            problem = f"{key!r} has {len(entries)} names, and there are {len(names)} columns"
            raise InputError("counts", None, problem, "pass a tuple of one name for each column")
        cells = counted.sample(per_fold=False)
        P = two_columns(cells.forecasts)
        squares = cells.squares
        parts.append(Sample(P, cells.codes, cells.weights, cells.classes, squares=squares))
        keys += [entries] * len(cells)
    segments = {name: [str(key[j]) for key in keys] for j, name in enumerate(names)}
    sample = with_segments(join_samples(parts), segments)
    return report_on(sample, pairs=pairs, min_rows=min_rows, confidence=confidence)


class Group(NamedTuple):
    """Segments of a column or of a pair of columns."""

    column: str
    names: list[str]
    codes: Ints  # of each row


def report_on(
    sample: Sample, *, confidence: float, pairs: bool = True, bins: int = 5, min_rows: int = 50
) -> Table:
    """What `segment_report` returns for a sample with segments."""
    check_number("bins", bins, int, minimum=2)
    check_number("min_rows", min_rows, int, minimum=1)
    check_confidence(confidence)
    sample = sample.positive()
    tables = [
        _measure(sample, group, k, min_rows, confidence)
        for group in _groups(sample.segments, pairs=pairs, bins=bins)  # type: ignore[arg-type]
        for k in range(int(sample.n_classes == 2), sample.n_classes)
    ]
    table = Table({name: np.concatenate([part[name] for part in tables]) for name in tables[0]})
    table["adjusted"] = adjusted(table["p_value"])
    table["cost"] = table.pop("cost")  # last
    by_cost = np.lexsort((table["p_value"], -table["cost"]))
    return Table({name: column[by_cost] for name, column in table.items()})


def _groups(segments: Segments, *, pairs: bool, bins: int) -> Iterator[Group]:
    """Columns, and pairs of them."""
    single = []
    for name, column in segments.columns.items():
        codes = column.values
        missing = column.values < 0
        cuts = np.empty(0)
        if column.is_numeric:
            cuts = bin_edges(column.values, bins)
            missing = np.isnan(column.values)
            codes = np.searchsorted(cuts, column.values)
        names = segment_names(np.array([]) if column.levels is None else column.levels, cuts)
        codes = np.where(missing, len(names), codes).astype(np.min_scalar_type(len(names)))
        single.append(Group(name, [*names, "missing"], codes))
    yield from single
    for a, b in combinations(single, 2) if pairs else ():
        width = len(b.names)
        pair = a.codes.astype(np.intp) * width + b.codes
        both, codes = np.unique(pair, return_inverse=True)
        names = [f"{a.names[i // width]}, {b.names[i % width]}" for i in both.tolist()]
        yield Group(f"{a.column} \u00d7 {b.column}", names, codes)


def _measure(sample: Sample, group: Group, k: int, min_rows: int, confidence: float) -> Table:
    """Forecasts and outcomes of a class in each segment."""
    w = sample.row_weights()
    squares = sample.squared_weights()
    p = sample.forecasts[:, k]
    came = sample.codes == k
    spread = p * (1 - p)

    def sums(values: Floats) -> Floats:
        return np.bincount(group.codes, values, len(group.names)).astype(np.float64)

    rows = sums(w**2 / squares)  # cells stand for several
    kept = np.flatnonzero(rows >= min_rows)
    total, square, forecast, observed = (sums(x)[kept] for x in (w, squares, w * p, w * came))
    plain = sums(squares * spread)[kept]
    information = sums(w * spread)[kept]
    third = sums(squares**2 / w * spread * (1 - 2 * p))[kept]
    step = square / total / 2
    variance = plain
    S = observed - forecast
    if (clustered := _clustered_variance(sample, w * (came - p), group)) is not None:
        variance = clustered[kept]
        step = 0 * step
        third = 0 * third
    cost = np.maximum(S**2 - variance, 0.0) / (2 * np.maximum(information, 1e-12)) / w.sum()
    variance = np.maximum(variance, 1e-12)
    n = effective_rows(total, square) * np.minimum(plain / variance, 1.0)
    rate = observed / total
    mean = np.maximum(forecast, 1e-12) / total
    low, high = wilson(rate.clip(0, 1), np.maximum(n, 1e-3), confidence)
    names = {"column": np.full(len(kept), group.column), "segment": np.array(group.names)[kept]}
    if sample.n_classes > 2:
        names["class"] = np.full(len(kept), str(sample.classes[k]))
    return Table(
        names,
        rows=np.rint(rows[kept]).astype(np.int64),
        forecast=mean,
        observed=rate,
        ratio=rate / mean,
        low=low / mean,
        high=high / mean,
        p_value=two_sided(S, variance, third, step),
        cost=cost,
    )


def _clustered_variance(sample: Sample, residuals: Floats, group: Group) -> Floats | None:
    """Variance of the sum of the residuals of each segment. None if its rows are independent."""
    if (clusters := sample.clusters) is None:
        return None
    size = len(group.names)
    width = int(clusters.max()) + 1
    parts, part = np.unique(group.codes.astype(np.intp) * width + clusters, return_inverse=True)
    if len(parts) == len(part):  # as for multilabel rows, with segments that are their labels
        return None
    segment = parts // width
    sums = np.bincount(part, residuals)
    n = np.bincount(segment, minlength=size)
    return np.bincount(segment, sums**2, size) * n / np.maximum(n - 1, 1)


def two_sided(S: Floats, variance: Floats, third: Floats, step: Floats) -> Floats:
    """P-values of sums S of mean 0, with given variance and third moment, in steps of `2 step`."""
    error = np.sqrt(variance)

    def chance_of_less(x: Floats, skewness: Floats) -> Floats:
        """Of a shifted gamma distribution with this skewness (Pearson type III)."""
        shape = 4 / np.maximum(skewness**2, 1e-6)
        at = np.maximum(shape + np.sign(skewness) * x * np.sqrt(shape), 0.0)
        skewed = np.where(skewness < 0, gammaincc(shape, at), gammainc(shape, at))
        return np.asarray(np.where(skewness**2 < 1e-6, ndtr(x), skewed))

    less = chance_of_less((S + step) / error, third / error**3)
    more = chance_of_less((step - S) / error, -third / error**3)
    return np.asarray(np.minimum(2 * np.minimum(less, more), 1.0))


def adjusted(p_values: Floats) -> Floats:
    """P-values adjusted for their number: those <= a have a false discovery rate of at most a."""
    n = len(p_values)
    adjusted = np.empty_like(p_values)
    order = np.argsort(-p_values, kind="stable")
    steps = p_values[order] * n / np.arange(n, 0, -1)
    adjusted[order] = np.minimum(np.minimum.accumulate(steps), 1.0) if n else steps
    return adjusted
