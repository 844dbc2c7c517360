"""Labels, soft labels, weights and groups of rows as users pass them."""

import numbers
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoroc._backends import NUMPY, Ops, Truth, V
from isoroc._core.rows import look_up
from isoroc._core.simplex import count_classes
from isoroc._core.types import Codes, Floats, Ints
from isoroc._input.arrays import check_length, check_numbers, match_columns, slices, to_array
from isoroc._input.error import InputError

WEIGHT_FIX = "weights must be 0 or between 1e-100 and 1e+100"
SWAPPED = ". If these are the forecasts, the two arguments are swapped"
BINARISE = "pass a 0/1 column per label to MultiLabelCalibrator (see MultiLabelBinarizer)"
#: Names of groups. Whole numbers and booleans are spelled as in databases.
Names = NDArray[np.str_]
#: Labels of rows, or classes.
Labels = NDArray[Any]


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> Floats | None:
    """Weights as a float64 vector, or None if every row weighs 1."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_rows, sample_weight)
    weights = check_numbers(sample_weight, name := "sample_weight", WEIGHT_FIX)
    if weights.ndim != 1:
        fix = "Sample weights must be 1D array or scalar"
        raise InputError(name, None, f"shape {weights.shape}", fix)
    check_length(weights, n_rows, name=name)
    if not (good := valid_weights(NUMPY, weights)).all():
        row = int(np.argmin(good))
        raise InputError(name, row, f"is {weights[row]:.6g}", WEIGHT_FIX)
    if not weights.any():
        raise _no_weight()
    return weights


def valid_weights(ops: Ops[V], weights: V) -> Truth:
    """Which weights can be summed and multiplied without overflow or underflow.

    This is the only rule for weights, as `Kind.clean` is for forecasts.
    """
    smallest = 1e-100
    largest = 1e100
    positive = ops.where(weights <= 0.0, smallest, weights)
    return (weights >= 0.0) & (positive >= smallest) & (weights <= largest)


def check_counts(weights: Floats) -> None:
    """Raise an error for frequencies far below one per row, such as shares that sum to one."""
    if (total := float(weights.sum())) < 0.1 * len(weights):
        problem = f"{len(weights)} rows have a total weight of {total:.6g}"
        fix = 'frequencies count rows. If yours are relative, pass weighting="importance"'
        raise InputError("sample_weight", None, problem, fix)


def _no_weight() -> InputError:
    fix = "there is nothing to learn from"
    return InputError("sample_weight", None, "all weights are zero", fix)


def _one_class(label: Any, name: str, note: str = "") -> InputError:
    problem = f"one class only, {label_text(label)}{note}"
    return InputError(name, None, problem, "two or more are needed")


def check_groups(groups: ArrayLike, n_rows: int, *, of: str = "P", name: str = "groups") -> Names:
    """Name of each row's group or cluster."""
    values = to_array(groups, name=name)
    if values.ndim != 1:
        raise InputError(name, None, f"has shape {values.shape}", "expected one entry per row")
    check_length(values, n_rows, name=name, of=of)
    if values.dtype.kind in "Uiu":
        return values.astype(np.str_)
    if values.dtype.kind == "b":
        return np.where(values, "true", "false")
    texts = [text_of(value) for value in values]
    for row, (value, text) in enumerate(zip(values, texts, strict=True)):
        if text is None:
            fix = f'give such rows a {name[:-1]} of their own, such as "unknown", or leave them out'
            raise InputError(name, row, "is missing", fix)
        if text == "" != value:
            fix = f"{name} are strings, whole numbers or booleans"
            raise InputError(name, row, f"is {value!r}", fix)
    return np.array(texts, dtype=np.str_)


def check_clusters(clusters: ArrayLike | None, n_rows: int, *, of: str = "P") -> Ints | None:
    """Number of each row's cluster, in the order of their names, or None for independent rows."""
    if clusters is None:
        return None
    given = check_groups(clusters, n_rows, of=of, name="clusters")
    names, code = np.unique(given, return_inverse=True)
    if len(names) < 2:
        problem = f"all {n_rows} rows are in cluster {names[0]!s}"
        raise InputError("clusters", None, problem, "at least two clusters are needed")
    return np.asarray(code, dtype=np.intp)


def rows_by_group(groups: Names | Ints) -> Iterator[tuple[str, Ints]]:
    """Name and rows of each group, sorted by name."""
    names, code = np.unique(groups, return_inverse=True)
    order = np.argsort(code, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(code))[:-1])
    return zip(names.tolist(), parts, strict=True)


def is_number(value: Any) -> bool:
    """Whether an entry of a column is a number. NaN is a number, a boolean is not."""
    return isinstance(value, int | np.integer | float | np.floating | Decimal) and not isinstance(
        value, bool
    )


def text_of(value: Any) -> str | None:
    """A category as databases write it: None if it is missing, "" if it cannot be one."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if is_number(value) and float(value).is_integer():
        return str(int(value))
    # NAType of pandas cannot be compared. NaN and similar values differ from themselves.
    if value is None or type(value).__name__ == "NAType" or value != value:  # noqa: PLR0124
        return None
    return ""


def encode_labels(
    y: ArrayLike,
    n_classes: int,
    *,
    labels: ArrayLike | None = None,
    names: Any = None,
    forecasts: Floats | None = None,
    name: str = "y",
    partial: bool = False,
) -> tuple[Labels, Codes]:
    """Classes in the order of the forecasts' columns, and the column of each label.

    The classes are `labels`, or the sorted distinct labels, or column names that include classes
    absent from `y`. The forecasts only make error messages more precise. If `partial`, other rows
    will follow, and the argument `labels` is called ``classes``.
    """
    values = read_labels(y, name=name)
    if values.ndim > 1:
        problem = f"y should be a 1d array, got shape {values.shape}"
        fix = "fit the classifier first, then a calibrator to its forecasts: any for soft labels,"
        fix += " MultiLabelCalibrator for labels that do not exclude each other"
        raise InputError(name, None, problem, fix)
    distinct = _check_known(values, name, forecasts)
    option = "classes" if partial else "labels"
    if labels is not None:
        given = check_classes(to_array(labels, name=option), n_classes, name=option)
        return given, _encode(values, given, name)
    classes, codes = _encode_sorted(values, distinct, name)
    if len(classes) == n_classes:
        return classes, codes
    if len(classes) > n_classes:
        problem = f"{len(classes)} classes, but the forecasts have {n_classes}"
        raise InputError(name, None, problem, "pass one column of probabilities for each class")
    if len(classes) == 1 and not partial:
        raise _one_class(classes[0], name)
    if (named := _classes_of(names, classes)) is not None and len(named) == n_classes:
        return named, _encode(values, check_classes(named, n_classes), name)
    problem = f"{len(classes)} of the {n_classes} classes of the forecasts"
    fix = f"with {option}=, {n_classes} labels in the order of the columns"
    raise InputError(name, None, problem, f"say which column is which class {fix}")


def read_labels(y: ArrayLike, *, name: str = "y") -> Labels:
    """Labels in one dimension, or a matrix. A single column is flattened with a warning."""
    try:
        values = to_array(y, name=name)
    except InputError as error:
        fix = f"{error.fix}. For several labels per row (multi-label) {BINARISE}"
        raise InputError(name, None, error.problem, fix) from error
    if values.ndim == 1 or (values.ndim == 2 and values.shape[1] > 1):
        return values
    # Commands that only count rows avoid importing scikit-learn (1 s).
    from sklearn.utils import column_or_1d  # noqa: PLC0415

    return np.asarray(column_or_1d(values, warn=True))


def may_be_labels(forecasts: Floats | None) -> bool:
    """Whether forecasts look like labels, so that the two arguments may be swapped."""
    return forecasts is not None and np.array_equal(forecasts, np.rint(forecasts))


def label_text(label: Any) -> str:
    """A label as messages show it, without its NumPy type."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def _classes_of(names: Sequence[str] | None, labels: Labels) -> Labels | None:
    """Classes that the columns are named after, if they include all labels of the rows."""
    if names is None or not {str(label) for label in labels.tolist()} <= set(names):
        return None
    if labels.dtype.kind not in "iu":
        return np.array(list(names), dtype=labels.dtype if labels.dtype.kind == "O" else None)
    if not all(column.removeprefix("-").isdecimal() for column in names):
        return None
    return np.array([int(column) for column in names], dtype=labels.dtype)


def _check_known(values: Labels, name: str, forecasts: Floats | None = None) -> Labels:
    """Labels that include all distinct ones. Raises an error unless each can be a class."""
    if len(values) == 0:
        raise InputError(name, None, "no rows", "at least one label is needed")
    if values.dtype.kind == "f" and (bad := ~np.isfinite(values)).any():
        row = int(np.argmax(bad))
        what = "NaN" if np.isnan(values[row]) else "infinity"
        raise InputError(name, row, f"is {what}", "labels must be known")
    distinct: Labels = values
    if values.dtype.kind == "O":
        distinct = _distinct_objects(values)
        for label in distinct:
            if label is None or label != label:  # noqa: PLR0124
                row = next(row for row, other in enumerate(values) if other is label)
                raise InputError(name, row, f"is {label}", "labels must be known")
        if len({isinstance(label, str) for label in distinct}) > 1:  # they cannot be sorted
            fix = "make them all strings, or all numbers"
            raise InputError(name, None, "labels of several types", fix)
    if values.dtype.kind not in "biuUS":
        from sklearn.utils.multiclass import check_classification_targets  # noqa: PLC0415

        # This function warns about values that hardly ever repeat, as in regression targets.
        targets = np.tile(distinct, 2) if 2 * len(distinct) <= len(values) else values
        try:
            check_classification_targets(targets)
        except ValueError as error:
            fix = _fix_vector(values, forecasts)
            raise InputError(name, None, str(error).rstrip("."), fix) from error
    return distinct


def _distinct_objects(values: Labels) -> Labels:
    """Distinct labels in the order of their first rows, or all labels if they are unhashable."""
    try:
        distinct = dict.fromkeys(values.tolist())
    except TypeError:
        return values
    return np.fromiter(distinct, dtype=object, count=len(distinct))


def _fix_vector(values: Labels, forecasts: Floats | None) -> str:
    """Advice for a user who passed a vector that does not hold labels."""
    if isinstance(values[0], set | frozenset | list | tuple):
        return f"for several labels per row (multi-label) {BINARISE}"
    shares = values.dtype.kind == "f" and values.min() >= 0 and values.max() <= 1
    if shares and forecasts is not None and not may_be_labels(forecasts):
        fix = "probabilities of a class are soft labels"
        return f"{fix}. Pass one column for each class: numpy.column_stack([1 - y, y])"
    return f"labels name classes{SWAPPED}"


def _encode_sorted(values: Labels, distinct: Labels, name: str) -> tuple[Labels, Codes]:
    """Sorted distinct labels, and the index of each label among them."""
    if values.dtype.kind in "biuf":
        # Two classes, possibly with millions of rows: no sort.
        low = values.min()
        high = values.max()
        is_high = values == high
        adjacent = values.dtype.kind in "biu" and int(high) - int(low) == 1
        if adjacent or (low < high and (is_high | (values == low)).all()):
            return np.array([low, high]), is_high.view(np.uint8)
    parts = [np.unique(distinct[rows]) for rows in slices(len(distinct))]
    classes = np.unique(np.concatenate(parts))
    return classes, _encode(values, classes, name)


def check_classes(classes: Labels, n_classes: int, *, name: str = "labels") -> Labels:
    """The argument `labels`: distinct classes in the order of the columns."""
    distinct = set(classes.tolist()) if classes.ndim == 1 else set()
    if classes.size != n_classes or len(distinct) != n_classes:
        fix = f"expected a list of {n_classes} distinct classes, one for each column"
        raise InputError(name, None, f"{classes.size} entries", fix)
    _check_known(classes, name)
    return classes


def _encode(values: Labels, classes: Labels, name: str) -> Codes:
    """Index of each label among the classes. Raises an error at the first unknown label."""
    codes = np.empty(len(values), dtype=np.min_scalar_type(len(classes) - 1))
    for rows in slices(len(values)):
        found = _look_up(values[rows], classes)
        if (unseen := found == len(classes)).any():
            row = rows.start + int(np.argmax(unseen))
            fix = f"known are {', '.join(label_text(label) for label in classes[:20])}"
            problem = f"is {label_text(values[row])}, which is not among the labels"
            raise InputError(name, row, problem, fix)
        codes[rows] = found
    return codes


def _look_up(values: Labels, classes: Labels) -> Ints:
    """Index of each label among classes in any order, or the number of classes if unknown."""
    K = len(classes)
    if "O" in (values.dtype.kind, classes.dtype.kind):  # hashing is faster than comparisons
        code_of = {label: k for k, label in enumerate(classes.tolist())}
        return np.fromiter(map(code_of.get, values.tolist(), repeat(K)), np.intp, len(values))
    whole = all(a.dtype.kind in "iu" and np.can_cast(a.dtype, np.int64) for a in (values, classes))
    if whole and (low := int(classes.min())) > int(classes.max()) - 1000:  # a table is faster
        numbers = classes.astype(np.int64) - low
        table = np.full(numbers.max() + 1, K)
        table[numbers] = np.arange(K)
        return look_up(np.ascontiguousarray(values, np.int64), low, table, K)
    order = np.argsort(classes)
    codes = order[np.searchsorted(classes, values, sorter=order).clip(max=K - 1)]
    return np.where(classes[codes] == values, codes, K)


def categories_of(y: Any) -> Any:
    """Categories of an ordered categorical of pandas or an Enum of polars. None for others."""
    kind: Any = getattr(y, "dtype", None)
    is_ordered = getattr(kind, "ordered", False) or type(kind).__name__ == "Enum"
    return kind.categories if is_ordered else None


def check_order(
    classes: Labels, fix: str = "pass labels= in ascending order, or labels that are numbers"
) -> None:
    """Refuse three or more classes in unknown order: names, or columns in another order."""
    labels = classes.tolist()
    if len(labels) > 2 and (isinstance(labels[0], str) or labels != sorted(labels)):
        problem = f"the order of the classes {', '.join(map(label_text, labels[:20]))} is not known"
        raise InputError("labels", None, problem, fix)


def check_two_classes(class_weights: Floats, classes: Labels) -> None:
    """Raise an error if fewer than two classes have positive weight."""
    if not class_weights.any():
        raise _no_weight()
    if np.count_nonzero(class_weights) < 2:
        raise _one_class(classes[class_weights.argmax()], "y", " (rows of weight 0 do not count)")


def read_outcomes(y: ArrayLike, forecasts: Floats, *, name: str = "y") -> Labels:
    """Labels, shape (n,), or soft labels that sum to 1 in each row, shape (n, K)."""
    values = read_labels(y, name=name)
    if values.ndim == 1:
        return values
    if may_be_labels(forecasts) or values.dtype.kind not in "biuf":
        problem = f"y should be a 1d array, got shape {values.shape}"
        raise InputError(name, None, problem, f"labels are one column{SWAPPED}")
    shares = check_label_shares(values.astype(np.float64), name=name)
    if (K := count_classes(forecasts)) != shares.shape[1]:
        problem = f"soft labels of {shares.shape[1]} classes, but the forecasts have {K}"
        raise InputError(name, None, problem, "pass one column of shares for each class")
    return shares


def check_label_shares(shares: Floats, *, name: str = "y") -> Floats:
    """Soft labels that sum to exactly 1 in each row."""
    if (bad := ~(np.isfinite(shares) & (shares >= 0)).all(axis=1)).any():
        row = int(np.argmax(bad))
        problem = f"is {shares[row].tolist()}"
        raise InputError(name, row, problem, "the shares of soft labels are numbers from 0 to 1")
    sums = shares.sum(axis=1)
    if (bad := np.abs(sums - 1) > 1e-3).any():
        row = int(np.argmax(bad))
        whole = np.array_equal(shares, np.rint(shares))
        fix = "the shares of soft labels sum to 1 in each row"
        if shares.max() <= 1 and whole:
            fix = "0 and 1 with any row sums are labels that do not exclude each other: use"
            fix += " MultiLabelCalibrator, and the option multilabel of evaluate"
        elif whole and sums.all():
            fix = f"{fix}. For counts pass {name} / {name}.sum(axis=1, keepdims=True), with"
            fix += f" sample_weight={name}.sum(axis=1) if rows with more votes weigh more"
        raise InputError(name, row, f"sums to {sums[row]:.6g}", fix)
    shares = np.where(shares < 1e-12, 0.0, shares)  # such a part would not be a valid weight
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def shares_by_class(
    shares: Floats,
    share_names: list[str] | None,
    labels: ArrayLike | None,
    names: list[str] | None,
    *,
    forecasts: str,
    name: str,
    partial: bool = False,
) -> tuple[Labels, Floats]:
    """Classes in the order of the forecasts' columns, and their shares in this order.

    The classes are `labels`, or else the column names of the shares or forecasts, or else numbers.
    Columns of shares that are named after the classes are matched by name.
    """
    K = shares.shape[1]
    option = "classes" if partial else "labels"
    if labels is not None:
        classes = check_classes(to_array(labels, name=option), K, name=option)
    elif share_names is not None or (names is not None and len(names) == K):
        classes = np.array(share_names or names)
    else:
        classes = np.arange(K)
    if share_names is not None:
        of_shares = match_columns(share_names, classes, given=False, name=name).tolist()
        shares = shares[:, [of_shares.index(label) for label in classes.tolist()]]
    by_column = match_columns(names, classes, given=labels is not None, name=forecasts)
    order = [classes.tolist().index(label) for label in by_column.tolist()]
    present = shares.any(axis=0)
    if present.sum() < 2 and labels is None and not partial:
        raise _one_class(classes[present][0], name)
    return by_column, np.ascontiguousarray(shares[:, order])
