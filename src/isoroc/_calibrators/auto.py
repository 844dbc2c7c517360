"""AutoCalibrator: a mixture of calibrators, weighted by how well each forecasts unseen rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isoroc._backends import NUMPY, added
from isoroc._calibrators import mixing
from isoroc._calibrators.base import Calibrator, FromMap, IdentityCalibrator, attach_fitted
from isoroc._calibrators.floors import without_noise
from isoroc._calibrators.isotonic import IsotonicCalibrator
from isoroc._calibrators.kernel import KernelCalibrator
from isoroc._calibrators.matrix import MatrixCalibrator
from isoroc._calibrators.monotone import MonotoneCalibrator
from isoroc._calibrators.sigmoid import BetaCalibrator, SigmoidCalibrator
from isoroc._calibrators.spline import SplineCalibrator
from isoroc._calibrators.temperature import TemperatureCalibrator
from isoroc._core import smooth
from isoroc._core.evidence import score_test
from isoroc._core.intervals import mean
from isoroc._core.simplex import LEAST
from isoroc._core.types import Floats
from isoroc._core.verdict import Verdict
from isoroc._counts import deal_by_content, deal_in_cells, limit_cells
from isoroc._input import CellSample, InputError, Sample, check_number, check_option
from isoroc._input.kinds import columns_of
from isoroc._maps import IdentityMap, Map, MixtureMap
from isoroc._maps.cyclic import MonotonicityCheck, check_cyclic
from isoroc._maps.modelfile import checks
from isoroc._maps.monotone import MonotonicityCertificate, with_floor
from isoroc._support.progress import Announce, progress
from isoroc._support.seeds import check_random_state

#: With more classes, isotonic regression is a member, and slow members need more weight.
FEW_CLASSES = 30


class Fitted(NamedTuple):
    """A fitted member."""

    member: Calibrator
    map: Map
    unseen: Floats  # forecasts of the dealt rows by maps that have not seen their fold, (n, K)


@dataclass(eq=False, repr=False, kw_only=True)
class AutoCalibrator(Calibrator):
    """A mixture of calibrators, weighted by how well each forecasts rows that it has not seen.

    The weights maximise the likelihood of held-out rows, so a map that overfits gets none. The
    uncalibrated forecasts are a member too. With few rows they keep most of the weight, so
    calibration changes little unless the forecasts are badly wrong.

    Parameters
    ----------
    members : "auto" or list of calibrators, default="auto"
        Calibrators to mix. "auto" chooses them by the number of classes.
    monotone : bool, default=False
        Mix only members that keep the mixture monotone on all rows: `IdentityCalibrator` and
        `MonotoneCalibrator`, and for two classes also `TemperatureCalibrator` and
        `IsotonicCalibrator`. Requires ``members="auto"``.
    caution : "verdict" or None, default=None
        "verdict" leaves the forecasts unchanged unless the verdict is to calibrate.
    cv : int, default=5
        Number of folds for members that cannot leave out rows or `clusters` one by one. They are
        not stratified, because that would favour maps that fit class frequencies. Rows of one
        cluster share a fold.
    max_cells : int, default=20000
        With more rows, or counts of more cells, members are fitted to at most this many cells of
        forecasts.
    random_state : int, RandomState or None, default=0
        Seed of members that use random numbers. The default members use none.
    n_jobs : int, default=None
        Number of members fitted at a time.
    verbose : int, default=0
        Whether to show progress on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in the order of the columns.
    n_features_in_ : int
        Number of columns of the forecasts, 1 for scores.
    unit_, summary_, map_, checksum
        Unit of the forecasts, rows and weights of the fit, the fitted map, and the checksum of its
        model file.
    members_ : list of calibrators
        Fitted members with nonzero weight.
    weights_ : ndarray of shape (n_members,)
        Weights of these members. They sum to 1.
    member_scores_ : Table
        Weight, out-of-fold log loss and gain over the uncalibrated forecasts, with standard errors,
        for each member and the mixture.
    cv_results_ : Table
        Log loss of each member (row) in each fold (column).
    verdict_ : Verdict
        Whether calibration helps: ``print(calibrator.verdict_)``.
    certificate_ : MonotonicityCertificate or None
        With ``monotone=True``, the guarantee in words: ``print(calibrator.certificate_)``.

    See Also
    --------
    CalibratedClassifier : Trains a classifier and calibrates it in one step.
    SegmentCalibrator : Corrects forecasts within segments of rows.
    evaluate : What calibration changes, also in ranking and decisions.

    Notes
    -----
    `Verdict` states the rule of the verdict, which `evaluate` shares. With fewer than 100
    independent rows and no evidence, it is "too few rows to tell". Whatever the verdict,
    `predict_proba` applies the mixture, unless ``caution="verdict"``.

    In tables and in the gain, each forecast is mixed with the uniform forecast, with the weight of
    one row, so that no single row decides the verdict. Most default members forecast each row
    without it, by one Newton step from the fit to all rows. With `clusters` in `fit`, the step
    leaves out all rows of its cluster. Penalties and floors are learned from all rows. Members that
    cannot do so are fitted in folds, chosen by a hash of each row, and so are all members if one
    cluster has more than a twentieth of the weight.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import AutoCalibrator
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet(np.ones(3), size=2000)
    >>> y = [rng.choice(["a", "b", "c"], p=p) for p in truth]
    >>> P = truth**3 / (truth**3).sum(axis=1, keepdims=True)    # an overconfident model
    >>> AutoCalibrator().fit(P, y).verdict_.should_calibrate
    True
    >>> AutoCalibrator().fit(truth, y).verdict_.should_calibrate
    False
    """

    members: Literal["auto"] | Sequence[Calibrator] = "auto"
    monotone: bool = False
    caution: Literal["verdict"] | None = None
    cv: int = 5
    max_cells: int = 20_000
    random_state: int | np.random.RandomState | None = 0
    n_jobs: int | None = None
    verbose: int = 0

    _uses_folds: ClassVar[bool] = True
    _keeps_noise: ClassVar[bool] = True  # it is left to the members
    _state: ClassVar[dict[str, checks.Check]] = {
        "members_": checks.list_of(checks.anything),
        "member_scores_": checks.table,
        "cv_results_": checks.table,
        "verdict_": checks.verdict,
    }

    map_: MixtureMap = field(init=False)
    members_: list[Calibrator] = field(init=False)
    verdict_: Verdict = field(init=False)
    weights_ = FromMap()

    def _fit(self, sample: Sample) -> MixtureMap:
        check_number("max_cells", self.max_cells, int, minimum=2)
        check_number("cv", self.cv, int, minimum=2)
        check_option("caution", self.caution, ("verdict", None))
        random_state = check_random_state(self.random_state)
        members = self._resolve_members(sample.n_classes, random_state)
        dealt = self._deal(sample)
        before = IdentityMap(kind=sample.kind).apply(dealt.forecasts)
        with progress("calibrating", shown=self.verbose > 0) as report:
            fitted = self._fit_members(members, without_noise(dealt), report)
        weights = _weigh(fitted, dealt, before)
        mixed, exponent = _mix(fitted, weights, dealt, monotone=self.monotone)
        names, unseen = zip(*((type(f.member).__name__, f.unseen) for f in fitted), strict=True)
        self.member_scores_, self.cv_results_ = mixing.score_members(
            names, weights, [*unseen, mixed, before], dealt
        )
        mixture = self._assemble(fitted, weights, exponent)
        self.verdict_ = mixing.judge(sample, dealt, before, mixed, mixture)
        if self.caution and not self.verdict_.should_calibrate:
            unchanged = Fitted(IdentityCalibrator(), IdentityMap(kind=sample.kind), before)
            return self._assemble([unchanged], np.ones(1))
        if not self.verdict_.should_calibrate:
            change = np.abs(mixture.apply(dealt.forecasts) - before).max(axis=1)
            self.verdict_ = replace(
                self.verdict_,
                largest_change=float(change.max()),
                mean_change=mean(change, dealt.row_weights()),
            )
        return mixture

    def _assemble(self, fitted: list[Fitted], weights: Floats, exponent: float = 1.0) -> MixtureMap:
        """Mixture of the members with nonzero weight."""
        kept = [fitted[m] for m in np.flatnonzero(weights)]
        self.members_ = [each.member for each in kept]
        return MixtureMap(
            kind=kept[0].map.kind,
            members=[each.map for each in kept],
            weights=weights[weights > 0],
            monotone=bool(self.monotone),
            exponent=exponent,
        )

    def _finish(self) -> None:
        attach_fitted(self, self.members_, self.map_.members)

    def _deal(self, sample: Sample) -> CellSample:
        """The sample in folds, and with many rows in cells."""
        if isinstance(sample, CellSample):
            return limit_cells(sample, self.max_cells)
        if len(sample) > self.max_cells and sample.n_units == sample.n_rows:
            return deal_in_cells(sample, int(self.cv), self.max_cells)
        return deal_by_content(sample, int(self.cv))

    def _fit_members(
        self, members: list[Calibrator], dealt: CellSample, report: Announce
    ) -> list[Fitted]:
        """Members that could be fitted."""
        fold = dealt.folds()

        def fit(member: Calibrator) -> Fitted | Exception:
            report(type(member).__name__)
            try:
                return Fitted(member, *member._fit_out_of_fold(dealt, fold))
            except InputError:
                raise
            except (ArithmeticError, ValueError) as error:
                return error

        # Threads: members spend their time in compiled code that releases the interpreter lock.
        results = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(fit)(m) for m in members)
        for member, result in zip(members, results, strict=True):
            if isinstance(result, Exception):
                name = type(member).__name__
                message = f"{name} is left out of the mixture: its fit failed ({result})."
                warnings.warn(message, RuntimeWarning, stacklevel=5)
        fitted = [result for result in results if not isinstance(result, Exception)]
        if not fitted:
            raise InputError("members", None, "all of them failed", "pass other members")
        return fitted

    def _resolve_members(self, n_classes: int, random_state: Any) -> list[Calibrator]:
        check_option("monotone", self.monotone, (True, False))
        members: Any = self.members
        if isinstance(members, str) and members == "auto":
            members = self._default_members(n_classes)
        elif self.monotone:
            fix = 'expected members="auto"'
            raise InputError("monotone", None, "is True, which chooses the members itself", fix)
        elif not isinstance(members, Sequence) or not (
            members and all(isinstance(member, Calibrator) for member in members)
        ):
            fix = 'expected "auto" or a list of calibrators of isoroc, such as [IRPCalibrator()]'
            raise InputError("members", None, f"is {members!r}", fix)
        members = [clone(member) for member in members]
        for member in members:
            if "random_state" in member.get_params() and member.random_state is None:
                member.set_params(random_state=random_state.randint(2**31 - 1))
        return list(members)

    def _default_members(self, n_classes: int) -> list[Calibrator]:
        return default_members(n_classes, monotone=self.monotone)

    @property
    def certificate_(self) -> MonotonicityCertificate | None:
        """The guarantee of a monotone mixture in words."""
        check_is_fitted(self, "map_")
        return self.map_.certificate(len(self.classes_))

    def verify(self, P: Any) -> MonotonicityCheck:
        """Check the guarantee of a monotone mixture on any rows, as in `MonotoneCalibrator`."""
        if not self.monotone:
            raise InputError("monotone", None, "is False, so there is no guarantee to verify")
        values = self._check_new(P)
        kind = self.map_.kind
        X = columns_of(values)
        Q = self.map_.apply(values)
        if Q.shape[1] == 2:
            scores = kind.score(NUMPY, X)
            return check_cyclic(np.hstack([np.zeros_like(scores), scores]), Q)
        z = with_floor(NUMPY, kind.logs(NUMPY, X, LEAST), self.map_.floor)
        return check_cyclic(np.ascontiguousarray(z), Q)


def _weigh(fitted: list[Fitted], dealt: CellSample, before: Floats) -> Floats:
    """Weights of the members in the mixture."""
    row_weights = dealt.row_weights()
    p = score_test(before, dealt)
    group = int(dealt.n_classes > 2)
    prior = np.array([each.member._shares[group] for each in fitted])
    unchanged = _index_of_unchanged(fitted)
    if unchanged is not None:
        n_informative = mixing.informative_rows(before, dealt)
        caution = mixing.Caution.of(dealt.n_classes)
        share = caution.share(prior[unchanged], float(row_weights.sum()), n_informative, p)
        prior[unchanged] = share
    likelihood = mixing.likelihoods([each.unseen for each in fitted], dealt)
    many = int(dealt.n_classes > FEW_CLASSES)
    dropped = np.array([each.member._least_weights[many] for each in fitted])
    return mixing.mixture_weights(
        likelihood, row_weights, prior, unchanged=unchanged, dropped=dropped
    )


def _index_of_unchanged(fitted: list[Fitted]) -> int | None:
    """Index of the uncalibrated forecasts, None if they are not a member."""
    found = (m for m, each in enumerate(fitted) if isinstance(each.member, IdentityCalibrator))
    return next(found, None)


def _mix(
    fitted: list[Fitted], weights: Floats, dealt: CellSample, *, monotone: bool
) -> tuple[Floats, float]:
    """Forecasts of the mixture for unseen rows, and its exponent."""
    mixed = added(weights[m] * fitted[m].unseen for m in np.flatnonzero(weights))
    if monotone or dealt.n_classes == 2:
        return mixed, 1.0
    unchanged = _index_of_unchanged(fitted)
    calibrated = 1.0 if unchanged is None else 1 - float(weights[unchanged])
    exponent = mixing.exponent_of(mixed, dealt, calibrated)
    return smooth.powered(np.ascontiguousarray(mixed), LEAST, exponent), exponent


def default_members(n_classes: int, *, monotone: bool = False) -> list[Calibrator]:
    """The members that "auto" stands for, chosen on the data sets of the page on evidence.

    Limits of the number of classes keep the fit short: see the table of times there.
    """
    if monotone:
        # For more classes, temperature scaling is a gradient in other coordinates: its floor
        # differs.
        two = [TemperatureCalibrator(), IsotonicCalibrator()]
        return [IdentityCalibrator(), MonotoneCalibrator(), *(two if n_classes == 2 else [])]
    if n_classes > 300:  # fits of the others would take too long
        return [IdentityCalibrator(), MatrixCalibrator(), IsotonicCalibrator()]
    members: list[Calibrator] = [IdentityCalibrator(), SplineCalibrator(), MonotoneCalibrator()]
    if n_classes == 2:
        members += [SigmoidCalibrator(), BetaCalibrator()]
    else:
        members.append(TemperatureCalibrator())
    if n_classes > FEW_CLASSES:
        members.append(IsotonicCalibrator())
    if n_classes <= 150:
        members.append(KernelCalibrator())
    return members
