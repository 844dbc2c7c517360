"""Sample: forecasts, outcomes and weights, validated once and used everywhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from isoroc._backends import NUMPY
from isoroc._core.intervals import effective_rows
from isoroc._core.simplex import count_classes, residuals
from isoroc._core.types import Codes, Floats, Ints
from isoroc._input.arrays import check_length, column_names, match_columns, slices, to_array
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
    Names,
    check_clusters,
    check_counts,
    check_weights,
    encode_labels,
    read_labels,
)

UnitOption = Literal["auto"] | Unit
Weighting = Literal["importance", "frequency"]


def check_forecasts(
    P: Any, *, name: str = "P", unit: UnitOption = "auto", advice: str = ""
) -> Floats:
    """Forecast array of probabilities, logits or scores.

    Logits become logarithms of probabilities. By default scores of two classes may be any numbers.
    """
    values = read_forecasts(P, name=name)
    any_number = values.ndim == 1 and unit == "auto"
    own: Unit = "logit" if any_number else resolve_unit(values, unit)
    return clean(values, kind_of(count_columns(values), own), name=name, advice=advice)


def clean(values: Floats, kind: Kind, *, name: str, advice: str = "") -> Floats:
    """A forecast array as formulas take it; raises at the first row that is not of the kind.

    `advice` is what to do with ``unit=``, such as "pass", for users of functions that have it.
    """
    if kind.is_clean(values):
        return values
    with np.errstate(all="ignore"):
        X, good = kind.clean(NUMPY, columns_of(values))
    if not good.all():
        row = int(np.argmin(good))
        problem, fix, unit = kind.explain(columns_of(values)[row])
        odd = None if unit is None else _odd_column(values, row, kind)
        if odd is not None:
            fix = f"leave out column {odd}, without which rows sum to 1, if it is not a forecast"
        elif unit is not None and advice:
            of_unit = kind_of(count_columns(values), unit).name.replace("_", " ")
            fix += f'. For {of_unit} {advice} unit="{unit}"'
        elif unit == "logit" and not kind.single:
            fix += ". For logits pass scipy.special.softmax(logits, axis=1)"
        raise InputError(name, row, problem, fix)
    return np.ascontiguousarray(X).reshape(values.shape)


def _odd_column(values: Floats, row: int, kind: Kind) -> int | None:
    """The only column without which all rows are probabilities, given a row that is invalid."""
    if kind is not PROBABILITIES or values.shape[1] < 3:
        return None

    def valid_without(k: int, rows: slice) -> bool:
        return bool(valid_rows(np.delete(values[rows], k, axis=1), kind).all())

    columns = [k for k in range(values.shape[1]) if valid_without(k, slice(row, row + 1))]
    found = [k for k in columns if valid_without(k, slice(None))]
    return found[0] if len(found) == 1 else None


def valid_rows(values: Floats, kind: Kind) -> NDArray[np.bool_]:
    """Which rows of a forecast array, NaN where a number is missing, are of a kind."""
    with np.errstate(all="ignore"):
        _, good = kind.clean(NUMPY, columns_of(values))
    return np.asarray(good[:, 0])


def first_improbable(scores: Floats) -> int | None:
    """Row of the first score outside [0, 1] by more than rounding; None if there is none."""
    if SECOND_PROBABILITY.is_clean(scores):
        return None
    good = valid_rows(scores, SECOND_PROBABILITY)
    return None if good.all() else int(np.argmin(good))


def read_forecasts(P: Any, *, name: str, n_columns: int | None = None) -> Floats:
    """Numbers of shape (n, K), or of shape (n,) if there is one column; not yet clean."""
    raw = to_array(P, name=name)
    if np.iscomplexobj(raw):
        raise InputError(name, None, "Complex data not supported", "forecasts are real numbers")
    if raw.dtype.kind in "mM":
        raise InputError(
            name, None, f"has the type {raw.dtype}", "forecasts are numbers, not dates"
        )
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
        fix = "expected a 2-D array of probabilities or a 1-D array of scores"
        raise InputError(name, None, f"{values.ndim} dimensions", fix)
    if len(values) == 0:
        raise InputError(name, None, f"no rows (shape {values.shape})", "at least one is needed")
    if (found := count_columns(values)) == 0:
        problem = f"0 feature(s) (shape={values.shape}) while a minimum of 1 is required"
        raise InputError(name, None, problem)
    if n_columns not in (None, found):
        counts = (f"{n} columns" if n != 1 else "one column of scores" for n in (found, n_columns))
        problem = "has {}, but the calibrator was fitted to {}".format(*counts)
        raise InputError(name, None, problem, "pass forecasts of the same kind as in fit")
    return values.reshape(-1) if found == 1 else values


def check_new(P: Any, kind: Kind, n_columns: int, summary: dict[str, Any]) -> Floats:
    """Forecast array of new rows for a map that was fitted to others, which are summarised."""
    values = read_forecasts(P, name="P", n_columns=n_columns)
    match summary.get("range"):
        case [int() | float() as low, int() | float() as high]:
            warn_if_probabilities(values, kind, (low, high))
        case _:
            warn_if_probabilities(values, kind)
    return clean(values, kind, name="P", advice="fit with")


def warn_if_probabilities(
    values: Floats, kind: Kind, fitted: tuple[float, float] = (0.0, 1.0), *, name: str = "P"
) -> None:
    """Warn if forecasts of another unit look like probabilities.

    Columns do if all rows are on the simplex. Scores do if at least 20 of them lie in [0, 1] while
    those of `fit`, between the ends `fitted`, had a range of 4 or more.
    """
    if kind.unit in ("probability", "proportion"):
        return
    if kind.single:
        low, high = fitted
        is_odd = len(values) >= 20 and high - low >= 4
        is_odd = is_odd and values.min() >= 0 and values.max() <= 1
        why = f"lie between 0 and 1, but those of fit between {low:.6g} and {high:.6g}"
    else:
        parts = values[:1], values  # the first row settles it for most logits
        is_odd = all(valid_rows(part, PROBABILITIES).all() for part in parts)
        why = "are probabilities that sum to one in each row"
    if is_odd:
        read = f'forecasts are read as unit="{kind.unit}", but these {why}'
        fix = "new forecasts must be in the unit of those of fit"
        warnings.warn(f"{name}: {read}; {fix}.", UserWarning, stacklevel=4)


def resolve_unit(forecasts: Floats, unit: UnitOption) -> Unit:
    """What forecasts are, where the user left it open."""
    check_option("unit", unit, ("auto", *units_of(count_columns(forecasts))))
    if unit != "auto":
        return unit
    is_unit = forecasts.ndim == 2 or first_improbable(forecasts) is None
    return "probability" if is_unit else "logit"


@dataclass(frozen=True, eq=False)
class Sample:
    """Validated forecasts and the outcomes that came with them."""

    forecasts: Floats  # a clean forecast array: see `isoroc._core.simplex` and `Kind.scores`
    codes: Codes  # column of each row's label
    weights: Floats | None = None  # None where every row has weight 1
    classes: Any = None  # label of each column; None for ranks or one class against the rest
    unit: Unit = "probability"  # what the forecasts were, as users say it
    groups: Names | None = None  # name of each row's group
    squares: Floats | None = None  # sums of squared weights of the rows that each stands for
    clusters: Ints | None = None  # number of each row's cluster; None for independent rows

    @property
    def kind(self) -> Kind:
        """The kind of the forecasts."""
        return kind_of(count_columns(self.forecasts), self.unit)

    @property
    def n_classes(self) -> int:
        """K."""
        return count_classes(self.forecasts)

    @property
    def arrays(self) -> tuple[Floats, Codes, Floats | None]:
        """Forecasts, codes and weights, as counts take them."""
        return self.forecasts, self.codes, self.weights

    def __len__(self) -> int:
        return len(self.codes)

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

    def effective(self, weighting: Weighting = "importance") -> Self:
        """The sample with weights that count rows, which every fit and penalty expects.

        Importance weights are scaled to sum to Kish's effective number of rows. Frequencies count
        rows already: a row stands for as many rows of weight 1 as it weighs.
        """
        check_option("weighting", weighting, ("importance", "frequency"))
        if self.weights is None:
            return self
        if weighting == "frequency":
            if self.squares is None:  # cells may have any weight
                check_counts(self.weights)
            return replace(self, squares=self.weights)
        total, squares = float(self.weights.sum()), self.squared_weights()
        scale = effective_rows(total, float(squares.sum())) / total
        if np.allclose(scale * squares, self.weights, rtol=1e-9, atol=0.0):  # all rows weigh alike
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
        """What a metric returns for this sample, with codes as labels."""
        options = {"sample_weight": self.weights, "labels": range(self.n_classes)} | options
        return metric(self.codes, self.forecasts, **options)

    def take(self, rows: NDArray[Any] | slice) -> Self:
        """Sample of some of the rows."""
        whole = ("classes", "unit")  # the same for all rows
        own = {n: a[rows] for n, a in vars(self).items() if a is not None and n not in whole}
        return replace(self, **own)

    def draw(self, n_rows: int) -> Self:
        """Sample of some of the rows, drawn at random; all of them if there are not more."""
        return self if len(self) <= n_rows else self.take(self.drawn_rows(n_rows))

    def drawn_rows(self, n_rows: int) -> Ints:
        """The rows that `draw` takes."""
        rng, n = np.random.default_rng(0), len(self)
        if n <= n_rows:
            return np.arange(n)
        few = n >= 50 * n_rows  # then choice() takes time for n_rows only, and not for n
        return np.sort(rng.choice(n, n_rows, replace=False) if few else rng.permutation(n)[:n_rows])

    def on_simplex(self) -> Self:
        """The same with probabilities in place of logits of several columns."""
        if self.kind.single:
            return self
        P = self.kind.on_simplex(NUMPY, self.forecasts)
        return replace(self, forecasts=P, unit="probability")

    def as_given(self) -> Floats:
        """The forecasts in the unit in which users gave them, as `predict_proba` takes them."""
        return self.kind.restore(self.forecasts)

    def positive(self) -> Self:
        """Sample without the rows of weight 0."""
        if self.weights is None or self.weights.all():
            return self
        return self.take(np.flatnonzero(self.weights))


def join_samples(parts: Sequence[Sample]) -> Sample:
    """One sample of the rows of several; where some have weights, others weigh 1 each."""
    named = [n for n in ("groups", "clusters") if getattr(parts[0], n) is not None]
    names = ["forecasts", "codes", *named]
    arrays: Any = {n: np.concatenate([getattr(part, n) for part in parts]) for n in names}
    if any(part.weights is not None for part in parts):
        arrays["weights"] = np.concatenate([part.row_weights() for part in parts])
    return replace(parts[0], **arrays)


@dataclass(frozen=True, eq=False, kw_only=True)
class CellSample(Sample):
    """A sample whose rows are cells of counts with the weight of one class each.

    After `effective`, a cell stands for as many rows as it weighs.
    """

    fold: Ints
    squares: Floats

    def draw(self, n_rows: int) -> Self:
        """Cells of rows drawn at random; all of them if there are not more."""
        if len(self) <= n_rows:
            return self
        times, unit = self._times_drawn(n_rows), self.row_weights().sum() / n_rows
        part, weights = self.take(np.flatnonzero(times)), times[times > 0] * unit
        # What a drawn row tells is as uncertain as its own weight and that of its cell's rows say.
        each = part.squares / part.row_weights()
        return replace(part, weights=weights, squares=weights * (each + weights.sum() / n_rows))

    def drawn_rows(self, n_rows: int) -> Ints:
        """The cells that `draw` takes."""
        few = len(self) <= n_rows
        return np.arange(len(self)) if few else np.flatnonzero(self._times_drawn(n_rows))

    def folds(self) -> Ints:
        """Fold of each cell, numbered from 0."""
        found, fold = np.unique(self.fold, return_inverse=True)
        if len(found) < 2:
            problem = "all rows are in one fold, and cross-validation takes two"
            fix = "count with folds=5, and fold_by= if rows tie"
            raise InputError("counts", None, problem, fix)
        return np.asarray(fold)

    def _times_drawn(self, n_rows: int) -> Ints:
        """How often each cell is drawn."""
        weights = self.row_weights()
        return np.random.default_rng(0).multinomial(n_rows, weights / weights.sum())


def check_sample(
    P: Any,
    y: Any,
    sample_weight: Any = None,
    labels: Any = None,
    *,
    clusters: Any = None,
    unit: UnitOption = "auto",
    clip: bool = False,
    advice: str = "",
    name: str = "P",
    label_name: str = "y",
) -> Sample:
    """Sample of forecasts, labels and weights as users pass them.

    By default columns are matched with labels by name, or else follow the sorted labels. With
    `clip` scores that are probabilities but for rounding errors are clipped to [0, 1], which may
    tie them.
    """
    if y is None:
        raise InputError(label_name, None, "requires y to be passed, but the target y is None")
    values = read_forecasts(P, name=name)
    y = read_labels(y, values, name=label_name)  # before forecasts that only fit other labels fail
    own = resolve_unit(values, unit)
    kind = kind_of(count_columns(values), own)
    unclipped = kind is SECOND_PROBABILITY and unit == "auto" and not clip
    warn_if_probabilities(values, kind, name=name)
    forecasts = clean(values, LOG_ODDS if unclipped else kind, name=name, advice=advice)
    weights = check_weights(sample_weight, len(forecasts))
    names = column_names(P)
    K = count_classes(forecasts)
    classes, codes = encode_labels(
        y, K, labels=labels, names=names, forecasts=forecasts, name=label_name
    )
    check_length(codes, len(forecasts), name=label_name, of=name)
    by_column = match_columns(names, classes, given=labels is not None, name=name)
    if by_column is not classes:
        place = [by_column.tolist().index(label) for label in classes.tolist()]
        classes, codes = by_column, np.array(place, dtype=codes.dtype)[codes]
    numbers = check_clusters(clusters, len(forecasts), of=name)
    return Sample(forecasts, codes, weights, classes, own, clusters=numbers)


def deal_folds(
    n_rows: int,
    n_folds: int,
    random_state: np.random.RandomState | np.random.Generator,
    clusters: Ints | None = None,
) -> Ints:
    """Fold of each row, drawn at random; with fewer rows than folds, each row is its own fold.

    Rows of one cluster share a fold.
    """
    if clusters is not None:
        found, place = np.unique(clusters, return_inverse=True)
        return deal_folds(len(found), n_folds, random_state)[place]
    return np.asarray(random_state.permutation(n_rows) % min(n_folds, n_rows))
