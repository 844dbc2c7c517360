"""All measures of a pair of forecasts: means over all rows, and what is estimated from some."""

from collections import defaultdict
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._core.intervals import (
    Difference,
    Mean,
    Share,
    Statistic,
    by_cluster,
    covariance_of_means,
    half_width,
)
from isoroc._core.losses import EPSILON, log_losses, unseen_loss
from isoroc._core.rows import find_largest
from isoroc._core.types import Floats
from isoroc._evaluation.before_after import Pair, join_pairs
from isoroc._evaluation.catalogue import MANY_CLASSES, MEASURES, Estimates
from isoroc._evaluation.order import effort_for, measure_labels, measure_order, measure_volumes
from isoroc._input import Aspect, Sample, slices
from isoroc._support.table import Table
from isoroc._support.threads import in_threads, one_blas_thread
from isoroc.metrics._estimation.calibration_terms import Parts, RowTerm


class Totals:
    """Losses, accuracy and changed decisions of all rows, added up batch by batch."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.means: dict[tuple[str, str], Mean] = {}
        self.directions: dict[str, Direction] = {}
        #: Rows whose outcome was given probability 0, by stage and for changes.
        self._impossible = defaultdict[str, float](float)
        #: The weight of these rows.
        self._zeros = defaultdict[str, float](float)
        self._classes: Any = 0.0
        #: Changes of shares as if rows in clusters were independent.
        self._rows: dict[str, Mean] = {}

    @property
    def impossible(self) -> dict[str, int]:
        """Number of rows whose outcome was given probability 0, by stage."""
        return {stage: round(self._impossible[stage]) for stage in self.directions}

    def add(self, pair: Pair) -> None:
        """Add rows. A cluster or the parts of a row must not span several batches."""
        n = len(pair.before)
        self.n_rows += pair.n_rows if n else 0
        together = pair.before.clusters is not None or pair.before.parts_of is not None
        for rows in slices(n, n if together else 2**14):  # which fit the cache
            self._add_slice(pair.take(rows))

    def _add_slice(self, pair: Pair) -> None:
        before = pair.before
        clusters = before.clusters
        squares = before.squares if clusters is None else None
        self._classes = self._classes + before.class_weights()
        for (name, stage), values in _terms(pair).items():
            total, means = by_cluster(clusters, before.weights, values)
            self.means.setdefault((name, stage), Mean()).add(means, total, squares)
            measure = MEASURES[name]
            is_share = measure.statistic == "share" and measure.is_difference(stage)
            if is_share and clusters is not None:
                alone = self._rows.setdefault(name, Mean())
                alone.add(values, before.weights, before.squares)
        for stage, sample in pair.series.items():
            self.directions.setdefault(stage, Direction()).add(sample)
        zeros = {stage: sample.forecasts < EPSILON for stage, sample in pair.series.items()}
        if len(zeros) == 2:
            first, second = zeros.values()
            zeros |= {"gained": second & ~first, "lost": first & ~second}
        for name, zero in zeros.items():
            if zero.any():
                is_outcome = zero[np.arange(len(zero)), before.codes]
                self._zeros[name] += float(before.row_weights() @ is_outcome)
                self._impossible[name] += before.count_rows(is_outcome)

    def estimate(self, name: str, stage: str) -> Statistic | Share:
        """Mean over the rows, which may be a share of them."""
        measure = MEASURES[name]
        mean = self.means[name, stage]
        if measure.statistic == "share":
            return self._share_change(name) if measure.is_difference(stage) else mean.share()
        # Rows outside the largest class decide what is known about the variance.
        events = mean.size * (1 - self._classes.max() / self._classes.sum())
        statistic = mean.statistic().of_events(events)
        return self.allow_for_zeros(statistic, stage) if measure.charges_zeros else statistic

    def _share_change(self, name: str) -> Statistic:
        """Difference of two shares of the same rows, of which few may change.

        Half a row is added to the rows that became ones, and to those that became zeros (Agresti
        and Min 2005). Rows that change together count as one.
        """
        mean = self.means[name, "change"]
        rows = self._rows.get(name, mean)
        statistic = mean.statistic()
        alone = rows.statistic().variance
        size = mean.size
        if alone > 0:
            size = max(size, rows.size / max(statistic.variance / alone, 1.0))
        variance = statistic.variance + 1 / (size + 2) ** 2
        return statistic._replace(variance=variance, skewness=0.0)

    def allow_for_zeros(self, loss: Statistic, stage: str) -> Statistic:
        """A log loss with an interval for outcomes of probability 0 that are absent by chance."""
        mean = self.means["log_loss", stage]
        more = stage
        less = ""
        if stage == "change":
            more = "gained"
            less = "lost"

        def unseen(name: str) -> float:
            weight = self._zeros.get(name)
            return 0.0 if weight is None else unseen_loss(Share(weight / mean.weight, mean.size))

        return loss.reaching(loss.value + unseen(more), loss.value - unseen(less))


class Direction:
    """Mean differences between forecasts and outcomes, accumulated over batches of rows."""

    def __init__(self) -> None:
        self._differences: list[Mean] = []
        self._sums: Any = 0.0

    def add(self, sample: Sample) -> None:
        """Add rows. A cluster must not span several batches."""
        P = sample.forecasts
        codes = sample.codes
        clusters = sample.clusters
        weights = sample.row_weights()
        squares = sample.squared_weights()
        single = np.ascontiguousarray(P.T) if P.shape[1] <= MANY_CLASSES else ()
        # The most probable class and, if they are not many, each class.
        events = [find_largest(P), *((p, k) for k, p in enumerate(single))]
        self._differences = self._differences or [Mean() for _ in events]
        weight = weights.sum()
        sums = []
        for mean, (p, k) in zip(self._differences, events, strict=True):
            total, means = by_cluster(clusters, sample.weights, p - (codes == k))
            mean.add(means, total, sample.squares if clusters is None else None)
            # The last is the variance if forecasts are calibrated and rows are independent.
            sums.append([weight, weights @ p, squares @ (p * (1 - p))])
        self._sums = self._sums + np.transpose(sums)

    def table(self, classes: NDArray[Any], confidence: float) -> Table:
        """Mean forecasts, frequencies and differences with intervals."""
        statistics = [mean.statistic() for mean in self._differences]
        difference, variance = np.array([(each.value, each.variance) for each in statistics]).T
        weight, forecast, least = self._sums
        forecast = forecast / weight
        # If no event is among the rows, the sample variance is far too small.
        half = half_width(confidence) * np.sqrt(np.fmax(variance, least / weight**2))
        events = ["top", *map(str, classes.tolist())][: len(forecast)]
        return Table(
            event=np.array(events),
            forecast=forecast,
            observed=forecast - difference,
            difference=difference,
            low=difference - half,
            high=difference + half,
        )


def _terms(pair: Pair) -> dict[tuple[str, str], Floats]:
    """Per-row values of the measures that are their means."""
    terms: dict[tuple[str, str], Floats] = {}
    for name, measure in MEASURES.items():
        if measure.rows is not None:
            samples = pair.samples if measure.of_scores else pair.series
            terms |= {(name, stage): measure.rows(sample) for stage, sample in samples.items()}
            if len(samples) == 2:
                terms[name, "change"] = terms[name, "after"] - terms[name, "before"]
        elif measure.changes is not None and pair.after is not None:
            terms[name, "change"] = measure.changes(pair.before, pair.after)
    return terms


class Collector:
    """Adds up losses and decisions of batches, keeps some rows of many, and measures them."""

    def __init__(self) -> None:
        self.totals = Totals()
        self._kept: list[Pair] = []
        self._share = 1.0
        self._rng = np.random.default_rng(0)

    def add(self, pair: Pair) -> None:
        """Add a batch of rows."""
        with one_blas_thread():
            self.totals.add(pair)
        if self._share < 1:
            pair = self._thin(pair, self._share)
        self._kept.append(pair)
        most = 2 * most_rows(pair.n_classes)
        while len(self._kept) > 1 and sum(len(kept.before) for kept in self._kept) > most:
            self._share /= 2
            self._kept = [self._thin(kept, 0.5) for kept in self._kept]

    def _thin(self, pair: Pair, share: float) -> Pair:
        return pair.take(np.flatnonzero(self._rng.random(len(pair.before)) < share))

    @property
    def kept(self) -> Pair:
        """The rows that were kept."""
        self._kept = [join_pairs(self._kept)]
        return self._kept[0]

    def measure(self) -> tuple[Estimates, list[str]]:
        """All measures of the rows that were added, and how they were computed."""
        kept = self.kept
        most = most_rows(kept.n_classes)
        judged = kept.draw(most)
        estimates: Estimates = {key: self.totals.estimate(*key) for key in self.totals.means}
        notes = []
        if self.totals.n_rows > most:
            some = f"{judged.n_rows:,} of {self.totals.n_rows:,} rows, drawn at random"
            what = f"Calibration errors and ranking are based on {some}"
            notes.append(f"{what}; losses and decisions on all rows.")
        if kept.counted is not None:
            notes.append("The rows were counted: each has the mean forecast of its cell.")
        notes += _calibration(judged, estimates, self.totals.n_rows)
        notes += _order(judged, estimates)
        if kept.multilabel:
            for (name, stage), mean in measure_labels(judged).items():
                estimates[name, stage] = mean
                if MEASURES[name].charges_zeros:
                    estimates[name, stage] = self.totals.allow_for_zeros(mean, stage)
            notes.append("Rows are entries of labels; intervals treat all labels of a row as one.")
        return estimates, notes


def most_rows(n_classes: int, most_values: int = 600_000, least: int = 20_000) -> int:
    """Largest number of rows that are sorted, learned from or resampled."""
    return max(least, most_values // n_classes)


def _calibration(pair: Pair, estimates: Estimates, n_rows: int) -> list[str]:
    """Add calibration errors and the parts of the log loss of all n_rows rows. Return notes."""
    notes: list[str] = []
    K = pair.n_classes
    if pair.before.n_units < 2:  # what is learned about a row comes from other rows
        return notes
    whole = pair if K == 2 else pair.draw(20_000 if K <= MANY_CLASSES else 2000)
    if whole.n_rows < pair.n_rows and pair.series:
        notes.append(f"Calibration of whole forecasts is estimated from {whole.n_rows:,} rows.")
    aspects: dict[str, Aspect] = {"calibration_error": "canonical", "top_calibration_error": "top"}
    if K > MANY_CLASSES:
        many = f"With more than {MANY_CLASSES} classes"
        notes.append(f"{many}, there is no calibration error of single classes.")
    elif K > 2:
        aspects["classwise_calibration_error"] = "classwise"
    pairs = {name: whole if aspect == "canonical" else pair for name, aspect in aspects.items()}
    # Whole forecasts hold the interpreter lock for longer than the others, which come in between.
    tasks = {
        (name, stage): (pairs[name].series[stage], aspects[name])
        for stage in pair.series
        for name in aspects
    }
    learned = dict(zip(tasks, in_threads(_learn, tasks.values()), strict=True))
    losses = {stage: learned["calibration_error", stage][1] for stage in whole.series}
    saved, left = (
        _correct({stage: own[name] for stage, own in losses.items()}, whole, estimates, n_rows)
        for name in ("calibration", "refinement")
    )
    for stage, (term, rows) in saved.items():
        below = min(term.value, 0.0)  # there is no such loss: all of it is refinement
        rest, others = left[stage]
        saved[stage] = term._replace(value=term.value - below), rows
        left[stage] = rest._replace(value=rest.value + below), others
    _put(estimates, whole, "calibration_loss", saved)
    _put(estimates, whole, "refinement_loss", left)
    for name in aspects:
        errors = {stage: learned[name, stage][0] for stage in pair.series}
        _put(estimates, pairs[name], name, errors)
    return notes


def _learn(task: tuple[Sample, Aspect]) -> tuple[RowTerm, dict[str, RowTerm]]:
    """The calibration error of an aspect and, of whole forecasts, the parts of the log loss."""
    parts = Parts.of(*task)
    losses = parts.split_loss() if task[1] == "canonical" else {}
    return parts.absolute(), losses


def _correct(
    terms: dict[str, RowTerm], pair: Pair, estimates: Estimates, n_rows: int
) -> dict[str, RowTerm]:
    """Estimates from some rows, corrected to all rows by regression on the losses."""
    if pair.n_rows >= n_rows:
        return terms
    # The losses of all rows are known, and calibration and refinement must add up to them.
    w = pair.before.row_weights() / pair.before.row_weights().sum()
    losses = np.column_stack([log_losses(s.forecasts, s.codes) for s in pair.series.values()])
    means = w @ losses
    gap = np.array([estimates["log_loss", stage].value for stage in pair.series]) - means
    x = losses - means
    root = np.sqrt(w)[:, None]
    corrected = {}
    for stage, (estimate, rows) in terms.items():
        y = rows - w @ rows
        coefficients = np.linalg.lstsq(root * x, root[:, 0] * y)[0]
        explained = x @ coefficients
        rest = y - explained + sqrt(pair.n_rows / n_rows) * explained
        size = float(w**2 @ y**2)
        factor = float(w**2 @ rest**2) / size if size else 1.0
        value = estimate.value + float(coefficients @ gap)
        variance = factor * estimate.variance
        slope = factor * estimate.slope
        corrected[stage] = estimate._replace(value=value, variance=variance, slope=slope), rest
    return corrected


def _put(estimates: Estimates, pair: Pair, measure: str, terms: dict[str, RowTerm]) -> None:
    """Add estimates of a measure before and after, and of its change."""
    for stage, (estimate, _) in terms.items():
        estimates[measure, stage] = estimate
    if len(terms) == 2:
        first, a = terms["before"]
        second, b = terms["after"]
        total = pair.before.row_weights().sum()
        shares = pair.before.row_weights() / total
        clusters = pair.before.clusters
        covariance = covariance_of_means(a, b, shares, clusters)
        # Estimates correlate less than rows if rows do not explain all variation.
        size = max(covariance[0, 0], first.error**2) * max(covariance[1, 1], second.error**2)
        correlation = float(covariance[0, 1]) / sqrt(size) if size else 0.0
        estimates[measure, "change"] = Difference(first, second, correlation)


def _order(pair: Pair, estimates: Estimates) -> list[str]:
    """Add areas, reversed and tied pairs, and volumes of three to six classes, and return notes."""
    n = pair.n_rows
    K = pair.n_classes
    pair = pair.draw(max(2000, 2_000_000 // K))
    estimates |= measure_order(*pair.both)
    notes = []
    if pair.n_rows < n:
        notes.append(f"Ranking is based on {pair.n_rows:,} of {n:,} rows.")
    if (effort := effort_for(K)) is not None:
        few = pair.draw(effort.rows)
        estimates |= measure_volumes(*few.both)
        if few.n_rows < n:
            notes.append(f"Volumes are based on {few.n_rows:,} of {n:,} rows.")
        if effort.directions is not None:
            how = f"found in {effort.directions} directions"
            notes.append(f"Volumes of {K} classes are lower bounds, {how}.")
    return notes
