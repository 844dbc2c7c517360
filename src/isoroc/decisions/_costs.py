"""Cost matrices: one row per class, one column per action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from isoroc._core.types import Floats, Ints
from isoroc._input import InputError, check_numbers, listed, numbers_by_class


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
        values = check_numbers(costs, "costs")
        if values.ndim != 2 or values.shape[0] != K:
            shape = " x ".join(map(str, values.shape)) or "a number"
            fix = f"expected {K} rows, one for each class, and one column for each action"
            raise InputError("costs", None, f"has shape {shape}", fix)
        actions = classes if values.shape[1] == K else np.arange(values.shape[1])
    else:
        actions = np.array(list(columns))
        each = [
            numbers_by_class(own, classes, name=f"costs[{name!r}]") for name, own in columns.items()
        ]
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
        problem = f"rows are named {listed(index)}, but the classes are {listed(classes)}"
        raise InputError("costs", None, problem, "name them alike, or pass labels=")
    names = [str(name) for name in index]
    order = [names.index(str(label)) for label in classes.tolist()]
    return {name: column[order] for name, column in columns.items()}
