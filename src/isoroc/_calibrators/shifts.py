"""Regression of outcomes on segments: tables of shifts and scales, their precisions by evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, expit, logsumexp, softmax

from isoroc._core.types import Floats, Ints

#: Tables of a higher precision are dropped: their entries are less than about 0.003.
VANISHED = 1e5
#: Precision of the common intercept and slope around 0.
_COMMON = (1e-6, 4.0)


class Columns(NamedTuple):
    """Place of each row among the segments of each column; their number where it is unknown."""

    places: list[Ints]
    sizes: list[int]
    numeric: list[bool]
    bins: int = 0  # of a column of numbers, unless a score test shows more; 0 for all

    def take(self, rows: Ints) -> Columns:
        """Some of the rows."""
        return self._replace(places=[own[rows] for own in self.places])


@dataclass(eq=False)
class Term:
    """A table with one row for each segment of a column, or of a pair of columns.

    A row holds the shift of each class or, if `scales`, a number to add to the scale of all. In a
    pair, `merged` tells which segment each place of a column belongs to.
    """

    columns: tuple[int, ...]
    merged: list[Ints]
    scales: bool
    penalty: Floats  # shape (size, size)
    values: Floats  # shape (size, F)
    precision: float = 10.0
    n_known: float = 0.0  # effective number of entries that the rows determine

    @property
    def size(self) -> int:
        """Number of rows of the table."""
        return len(self.values)

    def codes(self, places: Sequence[Ints] | Mapping[int, Ints]) -> Ints:
        """Row of the table for places of all columns; `size` where one is unknown."""
        own = [merged[places[j]] for merged, j in zip(self.merged, self.columns, strict=True)]
        if len(own) == 1:
            return own[0]
        rows, width = (int(merged[-1]) for merged in self.merged)
        known = (own[0] < rows) & (own[1] < width)
        return np.where(known, own[0] * width + own[1], self.size)

    def entries(self, codes: Ints) -> Floats:
        """Entries of rows of the table, 0 where they are unknown."""
        return np.vstack([self.values, np.zeros(self.values.shape[1])])[codes]


def make_term(
    columns: Columns, which: tuple[int, ...], n_free: int, *, scales: bool = False, most: int = 0
) -> Term:
    """A table of zeros; each column has at most `most` segments, unless that is 0."""
    merged = [_merge(columns, j, most) for j in which]
    size = int(np.prod([own[-1] for own in merged]))
    penalty = np.eye(size)
    if len(which) == 1 and columns.numeric[which[0]]:
        # Entries of neighbouring bins are close to each other: a random walk.
        steps = np.diff(penalty, axis=0)
        penalty = steps.T @ steps + penalty / size
    return Term(which, merged, scales, penalty, np.zeros((size, 1 if scales else n_free)))


def _merge(columns: Columns, j: int, most: int) -> Ints:
    """Segment of each place of a column: equal parts of the bins, or the most frequent levels."""
    size = columns.sizes[j]
    if not most or size <= most:
        return np.arange(size + 1)
    counts = np.bincount(columns.places[j], minlength=size + 1)[:size]
    if columns.numeric[j]:
        share = (np.cumsum(counts) - counts / 2) / max(counts.sum(), 1)
        found = np.unique(np.floor(most * share), return_inverse=True)[1]
        return np.append(found, found.max() + 1)
    merged = np.full(size + 1, most)
    merged[np.argsort(-counts, kind="stable")[:most]] = np.arange(most)
    return merged


class Feature(NamedTuple):
    """Some parameters of a block: row of their table for each row, None for one of all rows."""

    codes: Ints | None
    size: int
    by_u: bool  # whether the parameters are multiplied by u

    def sums(self, values: Floats) -> Floats:
        """Sum of values for each parameter."""
        if self.codes is None:
            return np.array([values.sum()])
        return np.bincount(self.codes, values, self.size + 1)[: self.size].astype(np.float64)

    def products(self, other: Feature, values: Floats) -> Floats:
        """Sum of values for each pair of parameters of two features."""
        if self.codes is None or other.codes is None:
            single = other if self.codes is None else self
            return single.sums(values).reshape(self.size, other.size)
        if self.codes is other.codes:
            return np.diag(self.sums(values))
        shape = self.size + 1, other.size + 1
        both = np.bincount(self.codes * shape[1] + other.codes, values, shape[0] * shape[1])
        return np.asarray(both.reshape(shape)[:-1, :-1], dtype=np.float64)


class Block(NamedTuple):
    """Parameters that are updated together: those of a class, or the scales of three or more."""

    free: int | None  # the class; None for scales
    n_common: int  # intercept and slope come first
    terms: list[int]


@dataclass(eq=False)
class Regression:
    """Log odds ``(1 + slope + scales) * u + intercept + shifts`` of rows.

    For two classes u has one column, the log odds of the second class. For more it has one for each
    class, and parameters of different classes are updated as if they did not depend on each other;
    steps are exact if all classes are equally likely.
    """

    u: Floats  # shape (n, F)
    codes: Ints
    weights: Floats
    columns: Columns
    terms: list[Term] = field(default_factory=list)
    intercept: Floats = field(default_factory=lambda: np.zeros(1))
    slope: float = 0.0

    def __post_init__(self) -> None:
        self.n_free = F = self.u.shape[1]
        self.intercept = np.broadcast_to(self.intercept, F).copy()
        self.factor = 1.0 if F == 1 else (F - 1) / F
        self.truth = self.codes[:, None] == (1 if F == 1 else np.arange(F))
        self.where = [term.codes(self.columns.places) for term in self.terms]

    def on(self, rows: Regression) -> Regression:
        """The same parameters for the rows of another regression; they share no arrays."""
        terms = [replace(term, values=term.values.copy()) for term in self.terms]
        return replace(rows, terms=terms, intercept=self.intercept, slope=self.slope)

    def take(self, rows: Ints) -> Regression:
        """The same for some of the rows."""
        own = self.u[rows], self.codes[rows], self.weights[rows], self.columns.take(rows)
        return self.on(Regression(*own))

    def log_odds(self) -> Floats:
        """Log odds, or logits of three classes or more."""
        shift, scale = np.zeros(self.u.shape), np.zeros((len(self.u), 1))
        for term, codes in zip(self.terms, self.where, strict=True):
            total = scale if term.scales else shift
            total += term.entries(codes)
        return np.asarray((1 + self.slope + scale) * self.u + self.intercept + shift)

    def likelihood(self) -> Floats:
        """Probability of the outcome of each row."""
        eta = self.log_odds()
        if eta.shape[1] == 1:
            return np.asarray(expit(np.where(self.truth, eta, -eta))[:, 0])
        return np.asarray(softmax(eta, axis=1)[np.arange(len(eta)), self.codes])

    def loss(self) -> float:
        """Negative log posterior."""
        eta = self.log_odds()
        losses = logsumexp(eta, axis=1) if eta.shape[1] > 1 else np.logaddexp(0.0, eta[:, 0])
        losses -= (self.truth * eta).sum(axis=1)
        priors = (term.precision * (term.values * (term.penalty @ term.values)).sum()
                  for term in self.terms)  # fmt: skip
        return float(self.weights @ losses + (sum(priors) + _COMMON[1] * self.slope**2) / 2)

    def blocks(self) -> list[Block]:
        """All parameters."""
        shifts, scales = ([t for t, own in enumerate(self.terms) if own.scales == is_scale]
                          for is_scale in (False, True))  # fmt: skip
        F = self.u.shape[1]
        if F == 1:
            return [Block(0, 2, shifts + scales)]
        return [*(Block(f, 1, shifts) for f in range(F)), Block(None, 1, scales)]

    def _residuals(self) -> list[tuple[Floats, Floats]]:
        """Derivatives of the loss of each row in the log odds of each block, first and second."""
        eta, w = self.log_odds(), self.weights
        q = np.asarray(expit(eta) if eta.shape[1] == 1 else softmax(eta, axis=1))
        found = [(w * a, w * b) for a, b in zip((q - self.truth).T, (q * (1 - q)).T, strict=True)]
        if len(found) > 1:
            mean = (q * self.u).sum(axis=1)
            first = mean - self.u[np.arange(len(q)), self.codes]
            found.append((w * first, w * ((q * self.u**2).sum(axis=1) - mean**2)))
        return found

    def _features(self, block: Block) -> list[Feature]:
        both = self.u.shape[1] == 1
        common = [Feature(None, 1, by_u=own) for own in (False, True)][: block.n_common]
        return common + [
            Feature(self.where[t], self.terms[t].size, by_u=both and self.terms[t].scales)
            for t in block.terms
        ]

    def gradients(self) -> list[Floats]:
        """Gradient of the loss of the rows, without priors, in the parameters of each block."""
        found = []
        for block, (r, _) in zip(self.blocks(), self._residuals(), strict=True):
            values = r, r * self.u[:, 0]
            found.append([own.sums(values[own.by_u]) for own in self._features(block)])
        return [np.concatenate(parts) for parts in found]

    def hessians(self) -> list[Floats]:
        """Hessian of the loss of the rows, without priors, in the parameters of each block."""
        found = []
        for block, (_, h) in zip(self.blocks(), self._residuals(), strict=True):
            features, u = self._features(block), self.u[:, 0]
            powers = h, h * u, h * u * u
            ends = np.cumsum([0, *(own.size for own in features)])
            H = np.zeros((ends[-1], ends[-1]))
            for s, first in enumerate(features):
                for t, second in enumerate(features[: s + 1]):
                    part = first.products(second, powers[first.by_u + second.by_u])
                    H[ends[s] : ends[s + 1], ends[t] : ends[t + 1]] = part
                    H[ends[t] : ends[t + 1], ends[s] : ends[s + 1]] = part.T
            found.append(H)
        return found

    def _spans(self, block: Block) -> Iterator[tuple[int, Term, int, slice]]:
        """Each term of a block: number, table, column of the table, place of its parameters."""
        start = block.n_common
        for t in block.terms:
            term = self.terms[t]
            column = 0 if term.scales or block.free is None else block.free
            yield t, term, column, slice(start, start + term.size)
            start += term.size

    def _parameters(self, block: Block) -> tuple[Floats, Floats]:
        """Parameters of a block and the precision matrix of their prior."""
        common = [self.slope] if block.free is None else [self.intercept[block.free], self.slope]
        priors = _COMMON[1:] if block.free is None else _COMMON
        n = block.n_common
        size = n + sum(self.terms[t].size for t in block.terms)
        theta, R = np.zeros(size), np.zeros((size, size))
        theta[:n], R[range(n), range(n)] = common[:n], priors[:n]
        for _, term, column, own in self._spans(block):
            theta[own], R[own, own] = term.values[:, column], term.precision * term.penalty
        return theta, R

    def _move(self, thetas: Iterable[Floats]) -> None:
        for block, theta in zip(self.blocks(), thetas, strict=True):
            if block.free is not None:
                self.intercept[block.free] = theta[0]
            if block.free is None or block.n_common == 2:
                self.slope = float(theta[block.n_common - 1])
            for _, term, column, own in self._spans(block):
                term.values[:, column] = theta[own]

    def step(self, gradients: list[Floats], hessians: list[Floats], *, search: bool) -> None:
        """A step of Newton's method; with `search` it is halved until the loss falls."""
        old, steps = [], []
        for block, gradient, H in zip(self.blocks(), gradients, hessians, strict=True):
            theta, R = self._parameters(block)
            old.append(theta)
            change = np.linalg.solve(H + R, gradient + R @ theta)
            steps.append(-self.factor * change.clip(-4, 4))
        before = self.loss() if search else np.inf
        for half in range(10):
            self._move(a + b / 2**half for a, b in zip(old, steps, strict=True))
            if not search or self.loss() <= before:
                return
        self._move(old)

    def covariances(self, hessians: list[Floats]) -> list[Floats]:
        """Covariance matrix of the posterior of each block."""
        part = [1.0 if block.free is None else self.factor for block in self.blocks()]
        blocks = zip(hessians, part, self.blocks(), strict=True)
        return [
            np.asarray(np.linalg.inv(H / p + self._parameters(block)[1]), dtype=np.float64)
            for H, p, block in blocks
        ]

    def counts(self, weights: Floats | None = None) -> list[NDArray[Any]]:
        """Number or total weight of the rows that each entry of each table applies to."""
        pairs = zip(self.terms, self.where, strict=True)
        return [np.bincount(codes, weights, term.size + 1)[: term.size] for term, codes in pairs]

    def _shares(self) -> list[Floats]:
        return [own / max(own.sum(), 1e-12) for own in self.counts(self.weights)]

    def centre(self) -> None:
        """Make the entries of each table 0 on average; the common parameters take up the rest."""
        for term, share in zip(self.terms, self._shares(), strict=True):
            mean = share @ term.values
            term.values -= mean
            if term.scales:
                self.slope += float(mean[0])
            else:
                self.intercept += mean

    def errors(self, total: float) -> list[Floats]:
        """Standard errors of the entries, less their mean, if the rows stand for a total weight."""
        shares = self._shares()
        found = [np.zeros_like(term.values) for term in self.terms]
        scale = total / self.weights.sum()
        covariances = self.covariances([scale * H for H in self.hessians()])
        for block, covariance in zip(self.blocks(), covariances, strict=True):
            for t, term, column, own in self._spans(block):
                centred = np.eye(term.size) - shares[t]
                part = centred @ covariance[own, own] @ centred.T
                found[t][:, column] = np.sqrt(part.diagonal())
        return found

    def tune(self, hessians: list[Floats]) -> None:
        """Set precisions by MacKay's update, and drop tables that say nothing."""
        for term in self.terms:
            term.n_known = 0.0
        for block, covariance in zip(self.blocks(), self.covariances(hessians), strict=True):
            part = 1.0 if block.free is None else self.factor
            for _, term, _, own in self._spans(block):
                trace = float((covariance[own, own] * term.penalty).sum())
                term.n_known += part * (term.size - term.precision * trace)
        for term in self.terms:
            square = float((term.values * (term.penalty @ term.values)).sum())
            term.precision = float(np.clip(term.n_known / max(square, 1e-12), 1e-2, 1e9))
        kept = [t for t, term in enumerate(self.terms) if term.precision < VANISHED]
        self.terms, self.where = [self.terms[t] for t in kept], [self.where[t] for t in kept]

    def improve(self, n_steps: int) -> None:
        """Alternate steps and updates of the precisions until neither changes much."""
        for _ in range(n_steps):
            hessians, old = self.hessians(), {id(term): term.precision for term in self.terms}
            before = self.loss()
            self.step(self.gradients(), hessians, search=True)
            gain = before - self.loss()
            self.tune(hessians)
            changes = [abs(np.log(term.precision / old[id(term)])) for term in self.terms]
            if gain < 0.01 and max(changes, default=0.0) < 0.05:
                break

    def add(self, terms: Iterable[Term]) -> None:
        """Add tables; one with more bins replaces that of its column."""
        for term in terms:
            for t, old in enumerate(self.terms):
                if (old.columns, old.scales) == (term.columns, term.scales):
                    term.values = old.values[old.merged[0][:-1]]
                    del self.terms[t], self.where[t]
                    break
            self.terms.append(term)
            self.where.append(term.codes(self.columns.places))

    def learn(self, max_terms: int, *, level: float = 0.01, at_once: int = 3) -> None:
        """Fit a table for each column, and those that score tests find significant.

        Pairs of columns, scales of columns, and more bins are tried. In each round, up to `at_once`
        with the smallest p-values are added if these, times the number tried, are below the level.
        """
        J, make = len(self.columns.sizes), partial(make_term, self.columns, n_free=self.n_free)
        most = [self.columns.bins if numeric else 0 for numeric in self.columns.numeric]
        self.add(make((j,), most=most[j]) for j in range(J))
        self.improve(15)
        # With many columns, only pairs of the most informative ones are tried.
        by_known = sorted(self.terms, key=lambda term: -term.n_known)
        tried = range(J) if J <= 20 else sorted(term.columns[0] for term in by_known[:20])
        left = [make((j,), scales=True, most=most[j]) for j in tried]
        left += [make((j,)) for j in tried if 0 < most[j] < self.columns.sizes[j]]
        left += [make(pair, most=6) for pair in combinations(tried, 2)]
        n_tried = len(left) if max_terms else 0
        while n_tried and max_terms > 0:
            p_values = self._score_tests(left)
            order = np.argsort(p_values, kind="stable")[: min(at_once, max_terms)]
            found = [int(i) for i in order if p_values[i] * n_tried < level]
            if not found:
                break
            self.add(left[i] for i in found)
            max_terms -= len(found)
            left = [term for i, term in enumerate(left) if i not in found]
            self.improve(10)
        self.centre()

    def _score_tests(self, terms: list[Term]) -> Floats:
        """P-value of each table that could be added, given the entries of its columns."""
        residuals, F = self._residuals(), self.u.shape[1]
        u = self.u[:, 0]
        p_values = np.ones(len(terms))
        for t, term in enumerate(terms):
            codes = term.codes(self.columns.places)
            if term.scales:
                r, h = residuals[-1]
                parts, fitted = [(r * u, h * u * u) if F == 1 else (r, h)], 1  # the common slope
            else:
                parts, fitted = residuals[:F], self.columns.bins
            if len(term.columns) == 2:
                fitted = sum(int(own[-1]) for own in term.merged) - 1
            total = n_cells = 0.0
            for r, h in parts:
                S, V = (np.bincount(codes, x, term.size + 1)[: term.size] for x in (r, h))
                large = V > 0.5
                total += float((S[large] ** 2 / V[large]).sum())
                n_cells += np.count_nonzero(large)
            df = n_cells - len(parts) * fitted
            part = 1.0 if term.scales else self.factor
            p_values[t] = chdtrc(part * df, part * total) if df > 0 else 1.0
        return p_values


def held_out(model: Regression, fold: Ints, max_terms: int, few_rows: int) -> list[Regression]:
    """The regression on the rows of each fold, with parameters learned from the others.

    Up to `few_rows` rows nothing depends on the rows held out. With more, terms and precisions are
    those of all rows, as are second derivatives.
    """
    found, shares = [], np.bincount(fold, model.weights) / model.weights.sum()
    few = len(fold) <= few_rows
    hessians = [] if few else model.hessians()
    for f, share in enumerate(shares):
        own = model.take(np.flatnonzero(fold != f))
        if few:
            own.terms, own.where, own.slope = [], [], 0.0
            own.learn(max_terms)
        else:
            for _ in range(3):
                scaled = [(1 - share) * H for H in hessians]
                own.step(own.gradients(), scaled, search=False)
            own.centre()
        found.append(own.on(model.take(np.flatnonzero(fold == f))))
    return found


def polish(
    model: Regression, batches: Callable[[], Iterable[Regression]], total: float
) -> tuple[Regression, list[NDArray[Any]]]:
    """Parameters after steps on all rows, which come in batches; number of rows of each entry."""
    hessians = [total / model.weights.sum() * H for H in model.hessians()]
    found = copy(model)
    for _ in range(2):
        parts = [(own.gradients(), own.counts()) for own in map(found.on, batches())]
        gradients, counts = (
            [np.sum(of_term, axis=0) for of_term in zip(*figures, strict=True)]
            for figures in zip(*parts, strict=True)
        )
        found.step(gradients, hessians, search=False)
    found.centre()
    return found, counts
