"""Mixing: weights of the members of a mixture, and how well they forecast unseen rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from isoroc._core.intervals import Mean, by_cluster
from isoroc._core.types import Floats, Ints
from isoroc._input import Sample
from isoroc._support.table import Table

#: Strength of the prior, in nats: members whose total log likelihood differs by less than about
#: this share the weight almost as the prior does.
STRENGTH = 2.0
#: Members of less weight are dropped, of many members those with less than half an equal share.
#: That costs nothing measurable and makes forecasts faster.
LEAST_WEIGHT = 0.1
#: Steps of Newton's method and how often one may be halved, the longest step of a log weight, its
#: lowest value, and the slope, in nats per unit of log weight, at which the search ends.
STEPS, HALVINGS, LONGEST, LOWEST, FLAT = 100, 50, 5.0, -200.0, 1e-3
#: A likelihood below this counts as this.
TINY = 1e-300
#: A gain of more standard errors than this is beyond noise; so is a gain if calibrated forecasts
#: would depart as far from the outcomes with a lower probability than this.
SIGNIFICANT, IMPROBABLE = 2.0, 0.01
#: P-value from which on the uncalibrated forecasts have their full share, and the share at 0.
CREDIBLE, LEAST_SHARE = 0.5, 0.25
#: How the verdict begins where it is.
CALIBRATE = "calibrate"


def share_of_forecasts(share: float, few_rows: float, n_rows: float, p: float) -> float:
    """Share of the uncalibrated forecasts before the mixture has seen a row.

    With `few_rows` rows it is twice as large as with very many. It is the smaller, the more the
    rows speak against the forecasts: `p` is that of the `departure`.
    """
    return share * (1 + few_rows / n_rows) * min(1.0, p / CREDIBLE) + LEAST_SHARE


def mixture_weights(likelihood: Floats, row_weights: Floats, prior: Floats) -> Floats:
    """Weights under which the mixture makes the outcomes likely and stays close to the prior.

    They maximise the log likelihood of the rows minus `STRENGTH` times the relative entropy of the
    weights to the prior, a strictly concave function. Unlike prior counts, relative entropy does
    not keep a bad member alive: its weight falls exponentially with the likelihood that it costs.
    What the prior decides is how members share that do equally well, and with few rows all do.
    `likelihood`, of shape (n, M), is what each member gave the label that came true.
    """
    objective = Objective(likelihood.clip(min=TINY), row_weights, np.log(prior / prior.sum()))
    point = objective.at(objective.log_prior)
    for _ in range(STEPS):
        slope, curvature = objective.derivatives(point)
        if np.abs(slope).max() <= FLAT:
            break
        try:
            step = np.linalg.solve(curvature, slope)
        except np.linalg.LinAlgError:  # members agree, up to rounding of weights of very many rows
            step = np.linalg.lstsq(curvature, slope)[0]
        point = objective.climb(point, step * min(1.0, LONGEST / np.abs(step).max()))
    least = min(LEAST_WEIGHT, 0.5 / len(prior))
    weights = np.where(point.weights < least, 0.0, point.weights)
    return np.asarray(weights / weights.sum())


class Point(NamedTuple):
    """Where the objective has been evaluated."""

    u: Floats  # logarithms of the weights, up to a constant
    weights: Floats
    mixed: Floats  # likelihood of each row under the mixture
    value: float


class Objective(NamedTuple):
    """Log likelihood minus `STRENGTH` times the relative entropy, as a function of u."""

    L: Floats
    row_weights: Floats
    log_prior: Floats

    def at(self, u: Floats) -> Point:
        """Evaluate at log weights u."""
        u = np.maximum(u - u.max(), LOWEST)
        weights = np.exp(u)
        weights /= weights.sum()
        mixed = self.L @ weights
        entropy = weights @ (np.log(weights) - self.log_prior)
        value = float(self.row_weights @ np.log(mixed) - STRENGTH * entropy)
        return Point(u, weights, mixed, value)

    def derivatives(self, point: Point) -> tuple[Floats, Floats]:
        """Gradient in u, and minus the Hessian without the terms that vanish at the maximum."""
        w = point.weights
        ratio = self.L / point.mixed[:, None]
        gradient = self.row_weights @ ratio - STRENGTH * (np.log(w) - self.log_prior)
        D = ratio * w - w  # derivatives of each row's log likelihood in u
        curvature = (D * self.row_weights[:, None]).T @ D
        curvature += STRENGTH * (np.diag(w) - np.outer(w, w))
        # A shift of all u changes nothing, and members without weight change little.
        curvature += STRENGTH / len(w) + 1e-9 * STRENGTH * np.eye(len(w))
        return w * (gradient - w @ gradient), curvature

    def climb(self, point: Point, step: Floats) -> Point:
        """A point of no lower value along a step, which is halved until there is one."""
        for _ in range(HALVINGS):
            found = self.at(point.u + step)
            if found.value >= point.value:
                return found
            step = step / 2
        return point


def bounded_losses(likelihood: Floats, row_weights: Floats, n_classes: int) -> Floats:
    """Log loss of each row when forecasts are mixed with the uniform one, of the weight of one row.

    It is at most ``log(K * (n + 1))``, so that no single row can decide a mean over n rows.
    """
    total = row_weights.sum()
    return np.asarray(-np.log((total * likelihood + 1 / n_classes) / (total + 1)))


def score_members(names: list[str], weights: Floats, losses: Floats, sample: Sample) -> Table:
    """Mean loss of each member, and gain over the last column, the uncalibrated forecasts."""
    gains = losses[:, -1:] - losses[:, :-1]
    loss, loss_error = mean_and_error(losses[:, :-1], sample)
    gain, gain_error = mean_and_error(gains, sample)
    return Table(
        member=np.array(names),
        weight=weights,
        log_loss=loss,
        log_loss_se=loss_error,
        gain=gain,
        gain_se=gain_error,
    )


def mean_and_error(values: Floats, sample: Sample) -> tuple[Floats, Floats]:
    """Weighted mean of each column, and its standard error."""
    clusters, squares = sample.clusters, sample.squared_weights()
    total, *means = by_cluster(clusters, sample.row_weights(), *values.T)
    found = [Mean() for _ in means]
    for mean, column in zip(found, means, strict=True):
        mean.add(column, total, squares if clusters is None else None)
    variances = [mean.statistic().variance for mean in found]
    return np.array([mean.value for mean in found]), np.sqrt(variances)


def surprise(before: Floats, after: Floats, sample: Sample) -> float:
    """Standard error of the mean gain if the forecasts before, shape (n, K), are calibrated.

    It counts rare outcomes, which sharp forecasts allow for and few rows have not seen.
    """
    weights, K = sample.row_weights(), sample.n_classes
    gains = bounded_losses(before, weights, K) - bounded_losses(after, weights, K)
    gains -= (before * gains).sum(axis=1, keepdims=True)
    variance = (before * gains**2).sum(axis=1)
    return float(np.sqrt(sample.squared_weights() @ variance) / weights.sum())


def departure(before: Floats, sample: Sample, squares: Floats) -> float:
    """P-value of a score test for forecasts of shape (n, K) that are too confident or too timid.

    Of two classes, also for log odds that are shifted. The test has far more power than the gain
    of a mixture that must be learned from the same few rows. `squares` are squared weights of rows,
    or the weights themselves, if they count rows.
    """
    weights, (n, K) = sample.row_weights(), before.shape
    n_rows = weights.sum() ** 2 / squares.sum()
    P = (n_rows * before + 1 / K) / (n_rows + 1)
    directions = [np.log(P)] if K > 2 else [np.log(P), np.broadcast_to([0.0, 1.0], P.shape)]
    centred = [d - (P * d).sum(axis=1, keepdims=True) for d in directions]
    terms = np.array([weights * d[np.arange(n), sample.codes] for d in centred])
    score = terms.sum(axis=1)
    variance = [[squares @ (P * d * e).sum(axis=1) for e in centred] for d in centred]
    if sample.clusters is not None:
        sums = np.array([np.bincount(sample.clusters, own) for own in terms])
        variance = sums @ sums.T
    return float(chdtrc(len(score), score @ np.linalg.pinv(variance) @ score))


def losses_by_fold(names: list[str], losses: Floats, row_weights: Floats, fold: Ints) -> Table:
    """Mean loss of each member in each fold."""
    table = Table(member=np.array(names))
    for held_out in range(fold.max() + 1):
        inside = fold == held_out
        table[f"fold{held_out}"] = np.average(
            losses[inside, : len(names)], axis=0, weights=row_weights[inside]
        )
    return table


def verdict(scores: Table, least_error: float, p: float, impossible: int, n_rows: int) -> str:
    """Whether the mixture, the last row, is better than the forecasts beyond noise.

    `p` is that of the `departure`. Of n rows, the outcomes of some, `impossible`, were given
    probability 0.
    """
    loss, gain, error = (float(scores[name][-1]) for name in ("log_loss", "gain", "gain_se"))
    error = max(error, least_error)
    change = f"log loss {loss + gain:.4f} before, {loss:.4f} after on unseen rows"
    if gain > SIGNIFICANT * error:
        text = f"{CALIBRATE}: {change}, better by {gain:.4f} (standard error {error:.4f})"
    elif gain > 0 and p < IMPROBABLE:
        text = f"{CALIBRATE}: {change}, better by {gain:.4f}; calibrated forecasts would depart as "
        text += f"far from the outcomes with probability {p:.2g}"
    else:
        text = f"leave it: no improvement on the forecasts beyond noise ({change})"
    if impossible:
        text += f"; {impossible} of {n_rows} outcomes had been given probability 0"
    return text
