"""Where forecasts are wrong: segments in which outcomes differ from forecasts beyond chance."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
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
    check_number,
    check_probabilities,
    check_segments,
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
    y_true, y_prob : array-like
        As in `isoroc.evaluate`.
    segments : dataframe, mapping of names to columns, or array-like of shape (n,)
        Columns that describe the rows: strings, booleans or numbers, which are binned.
    sample_weight, labels, clusters : array-like, default=None
        As in `isoroc.evaluate`.
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
        One row per segment and, with three classes or more, per class: ``rows``, the mean
        ``forecast``, the ``observed`` rate, their ``ratio`` (above 1 if forecasts are too low) with
        its interval from ``low`` to ``high``, ``p_value`` of a test that the forecasts are right on
        average, ``adjusted`` for the number of all segments (Benjamini and Hochberg 1995), and the
        ``cost``: how much the mean log loss of all rows would fall if the log odds in this segment
        were shifted, less what chance explains.

    See Also
    --------
    isoroc.SegmentCalibrator : Corrects forecasts within segments.

    Notes
    -----
    If the forecasts of all segments are right, the chance that any adjusted p-value is at most a is
    at most about a. Otherwise at most about a share a of the segments found in this way is right.
    The distribution of the number of outcomes has the mean, variance and skewness that the
    forecasts imply.

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
    options: Any = {"pairs": pairs, "bins": bins, "min_rows": min_rows, "confidence": confidence}
    return report_on(sample, **options)


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
    pairs, min_rows, confidence : bool, int and float
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
    names = [columns] if isinstance(columns, str) else list(columns)
    parts, keys = [], []
    for key, own in counts.items():
        if not isinstance(own, Counts):
            raise InputError("counts", None, f"holds {type(own).__name__}", "expected Counts")
        entries = key if isinstance(key, tuple) else (key,)
        if len(entries) != len(names):
            problem = f"{key!r} has {len(entries)} names, and there are {len(names)} columns"
            raise InputError("counts", None, problem, "pass a tuple of one name for each column")
        parts.append(own.sample(per_fold=False))
        keys += [entries] * len(parts[-1])
    arrays = (np.concatenate([getattr(part, name) for part in parts])
              for name in ("forecasts", "codes", "weights", "squares"))  # fmt: skip
    P, codes, weights, squares = arrays
    sample = Sample(two_columns(P), codes, weights, parts[0].classes, squares=squares)
    segments = {name: [str(key[j]) for key in keys] for j, name in enumerate(names)}
    sample = replace(sample, segments=check_segments(segments, len(keys)))
    return report_on(sample, pairs=pairs, min_rows=min_rows, confidence=confidence)


class Group(NamedTuple):
    """Segments of a column or of a pair of columns."""

    column: str
    names: list[str]
    codes: Ints  # of each row


def report_on(
    sample: Sample,
    *,
    pairs: bool = True,
    bins: int = 5,
    min_rows: int = 50,
    confidence: float = 0.95,
) -> Table:
    """What `segment_report` returns for a sample with segments."""
    check_number("bins", bins, int, minimum=2)
    check_number("min_rows", min_rows, int, minimum=1)
    check_confidence(confidence)
    sample = sample.positive()
    K, tables = sample.n_classes, []
    for group in _groups(sample.segments, pairs=pairs, bins=bins):  # type: ignore[arg-type]
        for k in range(int(K == 2), K):
            own = _measure(sample, group, k, min_rows, confidence)
            if K > 2:
                own["class"] = np.full(own.n_rows, str(sample.classes[k]))
            tables.append(own)
    order = ["column", "segment", *(["class"] if K > 2 else []), "rows", "forecast", "observed"]
    order += ["ratio", "low", "high", "p_value", "cost"]
    table = Table({name: np.concatenate([own[name] for own in tables]) for name in order})
    table["adjusted"] = adjusted(table["p_value"])
    table["cost"] = table.pop("cost")  # last
    by_cost = np.lexsort((table["p_value"], -table["cost"]))
    return Table({name: column[by_cost] for name, column in table.items()})


def _groups(segments: Segments, *, pairs: bool, bins: int) -> Iterator[Group]:
    """Columns, and pairs of them."""
    single = []
    for name, column in segments.columns.items():
        cuts = bin_edges(column.values, bins) if column.is_numeric else np.empty(0)
        names = segment_names(np.array([]) if column.levels is None else column.levels, cuts)
        missing = np.isnan(column.values) if column.is_numeric else column.values < 0
        places = np.searchsorted(cuts, column.values) if column.is_numeric else column.values
        codes = np.where(missing, len(names), places).astype(np.min_scalar_type(len(names)))
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
    w, squares, p = sample.row_weights(), sample.squared_weights(), sample.forecasts[:, k]
    came, spread = sample.codes == k, p * (1 - p)
    size = len(group.names)

    def sums(values: Floats) -> Floats:
        return np.bincount(group.codes, values, size).astype(np.float64)

    rows = sums(w**2 / squares)  # cells stand for several
    kept = np.flatnonzero(rows >= min_rows)
    total, square, forecast, observed = (sums(x) for x in (w, squares, w * p, w * came))
    plain, third = sums(squares * spread), sums(squares**2 / w * spread * (1 - 2 * p))
    step, variance = square / np.maximum(total, 1e-300) / 2, plain
    found = _clustered(sample, w * (came - p), group)
    if found is not None:
        variance, step, third = found, 0 * step, 0 * third
    S = observed - forecast
    information = np.maximum(sums(w * spread), 1e-12)
    cost = np.maximum(S**2 - variance, 0.0) / (2 * information) / w.sum()
    variance = np.maximum(variance, 1e-12)
    n = effective_rows(total[kept], square[kept]) * np.minimum(plain / variance, 1.0)[kept]
    rate, mean = (x[kept] / total[kept] for x in (observed, np.maximum(forecast, 1e-12)))
    low, high = wilson(rate.clip(0, 1), np.maximum(n, 1e-3), confidence)
    p_values = two_sided(S, variance, third, step)
    return Table(
        column=np.full(len(kept), group.column),
        segment=np.array([group.names[i] for i in kept], dtype=np.str_),
        rows=np.rint(rows[kept]).astype(np.int64),
        forecast=mean,
        observed=rate,
        ratio=rate / mean,
        low=low / mean,
        high=high / mean,
        p_value=p_values[kept],
        cost=cost[kept],
    )


def _clustered(sample: Sample, residuals: Floats, group: Group) -> Floats | None:
    """Variance of the sum of the residuals of each segment if rows of a cluster depend.

    None if no cluster has several rows in a segment, as the labels of a row have.
    """
    if (clusters := sample.clusters) is None:
        return None
    size, width = len(group.names), int(clusters.max()) + 1
    found, inverse = np.unique(group.codes.astype(np.intp) * width + clusters, return_inverse=True)
    if len(found) == len(inverse):
        return None
    of = found // width
    sums, n = np.bincount(inverse, residuals), np.bincount(of, minlength=size)
    return np.bincount(of, sums**2, size) * n / np.maximum(n - 1, 1)


def two_sided(S: Floats, variance: Floats, third: Floats, step: Floats) -> Floats:
    """P-values of sums S of mean 0, with given variances and third moments, on steps of `2 step`.

    The distribution is a shifted gamma distribution with the same skewness (Pearson type III).
    """
    error = np.sqrt(variance)
    skewness = third / error**3
    shape = 4 / np.maximum(skewness**2, 1e-6)
    sign = np.where(skewness < 0, -1.0, 1.0)

    def tails(x: Floats) -> tuple[Floats, Floats]:
        """Chance of less, and of more."""
        at = np.maximum(shape + sign * x * np.sqrt(shape), 0.0)
        below, above = gammainc(shape, at), gammaincc(shape, at)
        is_normal = skewness**2 < 1e-6
        below, above = (np.where(sign > 0, a, b) for a, b in ((below, above), (above, below)))
        return np.where(is_normal, ndtr(x), below), np.where(is_normal, ndtr(-x), above)

    less, more = tails((S + step) / error)[0], tails((S - step) / error)[1]
    return np.asarray(np.minimum(2 * np.minimum(less, more), 1.0))


def adjusted(p_values: Floats) -> Floats:
    """P-values adjusted for their number: those <= a have a false discovery rate of at most a."""
    n = len(p_values)
    order = np.argsort(-p_values, kind="stable")
    steps = p_values[order] * n / np.arange(n, 0, -1)
    found = np.empty(n)
    found[order] = np.minimum(np.minimum.accumulate(steps), 1.0) if n else steps
    return found
