"""IRPCalibrator: isotonic recursive partitioning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from isoroc._backends import NUMPY
from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._calibrators.parts import draw_part
from isoroc._calibrators.tempering import fit_tempering
from isoroc._core.types import Floats, Ints
from isoroc._growth import (
    BinnedRows,
    GrowthOptions,
    Pulled,
    grow_pulled,
    grow_tree,
    held_out_pseudocount,
    tilt_bins,
)
from isoroc._input import (
    CellSample,
    InputError,
    Sample,
    check_forecasts,
    check_number,
    check_option,
    check_sample,
    deal_folds,
    to_array,
)
from isoroc._input.kinds import Kind, columns_of
from isoroc._maps import BinMap, TemperatureMap, TiltedMap
from isoroc._maps.cyclic import MonotonicityCheck
from isoroc._maps.modelfile import checks
from isoroc._maps.monotonicity import Certificate, certify
from isoroc._maps.top import TopReduction
from isoroc._support.progress import Announce, progress
from isoroc._support.seeds import check_random_state
from isoroc._support.table import Table


@dataclass(eq=False, repr=False, kw_only=True)
class IRPCalibrator(Calibrator):
    """Isotonic recursive partitioning: bins whose splits can be repeated after calibration.

    For two classes this is isotonic regression, found as a path of nested partitions. With
    ``pseudocount=0``, on the calibration rows, its bins have zero calibration error, no
    non-decreasing map has a lower log loss or Brier score, and the ROC curve of the calibrated
    forecasts is the convex hull of the ROC curve before.

    For more classes the simplex is split recursively at thresholds gamma into the regions
    ``argmax(p - gamma)``. A split is made only if some threshold on the calibrated forecasts
    repeats it on the calibration rows. `IRPCalibrator.paper` is the paper's calibrator.

    Parameters
    ----------
    pseudocount : float or "auto", default="auto"
        Weight of the prior in the value of every bin: ``(class weights + pseudocount * prior) /
        (bin weight + pseudocount)``. 0 gives observed rates. "auto" is 1 plus, for
        ``prior="forecast"``, a weight that the labels determine.
    prior : {"forecast", "uniform", "marginal"} or array-like of shape (K,), default="forecast"
        What the values of bins are pulled towards. "forecast" is the mean forecast of the bin's own
        rows, with up to 1 of the pseudocount on the uniform forecast, so that no value is 0.
        "marginal" is the class shares of the calibration set.
    monotonicity : {"tree", "global"} or None, default="tree"
        For which calibration rows a split must be repeatable: those that reach it, all (the
        paper's condition), or none (no guarantee). For two classes the first two are the same.
    search : {"sweep", "grid"}, default="sweep"
        How thresholds of three classes or more are found: by exact line searches, or among the
        points of a lattice, as in the paper.
    grid_size : int, default=None
        The lattice has step 1 / grid_size. The default is 100 for three classes, less for more.
    values : {"auto", "tilted", "constant"}, default="auto"
        "constant" gives all rows of a bin its value, as in the paper. "tilted" lets forecasts vary
        around it as far as every split keeps its certificate. "auto" is constant for two classes,
        tilted for more.
    top : int, "auto" or None, default="auto"
        Calibrate the `top` largest probabilities of each forecast and share the rest among the
        other classes. None calibrates all classes jointly. "auto" does so up to 12 classes, with
        constant values up to 4, and otherwise takes the best of 1, 2, 3 by cross-validation.
    max_bins : int, default=None
        Largest number of bins. By default growth stops when no split is feasible.
    min_bin_weight : float or "auto", default="auto"
        Smallest weight of a bin. "auto" is 0 for two classes, for more a thirtieth of the total
        weight, at most 20.
    min_lift : float or "auto", default="auto"
        Smallest gain in log likelihood of a split, as a multiple of what chance alone would give.
        "auto" is 0 for two classes, 1 for more.
    max_cells : int, default=10000
        With more rows, trees of three classes or more are grown on cells of forecasts.
    random_state : int, RandomState or None, default=0
        Seed of the search and of the folds of ``top="auto"``.
    verbose : int, default=0
        Whether to show progress on standard error.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    tree_ : BinTree
        The partition with its class weights.
    prior_ : ndarray of shape (K,) or (N, K)
        The prior, or the prior of each node.
    pseudocount_ : float
        Weight of the prior. It may be lower than requested, so that every split keeps its
        certificate.
    reduction_ : TopReduction or None
        The reduction to the largest probabilities. `tree_` and `prior_` are then of ranks.
    top_ : int or None
        Number of largest probabilities that are calibrated, if there is a reduction.
    n_bins_ : int
        Number of bins.
    bin_values_ : ndarray of shape (n_bins, K)
        Calibrated forecast of each bin.
    bins_ : Table
        One row per bin: weight, observed rate of each class with a 95 % interval (Wilson), and
        value. For two classes, a bin holds the scores with ``lower < score <= upper``.
    path_ : Table
        One row per stage, from one bin to `n_bins_`: gain and threshold of the split that led to
        it, and the log loss of the calibration set.
    certificate_ : Certificate or None
        For each split, the threshold that repeats it on the calibrated forecasts. None with
        ``monotonicity=None``.

    See Also
    --------
    MonotoneCalibrator : A smooth monotone map of all classes.
    IsotonicCalibrator : Isotonic regression of each class against the rest.

    Notes
    -----
    With tilted values, the tempered forecast p of a row becomes q, proportional to p times the tilt
    of its bin. The tilt makes the mean of q over the calibration rows of the bin equal its value r.
    The row gets ``r + share * (q - r)``, with the largest share under which each split can be
    repeated (Berta, Bach and Jordan, AISTATS 2024, for constant values).

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import IRPCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=1000)                    # logits of an overconfident model
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-scores / 3))
    >>> cal = IRPCalibrator(max_bins=4).fit(scores, y)
    >>> cal.bins_
         lower     upper  weight     rate  rate_low  rate_high    value
          -inf  -0.96842     172  0.38953   0.31983    0.46406  0.37957
      -0.96842  -0.54032     135  0.46667    0.3846    0.55058  0.45727
      -0.54032   0.55353     425  0.53882   0.49129    0.58566  0.53778
       0.55353       inf     268  0.59328   0.53356    0.65037  0.59857
    >>> cal.verify(scores, y)
    MonotonicityCheck(monotone=True, rows=1000, exact=True)
    """

    pseudocount: float | Literal["auto"] = "auto"
    prior: Literal["forecast", "uniform", "marginal"] | ArrayLike = "forecast"
    monotonicity: Literal["tree", "global"] | None = "tree"
    search: Literal["sweep", "grid"] = "sweep"
    grid_size: int | None = None
    values: Literal["auto", "tilted", "constant"] = "auto"
    top: int | Literal["auto"] | None = "auto"
    max_bins: int | None = None
    min_bin_weight: float | Literal["auto"] = "auto"
    min_lift: float | Literal["auto"] = "auto"
    max_cells: int = 10_000
    random_state: int | np.random.RandomState | None = 0
    verbose: int = 0

    _shares: ClassVar[tuple[float, float]] = (0.3, 0.3)
    _uses_folds: ClassVar[bool] = True
    _uses_order_only: ClassVar[bool] = True
    _state: ClassVar[dict[str, checks.Check]] = {"certificate_": checks.certificate}

    map_: BinMap = field(init=False)
    certificate_: Certificate | None = field(init=False)
    tree_ = FromMap()
    prior_ = FromMap()
    pseudocount_ = FromMap()
    bin_values_ = FromMap()
    n_bins_ = FromMap(lambda fitted: len(fitted.tree.bins))
    reduction_ = FromMap()
    top_ = FromMap(lambda fitted: fitted.reduction and fitted.reduction.top)

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """The paper's calibrator: zero calibration error on the calibration rows.

        All classes jointly, observed rates as constant values, splits that can be repeated on all
        calibration rows, and growth to its natural end. Further parameters are passed on.

        Examples
        --------
        >>> from isoroc import IRPCalibrator
        >>> IRPCalibrator.paper(max_bins=8).monotonicity
        'global'
        """
        published = cls(
            pseudocount=0,
            monotonicity="global",
            values="constant",
            top=None,
            min_bin_weight=0,
            min_lift=0,
        )
        published.set_params(**parameters)
        return published

    @property
    def bins_(self) -> Table:
        """One row per bin: bounds (two classes), weight, observed rates with intervals, values."""
        check_is_fitted(self, "map_")
        return self.map_.bins([str(label) for label in self.classes_])

    @property
    def path_(self) -> Table:
        """One row per stage, from one bin to `n_bins_`: the split that led to it, and the loss."""
        check_is_fitted(self, "map_")
        return self.map_.path([str(label) for label in self.classes_])

    def apply(self, P: Any) -> Ints:
        """Row of `bins_` for each forecast, shape (n,)."""
        values = self._check_new(P)
        return np.asarray(self.map_.bin_of(values))

    def staged_predict_proba(self, P: Any) -> Iterator[Floats]:
        """Iterate over the calibrated forecasts, shape (n, K), of every stage of `path_`."""
        values = self._check_new(P)
        return self.map_.stages(values)

    def verify(self, P: Any, y: Any, *, sample_weight: Any = None) -> MonotonicityCheck:
        """Check the certificate on the calibration rows, without the code that grew the tree.

        Rows are routed and counted again. The result is false for a damaged tree, and for rows
        that differ from the rows of `fit`.

        Parameters
        ----------
        P, y, sample_weight
            What was passed to `fit`.
        """
        if self.certificate_ is None:
            problem = "None gives no guarantee, so there is nothing to verify"
            raise InputError("monotonicity", None, problem)
        values = self._check_new(P)
        unit = self.map_.kind.scores
        sample = check_sample(values, y, sample_weight, self.classes_, unit=unit)
        sample = replace(sample, forecasts=values).positive()  # scores as predictions see them
        calibrated = self.map_.in_bins(sample.forecasts)
        sample = sample.on_simplex()
        if self.map_.reduction is not None:
            sample = self.map_.reduction.reduce_sample(sample)
        holds = self.certificate_.verify(self.map_.tree, calibrated, sample)
        return MonotonicityCheck(monotone=holds, rows=len(values), exact=True)

    def _fit(self, sample: Sample) -> BinMap:
        self._check_parameters(sample.n_classes)
        kind = sample.kind
        values = sample.forecasts
        sample = sample.on_simplex()
        random_state = check_random_state(self.random_state)
        with progress("growing", shown=self.verbose > 0) as report:
            top = self._choose_top(sample, random_state)
            reduction = None if top is None else TopReduction.fit(top, sample)
            fitted, certificate = self._grow(kind, sample, reduction, random_state, report)
        self.certificate_ = certificate and replace(certificate, top=top)
        if reduction is None:
            return fitted
        return replace(fitted, reduction=reduction.settle(fitted.in_bins(values), sample))

    def _grow(
        self,
        kind: Kind,
        sample: Sample,
        reduction: TopReduction | None,
        random_state: np.random.RandomState,
        report: Announce,
    ) -> tuple[BinMap, Certificate | None]:
        """The map of a tree grown on a sample on the simplex, and its certificate.

        The value of a bin is the posterior mean of its class frequencies under a Dirichlet prior:
        ``(class weights + shared * prior + pulled * mean forecast) / total``. The part `shared`,
        with the same prior in every bin, keeps values away from 0. The part `pulled` says how much
        a bin trusts the (tempered) forecasts of its own rows: by default it is as large as the
        labels support, because a bin of few rows estimates its frequencies worse than a classifier
        does. The tree is grown first with `shared` only, then `pulled` is lowered where a split
        would lose its certificate.

        With tilted values, rows of a bin keep part of their differences, see `tilt_bins`.
        """
        tilted = self.values == "tilted" or (self.values == "auto" and sample.n_classes > 2)
        if reduction is not None:
            sample = reduction.reduce_sample(sample)
        tempering = _fit_to_part(sample) if tilted else None
        tempered = None if tempering is None else tempering.apply(_probabilities(sample))
        prior = self._resolve_prior(sample)
        shared, pulled = self._pseudocounts()
        options = GrowthOptions(
            shared * prior,
            monotonicity=self.monotonicity,
            search=self.search,
            grid_size=self.grid_size,
            max_bins=self.max_bins,
            max_cells=self.max_cells,
            min_bin_weight=self.min_bin_weight,
            min_lift=self.min_lift,
            random_state=random_state,
            report=report,
        )
        grown = self._grow_pulled(sample, options, pulled, tempered)
        if grown.forecast_pseudocount:  # bins add their mean forecasts to what they share
            prior = shared * prior + grown.forecast_pseudocount * grown.means
            prior /= prior.sum(axis=1, keepdims=True)
        fitted = BinMap(
            kind=kind,
            reduction=reduction,
            tree=grown.tree,
            prior=prior,
            pseudocount=shared + grown.forecast_pseudocount,
        )
        if tempering is None or tempered is None:
            points = sample.forecasts if self.monotonicity == "global" else None
            return fitted, self.monotonicity and certify(grown.tree, fitted.bin_values, points)
        return self._tilt(fitted, sample, grown, tempering, tempered)

    def _grow_pulled(
        self, sample: Sample, options: GrowthOptions, pulled: float | None, tempered: Floats | None
    ) -> Pulled:
        """The tree, and the pseudocount of mean forecasts, learned from the labels if None."""
        if not self._prior_is_forecast():
            return Pulled(grow_tree(sample, options))
        few = sample.n_classes > 2 and len(sample) <= self.max_cells
        if pulled is None and tempered is not None and few:
            # In-sample evidence underestimates it: bins were selected on these labels.
            pulled = held_out_pseudocount(sample, options, tempered)
        return grow_pulled(sample, options, pulled, tempered)

    def _tilt(
        self,
        fitted: BinMap,
        sample: Sample,
        grown: Pulled,
        tempering: TemperatureMap,
        tempered: Floats,
    ) -> tuple[TiltedMap, Certificate | None]:
        """The map with values that vary in its bins, and its certificate."""
        bin_of = grown.tree.bin_of(sample.forecasts) if grown.bin_of is None else grown.bin_of
        tilts, shares, certificate = tilt_bins(
            grown.tree, fitted.bin_values, sample, BinnedRows(tempered, bin_of), self.monotonicity
        )
        tilted = TiltedMap(
            kind=fitted.kind,
            reduction=fitted.reduction,
            tree=fitted.tree,
            prior=fitted.prior,
            pseudocount=fitted.pseudocount,
            floor=tempering.floor,
            temperature=tempering.temperature,
            smoothing=tempering.smoothing,
            tilts=tilts,
            shares=shares,
        )
        return tilted, certificate

    def _prior_is_forecast(self) -> bool:
        """Whether the mean forecast of a bin's rows is part of its prior."""
        return isinstance(self.prior, str) and self.prior == "forecast"

    def _pseudocounts(self) -> tuple[float, float | None]:
        """Pseudocounts of the part of the prior that all bins share, and of mean forecasts.

        With mean forecasts the first is at most 1. The second is None if evidence determines it.
        """
        if self.pseudocount == "auto":
            return 1.0, None
        given = float(self.pseudocount)
        shared = min(given, 1.0) if self._prior_is_forecast() else given
        return shared, given - shared

    def _resolve_prior(self, sample: Sample) -> Floats:
        """The part of the prior that all bins share, uniform for "forecast"."""
        K = sample.n_classes
        if isinstance(self.prior, str):
            if self.prior in ("uniform", "forecast"):
                return np.full(K, 1 / K)
            if self.prior == "marginal":
                return np.asarray(sample.class_weights() / sample.class_weights().sum())
            fix = 'expected "forecast", "uniform", "marginal" or probabilities'
            raise InputError("prior", None, f"is {self.prior!r}", fix)
        prior = check_forecasts(to_array(self.prior, name="prior").reshape(1, -1), name="prior")
        if prior.shape != (1, K):
            fix = f"expected {K}, one for each class"
            raise InputError("prior", None, f"{prior.size} probabilities", fix)
        return np.asarray(prior[0])

    def _choose_top(self, sample: Sample, random_state: Any) -> int | None:
        """The reduction with the lowest cross-validated log loss, where there is a choice."""
        if self.top != "auto" or sample.n_classes <= self._most_joint():
            return None if self.top == "auto" else self.top
        if isinstance(sample, CellSample):
            fold = sample.folds()
        else:
            n_folds = 5 if len(sample) <= self.max_cells else 2
            fold = deal_folds(len(sample), n_folds, random_state, sample.clusters)
        losses = dict.fromkeys((1, 2, 3), 0.0)
        for top in losses:
            for k in range(fold.max() + 1):
                seed = random_state.randint(2**31 - 1)
                changed = {"top": top, "verbose": 0, "random_state": seed}
                candidate = IRPCalibrator(**self.get_params() | changed)
                train = sample.take(fold != k)
                test = sample.take(fold == k)
                Q = candidate._fit(train).apply(test.forecasts)
                likelihood = Q[np.arange(len(Q)), test.codes].clip(min=1e-300)
                losses[top] -= float(test.row_weights() @ np.log(likelihood))
        return min(losses, key=losses.__getitem__)

    def _most_joint(self) -> int:
        """Largest number of classes that top="auto" calibrates jointly."""
        return 4 if self.values == "constant" else 12

    def _check_parameters(self, n_classes: int) -> None:
        """Raise an error for parameters that are invalid for K classes."""
        check_option("monotonicity", self.monotonicity, ("tree", "global", None))
        check_option("search", self.search, ("sweep", "grid"))
        check_option("values", self.values, ("auto", "tilted", "constant"))
        check_number("max_cells", self.max_cells, int, minimum=2)
        for name in ("pseudocount", "min_bin_weight", "min_lift"):
            check_number(name, getattr(self, name), minimum=0, others=("auto",))
        for name in ("max_bins", "grid_size"):
            check_number(name, getattr(self, name), int, minimum=1, others=(None,))
        check_number("top", self.top, int, minimum=1, others=("auto", None))
        if isinstance(self.top, int | np.integer) and self.top > n_classes - 2:
            fix = f"at most {n_classes - 2} are possible, and None calibrates all jointly"
            raise InputError("top", None, f"is {self.top} for {n_classes} classes", fix)
        reduces = n_classes > self._most_joint() if self.top == "auto" else self.top is not None
        if reduces and not isinstance(self.prior, str):
            fix = 'pass top=None, or prior="forecast", "uniform" or "marginal"'
            raise InputError("prior", None, "probabilities of classes, but bins are of ranks", fix)


def _probabilities(sample: Sample) -> Floats:
    """Forecasts as columns of probabilities, shape (n, K)."""
    return np.asarray(sample.kind.probabilities(NUMPY, columns_of(sample.forecasts)))


def _fit_to_part(sample: Sample) -> TemperatureMap:
    """Temperature scaling of the probabilities, from a part of the rows."""
    on_simplex = replace(sample, forecasts=_probabilities(sample), unit="probability")
    return fit_tempering(draw_part(on_simplex), "auto", 1.0)
