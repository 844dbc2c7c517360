"""Regression of outcomes on segments: tables of shifts and scales, their precisions by evidence.

The model is an additive logistic (softmax) regression. A row with log odds u before has::

    (1 + slope + sum of scales) * u + intercept + sum of shifts

Each table of shifts or scales has one entry for each segment of a column, or of a pair of columns,
and adds the entry of the row's segment. Entries have a normal prior around 0. For categories they
are independent. For bins of a number they follow a random walk: neighbours are close.

Tables are chosen forwards. There is one for each column to begin with. The others are compared by
score tests, which need no fit of the larger model: if a table had no effect, the residuals of the
rows of each segment would sum to about 0, with the variance that the forecasts imply. So the sum of
``(sum of residuals)**2 / variance`` over the segments is chi-squared. Tables that the rows do not
support vanish later, when the evidence makes their precision large (`Regression.tune`).

For three classes or more, one Newton step over all parameters would need a matrix with K times as
many rows and columns as for one class. Steps and covariances take the classes one by one (`Block`)
and divide by what their softmax has in common: with K equally likely classes, the K shifts of a
segment have K - 1 degrees of freedom, so each counts as (K - 1) / K.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, hstack
from scipy.special import chdtrc, expit

from isoroc._calibrators.precisions import updated_precision
from isoroc._core.newton import newton
from isoroc._core.smooth import power_loss, softmax
from isoroc._core.types import Floats, Ints


class SegmentPlaces(NamedTuple):
    """Segment index of each row in each column, or the number of segments if it is unknown."""

    places: list[Ints]
    sizes: list[int]
    numeric: list[bool]
    bins: int = 0  # initial bins of a numeric column, 0 for all: score tests may add more


@dataclass(eq=False)
class Term:
    """A table with one row for each segment of a column, or of a pair of columns.

    A row holds the shift of each class or, if `scales`, a number to add to the scale of all.
    `merged` gives the segment that each place of a column belongs to.
    """

    columns: tuple[int, ...]
    merged: list[Ints]
    scales: bool
    penalty: Floats  # shape (size, size)
    values: Floats  # shape (size, F)
    precision: float = 10.0  # a standard deviation of 0.3 to begin with, then by evidence
    n_known: float = 0.0  # effective number of entries that the rows determine
    where: Ints = field(init=False)  # row of the table for each row of a regression

    @property
    def size(self) -> int:
        """Number of rows of the table."""
        return len(self.values)

    def codes(self, places: Sequence[Ints] | Mapping[int, Ints], n_rows: int) -> Ints:
        """Row of the table for places of all columns, `size` where one is unknown."""
        codes = np.zeros(n_rows, dtype=np.intp)
        known = np.ones(n_rows, dtype=bool)
        for j, merged in zip(self.columns, self.merged, strict=True):
            segments = merged[places[j]]
            codes = codes * merged[-1] + segments
            known = known & (segments < merged[-1])
        return np.where(known, codes, self.size)

    def entries(self, codes: Ints) -> Floats:
        """Entries of rows of the table, 0 where they are unknown."""
        return np.vstack([self.values, np.zeros(self.values.shape[1])]).take(codes, axis=0)

    def sums(self, values: Floats | None = None) -> NDArray[Any]:
        """Sums of values, or numbers, of the rows that each entry applies to."""
        return np.bincount(self.where, values, self.size + 1)[: self.size]

    def square(self) -> float:
        """Sum of the squared entries under the prior of precision 1."""
        return float((self.values * (self.penalty @ self.values)).sum())


def make_term(
    columns: SegmentPlaces,
    which: tuple[int, ...],
    n_free: int,
    *,
    scales: bool = False,
    most: int = 0,
) -> Term:
    """A table of zeros. Each column has at most `most` segments, unless that is 0."""
    merged = [_merge(columns, j, most) for j in which]
    size = int(np.prod([segments[-1] for segments in merged]))
    penalty = np.eye(size)
    if len(which) == 1 and columns.numeric[which[0]]:
        # Entries of neighbouring bins are close to each other: a random walk. Steps say nothing of
        # a shift of all entries. It costs as much as one step of the same size.
        steps = np.diff(penalty, axis=0)
        penalty = steps.T @ steps + penalty / size
    return Term(which, merged, scales, penalty, np.zeros((size, 1 if scales else n_free)))


def _merge(columns: SegmentPlaces, j: int, most: int) -> Ints:
    """Segment of each place of a column: equal parts of the bins, or the most frequent levels."""
    size = columns.sizes[j]
    if not most or size <= most:
        return np.arange(size + 1)
    counts = np.bincount(columns.places[j], minlength=size + 1)[:size]
    if columns.numeric[j]:
        share = (np.cumsum(counts) - counts / 2) / max(counts.sum(), 1)
        parts = np.unique(np.floor(most * share), return_inverse=True)[1]
        return np.append(parts, parts.max() + 1)
    merged = np.full(size + 1, most)
    merged[np.argsort(-counts, kind="stable")[:most]] = np.arange(most)
    return merged


class Block(NamedTuple):
    """Parameters that are updated together: all, all of one class, or the scales of all classes."""

    terms: list[Term]
    column: int  # of the tables
    factor: float

    def spans(self) -> Iterator[tuple[Term, slice]]:
        """Each table, and where its parameters are."""
        end = 0
        for term in self.terms:
            start = end
            end = end + term.size
            yield term, slice(start, end)

    def precisions(self) -> Floats:
        """Precision matrix of the prior."""
        spans = list(self.spans())
        size = spans[-1][1].stop
        precisions = np.zeros((size, size))
        for term, span in spans:
            precisions[span, span] = term.precision * term.penalty
        return precisions


class Tried(NamedTuple):
    """Parameters of a regression, and its loss there."""

    theta: Floats
    value: float


@dataclass(eq=False)
class Regression:
    """Log odds ``(1 + scales) * u + shifts`` of rows.

    For two classes u has one column, the log odds of the second class. For more it has one for each
    class, and parameters of different classes are updated as if they did not depend on each other.
    Steps are exact if all classes are equally likely. The first two terms have one entry for all
    rows: the intercept and the slope.
    """

    u: Floats  # shape (n, F)
    codes: Ints
    weights: Floats
    columns: SegmentPlaces
    terms: list[Term] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.n_free = F = self.u.shape[1]
        self.factor = 1.0 if F == 1 else (F - 1) / F
        # Derivative of the log odds in a scale. Derivatives in scales of all classes include it.
        self.slopes: Any = self.u[:, 0] if F == 1 else 1.0
        self.truth = self.codes[:, None] == (1 if F == 1 else np.arange(F))
        if not self.terms:
            intercept, slope = (make_term(self.columns, (), F, scales=s) for s in (False, True))
            intercept.precision = 1e-6  # free: a standard deviation of 1,000
            slope.precision = 4.0  # a standard deviation of 1/2 around a slope of 1
            self.terms = [intercept, slope]
        self._locate(self.terms)

    @property
    def tables(self) -> list[Term]:
        """The terms that belong to columns."""
        return self.terms[2:]

    def _locate(self, terms: Iterable[Term]) -> None:
        for term in terms:
            term.where = term.codes(self.columns.places, len(self.u))

    def on(self, rows: Regression) -> Regression:
        """The same parameters for the rows of another regression, without shared arrays."""
        return replace(
            rows, terms=[replace(term, values=term.values.copy()) for term in self.terms]
        )

    def take(self, rows: Ints) -> Regression:
        """The same for some of the rows."""
        columns = self.columns._replace(places=[each[rows] for each in self.columns.places])
        return self.on(Regression(self.u[rows], self.codes[rows], self.weights[rows], columns))

    def log_odds(self) -> Floats:
        """Log odds, or logits of three classes or more."""
        intercept, slope = (term.values[0] for term in self.terms[:2])
        shift = np.full(self.u.shape, intercept)
        scale = np.full((len(self.u), 1), 1 + slope)
        for term in self.tables:
            total = scale if term.scales else shift
            total += term.entries(term.where)
        return np.asarray(scale * self.u + shift)

    def loss(self) -> float:
        """Negative log posterior."""
        prior = sum(term.precision * term.square() for term in self.terms) / 2
        eta = self.log_odds()
        if self.n_free > 1:
            rows = np.ascontiguousarray(eta.T), self.codes, self.weights
            return prior + power_loss(*rows, 1.0, -np.inf, 0.0)
        losses = np.logaddexp(0.0, eta[:, 0]) - self.truth[:, 0] * eta[:, 0]
        return prior + float(self.weights @ losses)

    def blocks(self) -> list[Block]:
        """All parameters."""
        scales = [term for term in self.terms if term.scales]
        shifts = [term for term in self.terms if not term.scales]
        if self.n_free == 1:
            return [Block(shifts + scales, 0, 1.0)]
        classes = [Block(shifts, f, self.factor) for f in range(self.n_free)]
        return [*classes, Block(scales, 0, 1.0)]

    def _residuals(self) -> list[tuple[Floats, Floats]]:
        """Derivatives of the loss of each row in the log odds of each block, first and second."""
        eta = self.log_odds()
        w = self.weights
        z = np.ascontiguousarray(eta.T)
        q = softmax(z) if self.n_free > 1 else np.asarray(expit(z))
        both = [(w * a, w * b) for a, b in zip(q - self.truth.T, q * (1 - q), strict=True)]
        if len(both) > 1:
            mean = np.einsum("kn,nk->n", q, self.u)
            first = mean - self.u[np.arange(len(eta)), self.codes]
            second = np.einsum("kn,nk,nk->n", q, self.u, self.u) - mean**2
            both.append((w * first, w * second))
        return both

    def gradients(self) -> list[Floats]:
        """Gradient of the loss of the rows, without priors, in the parameters of each block."""
        gradients = []
        for block, (r, _) in zip(self.blocks(), self._residuals(), strict=True):
            values = r, r * self.slopes
            sums = [term.sums(values[term.scales]) for term in block.terms]
            gradients.append(np.concatenate(sums, dtype=np.float64))
        return gradients

    def hessians(self) -> list[Floats]:
        """Hessian of the loss of the rows, without priors, in the parameters of each block.

        Rows enter only by their segments: the entry for two segments is the sum of the second
        derivatives of the rows in both, times u for a scale and u**2 for two scales.
        """
        hessians = []
        u = self.slopes
        for block, (_, h) in zip(self.blocks(), self._residuals(), strict=True):
            powers = (h, h * u, h * u * u)
            spans = list(block.spans())
            size = spans[-1][1].stop
            H = np.zeros((size, size))
            for (first, rows), (second, columns) in combinations_with_replacement(spans, 2):
                shape = (first.size + 1, second.size + 1)
                pairs = second.where
                if first.columns:  # others have one entry for all rows
                    pairs = first.where * shape[1] + pairs
                sums = np.bincount(pairs, powers[first.scales + second.scales], np.prod(shape))
                H[rows, columns] = sums.reshape(shape)[:-1, :-1]
                H[columns, rows] = H[rows, columns].T
            hessians.append(H)
        return hessians

    def _theta(self) -> Floats:
        """Parameters of all blocks, one after the other."""
        parts = (term.values[:, block.column] for block in self.blocks() for term in block.terms)
        return np.concatenate(list(parts))

    def _move(self, theta: Floats) -> None:
        """Set the parameters, in the order of `_theta`."""
        end = 0
        for block in self.blocks():
            for term in block.terms:
                start = end
                end = start + term.size
                term.values[:, block.column] = theta[start:end]

    def _at(self, theta: Floats) -> Tried:
        self._move(theta)
        return Tried(theta, self.loss())

    def step(self, gradients: list[Floats], hessians: list[Floats], *, search: bool) -> None:
        """A step of Newton's method. With `search` it is halved until the loss falls.

        An entry changes by at most 4: beyond that, the parabola is too far from the loss.
        """
        theta = self._theta()
        steps = []
        end = 0
        for block, gradient, H in zip(self.blocks(), gradients, hessians, strict=True):
            start = end
            end = start + len(gradient)
            R = block.precisions()
            change = np.linalg.solve(H + R, gradient + R @ theta[start:end])
            steps.append(-self.factor * change.clip(-4, 4))
        step = np.concatenate(steps)
        if search:
            best = newton(self._at(theta), self._at, lambda _: step, n_steps=1, n_halvings=10)
            self._move(best.theta)
        else:
            self._move(theta + step)

    def covariances(self, hessians: list[Floats]) -> list[Floats]:
        """Covariance matrix of the posterior of each block."""
        precisions = (
            H / block.factor + block.precisions()
            for block, H in zip(self.blocks(), hessians, strict=True)
        )
        return [np.asarray(np.linalg.inv(precision), np.float64) for precision in precisions]

    def _share(self, term: Term) -> Floats:
        """Share of each entry in the weight of the rows that the table applies to."""
        total = term.sums(self.weights)
        return np.asarray(total / max(total.sum(), 1e-12))

    def centre(self) -> None:
        """Make the entries of each table 0 on average. The common parameters take up the rest."""
        intercept, slope = self.terms[:2]
        for term in self.terms:
            mean = self._share(term) @ term.values
            term.values -= mean
            common = slope if term.scales else intercept
            common.values += mean

    def errors(self, total: float, clusters: Ints | None = None) -> list[Floats]:
        """Standard errors of the entries, less their mean, if the rows stand for a total weight.

        With clusters, they are at least as large as for independent rows.
        """
        errors = {term: np.zeros_like(term.values) for term in self.terms}
        scale = total / self.weights.sum()
        covariances = [self.covariances([scale * H for H in self.hessians()])]
        if clusters is not None:
            covariances.append(self._clustered(covariances[0], clusters, 1 / scale))
        for which in covariances:
            for block, covariance in zip(self.blocks(), which, strict=True):
                for term, span in block.spans():
                    centred = np.eye(term.size) - self._share(term)
                    part = centred @ covariance[span, span] @ centred.T
                    entries = errors[term][:, block.column]
                    np.maximum(entries, np.sqrt(part.diagonal().clip(min=0)), out=entries)
        return [errors[term] for term in self.tables]

    def _clustered(self, covariances: list[Floats], clusters: Ints, share: float) -> list[Floats]:
        """Covariances of each block if rows of a cluster depend on each other.

        These are sandwiches ``B M B``: B is the covariance for independent rows, and M the variance
        of the gradient, the sum of squares of its sums over clusters plus the prior. The rows are a
        random `share` of all rows. Of the products within a cluster, a row's own square is there
        with probability `share`, and the product of two rows with `share**2`: `observed` estimates
        the sum over all rows without bias. Few clusters understate M by about (n - 1) / n.
        """
        n_rows = len(clusters)
        number = np.arange(n_rows)
        members = coo_array((np.ones(n_rows), (clusters, number))).tocsr()
        robust = []
        for block, (r, _), B in zip(self.blocks(), self._residuals(), covariances, strict=True):
            values = r, r * self.slopes
            parts = []  # gradient of each row in the entries of each table
            for term in block.terms:
                known = term.where < term.size
                entries = values[term.scales][known], (number[known], term.where[known])
                parts.append(coo_array(entries, shape=(n_rows, term.size)))
            rows = hstack(parts).tocsr()
            sums = members @ rows
            own = (rows.T @ rows).toarray()
            observed = ((sums.T @ sums).toarray() - (1 - share) * own) / share**2
            n_clusters = np.maximum(np.diff(sums.tocsc().indptr), 2)  # that each entry applies to
            few = np.sqrt(n_clusters / (n_clusters - 1))
            inner = observed * np.outer(few, few) / block.factor + block.precisions()
            robust.append(np.asarray(B @ inner @ B))
        return robust

    def tune(self, hessians: list[Floats]) -> float:
        """Set precisions by evidence, and drop tables without information.

        A table with m entries and the prior precision ``a R``, for a fixed matrix R, has
        ``m - a trace(C R)`` known entries, where C is their posterior covariance: see
        `updated_precision`. Returns the largest change of the logarithm of a precision.
        """
        for term in self.terms:
            term.n_known = 0.0
        for block, covariance in zip(self.blocks(), self.covariances(hessians), strict=True):
            for term, span in block.spans():
                trace = float((covariance[span, span] * term.penalty).sum())
                term.n_known += block.factor * (term.size - term.precision * trace)
        kept = self.terms[:2]
        largest = 0.0
        for term in self.tables:
            old = term.precision
            learned = updated_precision(term.n_known, term.square())
            term.precision = float(np.clip(learned, 1e-2, 1e9))
            if term.precision < 1e5:  # entries beyond are less than about 0.003
                kept.append(term)
                largest = max(largest, abs(np.log(term.precision / old)))
        self.terms = kept
        return largest

    def improve(self, n_steps: int) -> None:
        """Alternate steps and updates of the precisions until neither changes much."""
        for _ in range(n_steps):
            hessians = self.hessians()
            before = self.loss()
            self.step(self.gradients(), hessians, search=True)
            gain = before - self.loss()
            if self.tune(hessians) < 0.05 and gain < 0.01:
                break

    def add(self, terms: Iterable[Term]) -> None:
        """Add tables. One with more bins replaces the table of its column."""
        for term in terms:
            for old in self.tables:
                if (old.columns, old.scales) == (term.columns, term.scales):
                    term.values = old.values[old.merged[0][:-1]]
                    self.terms.remove(old)
            self.terms.append(term)
        self._locate(self.tables)

    def learn(self, max_terms: int, *, level: float = 0.01, at_once: int = 3) -> None:
        """Fit a table for each column, and those that score tests find significant.

        Pairs of columns, scales of columns, and more bins are tried. In each round, up to `at_once`
        with the smallest p-values are added if these, times the number tried, are below the level.
        """
        J = len(self.columns.sizes)
        make = partial(make_term, self.columns, n_free=self.n_free)
        most = [self.columns.bins if numeric else 0 for numeric in self.columns.numeric]
        self.add(make((j,), most=most[j]) for j in range(J))
        self.improve(15)
        # With many columns, only pairs of the most informative ones are tried.
        by_known = sorted(self.tables, key=lambda term: -term.n_known)
        tried = range(J) if J <= 20 else sorted(term.columns[0] for term in by_known[:20])
        left = [make((j,), scales=True, most=most[j]) for j in tried]
        left += [make((j,)) for j in tried if 0 < most[j] < self.columns.sizes[j]]
        left += [make(pair, most=6) for pair in combinations(tried, 2)]
        n_tried = len(left)
        while left and max_terms > 0:
            p_values = self._score_tests(left)
            order = np.argsort(p_values, kind="stable")[: min(at_once, max_terms)]
            chosen = [int(i) for i in order if p_values[i] * n_tried < level]
            if not chosen:
                break
            self.add(left[i] for i in chosen)
            max_terms -= len(chosen)
            left = [term for i, term in enumerate(left) if i not in chosen]
            self.improve(10)
        self.centre()

    def _score_tests(self, terms: list[Term]) -> Floats:
        """P-value of each table that could be added, given the entries of its columns.

        Rao's score test, one segment at a time: S is the derivative of the log likelihood in the
        entry of a segment, V its variance. Segments where V is at most 0.5, the variance of two
        outcomes of probability 1/2, are left out: there S is far from normal. The parameters that
        are fitted already (of the table's columns, or the slope) make S smaller than V says, which
        costs as many degrees of freedom.
        """
        residuals = self._residuals()
        u = self.slopes
        self._locate(terms)
        p_values = np.ones(len(terms))
        for t, term in enumerate(terms):
            parts = residuals[: self.n_free]
            part = self.factor
            n_fitted = self.columns.bins
            if term.scales:
                r, h = residuals[-1]
                parts = [(r * u, h * u * u)]
                part = 1.0
                n_fitted = 1  # the common slope
            elif len(term.columns) == 2:
                n_fitted = sum(int(segments[-1]) for segments in term.merged) - 1
            total = 0.0
            n_cells = 0.0
            for r, h in parts:
                S = term.sums(r)
                V = term.sums(h)
                large = V > 0.5
                total += float((S[large] ** 2 / V[large]).sum())
                n_cells += np.count_nonzero(large)
            df = n_cells - len(parts) * n_fitted
            p_values[t] = chdtrc(part * df, part * total) if df > 0 else 1.0
        return p_values


def held_out(model: Regression, fold: Ints, max_terms: int, few_rows: int) -> list[Regression]:
    """The regression on the rows of each fold, with parameters learned from the others.

    Up to `few_rows` rows nothing depends on the rows held out. With more, terms, precisions
    and second derivatives come from all rows.
    """
    models = []
    shares = np.bincount(fold, model.weights) / model.weights.sum()
    few = len(fold) <= few_rows
    hessians = [] if few else model.hessians()
    for f, share in enumerate(shares):
        others = model.take(np.flatnonzero(fold != f))
        if few:
            del others.terms[2:]
            others.terms[1].values[:] = 0.0
            others.learn(max_terms)
        else:
            for _ in range(3):
                scaled = [(1 - share) * H for H in hessians]
                others.step(others.gradients(), scaled, search=False)
            others.centre()
        models.append(others.on(model.take(np.flatnonzero(fold == f))))
    return models


def polish(
    model: Regression, batches: Callable[[], Iterable[Regression]], total: float
) -> list[NDArray[Any]]:
    """Improve the parameters on all rows, in batches, and return each entry's number of rows."""
    hessians = [total / model.weights.sum() * H for H in model.hessians()]
    for _ in range(2):
        parts = [
            (batch.gradients(), [term.sums() for term in batch.tables])
            for batch in map(model.on, batches())
        ]
        gradients, counts = (
            [np.sum(arrays, axis=0) for arrays in zip(*figures, strict=True)]
            for figures in zip(*parts, strict=True)
        )
        model.step(gradients, hessians, search=False)
    model.centre()
    return counts
