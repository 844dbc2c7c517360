"""AutoCalibrator: a mixture of calibrators, weighted by how well each forecasts unseen rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isoroc._backends import NUMPY, added
from isoroc._calibrators import mixing
from isoroc._calibrators.base import Calibrator, FromMap, IdentityCalibrator, adopt
from isoroc._calibrators.isotonic import IsotonicCalibrator
from isoroc._calibrators.kernel import KernelCalibrator
from isoroc._calibrators.matrix import MatrixCalibrator
from isoroc._calibrators.monotone import MonotoneCalibrator
from isoroc._calibrators.spline import SplineCalibrator
from isoroc._calibrators.temperature import TemperatureCalibrator
from isoroc._core.simplex import LEAST
from isoroc._core.types import Floats, Ints
from isoroc._counts import deal_by_content, in_cells
from isoroc._input import CellSample, InputError, Sample, check_number, check_option
from isoroc._input.kinds import columns_of
from isoroc._maps import IdentityMap, Map, MixtureMap, MonotoneMap
from isoroc._maps.cyclic import MonotonicityCheck, check_cyclic
from isoroc._maps.modelfile import checks
from isoroc._maps.monotone import TRACE, MonotonicityCertificate, with_floor
from isoroc._support.progress import Report, progress
from isoroc._support.seeds import check_random_state

#: With more classes the fit of a `KernelCalibrator` takes too long.
KERNEL_CLASSES = 30
#: With this many rows the share of the uncalibrated forecasts in the prior is twice that with very
#: many: of two classes, and of more.
FEW_ROWS = 600.0, 0.0


@dataclass(eq=False, repr=False, kw_only=True)
class AutoCalibrator(Calibrator):
    """The calibrator for those who do not want to choose: a mixture of all that suit the data.

    Every member forecasts rows that it has not seen, in cross-validation. The weights make the
    outcomes of these rows likely under the mixture, so a map that overfits gets none. Where rows
    cannot tell, most of the weight goes to the uncalibrated forecasts, which are a member too: for
    two classes the more, the fewer rows there are, and for any number the less, the more a test
    speaks against them. So with few rows calibration changes little unless much is wrong.

    Parameters
    ----------
    members : "auto" or list of calibrators, default="auto"
        What to mix. "auto": `IdentityCalibrator`, `SplineCalibrator` and `KernelCalibrator`, with
        three classes and more also `MonotoneCalibrator`; with more than 30 classes
        `IdentityCalibrator`, `MatrixCalibrator` and `IsotonicCalibrator`.
    monotone : bool, default=False
        Whether to mix only members whose mixtures are monotone on all rows: `IdentityCalibrator`
        and `MonotoneCalibrator`, and for two classes also `TemperatureCalibrator` and
        `IsotonicCalibrator`. Requires ``members="auto"``.
    caution : "verdict" or None, default=None
        "verdict" leaves the forecasts unchanged unless the verdict is to calibrate. That makes
        hardly any model worse, and costs where few rows cannot show what is wrong.
    cv : int, splitter or iterable, default=5
        Folds; of a number, not stratified, which would favour maps that fit class frequencies. Rows
        with the same forecast share a fold, unless they are many, so that their order does not
        matter, and weight 2 is the row twice. Others must hold out every row once.
    max_cells : int, default=20000
        With more rows, members are fitted and weighed on cells of forecasts: at most `max_cells` in
        total over all folds.
    random_state : int, RandomState or None, default=None
        Draws the folds, and what members draw.
    n_jobs : int, default=None
        Members to fit at a time.
    verbose : int, default=0
        Whether to show progress on standard error.

    Attributes
    ----------
    classes_, n_features_in_, scores_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    members_ : list of calibrators
        Fitted members with nonzero weight.
    weights_ : ndarray of shape (n_members,)
        Mixture weights; they sum to 1.
    member_scores_ : Table
        For each member and the mixture: weight, log loss out of fold, and gain over the
        uncalibrated forecasts, with standard errors. The log loss is bounded: see Notes.
    cv_results_ : Table
        Log loss of each member (row) in each fold (column).
    verdict_ : str
        Whether calibration helps, in a sentence: "calibrate" if the mixture is better than the
        forecasts by more than two standard errors, or better at all and a score test shows at the
        level 1 % that they are too confident or too timid or, for two classes, shifted; otherwise
        "leave it". The standard error is the larger one of that on the rows and that for outcomes
        which the forecasts expect; rows of unequal weight count as fewer. Of calibrated forecasts
        about 5 % or fewer get the verdict "calibrate" (``benchmarks/coverage.py verdicts``).
    certificate_ : MonotonicityCertificate or None
        With ``monotone=True``, the guarantee in words: ``print(calibrator.certificate_)``.

    See Also
    --------
    CalibratedClassifier : Trains a classifier and calibrates it in one step.
    GroupedCalibrator : Maps by group of rows.
    evaluate : What calibration changes, also in ranking and decisions.

    Notes
    -----
    In `member_scores_`, `cv_results_` and `verdict_` every forecast counts as mixed with the
    uniform one, which has the weight of one row. So no row can decide the verdict alone, not even
    one whose outcome was given probability 0; the verdict says how many there were.

    Where the verdict is to leave the forecasts alone, `predict_proba` still applies the mixture,
    unless ``caution="verdict"``. The verdict says by how much it changes the calibration rows.

    Up to 500 rows, nothing that a member learns for the other folds depends on the rows held out.
    With more, floors are those of all rows, and so are the penalties of `MatrixCalibrator`, and
    temperature and penalty of `KernelCalibrator`. At 1,500 rows this lowers the out-of-fold log
    loss of kernel scaling by about 0.001.

    References
    ----------
    Wolpert, Stacked generalization, Neural Networks 5, 1992. Smyth and Wolpert, Linearly combining
    density estimators via stacking, Machine Learning 36, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import AutoCalibrator
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet(np.ones(3), size=2000)
    >>> y = [rng.choice(["a", "b", "c"], p=p) for p in truth]
    >>> P = truth**3 / (truth**3).sum(axis=1, keepdims=True)    # an overconfident model
    >>> AutoCalibrator(random_state=0).fit(P, y).verdict_[:9]
    'calibrate'
    >>> AutoCalibrator(random_state=0).fit(truth, y).verdict_[:8]
    'leave it'
    """

    members: Literal["auto"] | Sequence[Calibrator] = "auto"
    monotone: bool = False
    caution: Literal["verdict"] | None = None
    cv: Any = 5
    max_cells: int = 20_000
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _uses_folds: ClassVar[bool] = True
    _state: ClassVar[dict[str, checks.Check]] = {
        "members_": checks.list_of(checks.anything),
        "member_scores_": checks.table,
        "cv_results_": checks.table,
        "verdict_": checks.sentence,
    }

    map_: MixtureMap = field(init=False)
    members_: list[Calibrator] = field(init=False)
    weights_ = FromMap()

    def _fit(self, sample: Sample) -> MixtureMap:
        check_number("max_cells", self.max_cells, int, minimum=2)
        check_option("caution", self.caution, ("verdict", None))
        random_state = check_random_state(self.random_state)
        members = self._resolve_members(sample.n_classes, random_state)
        sample = self._deal(sample, random_state)
        fold = sample.folds()
        with progress("calibrating", shown=self.verbose > 0) as report:
            found = self._fit_members(members, sample, fold, report)
        members = [member for member, _, _ in found]
        rows = np.arange(len(fold)), sample.codes
        likelihood = np.stack([Q[rows] for _, _, Q in found], axis=1)
        row_weights = sample.row_weights()
        before = IdentityMap(kind=sample.kind).apply(sample.forecasts)
        # Weights count rows here, as in the likelihood of the mixture, but not in the verdict.
        as_counts = mixing.departure(before, sample, row_weights)
        prior = prior_shares(members, sample.n_classes, float(row_weights.sum()), as_counts)
        weights = mixing.mixture_weights(likelihood, row_weights, prior)
        names = [type(member).__name__ for member in members]
        mixed = added(weights[m] * found[m][2] for m in np.flatnonzero(weights))
        columns = np.column_stack([likelihood, mixed[rows], before[rows]])
        losses = mixing.bounded_losses(columns, row_weights, sample.n_classes)
        self.member_scores_ = mixing.score_members(
            [*names, "mixture"], np.append(weights, 1.0), losses, sample
        )
        self.cv_results_ = mixing.losses_by_fold(names, losses, row_weights, fold)
        n_rows = row_weights**2 / sample.squares  # if those of one cell have equal weights
        impossible, n = round(n_rows[before[rows] == 0].sum()), round(n_rows.sum())
        surprise = mixing.surprise(before, mixed, sample)
        p = mixing.departure(before, sample, sample.squares)
        self.verdict_ = mixing.verdict(self.member_scores_, surprise, p, impossible, n)
        kept = [(members[m], found[m][1], weights[m]) for m in np.flatnonzero(weights)]
        left = not self.verdict_.startswith(mixing.CALIBRATE)
        if self.caution and left:
            kept = [(IdentityCalibrator(), IdentityMap(kind=sample.kind), 1.0)]
        self.members_, maps, used = map(list, zip(*kept, strict=True))
        options: Any = {"kind": sample.kind, "monotone": bool(self.monotone)}
        mixture = MixtureMap(members=maps, weights=np.array(used), **options)
        if left and not self.caution:
            change = np.abs(mixture.apply(sample.forecasts) - before).max(axis=1)
            mean = np.average(change, weights=row_weights)
            size = f"by up to {change.max():.2g}, on average {mean:.2g}"
            self.verdict_ += f"; the mixture still changes probabilities {size}"
        return mixture

    def _finish(self) -> None:
        # The members are calibrators of their own, to look at, to apply and to export.
        adopt(self, self.members_, self.map_.members)

    def _deal(self, sample: Sample, random_state: np.random.RandomState) -> CellSample:
        """The sample in folds; of many rows, in cells."""
        if isinstance(sample, CellSample):
            return sample
        if isinstance(self.cv, int | np.integer):
            check_number("cv", self.cv, int, minimum=2)
            dealt = deal_by_content(sample, int(self.cv), random_state)
        else:
            squares = sample.squared_weights()
            dealt = CellSample(**vars(sample), fold=self._split(sample), squares=squares)
            dealt = replace(dealt, weights=sample.row_weights())
        return in_cells(dealt, self.max_cells) if len(dealt) > self.max_cells else dealt

    def _split(self, sample: Sample) -> Ints:
        """Fold of each row by a splitter."""
        n = len(sample)
        # It loads the metrics of scikit-learn too, and hardly anyone needs it.
        from sklearn.model_selection import check_cv  # noqa: PLC0415

        fold, times = np.zeros((2, n), dtype=np.intp)
        try:
            splitter = check_cv(self.cv, sample.codes, classifier=True)
            for f, (_, held_out) in enumerate(splitter.split(np.zeros((n, 1)), sample.codes)):
                fold[held_out] = f
                times[held_out] += 1
        except (IndexError, TypeError, ValueError) as error:
            fix = "pass a number or a splitter; rows of weight 0 are left out before"
            raise InputError("cv", None, f"cannot split {n} rows ({error})", fix) from error
        if (row := int(np.argmax(times != 1))) or times[0] != 1:
            problem = f"row {row} is held out {times[row]} times"
            raise InputError("cv", None, problem, "folds must hold out every row once")
        return fold

    def _fit_members(
        self, members: list[Calibrator], sample: Sample, fold: Ints, report: Report
    ) -> list[tuple[Calibrator, Map, Floats]]:
        """Members that could be fitted, their maps, and forecasts of rows they have not seen."""

        def fit(member: Calibrator) -> tuple[Calibrator, Map, Floats] | Exception:
            report(type(member).__name__)
            try:
                # With the member, as a process returns a copy, which has learned more than the map.
                return member, *member._fit_out_of_fold(sample, fold)
            except InputError:
                raise
            except (ArithmeticError, ValueError) as error:
                return error

        # Threads, because members spend their time in compiled code that lets others run.
        found = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(fit)(m) for m in members)
        fitted = []
        for member, result in zip(members, found, strict=True):
            if not isinstance(result, Exception):
                fitted.append(result)
                continue
            warnings.warn(
                f"{type(member).__name__} is left out of the mixture: its fit failed ({result}).",
                RuntimeWarning,
                stacklevel=5,
            )
        if not fitted:
            raise InputError("members", None, "all of them failed", "pass other members")
        return fitted

    def _resolve_members(self, n_classes: int, random_state: Any) -> list[Calibrator]:
        check_option("monotone", self.monotone, (True, False))
        members: Any = self.members
        if isinstance(members, str) and members == "auto":
            members = default_members(n_classes, monotone=self.monotone)
        elif self.monotone:
            fix = 'expected members="auto"'
            raise InputError("monotone", None, "is True, which chooses the members itself", fix)
        elif not isinstance(members, Sequence) or not (
            members and all(isinstance(member, Calibrator) for member in members)
        ):
            fix = 'expected "auto" or a list of calibrators of isoroc, as [IRPCalibrator()]'
            raise InputError("members", None, f"is {members!r}", fix)
        members = [clone(member) for member in members]
        for member in members:
            if "random_state" in member.get_params() and member.random_state is None:
                member.set_params(random_state=random_state.randint(2**31 - 1))
        return list(members)

    @property
    def certificate_(self) -> MonotonicityCertificate | None:
        """The guarantee of a monotone mixture in words."""
        check_is_fitted(self, "map_")
        return self.map_.certificate(len(self.classes_))

    def verify(self, P: Any) -> MonotonicityCheck:
        """Check the guarantee of a monotone mixture on any rows, as in `MonotoneCalibrator`."""
        if not self.monotone:
            raise InputError("monotone", None, "is False, so there is no guarantee to verify")
        mixture, values = self.map_, self._check_new(P)
        X, Q = columns_of(values), mixture.apply(values)
        if Q.shape[1] == 2:
            scores = mixture.kind.score(NUMPY, X)
            return check_cyclic(np.hstack([np.zeros_like(scores), scores]), Q)
        floor = mixture.floor
        z = np.ascontiguousarray(with_floor(NUMPY, mixture.kind.logs(NUMPY, X, LEAST), floor))
        potential = np.zeros(len(z))
        for weight, member in zip(mixture.weights, mixture.members, strict=True):
            if isinstance(member, MonotoneMap):
                potential += weight * member.value(z)
            else:
                P = member.apply(values)
                potential += weight * (P - (1 - TRACE) * floor * np.log(P + floor)).sum(axis=1)
        return check_cyclic(z, Q, potential)


def default_members(n_classes: int, *, monotone: bool = False) -> list[Calibrator]:
    """What members="auto" mixes."""
    if monotone:
        # For more classes, temperature scaling is a gradient in other coordinates: its floor
        # differs.
        two = [TemperatureCalibrator(floor="auto"), IsotonicCalibrator()]
        return [IdentityCalibrator(), MonotoneCalibrator(), *(two if n_classes == 2 else [])]
    if n_classes > KERNEL_CLASSES:
        return [IdentityCalibrator(), MatrixCalibrator(), IsotonicCalibrator()]
    more = [MonotoneCalibrator()] if n_classes > 2 else []
    return [IdentityCalibrator(), SplineCalibrator(), *more, KernelCalibrator()]


def prior_shares(members: list[Calibrator], n_classes: int, n_rows: float, p: float) -> Floats:
    """Shares of the members before any row is seen; `p` is that of `mixing.departure`."""
    group = int(n_classes > 2)
    shares = np.array([member._shares[group] for member in members])
    for m in np.flatnonzero([isinstance(member, IdentityCalibrator) for member in members]):
        shares[m] = mixing.share_of_forecasts(shares[m], FEW_ROWS[group], n_rows, p)
    return shares
