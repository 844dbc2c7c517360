"""Sample: forecasts, outcomes and weights, validated once and used everywhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoroc._backends import NUMPY
from isoroc._core.intervals import effective_rows
from isoroc._core.simplex import count_classes, residuals
from isoroc._core.types import Codes, Floats, Ints
from isoroc._input.arrays import (
    check_length,
    column_names,
    match_columns,
    slices,
    take_rows,
    to_array,
)
from isoroc._input.error import InputError, check_option
from isoroc._input.kinds import (
    LOG_ODDS,
    PROBABILITIES,
    SECOND_PROBABILITY,
    Kind,
    Unit,
    columns_of,
    count_columns,
    kind_of,
    units_of,
)
from isoroc._input.rows import (
    check_clusters,
    check_counts,
    check_weights,
    encode_labels,
    read_outcomes,
    shares_by_class,
)
from isoroc._input.segments import Segments, check_segments, join_segments

UnitOption = Literal["auto"] | Unit
Weighting = Literal["importance", "frequency"]


def check_forecasts(
    P: ArrayLike, *, name: str = "P", unit: UnitOption = "auto", advice: str = ""
) -> Floats:
    """Forecast array of probabilities, logits or scores.

    Logits become logarithms of probabilities. By default scores of two classes may be any numbers.
    """
    values = read_forecasts(P, name=name)
    any_number = values.ndim == 1 and unit == "auto"
    kind = LOG_ODDS if any_number else resolve_kind(values, unit)
    return clean(values, kind, name=name, advice=advice)


def clean(values: Floats, kind: Kind, *, name: str, advice: str = "") -> Floats:
    """A forecast array that formulas accept. Raises an error at the first invalid row.

    `advice` says what to do with the parameter ``unit``, such as "pass", if the caller has it.
    """
    if kind.is_clean(values):
        return values
    columns = columns_of(values)
    with np.errstate(all="ignore"):
        X, good = kind.clean(NUMPY, columns)
    if good.all():
        return np.ascontiguousarray(X).reshape(values.shape)
    row = int(np.argmin(good))
    problem, fix, unit = kind.explain(columns[row])
    if unit is not None and advice:
        meant = kind_of(columns.shape[1], unit).name.replace("_", " ")
        fix += f'. For {meant} {advice} unit="{unit}"'
    elif unit == "logit" and not kind.single:
        fix += ". For logits pass scipy.special.softmax(logits, axis=1)"
    raise InputError(name, row, problem, fix)


def valid_rows(values: Floats, kind: Kind) -> NDArray[np.bool_]:
    """Which rows of a forecast array are valid. Missing numbers are NaN."""
    with np.errstate(all="ignore"):
        _, good = kind.clean(NUMPY, columns_of(values))
    return np.asarray(good[:, 0])


def first_improbable(scores: Floats) -> int | None:
    """First row with a score outside [0, 1] beyond rounding, or None if there is none."""
    if SECOND_PROBABILITY.is_clean(scores):
        return None
    for rows in slices(len(scores)):
        good = valid_rows(scores[rows], SECOND_PROBABILITY)
        if not good.all():
            return int(rows.start + np.argmin(good))
    return None


def read_forecasts(P: ArrayLike, *, name: str, n_columns: int | None = None) -> Floats:
    """Numbers, not yet clean, of shape (n, K), or of shape (n,) if there is one column."""
    raw = to_array(P, name=name)
    if np.iscomplexobj(raw):
        raise InputError(name, None, "Complex data not supported", "forecasts are real numbers")
    if raw.dtype.kind in "mM":
        fix = "forecasts are numbers, not dates"
        raise InputError(name, None, f"has the type {raw.dtype}", fix)
    try:
        values = np.ascontiguousarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        problem = f"forecasts must be numbers ({error})"
        fix = "if they are the labels, the two arguments are swapped"
        if isinstance(raw.flat[0], Mapping):
            problem = "is a mapping, or a list of mappings, of classes to forecasts"
            fix = f"pass pandas.DataFrame({name}), with .fillna(-numpy.inf) if log probabilities of"
            fix += " some classes are missing"
        raise InputError(name, None, problem, fix) from error
    values = values.reshape(raw.shape)  # ascontiguousarray makes a vector of a single number
    if values.ndim not in (1, 2):
        fix = "expected a 2-D array of probabilities or a 1-D array of scores. For a list with an"
        fix += " array for each of several labels use MultiLabelCalibrator"
        raise InputError(name, None, f"{values.ndim} dimensions", fix)
    if len(values) == 0:
        raise InputError(name, None, f"no rows (shape {values.shape})", "at least one is needed")
    if (n_given := count_columns(values)) == 0:
        problem = f"0 feature(s) (shape={values.shape}) while a minimum of 1 is required"
        raise InputError(name, None, problem)
    if n_columns not in (None, n_given):
        sizes = (f"{n} columns" if n != 1 else "one column of scores" for n in (n_given, n_columns))
        problem = "has {}, but the calibrator was fitted to {}".format(*sizes)
        raise InputError(name, None, problem, "pass forecasts of the same kind as in fit")
    return values.reshape(-1) if n_given == 1 else values


def check_new(P: Any, kind: Kind, n_columns: int, summary: Any, ops: Any = NUMPY) -> Floats:
    """Forecast array of new rows, on the device of `ops`. `summary` describes the fit."""
    real = ops is not NUMPY and "complex" not in str(P.dtype)
    if real and P.ndim in (1, 2) and P.shape[0] and count_columns(P) == n_columns:
        X = ops.vector(ops.constant(columns_of(P)))
        cleaned, good = kind.clean(ops, X)
        odd = kind.unit not in ("probability", "proportion")
        odd = odd and ops.xp.all(kind_of(n_columns).clean(ops, X)[1].array)
        if ops.xp.all(good.array) and not odd:
            return cleaned.array  # type: ignore[no-any-return]
    values = read_forecasts(P, name="P", n_columns=n_columns)  # errors are raised on the host
    match summary.get("range"):
        case [int() | float(), int() | float()] as fitted:
            warn_if_probabilities(values, kind, fitted)
        case _:
            warn_if_probabilities(values, kind)
    return clean(values, kind, name="P", advice="fit with")


def warn_if_probabilities(
    values: Floats, kind: Kind, fitted: tuple[float, float] = (0.0, 1.0), *, name: str = "P"
) -> None:
    """Warn if forecasts of another unit look like probabilities.

    Columns do if all rows are on the simplex. Scores do if there are at least 20, all in [0, 1],
    while the scores of the fit had the range `fitted`, of length 4 or more.
    """
    if kind.unit in ("probability", "proportion"):
        return
    if kind.single:
        low, high = fitted
        is_odd = len(values) >= 20 and high - low >= 4 and values.min() >= 0 and values.max() <= 1
        why = f"lie between 0 and 1, but the scores of fit between {low:.6g} and {high:.6g}"
    else:
        parts = values[:1], values  # for most logits the first row decides
        is_odd = all(valid_rows(part, PROBABILITIES).all() for part in parts)
        why = "are probabilities that sum to one in each row"
    if is_odd:
        read = f'forecasts are read as unit="{kind.unit}", but these {why}'
        fix = "new forecasts must be in the same unit as in fit"
        warnings.warn(f"{name}: {read}; {fix}.", UserWarning, stacklevel=4)


def resolve_unit(forecasts: Floats, unit: UnitOption) -> Unit:
    """The unit, where "auto" depends on the forecasts."""
    return resolve_kind(forecasts, unit).unit


def resolve_kind(forecasts: Floats, unit: UnitOption) -> Kind:
    """The kind of forecasts in a unit, where "auto" depends on the forecasts."""
    check_option("unit", unit, ("auto", *units_of(count_columns(forecasts))))
    if unit == "auto":
        is_unit = forecasts.ndim == 2 or first_improbable(forecasts) is None
        unit = "probability" if is_unit else "logit"
    return kind_of(count_columns(forecasts), unit)


@dataclass(frozen=True, eq=False)
class Sample:
    """Validated forecasts and the outcomes that came with them."""

    forecasts: Floats  # a clean forecast array: see `isoroc._core.simplex` and `Kind.scores`
    codes: Codes  # column of each row's label
    weights: Floats | None = None  # None if every row has weight 1
    classes: Any = None  # label of each column, None for ranks or one class against the rest
    unit: Unit = "probability"  # unit of the forecasts as users passed them
    segments: Segments | None = None  # columns that describe each row
    squares: Floats | None = None  # for each row, squared weights of the rows it stands for, summed
    clusters: Ints | None = None  # number of each row's cluster, None for independent rows
    parts_of: Ints | None = None  # with soft labels, the row that each row is a part of

    @property
    def kind(self) -> Kind:
        return kind_of(count_columns(self.forecasts), self.unit)

    @property
    def n_classes(self) -> int:
        return count_classes(self.forecasts)

    @property
    def arrays(self) -> tuple[Floats, Codes, Floats | None]:
        return self.forecasts, self.codes, self.weights

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_rows(self) -> int:
        """Number of rows that the user passed, which soft labels divide into parts."""
        return len(self) if self.parts_of is None else len(np.unique(self.parts_of))

    @property
    def n_units(self) -> int:
        """Number of independent units: clusters, or rows."""
        return len(self) if self.clusters is None else len(np.unique(self.clusters))

    def class_weights(self) -> Floats:
        """Total weight of each class, shape (K,)."""
        if self.weights is None and self.n_classes == 2:  # the case of many millions of rows
            ones = np.count_nonzero(self.codes)
            return np.array([len(self) - ones, ones], dtype=np.float64)
        total = np.zeros(self.n_classes)
        for rows in slices(len(self)):  # bincount makes a copy of eight bytes per row
            weights = None if self.weights is None else self.weights[rows]
            total += np.bincount(self.codes[rows], weights, self.n_classes)
        return total

    def row_weights(self) -> Floats:
        """Weight of each row, ones where none were given."""
        return np.ones(len(self.codes)) if self.weights is None else self.weights

    def squared_weights(self) -> Floats:
        """Sum of the squared weights of the rows that each row stands for, by default its own."""
        return self.row_weights() ** 2 if self.squares is None else self.squares

    def count_rows(self, where: NDArray[np.bool_]) -> float:
        """Number of rows, or of rows in cells, with at least one selected part."""
        if self.parts_of is not None:
            return float(len(np.unique(self.parts_of[where])))
        some = self.take(np.flatnonzero(where))
        # exact if the rows of a cell have equal weights
        return float((some.row_weights() ** 2 / some.squared_weights()).sum())

    def effective(self, weighting: Weighting = "importance") -> Self:
        """The sample with weights that count rows, as fits and penalties expect.

        Importance weights are scaled to sum to Kish's effective number of rows. Frequencies are
        numbers of rows already.
        """
        check_option("weighting", weighting, ("importance", "frequency"))
        if self.weights is None:
            return self
        if weighting == "frequency":
            if self.squares is None:  # cells may have any weight
                check_counts(self.weights)
            return replace(self, squares=self.weights)
        total = float(self.weights.sum())
        squares = self.squared_weights()
        scale = effective_rows(total, float(squares.sum())) / total
        alike = np.allclose(scale * squares, self.weights, rtol=1e-9, atol=0.0)
        if alike and (scale == 1 or self.parts_of is None):
            counts = None if self.squares is None else np.rint(scale * self.weights)
            return self if scale == 1 else replace(self, weights=counts, squares=counts)
        # With few digits, most sums are exact, and the order of rows does not matter.
        digits, exponent = np.frexp(scale)
        scale = float(np.ldexp(np.rint(np.ldexp(digits, 40)), exponent - 40))
        return replace(self, weights=scale * self.weights, squares=scale**2 * squares)

    def residuals(self) -> Floats:
        """Outcomes less forecasts, in the shape of the forecasts."""
        if self.kind.single:
            return np.asarray(self.codes - self.forecasts)
        return residuals(self.forecasts, self.codes)

    def decisions(self) -> Ints:
        """The column with the largest probability in each row, the first on ties."""
        return self.kind.decisions(self.forecasts)

    def measure(self, metric: Callable[..., Any], **options: Any) -> Any:
        """Value of a metric on this sample, with codes as labels."""
        labels = np.arange(self.n_classes)
        options = {"sample_weight": self.weights, "labels": labels} | options
        return metric(self.codes, self.forecasts, **options)

    def take(self, rows: NDArray[Any] | slice) -> Self:
        arrays = {name: a for name, a in vars(self).items() if name not in ("classes", "unit")}
        parts = {name: take_rows(a, rows) for name, a in arrays.items() if a is not None}
        return replace(self, **parts)

    def draw(self, n_rows: int) -> Self:
        """At most `n_rows` rows, drawn at random without replacement."""
        return self if len(self) <= n_rows else self.take(self.drawn_rows(n_rows))

    def drawn_rows(self, n_rows: int) -> Ints:
        """The rows that `draw` takes."""
        rng = np.random.default_rng(0)
        n = len(self)
        if n <= n_rows:
            return np.arange(n)
        return np.sort(rng.choice(n, n_rows, replace=False, shuffle=False))

    def on_simplex(self) -> Self:
        """The sample with probabilities in place of logits of several columns."""
        if self.kind.single:
            return self
        P = self.kind.on_simplex(NUMPY, self.forecasts)
        return replace(self, forecasts=P, unit="probability")

    def as_given(self) -> Floats:
        """The forecasts in the unit of the user, as `predict_proba` takes them."""
        return self.kind.restore(self.forecasts)

    def positive(self) -> Self:
        if self.weights is None or self.weights.all():
            return self
        return self.take(np.flatnonzero(self.weights))


def join_samples(parts: Sequence[Sample]) -> Sample:
    """One sample of the rows of several. Rows without weights weigh 1 if others have weights."""

    def join(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    is_weighted = any(part.weights is not None for part in parts)
    segments = [part.segments for part in parts if part.segments is not None]
    return replace(
        parts[0],
        forecasts=join("forecasts"),
        codes=join("codes"),
        weights=np.concatenate([part.row_weights() for part in parts]) if is_weighted else None,
        clusters=join("clusters"),
        squares=join("squares"),
        parts_of=join("parts_of"),
        segments=join_segments(segments) if segments else None,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class CellSample(Sample):
    """A sample with cells of counts as rows, each with the weight of one class.

    After `effective`, the weight of a cell is its number of rows.
    """

    fold: Ints
    squares: Floats

    def draw(self, n_rows: int) -> Self:
        """Cells of `n_rows` rows drawn at random, or all cells if there are not more."""
        if len(self) <= n_rows:
            return self
        times = self._times_drawn(n_rows)
        unit = self.row_weights().sum() / n_rows
        part = self.take(np.flatnonzero(times))
        weights = times[times > 0] * unit
        # The variance of drawing adds to the variance within the cell.
        each = part.squares / part.row_weights()
        return replace(part, weights=weights, squares=weights * (each + weights.sum() / n_rows))

    def drawn_rows(self, n_rows: int) -> Ints:
        """The cells that `draw` takes."""
        are_few = len(self) <= n_rows
        return np.arange(len(self)) if are_few else np.flatnonzero(self._times_drawn(n_rows))

    def without_folds(self) -> Sample:
        """The same rows, which are no longer in folds."""
        return Sample(
            self.forecasts,
            self.codes,
            self.weights,
            self.classes,
            self.unit,
            self.segments,
            self.squares,
            self.clusters,
            self.parts_of,
        )

    def folds(self) -> Ints:
        distinct, fold = np.unique(self.fold, return_inverse=True)
        if len(distinct) < 2:
            problem = "all rows are in one fold, but cross-validation needs two"
            fix = "count with folds=5, or with another fold_by="
            raise InputError("counts", None, problem, fix)
        return np.asarray(fold)

    def _times_drawn(self, n_rows: int) -> Ints:
        weights = self.row_weights()
        return np.random.default_rng(0).multinomial(n_rows, weights / weights.sum())


def check_sample(
    P: ArrayLike,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    *,
    clusters: ArrayLike | None = None,
    unit: UnitOption = "auto",
    clip: bool = False,
    advice: str = "",
    name: str = "P",
    label_name: str = "y",
    start: int | None = None,
    partial: bool = False,
) -> Sample:
    """Sample of forecasts, labels and weights as users pass them.

    By default columns are matched with labels by name, or else follow the sorted labels. With
    `clip`, scores that exceed [0, 1] by rounding errors are clipped, which may tie them. `start`
    is the number of the first row of a batch. `partial` is for the first rows of `partial_fit`,
    which has the argument ``classes`` in place of ``labels``.
    """
    if y is None:
        raise InputError(label_name, None, "requires y to be passed, but the target y is None")
    values = read_forecasts(P, name=name)
    outcomes = read_outcomes(y, values, name=label_name)  # before forecasts for other labels fail
    kind = resolve_kind(values, unit)
    unclipped = kind is SECOND_PROBABILITY and unit == "auto" and not clip
    warn_if_probabilities(values, kind, name=name)
    forecasts = clean(values, LOG_ODDS if unclipped else kind, name=name, advice=advice)
    weights = check_weights(sample_weight, len(forecasts))
    names = column_names(P)
    K = count_classes(forecasts)
    check_length(outcomes, len(forecasts), name=label_name, of=name)
    groups = check_clusters(clusters, len(forecasts), of=name)
    if outcomes.ndim == 2:
        classes, shares = shares_by_class(
            outcomes,
            column_names(y),
            labels,
            names,
            forecasts=name,
            name=label_name,
            partial=partial,
        )
        codes = shares.argmax(axis=1).astype(np.min_scalar_type(K - 1))
        sample = Sample(forecasts, codes, weights, classes, clusters=groups, unit=kind.unit)
        is_soft = start is not None or not ((shares == 0) | (shares == 1)).all()
        return divide_rows(sample, shares, start or 0) if is_soft else sample
    classes, codes = encode_labels(
        outcomes,
        K,
        labels=labels,
        names=names,
        forecasts=forecasts,
        name=label_name,
        partial=partial,
    )
    by_column = match_columns(names, classes, given=labels is not None, name=name)
    if by_column is not classes:
        column_of = [by_column.tolist().index(label) for label in classes.tolist()]
        classes = by_column
        codes = np.array(column_of, dtype=codes.dtype)[codes]
    return Sample(forecasts, codes, weights, classes, clusters=groups, unit=kind.unit)


def divide_rows(sample: Sample, shares: Floats, start: int = 0) -> Sample:
    """The sample with a part of each row for each class that has a share of it, shape (n, K).

    The parts of a row have its weight in total and count as one row: they are a cluster.
    """
    parts_of, codes = np.nonzero(shares)
    share = shares[parts_of, codes]
    weights = sample.row_weights()[parts_of]
    if sample.clusters is None:  # numbers that do not depend on the order of the rows
        content = np.column_stack([columns_of(sample.forecasts), shares, sample.row_weights()])
        sample = replace(sample, clusters=np.argsort(np.lexsort(content.T)) + start)
    return replace(
        sample.take(parts_of),
        codes=codes.astype(sample.codes.dtype),
        weights=weights * share,
        squares=weights**2 * share,
        parts_of=parts_of + start,
    )


def join_parts(sample: Sample) -> tuple[Sample, Floats]:
    """The rows that `divide_rows` has divided, and their soft labels, shape (n, K)."""
    weights = sample.row_weights()
    squares = sample.squared_weights()
    parts_of = np.asarray(sample.parts_of)
    _, first, row = np.unique(parts_of, return_index=True, return_inverse=True)
    shares = np.zeros((len(first), sample.n_classes))
    shares[row, sample.codes] = weights**2 / squares
    return replace(sample.take(first), weights=(squares / weights)[first]), shares


def refuse_soft_labels(sample: Sample) -> None:
    """Raise an error for soft labels where one outcome per row is needed."""
    if sample.parts_of is not None:
        raise InputError("y", None, "soft labels", "expected the class that came true in each row")


def with_segments(
    sample: Sample, segments: Any, *, categorical: Sequence[str] = (), of: str = "P"
) -> Sample:
    """The sample with columns that describe the rows that the user passed."""
    checked = check_segments(segments, sample.n_rows, of=of, categorical=categorical)
    parts_of = sample.parts_of
    return replace(sample, segments=checked if parts_of is None else checked[parts_of])


def deal_folds(
    n_rows: int,
    n_folds: int,
    random_state: np.random.RandomState | np.random.Generator,
    clusters: Ints | None = None,
) -> Ints:
    """Fold of each row, drawn at random. With fewer rows than folds, each row is its own fold.

    Rows of one cluster share a fold.
    """
    if clusters is not None:
        distinct, number = np.unique(clusters, return_inverse=True)
        return deal_folds(len(distinct), n_folds, random_state)[number]
    return np.asarray(random_state.permutation(n_rows) % min(n_folds, n_rows))
