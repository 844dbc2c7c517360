"""Values that vary in the bins of a tree, as far as the certificates of its splits allow.

In bin b the tempered forecast p of a row becomes q, proportional to ``p * t_b``: a bias on its
logarithms, so a monotone map inside the bin. The tilt t_b is the one for which the mean of q over
the rows of the bin is the value r_b that the bin would have as a constant. A row gets
``r_b + a_b (q - r_b)``, and the share a_b is as large as ROC monotonicity permits. W of a split is
now a minimum over rows instead of bins. Since r_b is the mean of q, a larger share can only lower
W, and with shares 0 every split has its certificate.
"""

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from isoroc._core.growth import largest_cap, smallest_leads, tilted_sums
from isoroc._core.simplex import binary_scores, regions
from isoroc._core.tree import BinTree, bin_values
from isoroc._core.types import Floats, Ints
from isoroc._counts import N_BITS, rounded
from isoroc._growth.best_first import LEAST_SLACK, GrowthOptions, Monotonicity
from isoroc._growth.grow import grow_tree, mean_forecasts
from isoroc._input import Sample
from isoroc._maps.monotonicity import Certificate, certify, largest_slack, regions_held, solve


class BinnedRows(NamedTuple):
    """Tempered forecasts, shape (n, K), and the bin of each, shape (n,)."""

    forecasts: Floats
    bin_of: Ints


def tilt_bins(
    tree: BinTree, values: Floats, sample: Sample, rows: BinnedRows, monotonicity: Monotonicity
) -> tuple[Floats, Floats, Certificate | None]:
    """Tilts (B, K), shares (B,) and certificate of bins with values (B, K)."""
    tilts = find_tilts(rows, sample.row_weights(), values)
    if monotonicity is None or not tree.n_splits:
        certificate = None if monotonicity is None else certify(tree, values)
        return tilts, np.ones(len(tilts)), certificate
    scope = monotonicity
    if tree.n_classes == 2:
        scope = "global"  # the scopes agree, see `certify`
        leads = _of_neighbours(tree, values, tilts, rows, binary_scores(sample.forecasts))
    else:
        points = sample.forecasts if scope == "global" else None
        leads = _of_rows(tree, values, tilts, rows, points)
    shares = largest_shares(leads, LEAST_SLACK[scope])
    return tilts, shares, Certificate(scope, tree.thresholds, *solve(leads.bounds(shares)))


def find_tilts(rows: BinnedRows, weights: Floats, values: Floats) -> Floats:
    """The t of each bin for which the mean of ``p * t``, each row divided by its sum, is its value.

    Its logarithm maximises a concave function and is found by Newton's method.
    """
    B = len(values)
    total = np.bincount(rows.bin_of, weights, B)[:, None]
    sums, _ = tilted_sums(*rows, weights, np.ones_like(values), np.ones(B, dtype=np.uint8))
    with np.errstate(divide="ignore"):
        u = np.log(values / (sums / total))
    # A constant added to u changes nothing, so ones are added to make the matrix invertible.
    possible = values > 0
    ones = possible[:, :, None] * possible[:, None] / possible.sum(axis=1)[:, None, None]
    moving = np.ones(B, dtype=bool)
    for _ in range(50):
        u -= u.max(axis=1, keepdims=True)
        mean, products = tilted_sums(*rows, weights, np.exp(u), moving.view(np.uint8))
        error = values - mean / total
        moving &= np.abs(error).max(axis=1) > 1e-10
        if not moving.any():
            break
        at = np.flatnonzero(moving)
        curvature = ones[at] - (products / total[..., None])[at]
        curvature += (mean / total)[at, :, None] * np.eye(values.shape[1])
        inverse = np.linalg.pinv(curvature, rcond=1e-15, hermitian=True)
        step = (inverse @ error[at][..., None])[..., 0]
        # Newton steps change no log tilt by more than 2, since the curvature only holds nearby. All
        # bins step at once, with compiled sums, which is why `_core.newton` is not used here.
        u[at] += step * 2 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 2)
    return np.asarray(np.exp(u - u.max(axis=1, keepdims=True)))


def held_out_pseudocount(sample: Sample, options: GrowthOptions, tempered: Floats) -> float | None:
    """Pseudocount of mean forecasts under which trees of one half predict the other half best.

    In-sample evidence underestimates the pseudocount: bins were selected on labels that differ from
    the forecasts. Halves take turns in the order of the forecasts, so that neither weights nor the
    order of the rows matter. None where all forecasts are the same.
    """
    coarse = rounded(sample.forecasts, N_BITS)
    half = np.unique(coarse, axis=0, return_inverse=True)[1].ravel() % 2
    if not half.any():
        return None
    pulls = np.geomspace(3.0, 1000.0, 11)
    losses = np.zeros(len(pulls))
    for train in (half == 0, half == 1):
        seen = sample.take(train)
        new = sample.take(~train)
        tree = grow_tree(seen, replace(options, random_state=None))
        means = mean_forecasts(tree, tree.bin_of(seen.forecasts), seen, tempered[train])[tree.bins]
        bin_of = tree.bin_of(new.forecasts)
        rows = np.arange(len(new))
        for at, c in enumerate(pulls):
            values = bin_values(tree.class_weights[tree.bins], options.pseudocounts + c * means)
            q = tempered[~train] * (values / means)[bin_of]
            likelihood = q[rows, new.codes] / q.sum(axis=1)
            losses[at] -= new.row_weights() @ np.log(likelihood.clip(min=1e-300))
    return float(pulls[losses.argmin()])


class Leads(NamedTuple):
    """Leads r_i - r_j of the bins with rows in region i of a split, by split and region."""

    splits: Ints  # (E,)
    regions: Ints  # (E,)
    bins: Ints  # (E,)
    constant: Floats  # (E, K): lead of the bin's value
    varying: Floats  # (E, K): smallest lead of the bin's rows if its share is 1

    def bounds(self, shares: Floats) -> Floats:
        """W of the splits for shares of the bins, shape (S, K, K)."""
        K = self.constant.shape[1]
        W = np.full((self.splits[-1] + 1, K, K), np.inf)
        leads = self.constant + shares[self.bins, None] * (self.varying - self.constant)
        first = np.flatnonzero(np.diff(self.splits * K + self.regions, prepend=-1))
        W[self.splits[first], self.regions[first]] = np.minimum.reduceat(leads, first)
        W[:, np.arange(K), np.arange(K)] = np.inf
        return W

    def limits(self, W: Floats, n_bins: int) -> Floats:
        """Largest share of each bin that does not lower W, shape (B,)."""
        drop = self.constant - self.varying
        with np.errstate(divide="ignore", invalid="ignore"):
            slack = (self.constant - W[self.splits, self.regions]) / drop
        limits = np.ones(n_bins)
        np.minimum.at(limits, self.bins, np.where(drop > 1e-14, slack, 1.0).min(axis=1))
        return limits

    def of_split(self, split: int) -> Self:
        """Leads of one split, which becomes number 0."""
        here = slice(*np.searchsorted(self.splits, [split, split + 1]))
        columns: Any = (np.ascontiguousarray(column[here]) for column in self)
        alone = type(self)(*columns)
        return alone._replace(splits=np.zeros_like(alone.splits))


def largest_shares(leads: Leads, least: float, n_caps: int = 65**4) -> Floats:
    """Shares of bins under which every split keeps its certificate, shape (B,)."""
    shares = np.ones(leads.bins.max() + 1)
    enough = np.minimum(least, largest_slack(leads.bounds(np.zeros_like(shares))))
    for s in np.flatnonzero(largest_slack(leads.bounds(shares)) < enough).tolist():
        alone = leads.of_split(s)
        capped = np.minimum(shares, largest_cap(*alone[1:], shares, enough[s], n_caps))
        # Shares up to the cap are safe. Larger ones are safe up to rounding.
        limits = (1 - 1e-12) * alone.limits(alone.bounds(capped), len(shares))
        shares = np.minimum(shares, np.maximum(limits, capped))
    while (failing := largest_slack(leads.bounds(shares)) < enough - 1e-13).any():
        shares[leads.bins[failing[leads.splits]]] = 0.0  # the mean of a bin has missed its value
    return shares


def _of_rows(
    tree: BinTree, values: Floats, tilts: Floats, rows: BinnedRows, points: Floats | None
) -> Leads:
    """Leads of all bins if there are points, and otherwise of the bins below each split."""
    held = regions_held(tree, points)
    splits, region_of, bins = np.nonzero(held.swapaxes(1, 2))
    if points is None:
        varying = smallest_leads(*rows, tilts, None)[bins, region_of]
    else:
        region = (regions(points, gamma).astype(np.intp) for gamma in tree.thresholds)
        smallest = (smallest_leads(*rows, tilts, here) for here in region)
        pairs = zip(smallest, held.swapaxes(1, 2), strict=True)
        varying = np.concatenate([lead.swapaxes(0, 1)[holds] for lead, holds in pairs])
    return Leads(splits, region_of, bins, values[bins, region_of][:, None] - values[bins], varying)


def _of_neighbours(
    tree: BinTree, values: Floats, tilts: Floats, rows: BinnedRows, scores: Floats
) -> Leads:
    """Leads for two classes: of the rows on both sides of each cut."""
    at = np.searchsorted(tree.cuts, tree.thresholds[:, 1])
    splits = np.repeat(np.arange(tree.n_splits), 2)
    side = np.tile([0, 1], tree.n_splits)
    order = np.argsort(scores, kind="stable")
    first = np.searchsorted(rows.bin_of[order], at + 1)
    bins = at.repeat(2) + side
    ends = order[first.repeat(2) - side]
    q = rows.forecasts[ends] * tilts[bins]
    q /= q.sum(axis=1, keepdims=True)
    leads = (x[np.arange(len(side)), side][:, None] - x for x in (values[bins], q))
    return Leads(splits, side, bins, *leads)
