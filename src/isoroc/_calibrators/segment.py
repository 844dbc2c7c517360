"""SegmentCalibrator: forecasts corrected within segments of several columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import product
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isoroc._backends import NUMPY, ops_for
from isoroc._calibrators.auto import AutoCalibrator
from isoroc._calibrators.base import Calibrator, FromMap, IdentityCalibrator, attach_fitted
from isoroc._calibrators.mixing import judge, likelihoods, mixture_weights
from isoroc._calibrators.shifts import Regression, SegmentPlaces, held_out, polish
from isoroc._calibrators.temperature import TemperatureCalibrator
from isoroc._calibrators.thresholds import CarriedThresholds
from isoroc._core.simplex import LEAST
from isoroc._core.types import Floats, Ints
from isoroc._core.verdict import Verdict
from isoroc._counts import deal_by_content
from isoroc._input import (
    CellSample,
    InputError,
    Names,
    Sample,
    Segments,
    UnitOption,
    Weighting,
    check_names,
    check_number,
    check_sample,
    check_units,
    rows_by_group,
    slices,
    to_array,
    warn_if_reversed,
    with_segments,
)
from isoroc._input.kinds import LOGITS, columns_of
from isoroc._input.seen import remember_output
from isoroc._input.segments import SegmentColumn, bin_edges, segment_names
from isoroc._maps import IdentityMap, SegmentMap
from isoroc._maps.cyclic import MonotonicityCheck, check_cyclic
from isoroc._maps.modelfile import checks
from isoroc._maps.segments import apply_map, encode_segments
from isoroc._support.seeds import check_random_state
from isoroc._support.table import Table

#: Largest number of rows to learn tables from.
MANY_ROWS = 50_000
#: Largest number of rows for which each fold chooses its own terms.
OWN_TERMS_ROWS = 5_000
#: Columns of `shifts_`.
SHIFTS = "column", "segment", "class", "rows", "shift", "error", "odds"


@dataclass(eq=False, repr=False)
class SegmentCalibrator(Calibrator):
    """Forecasts corrected within segments: a common map, and a table of shifts for each column.

    A model can be calibrated overall and wrong for young customers in the north. This calibrator
    takes columns that describe the rows, categories or numbers, and shifts the calibrated log odds
    by an entry for each segment. Columns without information vanish. The result is mixed with the
    map of all rows and the uncalibrated forecasts, so that few rows change little.

    Parameters
    ----------
    calibrator : calibrator, default=None
        Calibrator of all rows before and after the shifts, by default `AutoCalibrator`.
    categorical : sequence of str, default=None
        Columns of numbers that are categories, such as numbers of sites. Strings and booleans
        always are.
    bins : int, default=20
        Bins of a column of numbers, with about as many rows each.
    max_terms : int, default=15
        Up to this many further tables are added where a score test at the level 1 %, corrected for
        the number tried, shows them: for pairs of columns, scales of the log odds by column, and
        columns of numbers in four times as many bins.
    min_rows : int, default=10
        Categories with fewer rows are not shifted, like unknown ones. At most the 200 most frequent
        categories are kept.
    cv : int, default=5
        Number of folds that estimate the weight of the shifted map.
    random_state : int, RandomState or None, default=0
        Has no effect: a hash of each row chooses its fold.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    columns_ : ndarray of str
        Names of the columns that shift forecasts. `predict_proba` needs them.
    weight_ : float
        Weight of the shifted map.
    uncalibrated_ : float
        Weight of the uncalibrated forecasts. The common map has the rest.
    common_ : calibrator
        The map of all rows.
    shifted_ : calibrator
        The map behind the shifts, which takes logits.
    shifts_ : Table
        For each segment and class: rows of `fit`, shift of the calibrated log odds, its standard
        error, which allows for `clusters`, and how far the odds of the forecasts were off: 50 %
        too low means that outcomes have twice these odds, 100 % too high half of them. Shifts of
        pairs add to the shifts of their columns. The class "scale" has changes of the factor 1 of
        the log odds.

    See Also
    --------
    AutoCalibrator : The default for the two maps.
    isoroc.metrics.segment_report : Where forecasts are wrong.

    Notes
    -----
    The forecast is ``v * p + (1 - v - w) * g(p) + w * h((1 + s) * z + c + d)``, with maps g and h
    of the same calibrator, sums s and c of table entries, a constant d, and z the logarithm of g(p)
    or of p, whichever makes the outcomes likelier. With more than 50,000 rows, g(p) is used. Within
    a combination of segments the forecast keeps the order of two classes if the two maps do. With
    three classes or more and a monotone g, h is temperature scaling, and the forecast is cyclically
    monotone there too.

    Entries of a table have a normal prior around 0, and a random walk prior over neighbouring bins.
    Its precision maximises the evidence (MacKay, Bayesian interpolation, Neural Computation 4,
    1992). Missing and new segments are shifted by 0. Categories are matched by name: the number 3
    and the texts "3" and "3.0" are the same, as are true and 1, unless `fit` had several of them.
    See also Tax et al., MCGrad, KDD 2026.

    Whether people may be treated differently by segment is not for a calibrator to decide.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import SegmentCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.random(4000), rng.integers(18, 80, 4000)
    >>> region = rng.choice(["north", "south"], 4000)
    >>> odds = p / (1 - p) * np.where(region == "north", 1, 0.4)  # fewer events in the south
    >>> y = rng.random(4000) < odds / (1 + odds)
    >>> segments = {"region": region, "age": age}
    >>> calibrator = SegmentCalibrator().fit(p, y, segments=segments)
    >>> new = {"region": ["north", "south", "west"], "age": [20, 40, 60]}
    >>> calibrator.predict_proba([0.5, 0.5, 0.5], new)[:, 1].round(1)
    array([0.5, 0.3, 0.4])
    >>> calibrator.shifts_.select("column", "segment", "odds")
      column  segment           odds
      region    north   35 % too low
      region    south  55 % too high
    """

    calibrator: Calibrator | None = None
    _: KW_ONLY
    categorical: Sequence[str] | None = None
    bins: int = 20
    max_terms: int = 15
    min_rows: int = 10
    cv: int = 5
    random_state: int | np.random.RandomState | None = 0

    _state: ClassVar[dict[str, checks.Check]] = {
        "common_": checks.anything,
        "shifted_": checks.anything,
        "shifts_": checks.table,
    }

    map_: SegmentMap = field(init=False)
    common_: Calibrator = field(init=False)
    shifted_: Calibrator = field(init=False)
    columns_ = FromMap()
    weight_ = FromMap()
    uncalibrated_ = FromMap()

    @property
    def _uses_folds(self) -> bool:  # type: ignore[override]
        return self._pattern()._uses_folds

    def _pattern(self) -> Calibrator:
        """The unfitted calibrator of the maps."""
        given: Any = self.calibrator
        if given is None:
            return AutoCalibrator(random_state=0)
        if not isinstance(given, Calibrator) or isinstance(given, SegmentCalibrator):
            problem = f"is {given!r}"
            raise InputError("calibrator", None, problem, "expected another calibrator of isoroc")
        return clone(given)  # type: ignore[no-any-return]

    def fit(
        self,
        P: Any,
        y: Any,
        *,
        segments: Any = None,
        labels: Any = None,
        sample_weight: Any = None,
        weighting: Weighting = "importance",
        clusters: Any = None,
        unit: UnitOption = "auto",
    ) -> Self:
        """Learn the two maps and the tables.

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts: one column of probabilities per class, shape (n, K), or, for two classes, n
            scores that increase with the probability of the second class.
        y : array-like of shape (n,) or (n, K)
            The label that came true for each row, or the shares of the classes (soft labels).
        segments : dataframe, mapping of names to columns, or array-like of shape (n,)
            Strings, booleans or numbers that describe the rows. None leaves the common map only.
        labels, sample_weight, weighting, clusters, unit
            As in `AutoCalibrator.fit`.

        Returns
        -------
        self
        """
        sample = check_sample(
            P, y, sample_weight, labels, clusters=clusters, unit=unit, clip=True, advice="pass"
        )
        check_units(sample, unit)
        warn_if_reversed(sample)
        if segments is not None:
            given = self.categorical
            names = () if given is None else check_names("categorical", given)
            sample = with_segments(sample, segments, categorical=names)
        return self._fit_validated(sample, weighting, P)

    def _fit(self, sample: Sample) -> SegmentMap:
        for name, least in {"bins": 2, "max_terms": 0, "min_rows": 1, "cv": 2}.items():
            check_number(name, getattr(self, name), int, minimum=least)
        self.common_ = self._pattern()
        self.shifted_ = IdentityCalibrator()
        self.shifts_ = Table.from_rows([], *SHIFTS)
        names, levels, cuts = self._make_grid(sample.segments)
        base = SegmentMap(
            kind=sample.kind,
            common=self.common_._fit(sample),
            shifted=IdentityMap(kind=LOGITS),
            weight=0.0,
            columns=np.array(names, dtype=np.str_),
            levels=levels,
            cuts=cuts,
            pairs=np.empty((0, 2), np.int64),
            tables=[],
            offset=np.zeros(sample.n_classes),
        )
        fitted = base if sample.segments is None else self._learn(sample, base)
        return fitted.pruned()

    def _make_grid(self, segments: Segments | None) -> tuple[list[str], list[Names], list[Floats]]:
        """Names, levels and edges of bins of the columns that have any."""
        names: list[str] = []
        levels: list[Names] = []
        cuts: list[Floats] = []
        for name, column in ({} if segments is None else segments.columns).items():
            check_distinct(name, column)
            if column.levels is None:
                if np.isfinite(column.values).any():
                    names.append(name)
                    levels.append(np.array([], dtype=np.str_))
                    cuts.append(bin_edges(column.values, 4 * self.bins))
                continue
            counts = np.bincount(column.values[column.values >= 0], minlength=len(column.levels))
            frequent = np.argsort(-counts, kind="stable")[:200]
            kept = np.sort(frequent[counts[frequent] >= self.min_rows])
            if len(kept):
                names.append(name)
                levels.append(column.levels[kept])
                cuts.append(np.empty(0))
            elif len(column.levels):
                problem = f"no category of the column {name!r} has {self.min_rows} rows"
                fix = "group its categories, such as dates by month, or leave it out"
                warnings.warn(f"segments: {problem}; {fix}.", UserWarning, stacklevel=6)
        return names, levels, cuts

    def _learn(self, sample: Sample, base: SegmentMap) -> SegmentMap:
        """The map with tables, if held-out rows support them.

        Tables are learned from the dealt rows (`_try`), in two ways where rows are few: before the
        common map or behind it. The likelier one is mixed with the common map and the uncalibrated
        forecasts, by weights that maximise the likelihood of rows held out from the tables. In the
        end, the tables are fitted again to all rows, with the precisions that were learned.
        """
        check_random_state(self.random_state)
        dealt = deal_by_content(sample.draw(MANY_ROWS), int(self.cv))
        # The common map may be far from linear, or lose what differs by segment: with many rows
        # the first is the greater danger. A composition of monotone maps of three classes or more
        # need not be monotone.
        tried = [base] if len(sample) > len(dealt) else [base, replace(base, behind=False)]
        if base.certificate_of_common is not None:
            tried = [replace(base, behind=False)]
        candidates = [c for fitted in tried if (c := self._try(dealt, fitted)) is not None]
        Q = [IdentityMap(kind=base.kind).apply(dealt.forecasts), base.common.apply(dealt.forecasts)]
        likelihood = likelihoods([*Q, *(c[-1] for c in candidates)], dealt).clip(min=LEAST)
        weights = dealt.row_weights()
        # Of the uncalibrated forecasts, the common map and the shifts: see docs/segments.md.
        prior = np.array([8.0, 4.0])
        if candidates:
            best = int(np.argmax(weights @ np.log(likelihood[:, 2:])))
            likelihood = likelihood[:, [0, 1, 2 + best]]
            prior = np.append(prior, 1.0)
        # The maps have seen the rows, so differences of their likelihoods count half.
        shares = mixture_weights(
            likelihood, weights / 2, prior, unchanged=0, dropped=0.05, full=0.15
        ).tolist()
        if not candidates or not shares[2]:
            return replace(base, uncalibrated=shares[0])
        fitted, model, self.shifted_, _ = candidates[best]
        fitted = replace(fitted, uncalibrated=shares[0], weight=shares[2])
        counts = [term.sums() for term in model.tables]
        total = float(sample.class_weights().sum())
        if len(sample) > len(dealt):

            def batches() -> Iterator[Regression]:  # arrays of all rows would take much memory
                return (_regression(sample.take(rows), fitted) for rows in slices(len(sample)))

            counts = polish(model, batches, total)
        errors = model.errors(total, dealt.clusters)
        self.shifts_ = _describe(fitted, model, counts, errors, sample.classes)
        return with_tables(fitted, model)

    def _try(
        self, dealt: CellSample, base: SegmentMap
    ) -> tuple[SegmentMap, Regression, Calibrator, Floats] | None:
        """The map without its tables, their regression, the second calibrator and its forecasts.

        The second map is fitted to shifts that were learned from other rows. None without tables.
        """
        model = _regression(dealt, base, int(self.bins))
        model.learn(self.max_terms)
        if not model.tables:
            return None
        fold = dealt.folds()
        segments: Any = dealt.segments
        Q = base.common.apply(dealt.forecasts)
        logits = np.empty_like(Q)
        for f, part in enumerate(held_out(model, fold, self.max_terms, OWN_TERMS_ROWS)):
            rows = np.flatnonzero(fold == f)
            logits[rows] = with_tables(base, part).shifted_logits(
                dealt.forecasts[rows], Q[rows], segments[rows]
            )
        unseen = Sample(
            logits,
            dealt.codes,
            dealt.weights,
            dealt.classes,
            "logit",
            squares=dealt.squares,
            clusters=dealt.clusters,
        )
        second = self._pattern()
        if base.certificate_of_common is not None:
            second = TemperatureCalibrator(floor=1e-300)
        shifted = second._fit(unseen)
        return replace(base, shifted=shifted), model, second, shifted.apply(logits)

    def _finish(self) -> None:
        # The maps are calibrators of their own, to look at, to apply and to export.
        attach_fitted(self, [self.common_], [self.map_.common])
        of_logits: Any = SimpleNamespace(
            classes_=self.classes_,
            n_features_in_=len(self.classes_),
            summary_={name: value for name, value in self.summary_.items() if name != "range"},
        )
        attach_fitted(of_logits, [self.shifted_], [self.map_.shifted])

    def predict_proba(self, P: Any, segments: Any = None) -> Floats:
        """Calibrated forecasts, shape (n, K), one column per class of `classes_`. Rows sum to 1.

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts as in `fit`.
        segments : dataframe, mapping of names to columns, or array-like, default=None
            A table with the columns `columns_`, if there are any. Others are ignored.
        """
        ops = ops_for(P)
        values = self._check_new(P, ops)  # raises an error if there is no map yet
        Q = apply_map(self.map_, values, segments)
        remember_output(Q, self.summary_)
        return ops.like(P, Q)  # type: ignore[no-any-return]

    def predict(self, P: Any, segments: Any = None) -> NDArray[Any]:
        """Label with the largest calibrated probability, the first of `classes_` on ties."""
        best = to_array(self.predict_proba(P, segments), name="P").argmax(axis=1)
        return np.asarray(self.classes_[best])

    def encode_segments(self, segments: Any) -> Floats:
        """Segments as numbers, shape (n, J), as the module of `isoroc.export.to_torch` takes them.

        NaN stands for missing values and categories that have no entry.
        """
        check_is_fitted(self, "map_")
        return encode_segments(self.map_, segments)

    def count_unknown(self, segments: Any) -> Table:
        """For each column, the rows that are shifted by 0: missing values, new categories."""
        unknown = np.isnan(self.encode_segments(segments)).sum(axis=0)
        return Table(column=self.map_.columns, rows=unknown)

    def verify(self, P: Any, segments: Any = None) -> MonotonicityCheck:
        """Check on any rows that the order of forecasts is kept within combinations of segments.

        Two classes: increasing in the forecast. More: cyclically monotone in the coordinates of
        the common map, as `MonotoneCalibrator` and ``AutoCalibrator(monotone=True)`` guarantee.
        """
        Q = self.predict_proba(P, segments)
        fitted = self.map_
        X = columns_of(self._check_new(P))
        if Q.shape[1] == 2:
            scores = fitted.kind.score(NUMPY, X)
            z = np.hstack([np.zeros_like(scores), scores])
        elif fitted.certificate_of_common is not None:
            z = np.ascontiguousarray(fitted.coordinates(NUMPY, X))
        else:
            fix = "pass MonotoneCalibrator() or AutoCalibrator(monotone=True)"
            raise InputError("calibrator", None, "gives no guarantee to verify", fix)
        code = np.zeros(len(Q), np.intp)
        if len(fitted.columns):
            places = places_of(fitted, self.encode_segments(segments)).places
            code = np.unique(np.column_stack(places), axis=0, return_inverse=True)[1].ravel()
        results = [check_cyclic(z[rows], Q[rows]) for _, rows in rows_by_group(code)]
        n_rows = sum(each.rows for each in results)
        exact = all(each.exact for each in results)
        return MonotonicityCheck(all(results), n_rows, exact)

    def carry_over(self, thresholds: Any, P: Any = None) -> CarriedThresholds:
        """Thresholds of the common map, if there were no segments in `fit`: see `Calibrator`."""
        check_is_fitted(self, "map_")
        if len(self.map_.columns):
            fix = "thresholds differ by segment; common_ is the common map"
            raise InputError("segments", None, "shift the forecasts", fix)
        return super().carry_over(thresholds, P)


def judge_unseen(calibrator: SegmentCalibrator, sample: Sample, weighting: Weighting) -> Verdict:
    """Whether the forecasts of a segment calibrator are better than uncalibrated ones.

    The calibrator is fitted again to other rows than those that it forecasts: in three folds, or in
    two if rows are many.
    """
    counted = sample.positive().effective(weighting).draw(MANY_ROWS)
    n_folds = 3 if len(counted) <= OWN_TERMS_ROWS else 2
    dealt = deal_by_content(counted, n_folds)
    fold = dealt.folds()
    rows = dealt.without_folds()
    after = np.empty((len(rows), rows.n_classes))
    for f in range(fold.max() + 1):
        inside = fold == f
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the fit to all rows has warned
            fitted = clone(calibrator)._fit(rows.take(~inside))
        part = rows.take(inside)
        after[inside] = apply_map(fitted, part.forecasts, part.segments)
    before = IdentityMap(kind=rows.kind).apply(rows.forecasts)
    return judge(dealt, dealt, before, after, calibrator.map_)


def _regression(sample: Sample, base: SegmentMap, bins: int = 0) -> Regression:
    """Rows of a sample, with the log odds or centred logarithms that are shifted."""
    if base.behind:
        z = np.log(np.maximum(base.common.apply(sample.forecasts), LEAST))
    else:
        # Certain forecasts would decide the slope. So probabilities below 1 / (2 n) count as that:
        # n rows of this probability expect half an outcome.
        z = base.coordinates(NUMPY, columns_of(sample.forecasts))
        z = np.maximum(z, np.log(0.5 / len(sample)))
    u = z[:, 1:] - z[:, :1] if z.shape[1] == 2 else z - z.mean(axis=1, keepdims=True)
    segments: Any = sample.segments
    columns = places_of(base, base.codes(segments), bins)
    return Regression(u, sample.codes.astype(np.intp), sample.row_weights(), columns)


def places_of(base: SegmentMap, codes: Floats, bins: int = 0) -> SegmentPlaces:
    """Index of the segment in each column, or the number of segments if it is unknown."""
    places = []
    sizes = base.sizes
    for j, size in enumerate(sizes):
        segment, known = base.locate(NUMPY, j, codes[:, [j]])
        places.append(np.where(known, segment, size)[:, 0])
    return SegmentPlaces(places, sizes, [not len(levels) for levels in base.levels], bins)


def with_tables(base: SegmentMap, model: Regression) -> SegmentMap:
    """The map with the tables of a regression. The second map learns the common slope.

    So shifts are divided by that slope: `SegmentMap` has none of its own. A slope below 0.2 would
    make them much larger than the log odds that they are added to, and counts as 0.2.
    """
    intercept = model.terms[0].values[0]
    factor = 1 + float(model.terms[1].values[0, 0])
    sizes = base.sizes
    K = len(base.offset)
    slope = max(factor, 0.2)
    tables = []
    for term in model.tables:
        places = np.indices([sizes[j] for j in term.columns]).reshape(len(term.columns), -1)
        codes = term.codes(dict(zip(term.columns, places, strict=True)), places.shape[1])
        table = np.zeros((len(codes), K + 1))
        last = K + 1 if term.scales else K
        table[:, last - term.values.shape[1] : last] = term.entries(codes) / slope
        tables.append(table)
    pairs = np.array([(*term.columns, -1)[:2] for term in model.tables], dtype=np.int64)
    offset = np.append(np.zeros(K - model.n_free), intercept / slope)
    return replace(base, pairs=pairs.reshape(-1, 2), tables=tables, offset=offset)


def check_distinct(name: str, column: SegmentColumn) -> None:
    """Raise an error for a column that identifies single rows.

    Most of its categories then have one row, or its numbers are whole, all different and nearly
    without gaps, such as a counter.
    """
    known = column.values if column.levels is not None else column.values[~np.isnan(column.values)]
    n = len(known)
    if n < 50:
        return
    if column.levels is not None:
        identifies = len(column.levels) > n / 2
    else:
        whole = (known == np.floor(known)).all() and np.ptp(known) < 1.01 * n
        identifies = bool(whole) and len(np.unique(known)) == n
    if identifies:
        problem = "has another value in almost every row, so it identifies rows, not segments"
        raise InputError(f"segments[{name!r}]", None, problem, "leave the column out")


def _describe(
    base: SegmentMap, model: Regression, counts: list[Floats], errors: list[Floats], classes: Any
) -> Table:
    """The table `shifts_`, given rows and errors of entries. Warns of columns that may leak."""
    lines = []
    for term, of_term, rows in zip(model.tables, errors, counts, strict=True):
        parts = zip(term.columns, term.merged, strict=True)
        segments = [_segment_names(base, j, merged) for j, merged in parts]
        name = " \u00d7 ".join(str(base.columns[j]) for j in term.columns)
        centred = model.n_free > 1 and not term.scales
        values = term.values - (term.values.mean(axis=1, keepdims=True) if centred else 0.0)
        # A shift of 8 multiplies odds by 3,000: the column may be derived from the outcome.
        if not term.scales and (largest := float(np.abs(values).max())) > 8:
            problem = f"the column {name!r} shifts log odds by up to {largest:.1f}"
            fix = "leave it out if it is derived from the outcome"
            warnings.warn(f"segments: {problem}; {fix}.", UserWarning, stacklevel=6)
        labels = ["scale"] if term.scales else classes[-model.n_free :].tolist()
        for i, segment in enumerate(product(*segments)):
            for label, c, error in zip(labels, values[i], of_term[i], strict=True):
                off = f"{abs(np.expm1(-c)):.0%} too {'low' if c > 0 else 'high'}".replace("%", " %")
                about = str(label), int(rows[i]), float(c), float(error)
                lines.append((name, ", ".join(segment), *about, "" if term.scales else off))
    return Table.from_rows(lines, *SHIFTS)


def _segment_names(base: SegmentMap, j: int, merged: Ints) -> list[str]:
    """Names of the segments of a column in a term, where some bins may be one."""
    if len(base.levels[j]):
        named = dict(zip(merged.tolist(), base.levels[j].tolist(), strict=False))
        return [named[m] for m in range(int(merged[-1]))]
    changes = np.flatnonzero(np.diff(merged[:-1]))
    return segment_names(base.levels[j], base.cuts[j][changes])
