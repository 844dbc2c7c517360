"""SigmoidCalibrator and BetaCalibrator: logistic regression on the forecast of each class."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, ClassVar, Self

import numpy as np

from isoroc._backends import NUMPY
from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._calibrators.floors import (
    distinct_floors,
    likeliest_floor,
    may_be_least,
)
from isoroc._calibrators.leave_one_out import left_out, odds_changes, with_changes
from isoroc._calibrators.parts import FINE, FINE_ROWS, PART_NUMBERS, draw_part, gather
from isoroc._core.losses import EPSILON
from isoroc._core.newton import logistic_regression
from isoroc._core.simplex import LEAST
from isoroc._core.types import Codes, Floats, Ints
from isoroc._input import Sample, check_option, slices
from isoroc._input.kinds import LogOdds, columns_of
from isoroc._maps import SigmoidMap


class LogisticCalibrator(Calibrator):
    """Base of the calibrators that regress each class against the rest."""

    _shares: ClassVar[tuple[float, float]] = (1.5, 1.0)

    def _fit_out_of_fold(self, sample: Sample, fold: Ints) -> tuple[Any, Floats]:
        """As in `Calibrator`, but with two classes, rows or clusters are left out one by one."""
        left = left_out(sample)
        if sample.n_classes > 2 or left is None:
            return super()._fit_out_of_fold(sample, fold)
        fitted: Any = self._fit(sample)
        Q = fitted.apply(sample.forecasts)
        p = Q[:, 1]
        values = _values_of(sample, linear=fitted.linear)
        X = _features(values, fitted.floor, linear=fitted.linear)[:, 1]
        used = np.array([fitted.coef[1], fitted.rest[1]]) != 0
        if isinstance(self, SigmoidCalibrator):
            X = np.stack([X[0] + X[1]])
            used = used[:1]
        X = np.vstack([X[used], np.ones_like(p)])
        X /= np.abs(X).max(axis=1, initial=1.0, keepdims=True)
        H = (X * (sample.row_weights() * p * (1 - p))) @ X.T
        values, vectors = np.linalg.eigh(H)
        known = values > 1e-15 * values[-1]  # features may be linearly dependent
        J = (vectors[:, known] / np.sqrt(values[known])).T @ X
        changes = np.zeros((2, len(p)))
        for rows, size in left.parts(len(p)):
            removed = left.weights[rows]
            changes[1, rows] = odds_changes(p[rows], sample.codes[rows], removed, J[:, rows], size)
        return fitted, with_changes(Q, changes)


@dataclass(eq=False, repr=False, kw_only=True)
class SigmoidCalibrator(LogisticCalibrator):
    """Platt scaling: a logistic regression on the log odds of each class.

    With more than two classes, each class is calibrated against the rest, and rows are divided by
    their sum.

    Parameters
    ----------
    compatible : bool, default=False
        Fit the map of scikit-learn's ``method="sigmoid"``: a logistic regression on the
        probabilities themselves, or on log odds without a floor.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    coef_, intercept_ : ndarray of shape (K,)
        a and b of each class.

    See Also
    --------
    BetaCalibrator : Has one coefficient more.
    MatrixCalibrator : Calibrates all classes together.

    Notes
    -----
    The calibrated forecast of a class is ``sigmoid(a log(p / (1 - p)) + b)``. Outcomes are smoothed
    as Platt (1999) proposed. Small forecasts are raised to a floor between 1e-12 and 0.01, chosen
    by likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import SigmoidCalibrator
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(scale=3, size=2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(1 - z / 2))
    >>> cal = SigmoidCalibrator().fit(z, y)
    >>> cal.coef_[1].round(1), cal.intercept_[1].round(1)
    (np.float64(0.5), np.float64(-1.0))
    """

    compatible: bool = False

    coef_ = FromMap()
    intercept_ = FromMap()

    def _fit(self, sample: Sample) -> SigmoidMap:
        check_option("compatible", self.compatible, (True, False))
        if not self.compatible:
            return _likeliest_map(sample, _fit_sigmoid)
        linear = sample.kind.scores == "probability"
        return _likeliest_map(sample, _fit_sigmoid, (LEAST,), linear=linear)


@dataclass(eq=False, repr=False, kw_only=True)
class BetaCalibrator(LogisticCalibrator):
    """Beta calibration: a logistic regression on ``log(p)`` and ``log(1 - p)`` of each class.

    With more than two classes, each class is calibrated against the rest, and rows are divided by
    their sum.

    Parameters
    ----------
    compatible : bool, default=False
        Fit the map of the package betacal: outcomes are not smoothed, and the floor is 2.2e-16.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    coef_, rest_, intercept_ : ndarray of shape (K,)
        a, b and c of each class.

    See Also
    --------
    SigmoidCalibrator : Has one coefficient less.
    MatrixCalibrator : Calibrates all classes together.

    Notes
    -----
    The calibrated forecast of a class is ``sigmoid(a log(p) - b log(1 - p) + c)`` with a and b of
    at least 0, so that the map increases (Kull, Silva Filho and Flach, AISTATS 2017). Outcomes are
    smoothed and the floor is chosen as in `SigmoidCalibrator`.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import BetaCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> BetaCalibrator().fit(p, rng.random(2000) < p**2).predict_proba([0.5]).round(2)
    array([[0.77, 0.23]])
    """

    compatible: bool = False

    coef_ = FromMap()
    rest_ = FromMap()
    intercept_ = FromMap()

    def _fit(self, sample: Sample) -> SigmoidMap:
        check_option("compatible", self.compatible, (True, False))
        if not self.compatible:
            return _likeliest_map(sample, _fit_beta)
        return _likeliest_map(sample, _fit_beta, (EPSILON,), smoothed=False)


def _likeliest_map(
    sample: Sample,
    fit: Callable[..., tuple[Floats, Floats]],
    floors: Sequence[float] = (1e-12, 1e-6, 1e-4, 1e-3, 1e-2),
    *,
    smoothed: bool = True,
    linear: bool = False,
) -> SigmoidMap:
    """The map of each class against the rest, with the floor of the least loss.

    Two classes need one regression: the other is its mirror image. With many rows, a part of them
    rules out most floors, and shows how coefficients change from one floor to the next.
    """
    if isinstance(sample.kind, LogOdds):
        floors = floors[:1]  # log odds need none
    totals = sample.class_weights() if smoothed else None
    whole = _OneVsRest.of(sample, fit, totals, linear=linear)
    if smoothed and not linear:
        whole = whole.gathered(floors)
    if len(floors) > 1:
        floors = distinct_floors(floors, float(whole.values.min()))
    starts = dict.fromkeys(floors, np.zeros((len(whole.classes), 3)))
    part = draw_part(sample)
    if part is not sample and len(whole.codes) == len(sample):
        few = _OneVsRest.of(part, fit, totals, linear=linear)
        fit_few = few.fit_from(starts)
        starts = {floor: fit_few(floor)[1] for floor in floors}
        losses = np.stack([few.losses(floor, coefs) for floor, coefs in starts.items()])
        starts = dict(compress(starts.items(), may_be_least(losses, part.row_weights())))
    floor, coefs = likeliest_floor(starts, whole.fit_from(starts))
    if sample.n_classes == 2:
        ((a, b, c),) = coefs
        coefs = np.array([(a, a, -a - c) if linear else (b, a, -c), (a, b, c)])
    coef, rest, intercept = coefs.T.copy()
    return SigmoidMap(
        kind=sample.kind, floor=floor, linear=linear, coef=coef, rest=rest, intercept=intercept
    )


@dataclass(frozen=True, eq=False)
class _OneVsRest:
    """Regressions of classes against the rest, or for two classes only of the second."""

    values: Floats  # log forecasts, or forecasts for a linear map, shape (K, n)
    codes: Codes
    weights: Floats
    fit: Callable[..., tuple[Floats, Floats]]  # mean losses, coefs, rests and intercepts
    totals: Floats | None  # class weights for Platt's targets, None for targets 0 and 1
    linear: bool

    @classmethod
    def of(
        cls,
        sample: Sample,
        fit: Callable[..., tuple[Floats, Floats]],
        totals: Floats | None,
        *,
        linear: bool,
    ) -> Self:
        """Regressions on the rows of a sample."""
        values = _values_of(sample, linear=linear)
        return cls(values, sample.codes, sample.row_weights(), fit, totals, linear)

    def gathered(self, floors: Sequence[float]) -> Self:
        """The same with rows of two classes merged in cells of log odds that hold no floor."""
        if len(self.values) > 2:
            return self
        levels = np.log(sorted(floors))
        odds = self.values[1] - self.values[0]
        places = np.stack([np.floor(odds / FINE), *(np.searchsorted(levels, self.values))])
        values, codes, weights = gather(
            self.values, self.codes, self.weights, places, least_rows=FINE_ROWS
        )
        return replace(self, values=values, codes=codes, weights=weights)

    @property
    def classes(self) -> range:
        """The classes that have a regression."""
        return range(int(len(self.values) == 2), len(self.values))

    def targets(self, classes: slice) -> Floats:
        """Outcomes of the regressions of some classes, shape (m, n)."""
        of_class = np.array(self.classes)[classes]
        low = np.zeros(len(of_class))
        high = np.ones(len(of_class))
        if self.totals is not None:
            own = self.totals[of_class]
            low = 1 / (self.totals.sum() - own + 2)
            high = (own + 1) / (own + 2)
        return np.where(self.codes == of_class[:, None], high[:, None], low[:, None])

    def features(self, floor: float) -> Floats:
        """Features of the regressions: see `_features`."""
        return _features(self.values, floor, linear=self.linear)[:, self.classes.start :]

    def fit_from(self, starts: Mapping[float, Floats]) -> Callable[[float], tuple[float, Floats]]:
        """A function of the floor that fits all classes: mean loss and coefficients (classes, 3).

        Each fit begins at its start plus the difference between the last fit and its start.
        """
        moved = np.zeros((len(self.classes), 3))
        parts = list(self.parts())
        # All fits to few classes have the same targets. Those of many would take much memory.
        only = self.targets(parts[0]) if len(parts) == 1 else None

        def fit_classes(floor: float) -> tuple[float, Floats]:
            nonlocal moved
            X = self.features(floor)
            loss = 0.0
            coefs = starts[floor] + moved
            for some in parts:
                targets = self.targets(some) if only is None else only
                of_classes, coefs[some] = self.fit(X[:, some], targets, self.weights, coefs[some])
                loss += float(of_classes.sum())
            moved = coefs - starts[floor]
            return loss, coefs

        return fit_classes

    def parts(self) -> Iterator[slice]:
        """Classes that are fitted at once, so that temporary arrays stay short."""
        return slices(len(self.classes), max(1, PART_NUMBERS // len(self.codes)))

    def losses(self, floor: float, coefs: Floats) -> Floats:
        """Loss of each row, summed over the regressions."""
        X = self.features(floor)
        total = np.zeros(len(self.codes))
        for some in self.parts():
            slopes = coefs[some, :2].T[..., None]
            odds = (slopes * X[:, some]).sum(axis=0) + coefs[some, 2:]
            total += (np.logaddexp(0.0, odds) - self.targets(some) * odds).sum(axis=0)
        return total


def _values_of(sample: Sample, *, linear: bool) -> Floats:
    """Log forecasts, or forecasts for a linear map, shape (K, n)."""
    if linear:
        return np.asarray(sample.kind.probabilities(NUMPY, columns_of(sample.forecasts)).T)
    return sample.kind.log_rows(sample.forecasts, LEAST)


def _features(values: Floats, floor: float, *, linear: bool) -> Floats:
    """Features of `coef` and `rest`, shape (2, K, n): log(p) and -log(1 - p), or p and 0."""
    if linear:
        return np.stack([values, np.zeros_like(values)])
    logs = np.maximum(values, np.log(floor))
    if len(logs) == 2:
        return np.stack([logs, -logs[::-1]])
    return np.stack([logs, NUMPY.log_odds(logs.T).T - logs])


def _fit_sigmoid(
    X: Floats, targets: Floats, weights: Floats, start: Floats
) -> tuple[Floats, Floats]:
    losses, coefs = _regress(X.sum(axis=0, keepdims=True), targets, weights, start[:, [0, 2]])
    return losses, coefs[:, [0, 0, 1]]


def _fit_beta(X: Floats, targets: Floats, weights: Floats, start: Floats) -> tuple[Floats, Floats]:
    losses, coefs = _regress(X, targets, weights, start)
    falls = coefs[:, :2].min(axis=1) < 0
    if falls.any():
        losses[falls], coefs[falls] = _fit_reduced_beta(
            X[:, falls], targets[falls], weights, start[falls]
        )
    return losses, coefs


def _fit_reduced_beta(
    X: Floats, targets: Floats, weights: Floats, start: Floats
) -> tuple[Floats, Floats]:
    """The best of the regressions that leave out one feature or both, where none falls."""
    candidates = []
    for used in ([0], [1], []):
        losses, part = _regress(X[used], targets, weights, start[:, [*used, 2]])
        coefs = np.zeros((len(start), 3))
        coefs[:, [*used, 2]] = part
        losses[coefs[:, :2].min(axis=1) < 0] = np.inf
        candidates.append((losses, coefs))
    all_losses = np.stack([losses for losses, _ in candidates])
    all_coefs = np.stack([coefs for _, coefs in candidates])
    chosen = (all_losses <= all_losses.min(axis=0) + 1e-9).argmax(axis=0)
    each = np.arange(len(start))
    return all_losses[chosen, each], all_coefs[chosen, each]


def _regress(X: Floats, targets: Floats, weights: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Mean losses of logistic regressions on features X, shape (B, m, n), and their coefficients.

    The last coefficient is the intercept.
    """
    scale = np.append(np.abs(X).max(axis=2, initial=1.0), np.ones((1, len(targets))), axis=0).T
    columns = np.ones((*scale.shape, len(weights)))
    columns[:, :-1] = (X / scale.T[:-1, :, None]).transpose(1, 0, 2)
    total = float(weights.sum())
    theta, losses, _ = logistic_regression(
        columns,
        targets,
        weights,
        start=start * scale,
        least_gain=1e-13 + 1e-15 * total,  # below, losses of many rows are rounding errors
    )
    return losses / total, theta / scale
