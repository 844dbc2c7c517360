"""Values that vary in the bins of a tree, as far as the certificates of its splits allow.

In bin b the tempered forecast p of a row becomes q, proportional to ``p * t_b``: a bias on its
logarithms, so a monotone map inside the bin. The tilt t_b is the one for which the mean of q over
the rows of the bin is the value r_b that the bin would have as a constant. A row gets
``r_b + a_b (q - r_b)``, and the share a_b is as large as ROC monotonicity permits. W of a split is
now a minimum over rows instead of bins. Since r_b is the mean of q, a larger share can only lower
W, and with shares 0 every split has its certificate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from isoroc._growth.best_first import LEAST_SLACK, GrowthOptions, Monotonicity
from isoroc._growth.grow import grow_tree, mean_forecasts
from isoroc._input import Sample
from isoroc._monotonicity import Certificate, certify, largest_slack, regions_held, solve
from isoroc._simplex import Floats, Ints, binary_scores, regions
from isoroc._tree import BinTree, bin_values

#: Newton steps for a tilt, the longest one, and the error of a mean at which they end.
STEPS, LONGEST, PRECISION = 50, 2.0, 1e-10
#: Pseudocounts of mean forecasts to choose from.
PULLS = np.geomspace(3.0, 1000.0, 11)
#: Rounds of the search for the largest cap of a split, and caps that each tries at once.
ROUNDS, TRIED = 4, 66


def tilt_bins(
    tree: BinTree, values: Floats, sample: Sample, tempered: Floats, monotonicity: Monotonicity
) -> tuple[Floats, Floats, Certificate | None]:
    """Tilts (B, K) and shares (B,) of bins with values (B, K), for tempered forecasts (n, K).

    The largest tilt of each bin is 1. Also the certificate of the splits, if there is one.
    """
    bin_of = tree.bin_of(sample.forecasts)
    key = binary_scores(sample.forecasts) if tree.n_classes == 2 else bin_of
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(bin_of[order], prepend=-1))
    P, weights = tempered[order], sample.row_weights()[order]
    ranges = zip(starts, [*starts[1:], len(P)], strict=True)
    tilts = np.array(
        [find_tilt(P[a:b], weights[a:b], r) for (a, b), r in zip(ranges, values, strict=True)]
    )
    if monotonicity is None or not tree.n_splits:
        certificate = None if monotonicity is None else certify(tree, values)
        return tilts, np.ones(len(tilts)), certificate
    scope = monotonicity
    if tree.n_classes == 2:
        scope = "global"  # the scopes agree, see `certify`
        answers = list(_of_neighbours(tree, values, tilts, P, starts))
    else:
        Q = _tilted(P, np.repeat(tilts, np.diff(starts, append=len(P)), axis=0))
        points = sample.forecasts[order] if scope == "global" else None
        answers = list(_of_rows(tree, values, Q, starts, points))
    shares = largest_shares(answers, len(tilts), LEAST_SLACK[scope])
    bounds = np.concatenate([own.bounds(shares[None]) for own in answers])
    return tilts, shares, Certificate(scope, tree.thresholds, *solve(bounds))


def find_tilt(P: Floats, weights: Floats, value: Floats) -> Floats:
    """The t for which the mean of ``P * t``, each row divided by its sum, is a value.

    Its logarithm maximises a concave function: Newton's method. Classes of value 0 have tilt 0.
    """
    possible = np.flatnonzero(value)
    P, goal, weights = P[:, possible], value[possible], weights / weights.sum()
    u = np.log(goal / (weights @ P))
    for _ in range(STEPS):
        q = _tilted(P, np.exp(u - u.max()))
        mean = weights @ q
        if np.abs(mean - goal).max() <= PRECISION:
            break
        # A constant added to u changes nothing; ones make the matrix invertible.
        curvature = np.diag(mean) - (q * weights[:, None]).T @ q + 1.0 / len(goal)
        step = np.linalg.lstsq(curvature, goal - mean, rcond=None)[0]
        u += step * min(1.0, LONGEST / max(np.abs(step).max(), 1e-300))
    tilt = np.zeros(len(value))
    tilt[possible] = np.exp(u - u.max())
    return tilt


def _tilted(P: Floats, tilts: Floats) -> Floats:
    q = P * tilts
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def held_out_pseudocount(sample: Sample, options: GrowthOptions, tempered: Floats) -> float | None:
    """Rows that mean forecasts stand for, if one half of the forecasts is to tell of the other.

    The evidence of the bins would be too small a number: bins are chosen for labels that differ
    from the forecasts. Halves take turns in the order of the forecasts, so that neither weights nor
    the order of the rows matter. None where all forecasts are the same.
    """
    half = np.unique(sample.forecasts, axis=0, return_inverse=True)[1].ravel() % 2
    if not half.any():
        return None
    losses = np.zeros(len(PULLS))
    for train in (half == 0, half == 1):
        seen, new = sample.take(train), sample.take(~train)
        tree = grow_tree(seen, replace(options, random_state=None))
        means = mean_forecasts(tree, seen, tempered[train])[tree.bins]
        place, rows = tree.bin_of(new.forecasts), np.arange(len(new))
        for at, c in enumerate(PULLS):
            values = bin_values(tree.class_weights[tree.bins], options.pseudocounts + c * means)
            q = _tilted(tempered[~train], (values / means)[place])[rows, new.codes]
            losses[at] -= new.row_weights() @ np.log(q.clip(min=1e-300))
    return float(PULLS[losses.argmin()])


class Answer(NamedTuple):
    """What a split answers for: bins in its regions, and the leads r_i - r_j of region i there."""

    bins: Ints  # (E,)
    regions: Ints  # (E,)
    constant: Floats  # (E, K): the lead of the bin's value,
    varying: Floats  # (E, K): and the smallest lead of its rows if all varies

    def bounds(self, shares: Floats) -> Floats:
        """W of the split for shares of shape (C, B), shape (C, K, K)."""
        K = self.constant.shape[1]
        W = np.full((len(shares), K, K), np.inf)
        leads = self.constant + shares[:, self.bins, None] * (self.varying - self.constant)
        for i in range(K):
            if (here := self.regions == i).any():
                W[:, i] = leads[:, here].min(axis=1)
        W[:, np.arange(K), np.arange(K)] = np.inf
        return W

    def limits(self, W: Floats, n_bins: int) -> Floats:
        """Largest share of each bin that leaves W as it is, shape (B,)."""
        drop = self.constant - self.varying
        with np.errstate(divide="ignore", invalid="ignore"):
            room = (self.constant - W[self.regions]) / drop
        limits = np.ones(n_bins)
        np.minimum.at(limits, self.bins, np.where(drop > 0, room, 1.0).min(axis=1))
        return limits


def largest_shares(answers: list[Answer], n_bins: int, least: float) -> Floats:
    """Shares of bins under which every split keeps its certificate, shape (B,).

    The largest cap under which a split passes gives its W; bins take what does not lower W.
    """
    nothing, shares = np.zeros((1, n_bins)), np.ones((1, n_bins))
    enough = np.minimum(least, _slacks(answers, nothing))
    full = _slacks(answers, shares)
    for s in np.flatnonzero(full < enough):
        answer = answers[s]
        low, high = 0.0, 1.0
        for _ in range(ROUNDS):
            caps = np.linspace(low, high, TRIED)[:, None]
            passes = largest_slack(answer.bounds(np.minimum(shares, caps)))[1:-1] >= enough[s]
            last = int(np.append(passes, False).argmin())  # the first that fails comes next
            low, high = float(caps[last, 0]), float(caps[last + 1, 0])
        capped = np.minimum(shares, low)
        # What the cap allows is certain, more than that up to rounding.
        limits = (1 - 1e-12) * answer.limits(answer.bounds(capped)[0], n_bins)
        shares = np.minimum(shares, np.maximum(limits, capped))
    while (failing := np.flatnonzero(_slacks(answers, shares) < enough - 1e-13)).size:
        for s in failing:  # the mean of a bin has missed its goal
            shares[:, answers[s].bins] = 0.0
    return np.asarray(shares[0])


def _slacks(answers: list[Answer], shares: Floats) -> Floats:
    """Slack of each split, shape (S,), for shares of shape (1, B)."""
    return largest_slack(np.concatenate([own.bounds(shares) for own in answers]))


def _of_rows(
    tree: BinTree, values: Floats, Q: Floats, starts: Ints, points: Floats | None
) -> Iterator[Answer]:
    """Answers of all splits, for rows Q in the order of their bins; those below if no points."""
    region, leads = None, _smallest_leads(Q, starts, None)
    for gamma, held in zip(tree.thresholds, regions_held(tree, points), strict=True):
        if points is not None:
            region = regions(points, gamma)
            leads = _smallest_leads(Q, starts, region)
        bins, of = np.nonzero(held)
        yield Answer(bins, of, values[bins, of][:, None] - values[bins], leads[bins, of])


def _smallest_leads(Q: Floats, starts: Ints, region: Ints | None) -> Floats:
    """Smallest q_i - q_j among the rows of each bin, in region i if given, shape (B, K, K)."""
    leads = np.empty((len(starts), Q.shape[1], Q.shape[1]))
    for i in range(Q.shape[1]):
        lead = Q[:, [i]] - Q
        if region is not None:
            lead[region != i] = np.inf
        leads[:, i] = np.minimum.reduceat(lead, starts)
    return leads


def _of_neighbours(
    tree: BinTree, values: Floats, tilts: Floats, P: Floats, starts: Ints
) -> Iterator[Answer]:
    """Answers of the splits of two classes, for which the map increases between any two scores.

    Inside a bin it does. Between two, no score of the lower one exceeds the first row of the other,
    and none of the upper one falls below the last row of the lower.
    """
    for at in np.searchsorted(tree.cuts, tree.thresholds[:, 1]):
        bins = np.array([at, at + 1])
        first = starts[at + 1]
        q = _tilted(P[[first, first - 1]], tilts[bins])
        own = np.array([0, 1])
        leads = (x[own, own][:, None] - x for x in (values[bins], q))
        yield Answer(bins, own, *leads)
