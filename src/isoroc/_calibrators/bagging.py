"""BaggedIRPCalibrator: the mean of trees grown on resampled rows."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.irp import IRPCalibrator
from isoroc._input import CellSample, InputError, Sample, check_number
from isoroc._kinds import Kind
from isoroc._maps import BaggedMap, BinMap, Forecasts
from isoroc._random import check_random_state
from isoroc._simplex import Floats, Ints
from isoroc._top import TopReduction
from isoroc._tree import BinTree

#: What trees take turns with where top="auto": all classes jointly, which costs more the more
#: there are, and the largest probabilities.
TURNS_SOME = (1, None)
TURNS_MANY = (1, 2, 3)
SOME = 12


class BaggedIRPCalibrator(Calibrator):
    """The mean of isotonic recursive partitions of resampled rows.

    The mean over trees that are grown on bootstrap samples is smoother and nearer the truth than
    one tree, and their spread shows how far a forecast depends on the rows that happened to be
    seen. For two classes the mean is non-decreasing. For more it has no certificate: the mean of
    ROC monotone maps need not be ROC monotone.

    Parameters
    ----------
    calibrator : IRPCalibrator, default=None
        How trees are grown, ``IRPCalibrator()`` by default; its `random_state`, `n_jobs` and
        `verbose` are not used. With constant values and ``prior="forecast"``, bins are pulled
        towards the uniform forecast only. With ``top="auto"`` trees of more than 12 classes take
        turns: the 1, 2 and 3 largest probabilities; those of more than 4 with constant values: the
        largest, and all classes.
    n_trees : int, default=10
        Number of trees.
    max_samples : int, default=100000
        Draws for each tree, with replacement; of fewer rows, as many as there are.
    random_state : int, RandomState or None, default=None
        Draws the rows, and what the growth of a tree draws.
    n_jobs : int, default=None
        Trees to grow at a time.

    Attributes
    ----------
    classes_, n_features_in_, scores_, summary_, map_, checksum
        As in `IRPCalibrator`.
    trees_ : list of BinTree
        The partitions.
    reductions_ : list of TopReduction or None
        What each tree sees: ranks and the rest, or all classes.
    oob_forecasts_ : ndarray of shape (n, K)
        For each calibration row that has weight, the mean of the trees that have not seen it, or of
        all where every tree has. A model file does not keep them.

    See Also
    --------
    IRPCalibrator : One tree, with bins and a certificate.

    Notes
    -----
    Rows are drawn one by one, so weights and the order of the rows change which rows a tree sees,
    and a row of weight 2 is not exactly the row twice.

    References
    ----------
    Breiman, Bagging predictors, Machine Learning 24, 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import BaggedIRPCalibrator
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([0.5, 0.5, 0.5], size=2000)
    >>> y = [rng.choice(["a", "b", "c"], p=0.6 * p + 0.4 / 3) for p in P]
    >>> cal = BaggedIRPCalibrator(random_state=0).fit(P, y)
    >>> cal.predict_proba([[0.9, 0.05, 0.05]]).round(2)       # the truth: 0.67, 0.16, 0.16
    array([[0.71, 0.15, 0.15]])
    >>> cal.predict_std([[0.9, 0.05, 0.05]]).round(2)
    array([[0.02, 0.01, 0.01]])
    """

    _shares: ClassVar[tuple[float, float]] = (0.3, 0.3)
    _uses_order_only: ClassVar[bool] = True
    _deals_rows: ClassVar[bool] = True
    _uses_column_order: ClassVar[bool] = True

    map_: BaggedMap

    @property
    def trees_(self) -> list[BinTree]:
        """The partitions."""
        check_is_fitted(self, "map_")
        return [own.tree for own in self.map_.members]

    @property
    def reductions_(self) -> list[TopReduction | None]:
        """What each tree sees: ranks and the rest, or all classes."""
        check_is_fitted(self, "map_")
        return [own.reduction for own in self.map_.members]

    def __init__(
        self,
        calibrator: IRPCalibrator | None = None,
        *,
        n_trees: int = 10,
        max_samples: int = 100_000,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.calibrator = calibrator
        self.n_trees = n_trees
        self.max_samples = max_samples
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, sample: Sample) -> BaggedMap:
        check_number("n_trees", self.n_trees, numbers.Integral, minimum=1)
        check_number("max_samples", self.max_samples, numbers.Integral, minimum=2)
        irp = IRPCalibrator() if self.calibrator is None else self.calibrator
        if not isinstance(irp, IRPCalibrator):
            raise InputError("calibrator", None, f"is {irp!r}", "expected an IRPCalibrator")
        irp._check_pseudocount()
        irp._check_parameters(sample.n_classes)
        kind, values, sample = sample.kind, sample.forecasts, sample.on_simplex()
        turns = _turns(irp, sample.n_classes)[: self.n_trees]
        reductions = [None if top is None else TopReduction.fit(top, sample) for top in turns]
        counted = isinstance(sample, CellSample)
        n = round(float(sample.row_weights().sum())) if counted else len(sample)
        size = min(max(n, 1), self.max_samples)
        random_state = check_random_state(self.random_state)
        seeds = random_state.randint(2**31 - 1, size=self.n_trees)
        bags = [_Bag(t, size, seed) for t, seed in enumerate(seeds.tolist())]
        members = Parallel(n_jobs=self.n_jobs)(
            delayed(_grow)(irp, kind, sample, reductions[t % len(turns)], bag)
            for t, bag in enumerate(bags)
        )
        self.oob_forecasts_ = _out_of_bag(members, Forecasts(values, kind), sample, bags)
        return BaggedMap(kind=kind, members=members)

    def _fit_out_of_fold(self, sample: Sample, fold: Ints) -> tuple[BaggedMap, Floats]:  # noqa: ARG002
        fitted = self._fit(sample)
        return fitted, self.oob_forecasts_

    def predict_std(self, P: Any) -> Floats:
        """Standard deviation over the trees of each calibrated probability, shape (n, K)."""
        values = self._check_new(P)
        forecasts = Forecasts(values, self.map_.kind)
        Q = [tree.compiled(forecasts) for tree in self.map_.members]
        return np.asarray(np.std(Q, axis=0))


def _out_of_bag(
    members: list[BinMap], forecasts: Forecasts, sample: Sample, bags: list[_Bag]
) -> Floats:
    """Mean forecasts of the trees that have not seen a row; of all trees if there is none."""
    total = np.zeros((len(sample), sample.n_classes))
    unseen_total = np.zeros_like(total)
    times = np.zeros((len(sample), 1))
    for tree, bag in zip(members, bags, strict=True):
        Q = tree.compiled(forecasts)
        unseen = (bag.draw(sample) == 0)[:, None]
        total += Q
        unseen_total += unseen * Q
        times += unseen
    mean = total / len(bags)
    return np.where(times > 0, unseen_total / np.maximum(times, 1), mean)


def _turns(irp: IRPCalibrator, n_classes: int) -> tuple[int | None, ...]:
    if irp.top != "auto":
        return (irp.top,)
    if n_classes <= irp._most_joint():
        return (None,)
    return TURNS_SOME if n_classes <= SOME else TURNS_MANY


class _Bag(NamedTuple):
    """A bootstrap sample."""

    number: int
    size: int
    seed: int

    def draw(self, sample: Sample) -> Ints:
        """How often each row is in it.

        A cell stands for as many rows as it weighs, so hardly one is left out by chance. Of cells
        in folds, each bag leaves one fold out.
        """
        rng = np.random.default_rng(self.seed)
        n = len(sample)
        if not isinstance(sample, CellSample):
            return np.bincount(rng.integers(n, size=self.size), minlength=n)
        weights, folds = sample.row_weights(), np.unique(sample.fold)
        if len(folds) > 1:
            weights = weights * (sample.fold != folds[self.number % len(folds)])
        ends = np.cumsum(weights)
        rows = rng.integers(max(int(ends[-1]), 1), size=self.size)
        return np.bincount(np.searchsorted(ends, rows, side="right").clip(max=n - 1), minlength=n)


def _grow(
    irp: IRPCalibrator, kind: Kind, sample: Sample, reduction: TopReduction | None, bag: _Bag
) -> BinMap:
    times = bag.draw(sample)
    drawn = sample.take(np.flatnonzero(times))
    weights = times[times > 0].astype(np.float64)
    if isinstance(sample, CellSample):
        weights *= float(sample.row_weights().sum()) / bag.size
    elif drawn.weights is not None:
        weights *= drawn.weights
    drawn = replace(drawn, weights=weights)
    pulled = irp._is_tilted(sample.n_classes)
    return irp._grow(kind, drawn, reduction, np.random.RandomState(bag.seed), pulled=pulled)[0]
