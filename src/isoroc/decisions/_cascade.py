"""Cascades: each row is answered by the first model that is sure enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoroc._core.bounds import Losses, RowMask, Walk, certify_in_order
from isoroc._core.intervals import Estimate, mean, mean_of
from isoroc._core.types import Floats, Ints
from isoroc._input import (
    InputError,
    check_confidence,
    check_numbers,
    check_option,
    check_unlabelled,
)
from isoroc._maps.acceptance import percent
from isoroc._support.table import Table
from isoroc.decisions._acceptance import LabelledRows, check_labelled, check_limit, cut_points


@dataclass(frozen=True, eq=False, repr=False)
class CascadeRule:
    """Thresholds of the stages of a cascade. ``print`` says in sentences what they promise."""

    thresholds: Floats
    """A stage answers if its largest probability is at least this. Infinite if it never does."""
    shares: Floats
    """Share of the labelled rows that each stage answers. The last entry is a person's share."""
    cost: Estimate
    """Mean cost per row, with a two-sided interval."""
    error: Estimate
    """Error of the answered rows. Each end is a bound with probability `confidence`."""
    certified: bool
    """Whether the thresholds keep the promise. Otherwise no model answers."""
    max_error: float
    confidence: float
    last: Literal["accept", "person"]
    n_rows: int
    classes: NDArray[Any]
    candidates: Table
    """The path of thresholds, with cost, error and, if tested, p-value."""

    def answer(self, *forecasts: ArrayLike) -> tuple[NDArray[Any], Ints]:
        """Labels, and the stage that answers each row.

        Parameters
        ----------
        *forecasts : array-like of shape (n, K) or (n,)
            Forecasts of each stage.

        Returns
        -------
        labels : ndarray of shape (n,)
            Label of the stage that answers, or of the last stage if a person has to answer.
        stages : ndarray of shape (n,)
            Index of the stage that answers. The number of stages stands for a person.
        """
        S = len(self.thresholds)
        if len(forecasts) != S:
            problem = f"{len(forecasts)} arrays, but the cascade has {S} stages"
            raise InputError("forecasts", None, problem, "pass one array per stage")
        checked = [check_unlabelled(P, self.classes, name="forecasts")[0] for P in forecasts]
        stages = first_sure(np.array([P.max(axis=1) for P in checked]), self.thresholds)
        decisions = np.array([P.argmax(axis=1) for P in checked])
        chosen = decisions[np.minimum(stages, S - 1), np.arange(len(stages))]
        return np.asarray(self.classes[chosen]), stages

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """`candidates` as a dataframe of the named library."""
        return self.candidates.frame(backend)

    def __str__(self) -> str:
        limit = percent(self.max_error)
        if not self.certified:
            return f"No cascade is certified for an error of at most {limit}. {self._why()}"
        *models, person = (percent(share) for share in self.shares)
        parts = [f"stage {s + 1} {share}" for s, share in enumerate(models)]
        text = f"Of {self.n_rows:,} rows {', '.join(parts)} and a person {person} would answer"
        if self.last == "accept":
            text = f"Of {self.n_rows:,} rows {', '.join(parts[:-1])} and {parts[-1]} would answer"
        cost, low, high = (f"{value:.4g}" for value in self.cost)
        interval = f"{percent(self.confidence)} interval {low} to {high}"
        text += f"; a row costs {cost} on average ({interval})"
        text += f", and {percent(self.error.value)} of the answers were wrong.\n"
        promise = f"With {percent(self.confidence)} confidence at most {limit} of new answers are"
        return f"{text}{promise} wrong, if new rows are like these."

    def __repr__(self) -> str:
        return str(self)

    def _why(self) -> str:
        """What the first test found."""
        tested = np.flatnonzero(~np.isnan(self.candidates["p_value"]))
        if not len(tested):
            return f"The {self.n_rows:,} labelled rows are too few."
        answered, error = (self.candidates[name][tested[0]] for name in ("answered", "error"))
        first = f"the first {percent(answered)} of rows that were tested"
        return f"Of {first} {percent(error)} were wrong."


def cascade_rule(
    y: ArrayLike,
    P: Sequence[ArrayLike],
    *,
    costs: ArrayLike,
    max_error: float,
    confidence: float = 0.95,
    last: Literal["accept", "person"] = "person",
    clusters: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> CascadeRule:
    """Answer with the first model that is sure enough: the cheapest thresholds that are certified.

    With probability `confidence` over the labelled rows, at most a share `max_error` of the answers
    of models to new rows is wrong.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, K)
        Labels, or soft labels.
    P : sequence of array-like
        Forecasts of two or more models for the same rows, calibrated on other rows, in the order in
        which the models are asked, usually the cheapest first.
    costs : array-like
        Cost of asking each model and, with ``last="person"``, of a person. A row that reaches a
        stage has paid for all stages before it.
    max_error : float
        Largest error of the answers of models, between 0 and 1.
    confidence : float, default=0.95
        Probability that the promise is kept.
    last : {"person", "accept"}, default="person"
        Who answers if no model is sure: a person, or the last model.
    clusters, sample_weight, labels
        As in `acceptance_rule`.

    Returns
    -------
    CascadeRule

    See Also
    --------
    acceptance_rule : One model, and more kinds of promises.

    Notes
    -----
    The candidates are a path of thresholds that only fall. Each step lowers the threshold of one
    stage: the step that saves most per error that the forecasts expect it to add. So the path does
    not depend on labels, and it is tested like the thresholds of `acceptance_rule`.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.decisions import cascade_rule
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(4000, 2))
    >>> y = rng.logistic(size=4000) < x @ [8, 4]
    >>> small = 1 / (1 + np.exp(-3 * x[:, 0]))  # knows the first feature only
    >>> large = 1 / (1 + np.exp(-x @ [8, 4]))
    >>> rule = cascade_rule(y, [small, large], costs=[1, 10, 100], max_error=0.05)
    >>> print(rule)
    Of 4,000 rows stage 1 36.9 %, stage 2 58.1 % and a person 4.98 % would answer; a row costs 12.29
    on average (95 % interval 11.6 to 13.04), and 4.26 % of the answers were wrong.
    With 95 % confidence at most 5 % of new answers are wrong, if new rows are like these.
    """
    check_confidence(confidence)
    check_option("last", last, ("accept", "person"))
    check_limit(max_error)
    if not isinstance(P, list | tuple) or len(P) < 2:
        fix = "pass a list with the forecasts of two or more models"
        raise InputError("P", None, "is not a list of several forecasts", fix)
    models = [
        check_labelled(
            y,
            each,
            sample_weight=sample_weight,
            labels=labels,
            clusters=clusters,
            name=f"P[{stage}]",
        )
        for stage, each in enumerate(P)
    ]
    stages = CascadeStages(models, _check_costs(costs, len(models), last), last)
    path = stages.path(max_error)
    # The last candidate, the first model alone, deserves no risk of its own.
    walk = certify_in_order(
        lambda i: stages.outcome(path[i]), len(path), max_error, confidence, reserve=0.0
    )
    is_certified = walk.last >= 0
    thresholds = path[walk.last] if is_certified else np.full(len(models), inf)
    losses, answered = stages.outcome(thresholds)
    chosen = stages.choose(thresholds)
    cost = mean_of(stages.spent[chosen], losses.weights, losses.clusters)
    ends = cost.interval(confidence) if is_certified else (np.nan, np.nan)
    return CascadeRule(
        thresholds=thresholds,
        shares=np.array([losses.weight_of(chosen == s) for s in range(len(P) + 1)]) / losses.weight,
        cost=Estimate(cost.value if is_certified else np.nan, *ends),
        error=losses.interval(answered, confidence),
        certified=is_certified,
        max_error=float(max_error),
        confidence=float(confidence),
        last=last,
        n_rows=len(chosen),
        classes=models[0].classes,
        candidates=_table(stages, path, walk),
    )


@dataclass(frozen=True, eq=False)
class CascadeStages:
    """What each model knows about the labelled rows."""

    models: list[LabelledRows]
    costs: Floats  # of asking each model and, at the end, a person
    last: str

    @cached_property
    def sureness(self) -> Floats:
        """Largest probability of each model, shape (S, n)."""
        return np.array([model.forecasts.max(axis=1) for model in self.models])

    @cached_property
    def spent(self) -> Floats:
        """Cost of a row that each stage answers, and of one that a person answers."""
        return np.cumsum(self.costs)

    def choose(self, thresholds: Floats) -> Ints:
        """The stage that answers each row. The number of stages stands for a person."""
        return first_sure(self.sureness, thresholds)

    def outcome(self, thresholds: Floats) -> tuple[Losses, RowMask]:
        """Losses of the decisions that are made, and which rows models answer."""
        chosen = self.choose(thresholds)
        answered = chosen < len(self.models)
        values = np.zeros(len(chosen))
        for s, losses in enumerate(self.losses):
            values[chosen == s] = losses.values[chosen == s]
        return Losses(values, losses.weights, losses.clusters), answered

    @cached_property
    def losses(self) -> list[Losses]:
        """Losses of the decisions of each model."""
        return [model.losses(model.forecasts.argmax(axis=1)) for model in self.models]

    def path(self, limit: float) -> list[Floats]:
        """Thresholds from the strictest to the loosest, chosen without labels."""
        S, n = self.sureness.shape
        grids = [np.append(inf, cut_points(each, 1, 0.0, most=20)) for each in self.sureness]
        places = np.zeros(S, dtype=np.intp)
        if self.last == "accept":
            grids[-1] = np.zeros(1)
        weights = self.losses[0].weights
        # Expected errors of each stage beyond what the limit allows. A person makes none.
        excess = np.append(1 - self.sureness - limit, np.zeros((1, n)), axis=0)
        chosen = self.choose(_at(grids, places))
        path = [_at(grids, places)]
        while True:
            best = None
            for s in np.flatnonzero(places < [len(grid) - 1 for grid in grids]):
                moved = (chosen > s) & (self.sureness[s] >= grids[s][places[s] + 1])
                weight = moved if weights is None else moved * weights
                saved = float(weight @ (self.spent[chosen] - self.spent[s]))
                added = float(weight @ (excess[s] - excess[chosen, np.arange(n)]))
                # Steps that save without adding errors come first, the others by saving per error.
                key = (added <= 0, saved if added <= 0 else saved / added)
                if best is None or key > best[0]:
                    best = key, s, moved
            if best is None:
                return path
            _, s, moved = best
            places[s] += 1
            chosen = np.where(moved, s, chosen)
            if moved.any():
                path.append(_at(grids, places))


def first_sure(sureness: Floats, thresholds: Floats) -> Ints:
    """First stage whose sureness, shape (S, n), reaches its threshold, or S if none does."""
    sure = sureness >= thresholds[:, None]
    return np.where(sure.any(axis=0), sure.argmax(axis=0), len(sure))


def _at(grids: list[Floats], places: Ints) -> Floats:
    return np.array([grid[i] for grid, i in zip(grids, places, strict=True)])


def _check_costs(costs: Any, n_stages: int, last: str) -> Floats:
    """Costs of the stages and of a person, whose cost is infinite if no person is asked."""
    values = check_numbers(costs, "costs")
    expected = n_stages + (last == "person")
    if values.shape != (expected,):
        who = f"{n_stages} models" + (" and a person" if last == "person" else "")
        raise InputError("costs", None, f"has shape {values.shape}", f"expected the costs of {who}")
    if not (np.isfinite(values) & (values >= 0)).all():
        raise InputError("costs", None, f"is {values.tolist()}", "costs are finite and >= 0")
    return values if last == "person" else np.append(values, 0.0)


def _table(stages: CascadeStages, path: list[Floats], walk: Walk) -> Table:
    """The candidates and their test results."""
    names = [f"threshold_{s + 1}" for s in range(len(stages.models))]
    table = Table(zip(names, np.array(path).T, strict=True))
    cases = [stages.outcome(thresholds) for thresholds in path]
    weights = stages.losses[0].weights
    costs = [mean(stages.spent[stages.choose(thresholds)], weights) for thresholds in path]
    table["answered"] = np.array([losses.weight_of(rows) / losses.weight for losses, rows in cases])
    table["cost"] = np.array(costs)
    table["error"] = np.array([losses.mean(rows) for losses, rows in cases])
    table["p_value"] = walk.p_values
    table["certified"] = walk.certified
    return table
