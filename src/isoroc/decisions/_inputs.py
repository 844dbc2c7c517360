"""What this package takes besides samples: forecasts without labels, costs, and class shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from isoroc._input import InputError, check_forecasts, column_names, match_columns, to_array
from isoroc._simplex import Floats, Ints, as_matrix

#: Class shares may sum to one up to this.
SHARE_TOLERANCE = 1e-6


def check_new(Q: Any, labels: Any, *, name: str = "Q") -> tuple[Floats, NDArray[Any]]:
    """Forecasts of shape (n, K) without outcomes, and the class of each column."""
    P = as_matrix(check_forecasts(Q, name=name, scores="probability"))
    names = column_names(Q)
    if labels is None:
        named = names is not None and len(names) == P.shape[1]
        return P, np.array(names) if named else np.arange(P.shape[1])
    classes = to_array(labels, name="labels")
    if classes.ndim != 1 or len(set(classes.tolist())) != P.shape[1]:
        problem = f"{len(set(classes.ravel().tolist()))} different labels"
        fix = f"expected {P.shape[1]}, one for each column of {name}"
        raise InputError("labels", None, problem, fix)
    return P, match_columns(names, classes, given=True, name=name)


@dataclass(frozen=True, eq=False)
class Costs:
    """A cost matrix: one row per class, one column per action."""

    values: Floats
    actions: NDArray[Any]

    def choose(self, P: Floats) -> Ints:
        """Column of the action of least expected cost for each forecast, the first on ties."""
        return np.asarray((P @ self.values).argmin(axis=1))


def check_costs(costs: Any, classes: NDArray[Any]) -> Costs:
    """Cost matrix of what the user passed, with its rows in the order of the classes."""
    K = len(classes)
    columns = _columns_by_action(costs, classes)
    if columns is None:
        values = _numbers(costs, "costs")
        if values.ndim != 2 or values.shape[0] != K:
            shape = " x ".join(map(str, values.shape)) or "a number"
            fix = f"expected {K} rows, one for each class, and one column for each action"
            raise InputError("costs", None, f"has shape {shape}", fix)
        actions = classes if values.shape[1] == K else np.arange(values.shape[1])
    else:
        actions = np.array(list(columns))
        each = [by_class(own, classes, name=f"costs[{name!r}]") for name, own in columns.items()]
        values = np.column_stack(each) if each else np.empty((K, 0))
    if values.shape[1] < 2:
        raise InputError("costs", None, f"{values.shape[1]} action", "two or more are needed")
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values).all(axis=1)))
        fix = "costs are finite numbers; use a large one for what must not happen"
        raise InputError("costs", row, "holds a number that is not finite", fix)
    return Costs(values, actions)


def _columns_by_action(costs: Any, classes: NDArray[Any]) -> dict[Any, Any] | None:
    if isinstance(costs, Mapping):
        return dict(costs)
    frame = nw.from_native(costs, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    index = nw.maybe_get_index(frame)
    columns = {name: frame[name].to_numpy() for name in frame.columns}
    if index is None or list(index) == list(range(len(frame))):
        return columns
    if sorted(map(str, index)) != sorted(map(str, classes.tolist())):
        problem = f"rows are named {_listed(index)}, but the classes are {_listed(classes)}"
        raise InputError("costs", None, problem, "name them alike, or pass labels=")
    names = [str(name) for name in index]
    order = [names.index(str(label)) for label in classes.tolist()]
    return {name: column[order] for name, column in columns.items()}


def by_class(values: Any, classes: NDArray[Any], *, name: str) -> Floats:
    """One number per class, from a list in the order of the classes or a mapping of labels."""
    if isinstance(values, Mapping):
        by_name = {str(label): value for label, value in values.items()}
        names = [str(label) for label in classes.tolist()]
        if sorted(by_name) != sorted(names):
            problem = f"names {_listed(by_name)}, but the classes are {_listed(names)}"
            raise InputError(name, None, problem, "name each class once; labels= sets the classes")
        values = [by_name[label] for label in names]
    numbers = _numbers(values, name)
    if numbers.shape != classes.shape:
        problem = f"has shape {numbers.shape}, but there are {len(classes)} classes"
        raise InputError(name, None, problem, "expected one number for each class")
    return numbers


def check_shares(values: Any, classes: NDArray[Any], *, name: str, positive: bool) -> Floats:
    """Class shares that sum to one."""
    shares = by_class(values, classes, name=name)
    least = shares.min()
    if not np.isfinite(shares).all() or least < 0 or (positive and least == 0):
        problem = f"is {_listed(shares)}"
        fix = "class shares are positive" if positive else "class shares are not negative"
        raise InputError(name, None, problem, fix)
    total = shares.sum()
    if abs(total - 1) > SHARE_TOLERANCE:
        raise InputError(name, None, f"sums to {total:.6g}, not to 1", "divide it by its sum")
    return np.asarray(shares / total)


def _numbers(values: Any, name: str) -> Floats:
    array = to_array(values, name=name)
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(name, None, f"expected numbers ({error})") from error


def _listed(values: Sequence[Any] | NDArray[Any] | Mapping[Any, Any]) -> str:
    return ", ".join(str(value) for value in values)
