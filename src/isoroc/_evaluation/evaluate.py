"""`evaluate`: forecasts before and after calibration, from arrays, counts or batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isoroc._counts import Counts
from isoroc._evaluation.before_after import (
    Pair,
    calibrated,
    make_pair,
    pair_of_counts,
    rows_of_fit,
)
from isoroc._evaluation.evaluation import Evaluation, tabulate
from isoroc._evaluation.judgement import judge_rows
from isoroc._evaluation.measures import Collector, most_rows
from isoroc._input import (
    InputError,
    Sample,
    UnitOption,
    check_after,
    check_confidence,
    check_labels,
    check_sample,
    in_order,
    warn_if_reversed,
    with_segments,
)
from isoroc._support.threads import one_blas_thread
from isoroc.metrics._segments import report_on


class Evaluate:
    """Measure forecasts before and after calibration, with intervals and a verdict.

    Use rows that the calibrator was not fitted on. Others are recognised, and the verdict is then
    about the forecasts before calibration alone. ``evaluate.from_counts`` takes counts, and
    ``evaluate.from_batches`` rows that do not fit into memory.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts before calibration. For two classes this may also be the probability of the second
        class, or scores that increase with it.
    after : array-like of shape (n, K) or (n,), or calibrator, default=None
        Forecasts of the same rows after calibration, or a fitted calibrator that makes them.
    segments : dataframe, mapping of names to columns, or array-like of shape (n,), default=None
        Columns that describe the rows. `Evaluation.segments` then has the tables of
        `isoroc.metrics.segment_report`. A `SegmentCalibrator` in `after` needs them.
    clusters : array-like of shape (n,), default=None
        Cluster of each row, such as the patient of a visit, if rows of a cluster depend on each
        other. At least 60 are recommended.
    multilabel : bool, default=False
        Whether labels do not exclude each other: `y_true` holds 0, 1 or NaN (missing) and `y_prob`
        a forecast for each row and label, both of shape (n, L). Figures are micro averages, over
        all entries, or "macro" averages, over the labels. `Evaluation.segments` has the worst
        labels first. Intervals treat a row with all of its labels as one cluster.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, sorted by default. With `multilabel`, the names of
        the labels.
    unit : {"auto", "probability", "logit"}, default="auto"
        What the numbers in `y_prob` are. "auto": columns are probabilities, and scores are log odds
        if one lies outside [0, 1].
    confidence : float, default=0.95
        Probability that an interval covers the true value. The verdict does not depend on it.

    Returns
    -------
    Evaluation

    Notes
    -----
    The measures are:

    log_loss, brier_score_loss
        Mean negative log probability of the outcome, in nats, and mean squared distance from it.
        `Evaluation.impossible` counts outcomes of probability 0, which cost 36.04 nats each.
    calibration_loss, refinement_loss
        The part of the log loss that calibration could save, at least 0, and the rest.
    calibration_error, classwise_calibration_error, top_calibration_error
        Mean distance between forecasts and observed rates: of whole forecasts, of the probability
        of each class (three classes or more), and of the largest probability. If errors change
        their sign several times, they cannot be told from noise. Then estimates are too low, and
        intervals cover less than they promise. See `isoroc.metrics.calibration_error`.
    accuracy, decisions_changed
        Share of rows for which the most probable class came true, and for which it changed. Log
        odds above 0 decide for the second class.
    auc, or auc_one_vs_rest and auc_one_vs_one
        Area under the ROC curve of two classes. For more, the means over each class against all
        others, and over pairs of classes by the scores of either (Hand and Till 2001).
    vus
        `isoroc.metrics.volume_under_surface` of three to six classes. It is exact for three, from
        at most 2,000 rows. For more it is a lower bound from at most 1,000 rows and 300, 200 or
        150 directions. It has no interval, but `isoroc.metrics.bootstrap` makes one.
    macro_log_loss, macro_auc
        Means over several labels. Labels with outcomes of one kind only have no area.
    pairs_reversed, pairs_tied
        Shares of pairs of rows for which the order by the score of a class is reversed, or becomes
        a tie, pooled over the classes. Pairs that were tied before do not count.

    With many rows, only losses, accuracy and changed decisions are based on all of them. The other
    measures use some of the rows, and `Evaluation.notes` says how many.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import evaluate
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p**2
    >>> result = evaluate(y, p, after=np.ceil(10 * p**2) / 10 - 0.05)  # a step function
    >>> print(result.verdict)
    calibrate: log loss 0.5031 before, 0.4410 after (95 % interval of the change -0.0863 to -0.0364)
    >>> result["decisions_changed", "change"], result.decision
    (0.211, 'calibrate')
    """

    def __call__(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        after: Any = None,
        *,
        segments: Any = None,
        clusters: ArrayLike | None = None,
        multilabel: bool = False,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        unit: UnitOption = "auto",
        confidence: float = 0.95,
    ) -> Evaluation:
        """Evaluate arrays."""
        make = pair_of_labels if multilabel else pair_of_arrays
        pair = make(
            y_true,
            y_prob,
            after,
            sample_weight,
            labels,
            unit=unit,
            segments=segments,
            clusters=clusters,
        )
        return evaluate_pairs([pair], confidence)

    def from_counts(
        self, counts: Counts, *, calibrator: Any = None, confidence: float = 0.95
    ) -> Evaluation:
        """Evaluate counts of any number of rows.

        Parameters
        ----------
        counts : Counts
            Counts of rows that the calibrator was not fitted on.
        calibrator : calibrator, default=None
            Fitted calibrator that makes the forecasts after calibration.
        confidence : float, default=0.95
            Probability that an interval covers the true value.

        Examples
        --------
        >>> from isoroc import Counts, evaluate
        >>> evaluate.from_counts(Counts.from_arrays([0.2, 0.7, 0.6, 0.4], [0, 1, 1, 0])).n_rows
        4
        """
        return evaluate_pairs([pair_of_counts(counts, calibrator)], confidence)

    def from_batches(
        self,
        batches: Iterable[Sequence[Any]],
        *,
        labels: ArrayLike,
        calibrator: Any = None,
        unit: UnitOption = "probability",
        confidence: float = 0.95,
    ) -> Evaluation:
        """Evaluate batches of rows without keeping all of them.

        Parameters
        ----------
        batches : iterable
            Tuples ``(y_true, y_prob)``, ``(y_true, y_prob, after)`` or
            ``(y_true, y_prob, after, sample_weight)``.
        labels : array-like of shape (K,)
            All classes, in the order of the columns: a batch may lack some.
        calibrator : calibrator, default=None
            Fitted calibrator that makes the forecasts after calibration of batches without any.
        unit : {"probability", "logit"}, default="probability"
            What the numbers in `y_prob` are. It is not inferred, as batches may differ.
        confidence : float, default=0.95
            Probability that an interval covers the true value.

        Examples
        --------
        >>> import numpy as np
        >>> from isoroc import evaluate
        >>> rng = np.random.default_rng(0)
        >>> p = rng.random((4, 250))
        >>> y = rng.random((4, 250)) < p**2
        >>> evaluate.from_batches(zip(y, p), labels=[False, True]).decision
        'calibrate'
        """
        return evaluate_pairs(_pairs_of_batches(batches, calibrator, labels, unit), confidence)


evaluate = Evaluate()


def pair_of_arrays(
    y_true: Any,
    y_prob: Any,
    after: Any = None,
    sample_weight: Any = None,
    labels: Any = None,
    *,
    unit: UnitOption = "auto",
    segments: Any = None,
    clusters: Any = None,
) -> Pair:
    """Pair of the arrays that users pass."""
    before = check_sample(
        y_prob,
        y_true,
        sample_weight,
        labels,
        clusters=clusters,
        unit=unit,
        advice="pass",
        name="y_prob",
        label_name="y_true",
    )
    if labels is None:
        warn_if_reversed(before, name="y_prob")
    if segments is not None:
        before = with_segments(before, segments, of="y_prob")
    return _paired(before, after, y_prob, segments)


def pair_of_labels(
    y_true: Any,
    y_prob: Any,
    after: Any,
    sample_weight: Any,
    labels: Any,
    *,
    unit: UnitOption = "auto",
    segments: Any = None,
    clusters: Any = None,
) -> Pair:
    """Pair of the entries of matrices of labels that do not exclude each other."""
    if segments is not None:
        raise InputError("segments", None, "are the labels if multilabel=True", "leave them out")
    checked = check_labels(
        y_prob,
        y_true,
        sample_weight,
        labels,
        unit=unit,
        clusters=clusters,
        name="y_prob",
        label_name="y_true",
    )
    second = None
    fitted = None
    if after is not None:
        fitted = rows_of_fit(after)
        names = [str(name) for name in checked.names.tolist()]
        Q = after
        if hasattr(after, "predict_proba"):
            Q = calibrated(after, y_prob)
            known = [str(name) for name in after.classes_]
            Q = Q[:, [known.index(name) for name in names]] if {*known} == {*names} else Q
        again = check_labels(
            in_order(Q, names),
            checked.known,
            clusters=clusters,
            unit="probability",
            name="after",
            label_name="y_true",
        )
        entries = np.ascontiguousarray(again.forecasts[checked.known])
        second = replace(checked.sample, forecasts=entries, unit="probability")
    return replace(make_pair(checked.sample, second, fitted=fitted), multilabel=True)


def evaluate_pairs(pairs: Iterable[Pair], confidence: float = 0.95) -> Evaluation:
    """Evaluation of rows in batches, and of the segments of the rows."""
    check_confidence(confidence)
    collector = Collector()
    for pair in pairs:
        collector.add(pair)
    if not collector.totals.n_rows:
        raise InputError("y_true", None, "no rows", "at least one is needed")
    return conclude(collector, confidence)


@one_blas_thread()
def conclude(collector: Collector, confidence: float) -> Evaluation:
    """Evaluation of the rows that were collected."""
    estimates, notes = collector.measure()
    kept = collector.kept
    totals = collector.totals
    paired = kept.after is not None
    K = kept.n_classes
    measures = tabulate(estimates, confidence, paired=paired, n_classes=K)
    classes = kept.before.classes
    segments = {}
    directions = {stage: d.table(classes, confidence) for stage, d in totals.directions.items()}
    if (columns := kept.before.segments) is not None:
        for stage, sample in kept.series.items():
            rows = replace(sample, segments=columns)
            segments[stage] = report_on(rows, confidence=confidence)
    impossible = totals.impossible
    judged = kept.draw(most_rows(K))
    verdict, miscalibrated, seen = judge_rows(judged, estimates, totals.n_rows, impossible)
    return Evaluation(
        measures,
        totals.n_rows,
        classes,
        confidence,
        impossible,
        kept,
        verdict,
        notes=tuple(notes),
        segments=segments,
        directions=directions,
        miscalibrated=miscalibrated,
        seen=seen,
    )


def _pairs_of_batches(
    batches: Iterable[Sequence[Any]], calibrator: Any, labels: Any, unit: UnitOption
) -> Iterator[Pair]:
    start = 0
    for y_true, y_prob, *rest in batches:
        after, weight = (*rest, None, None)[:2]
        before = check_sample(
            y_prob,
            y_true,
            weight,
            labels,
            unit=unit,
            advice="pass",
            name="y_prob",
            label_name="y_true",
            start=start,
        )
        start += before.n_rows
        yield _paired(before, after if rest else calibrator, y_prob)


def _paired(before: Sample, after: Any, y_prob: Any, segments: Any = None) -> Pair:
    """Pair with the second forecasts, which are given or made by a calibrator."""
    if after is None:
        return make_pair(before)
    Q = calibrated(after, y_prob, segments) if hasattr(after, "predict_proba") else after
    second = check_after(Q, before)
    return make_pair(before, second, fitted=rows_of_fit(after))
