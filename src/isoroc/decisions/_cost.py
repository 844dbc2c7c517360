"""Actions of least expected cost, and what decisions cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoroc._core.intervals import mean, mean_of
from isoroc._core.types import Floats
from isoroc._input import (
    InputError,
    check_after,
    check_confidence,
    check_numbers,
    check_probabilities,
    check_unlabelled,
    numbers_by_class,
    to_array,
)
from isoroc._support.table import Table


def decide(P: ArrayLike, costs: Any, labels: ArrayLike | None = None) -> NDArray[Any]:
    """The action of least expected cost, ``sum_k P[i, k] * costs[k, a]``, for each forecast.

    Parameters
    ----------
    P : array-like of shape (n, K) or (n,)
        Calibrated forecasts, or the probability of the second of two classes.
    costs : array-like of shape (K, A), mapping or dataframe
        ``costs[k, a]`` is the cost of action a if class k occurs. Gains are negative costs. A
        mapping or dataframe has one entry per action: K numbers in the order of the classes, or a
        mapping of labels to numbers, such as a column of pandas with labels as its index. In an
        array with K columns the actions are the classes. Other arrays number their actions.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns. By default the column names of a dataframe, or
        their numbers.

    Returns
    -------
    ndarray of shape (n,)
        Names of the actions. On ties, the action that comes first in `costs`.

    Examples
    --------
    >>> from isoroc.decisions import decide
    >>> costs = {"treat": {"well": 1, "ill": 1}, "wait": {"well": 0, "ill": 9}}
    >>> decide([0.05, 0.1, 0.2], costs, labels=["well", "ill"])
    array(['wait', 'wait', 'treat'], dtype='<U5')
    >>> decide([0.05, 0.4, 0.9], [[0, 1, 0.2], [1, 0, 0.2]])  # 2: abstain
    array([0, 2, 1])
    """
    forecasts, classes = check_unlabelled(P, labels)
    matrix, actions = check_costs(costs, classes)
    return np.asarray(actions[(forecasts @ matrix).argmin(axis=1)])


def best_threshold(costs: Any, labels: ArrayLike | None = None) -> float:
    """The probability of the second class above which deciding for it has the least expected cost.

    Parameters
    ----------
    costs, labels
        As in `decide`, for two classes. The second action is the decision for the second class.

    Returns
    -------
    float
        A threshold for calibrated forecasts.

    Examples
    --------
    >>> from isoroc.decisions import best_threshold
    >>> best_threshold([[0, 1], [9, 0]])  # a missed event costs nine times a false alarm
    0.1
    """
    classes = np.arange(2) if labels is None else to_array(labels, name="labels")
    matrix, _ = check_costs(costs, classes)
    if matrix.shape != (2, 2):
        problem = f"has shape {' x '.join(map(str, matrix.shape))}"
        fix = "a threshold needs two classes and two actions; use decide for more"
        raise InputError("costs", None, problem, fix)
    alarm = matrix[0] @ [-1, 1]
    miss = matrix[1] @ [1, -1]
    if not (alarm > 0 and miss > 0):
        problem = "one action is at least as good whatever happens"
        raise InputError("costs", None, problem, "expected errors to cost more than hits")
    return float(alarm / (alarm + miss))


@dataclass(frozen=True, eq=False, repr=False)
class CostReport:
    """Mean cost of decisions, with intervals. ``float(report)`` is the last forecasts' cost."""

    table: Table
    """Columns ``decisions``, ``cost``, ``low``, ``high`` and ``promised``, the mean cost that the
    forecasts expect: calibrated forecasts keep the promise up to noise."""
    constant_action: Any
    """The best constant action."""
    confidence: float
    """Probability that an interval covers the true mean."""

    def __float__(self) -> float:
        return self["after"] if "after" in self.table["decisions"] else self["forecasts"]

    def __getitem__(self, decisions: str) -> float:
        costs = dict(zip(self.table["decisions"], self.table["cost"], strict=True))
        return float(costs[decisions])

    def __repr__(self) -> str:
        return f"{self.table!r}\n  best constant action: {self.constant_action}"


def expected_cost(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    costs: Any,
    *,
    after: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
) -> CostReport:
    """Mean cost of the decisions that follow from forecasts. See `decide`.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    costs : array-like of shape (K, A), mapping or dataframe
        ``costs[k, a]`` is the cost of action a if class k occurs, in one of the forms of `decide`.
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
        Probability that an interval covers the true value.

    Returns
    -------
    CostReport
        Rows "forecasts", or "before", "after" and "change" with `after`. Two more rows are
        "constant", the best action for all rows, and "oracle", the best action for each label.

    Notes
    -----
    Intervals belong to means over rows, corrected for their skewness (Hall 1992), and paired for
    "change", where they are too narrow if hardly any decision changes. The constant action is
    chosen on the same rows, so its cost is slightly too low.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.decisions import expected_cost
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> y = rng.random(5000) < p**2  # forecasts of p are too high
    >>> expected_cost(y, p, [[0, 1], [4, 0]], after=p**2)
      decisions     cost       low       high  promised
         before   0.4658   0.45132    0.48054   0.39799
          after   0.3632    0.3425    0.38534   0.36668
         change  -0.1026  -0.12421  -0.079406       nan
       constant   0.6632      0.65    0.67621       nan
         oracle        0         0          0       nan
      best constant action: True
    """
    sample = check_probabilities(y_true, y_prob, sample_weight, labels, clusters, keep_zeros=True)
    matrix, actions = check_costs(costs, sample.classes)
    check_confidence(confidence)
    weights = sample.row_weights()
    codes = sample.codes
    promised = {}
    forecasts = {"forecasts" if after is None else "before": sample.forecasts}
    if after is not None:
        forecasts["after"] = check_after(after, sample, probabilities=True).forecasts
    costs_of_rows = {}
    for name, P in forecasts.items():
        expected = P @ matrix
        costs_of_rows[name] = matrix[codes, expected.argmin(axis=1)]
        promised[name] = mean(expected.min(axis=1), weights)
    if after is not None:
        costs_of_rows["change"] = costs_of_rows["after"] - costs_of_rows["before"]
    constant = int((sample.class_weights() @ matrix).argmin())
    costs_of_rows["constant"] = matrix[codes, constant]
    costs_of_rows["oracle"] = matrix.min(axis=1)[codes]
    lines: list[Any] = []
    for name, values in costs_of_rows.items():
        cost = mean_of(values, weights, sample.clusters)
        lines.append((name, cost.value, *cost.interval(confidence), promised.get(name, np.nan)))
    table = Table.from_rows(lines, "decisions", "cost", "low", "high", "promised")
    return CostReport(table, actions[constant], confidence)


def check_costs(costs: Any, classes: NDArray[Any]) -> tuple[Floats, NDArray[Any]]:
    """Cost matrix of shape (K, A), rows in the order of the classes, and the actions."""
    K = len(classes)
    columns = costs.to_dict() if hasattr(costs, "to_dict") else costs  # a dataframe
    if isinstance(columns, Mapping):
        actions = np.array(list(columns))
        matrix = np.empty((K, len(columns)))
        for a, (name, column) in enumerate(columns.items()):
            matrix[:, a] = numbers_by_class(column, classes, name=f"costs[{name!r}]")
    else:
        matrix = check_numbers(costs, "costs")
        if matrix.ndim != 2 or len(matrix) != K:
            shape = " x ".join(map(str, matrix.shape)) or "a number"
            fix = f"expected {K} rows, one for each class, and one column for each action"
            raise InputError("costs", None, f"has shape {shape}", fix)
        actions = classes if matrix.shape[1] == K else np.arange(matrix.shape[1])
    if matrix.shape[1] < 2:
        raise InputError("costs", None, f"{matrix.shape[1]} action", "two or more are needed")
    if not np.isfinite(matrix).all():
        row = int(np.argmin(np.isfinite(matrix).all(axis=1)))
        fix = "costs are finite numbers; use a large one for what must not happen"
        raise InputError("costs", row, "holds a number that is not finite", fix)
    return matrix, actions
