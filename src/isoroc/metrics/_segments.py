"""Where forecasts are wrong: segments in which outcomes differ from forecasts beyond chance."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaincc, ndtr, stdtr

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
        Bins of a column of numbers. Frequent values have their own bins.
    min_rows : int, default=50
        Smaller segments are left out. If all are smaller, there is a warning.
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

    Warns
    -----
    UserWarning
        If no segment has `min_rows` rows. The table is then empty.

    See Also
    --------
    isoroc.SegmentCalibrator : Corrects forecasts within segments.

    Notes
    -----
    If the forecasts of all segments are right on average, the chance that any adjusted p-value is
    at most a is at most about a. Otherwise at most about a share a of the segments found in this
    way is right. The number of outcomes in a segment has the mean, variance and skewness that the
    forecasts imply. Variance and third moment are multiplied by how much more the outcomes of all
    rows vary, ``max(1, sum(w**2 * (y - p)**2) / sum(w**2 * p * (1 - p)))``: forecasts may be too
    extreme, yet right on average. With clusters, a t-test of the differences of the clusters in a
    segment is added, and the larger p-value counts. The interval has the ratios that the test does
    not reject, so 1 is outside of it if the p-value is at most ``1 - confidence``.

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
    table = report_on(sample, pairs=pairs, bins=bins, min_rows=min_rows, confidence=confidence)
    _warn_if_empty(table, min_rows)
    return table


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
    table = report_on(sample, pairs=pairs, min_rows=min_rows, confidence=confidence)
    _warn_if_empty(table, min_rows)
    return table


def none_tested(min_rows: int, noun: str = "segment") -> str:
    """What to say if all segments are smaller."""
    return f"No {noun} has {min_rows} rows, so none was tested."


def _warn_if_empty(table: Table, min_rows: int) -> None:
    if not table.n_rows:
        fix = "Pass fewer columns or bins, more rows, or a smaller min_rows."
        warnings.warn(f"{none_tested(min_rows)} {fix}", UserWarning, stacklevel=3)


class Group(NamedTuple):
    """Segments of a column or of a pair of columns."""

    column: str
    names: list[str]
    codes: Ints  # of each row


#: Segments with fewer rows are not tested, by default.
MIN_ROWS = 50


def report_on(
    sample: Sample,
    *,
    confidence: float,
    pairs: bool = True,
    bins: int = 5,
    min_rows: int = MIN_ROWS,
) -> Table:
    """What `segment_report` returns for a sample with segments."""
    check_number("bins", bins, int, minimum=2)
    check_number("min_rows", min_rows, int, minimum=1)
    check_confidence(confidence)
    sample = sample.positive()
    groups = list(_groups(sample.segments, pairs=pairs, bins=bins))  # type: ignore[arg-type]
    classes = range(int(sample.n_classes == 2), sample.n_classes)
    tables, scores = zip(
        *(_measure(sample, group, k, min_rows) for group in groups for k in classes), strict=True
    )
    table = Table({name: np.concatenate([part[name] for part in tables]) for name in tables[0]})
    score = Score(*(np.concatenate(columns, axis=-1) for columns in zip(*scores, strict=True)))
    mean = score.mean
    low, high = score.interval(confidence)
    p_value = score.p_value(mean)
    excess = (score.observed - score.forecast) ** 2 - score.variance_of_outcomes()
    cost = np.maximum(excess, 0.0) / (2 * np.maximum(score.information, 1e-12))
    table = Table(
        table,
        forecast=mean,
        observed=score.rate,
        ratio=score.rate / mean,
        low=low / mean,
        high=high / mean,
        p_value=p_value,
        adjusted=adjusted(p_value),
        cost=cost / sample.row_weights().sum(),
    )
    by_cost = np.lexsort((p_value, -cost))
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


def _sums(group: Group, values: Floats) -> Floats:
    """Sum over the rows of each segment."""
    return np.bincount(group.codes, values, len(group.names)).astype(np.float64)


class Score(NamedTuple):
    """Sums over the rows of each segment, and the score test of the rate of an outcome in it."""

    total: Floats
    """Total weight."""
    step: Floats
    """Half of the mean weight of a row."""
    forecast: Floats
    observed: Floats
    variance: Floats
    """Variance of `observed` if the rows are independent and have the rates that were forecast."""
    third: Floats
    """The third central moment in that case."""
    information: Floats
    """Expected number of outcomes that one more unit of log odds adds."""
    n_clusters: Floats
    """Number of clusters, 0 if the rows are independent."""
    products: Floats
    """Sums over clusters of observed², observed x forecast and forecast², shape (3, m)."""

    @classmethod
    def of(cls, sample: Sample, k: int, group: Group) -> Self:
        """Sums of class k."""
        p = sample.forecasts[:, k]
        came = (sample.codes == k).astype(np.float64)
        w = sample.row_weights()
        squares = sample.squared_weights()
        spread = p * (1 - p)
        # Forecasts that are too extreme vary less than outcomes do, even if they are right on
        # average in every segment. So variances are scaled by all rows.
        factor = max(1.0, squares @ (came - p) ** 2 / max(squares @ spread, 1e-12))
        total = _sums(group, w)
        size = len(group.names)
        n_clusters = np.zeros(size)
        products = np.zeros((3, size))
        if (found := _clusters_of(sample, group)) is not None:
            part, segment = found
            outcomes = np.bincount(part, w * came)
            forecasts = np.bincount(part, w * p)
            n_clusters = np.bincount(segment, minlength=size).astype(np.float64)
            pairs = (outcomes**2, outcomes * forecasts, forecasts**2)
            products = np.array([np.bincount(segment, pair, size) for pair in pairs])
        return cls(
            total,
            _sums(group, squares) / np.maximum(total, 1e-300) / 2,
            np.maximum(_sums(group, w * p), 1e-12 * total),
            np.minimum(_sums(group, w * came), total),
            np.maximum(factor * _sums(group, squares * spread), 1e-12),
            factor * _sums(group, squares**2 / w * spread * (1 - 2 * p)),
            _sums(group, w * spread),
            n_clusters,
            products,
        )

    def take(self, segments: Ints) -> Self:
        """The sums of some of the segments."""
        return type(self)(*(column[..., segments] for column in self))

    @property
    def mean(self) -> Floats:
        """Mean forecast."""
        return self.forecast / self.total

    @property
    def rate(self) -> Floats:
        """Observed rate."""
        return self.observed / self.total

    def variance_of_outcomes(self) -> Floats:
        """Variance of `observed`, or the variance between clusters if it is larger."""
        n = self.n_clusters
        between = np.array([1.0, -2.0, 1.0]) @ self.products * n / np.maximum(n - 1, 1)
        return np.maximum(self.variance, between)

    def p_value(self, rate: Floats) -> Floats:
        """P-value of each rate.

        The number of outcomes has a variance proportional to ``rate * (1 - rate)``, as if forecasts
        were shifted. Clusters have a t-test of their differences, and the larger p-value counts:
        clusters that agree by chance are no evidence.
        """
        mean = self.mean
        rate = np.clip(rate, 1e-12, 1 - 1e-12)
        scale = rate * (1 - rate) / np.maximum(mean * (1 - mean), 1e-12)
        skew = self.third / self.variance + 4 * self.step * (mean - rate)
        skew = np.clip(skew, -2 * self.step, 2 * self.step)
        variance = np.maximum(scale * self.variance, 1e-12)
        S = self.observed - rate * self.total
        independent = two_sided(S, variance, skew * variance, self.step)
        if not self.n_clusters.any():
            return independent
        n = np.maximum(self.n_clusters, 2.0)
        ratio = rate / mean
        square = np.array([np.ones_like(ratio), -2 * ratio, ratio**2])
        total = np.maximum((square * self.products).sum(axis=0), 1e-300)
        left = np.maximum(n * total - S**2, 1e-12 * n * total)  # n (n - 1) times the variance
        clustered = 2 * stdtr(n - 1, -np.abs(S) * np.sqrt((n - 1) / left))
        clustered = np.where(self.n_clusters < 2, 1.0, clustered)
        return np.maximum(independent, clustered)

    def interval(self, confidence: float, n_steps: int = 30) -> tuple[Floats, Floats]:
        """Rates that the test does not reject, so that an interval agrees with its p-value."""
        level = 1 - confidence
        is_right = self.p_value(self.mean) > level

        def solve(end: float) -> Floats:
            """Bisection between the observed rate and this end, or the forecast if rejected."""
            inside = self.rate
            outside = np.full_like(inside, end)
            between = (self.mean - inside) * (end - inside) > 0
            inside = np.where(between & is_right, self.mean, inside)
            outside = np.where(between & ~is_right, self.mean, outside)
            is_open = self.p_value(outside) > level
            for _ in range(n_steps):
                middle = (inside + outside) / 2
                accepted = self.p_value(middle) > level
                inside = np.where(accepted, middle, inside)
                outside = np.where(accepted, outside, middle)
            return np.where(is_open, end, inside)

        return solve(0.0), solve(1.0)


def _measure(sample: Sample, group: Group, k: int, min_rows: int) -> tuple[Table, Score]:
    """Names and sizes of the segments, and what forecasts and outcomes of a class add up to."""
    rows = _sums(group, sample.row_weights() ** 2 / sample.squared_weights())  # a cell has several
    kept = np.flatnonzero(rows >= min_rows)
    names = {"column": np.full(len(kept), group.column), "segment": np.array(group.names)[kept]}
    if sample.n_classes > 2:
        names["class"] = np.full(len(kept), str(sample.classes[k]))
    table = Table(names, rows=np.rint(rows[kept]).astype(np.int64))
    return table, Score.of(sample, k, group).take(kept)


def _clusters_of(sample: Sample, group: Group) -> tuple[Ints, Ints] | None:
    """Number of each row's cluster within its segment, and segments of these. None if all differ.

    They differ, for example, if rows are entries of several labels and segments the labels.
    """
    if (clusters := sample.clusters) is None:
        return None
    width = int(clusters.max()) + 1
    parts, part = np.unique(group.codes.astype(np.intp) * width + clusters, return_inverse=True)
    return None if len(parts) == len(part) else (part, parts // width)


def two_sided(S: Floats, variance: Floats, third: Floats, step: Floats) -> Floats:
    """P-values of sums S of mean 0, with given variance and third moment, in steps of `2 step`."""
    error = np.sqrt(variance)

    def chance_of_less(x: Floats, skewness: Floats) -> Floats:
        """Of a shifted gamma distribution with this skewness (Pearson type III)."""
        shape = 4 / np.maximum(skewness**2, 1e-6)
        at = np.maximum(shape + np.sign(skewness) * x * np.sqrt(shape), 0.0)
        chance = np.asarray(ndtr(x))
        right = skewness > 1e-3
        left = skewness < -1e-3
        chance[right] = gammainc(shape[right], at[right])
        chance[left] = gammaincc(shape[left], at[left])
        return chance

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
