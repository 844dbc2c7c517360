"""Mixing: weights of members, how well they forecast unseen rows, and whether that helps.

The prior of the weights, its strength and the prior of the exponent were chosen on the arena of
docs/evidence.md, together with the members.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from isoroc._core.evidence import count_units, score_test
from isoroc._core.intervals import Estimate, Mean, by_cluster, half_width, mean
from isoroc._core.losses import (
    are_impossible,
    likeliest_power,
    log_losses,
    outcome_probabilities,
)
from isoroc._core.newton import newton
from isoroc._core.types import Floats
from isoroc._core.verdict import Verdict, allow_for_few_rows, judge_gain
from isoroc._input import CellSample, Sample, slices
from isoroc._maps import IdentityMap, Map
from isoroc._support.table import Table

STRENGTH = 2.0  # of the prior, in nats of total log likelihood


class Caution(NamedTuple):
    """How the prior share of the uncalibrated forecasts depends on the number of rows."""

    least: float  # share that is always added
    few_rows: float  # informative rows with which the share of very many rows is doubled

    @classmethod
    def of(cls, n_classes: int) -> Self:
        """What the default members need."""
        return cls(0.25, 600.0) if n_classes == 2 else cls(1.0, 50.0)

    def share(self, share: float, n_rows: float, n_informative: float, p: float) -> float:
        """Prior share of the uncalibrated forecasts, given the p-value p of `score_test`.

        The share is kept in full if p, raised for few rows, is at least 1/2, and falls in
        proportion to p below that.
        """
        evidence = allow_for_few_rows(2 * p, n_rows)
        return self.least + share * (1 + self.few_rows / n_informative) * evidence


def informative_rows(forecasts: Floats, sample: Sample) -> float:
    """Number of rows whose outcomes say something about forecasts of shape (n, K), at least 1.

    With three classes or more, a row counts by the squared distance of its outcome from the
    forecast, relative to a coin toss: by what is expected, ``1 - sum(p**2)``, or by what came true,
    whichever has the larger sum. A thousand forecasts of 0.999 have about one outcome that corrects
    them if they are calibrated, and more if they are too sure. With two classes all rows count:
    distances did not improve forecasts there.
    """
    weights = sample.row_weights()
    if sample.n_classes == 2:
        return float(weights.sum())
    squares = (forecasts**2).sum(axis=1)
    expected = weights @ (1 - squares)
    observed = weights @ (1 - 2 * outcome_probabilities(forecasts, sample.codes) + squares)
    return max(2 * float(expected), 2 * float(observed), 1.0)


def exponent_of(mixed: Floats, sample: Sample, calibrated: float = 1.0) -> float:
    """Exponent of the mixture with the largest likelihood on unseen rows, given (n, K) forecasts.

    Its logarithm has a normal prior of scale 0.1, or of half that with 300 rows. The scale falls to
    zero with the weight `calibrated` of all members but the uncalibrated forecasts, from 0.4 on.
    """
    if not calibrated:
        return 1.0
    weights = sample.row_weights()
    scale = 0.1 * min(calibrated / 0.4, 1.0) / (1 + 300 / float(weights.sum()))
    z = np.ascontiguousarray(np.log(np.maximum(mixed, 1e-12)).T)
    z -= z[sample.codes, np.arange(len(sample))]
    return likeliest_power(z, weights, 0.01, 100.0, precision=scale**-2, tolerance=1e-12)


def mixture_weights(
    likelihood: Floats,
    row_weights: Floats,
    prior: Floats,
    *,
    unchanged: int | None = None,
    dropped: float | Floats = 0.01,
    full: float = 0.03,
) -> Floats:
    """Weights that maximise the likelihood of the mixture, with a penalty towards the prior.

    They maximise the log likelihood of the rows minus `STRENGTH` times the relative entropy of the
    weights to the prior. The weight of a bad member falls exponentially with the likelihood that it
    costs. Members that do equally well share as in the prior. `likelihood`, of shape (n, M), is the
    probability that each member gave the outcome.

    Members with less weight than `dropped`, a number or one for each member, are dropped. Up to the
    weight `full`, weights are reduced gradually, so that none jumps. With many members, `full` is
    three quarters of an equal share, and `dropped` is reduced in proportion.

    `unchanged` is the index of the uncalibrated forecasts. Small changes to them do more harm than
    good: if the others have less than 20 % of the weight in total, they get none, and up to 40 %
    they get less, gradually.
    """
    objective = Objective(likelihood.clip(min=1e-300), row_weights, np.log(prior / prior.sum()))
    weights = newton(objective.at(objective.log_prior), objective.at, objective.step).weights
    scale = min(1.0, 0.75 / len(prior) / full)
    weights = weights * gradually(weights, scale * dropped, scale * full)
    weights /= weights.sum()
    if unchanged is not None:
        calibrated = 1 - weights[unchanged]
        kept = gradually(calibrated, 0.2, 0.4)
        weights *= kept
        weights[unchanged] = 1 - kept * calibrated
    return np.asarray(weights)


def gradually(x: Any, start: Any, end: float) -> Any:
    """A factor that rises from 0 at x = `start` to 1 at x = `end`, and stays there."""
    return np.clip((x - start) / (end - start), 0.0, 1.0)


class Mixture(NamedTuple):
    """The objective at one choice of weights."""

    theta: Floats  # logarithms of the weights, up to a constant
    weights: Floats
    mixed: Floats  # likelihood of each row under the mixture
    value: float


class Objective(NamedTuple):
    """`STRENGTH` times the relative entropy minus the log likelihood, as a function of theta."""

    L: Floats
    row_weights: Floats
    log_prior: Floats

    def at(self, theta: Floats) -> Mixture:
        """Evaluate at log weights theta."""
        theta = np.maximum(theta - theta.max(), -200.0)
        weights = np.exp(theta)
        weights /= weights.sum()
        mixed = self.L @ weights
        entropy = weights @ (np.log(weights) - self.log_prior)
        value = STRENGTH * entropy - self.row_weights @ np.log(mixed)
        return Mixture(theta, weights, mixed, float(value))

    def step(self, mixture: Mixture) -> Floats:
        """The Newton step, zero if the gradient is small. No weight changes by more than e**5.

        The Hessian lacks the terms that vanish at the minimum.
        """
        w = mixture.weights
        ratio = self.L / mixture.mixed[:, None]
        rise = self.row_weights @ ratio - STRENGTH * (np.log(w) - self.log_prior)
        slope = w * (rise - w @ rise)
        if np.abs(slope).max() <= 1e-3:  # nats per unit of log weight
            return np.zeros_like(w)
        D = ratio * w - w  # derivatives of each row's log likelihood in theta
        curvature = (D * self.row_weights[:, None]).T @ D
        curvature += STRENGTH * (np.diag(w) - np.outer(w, w))
        # A shift of all log weights changes nothing, and members without weight change little: the
        # curvature is singular in the first direction, and nearly so in the others.
        curvature += STRENGTH / len(w) + 1e-9 * STRENGTH * np.eye(len(w))
        try:
            step = np.linalg.solve(curvature, slope)
        except np.linalg.LinAlgError:  # members agree, up to rounding of weights of very many rows
            step = np.linalg.lstsq(curvature, slope)[0]
        return np.asarray(step * min(1.0, 5 / np.abs(step).max()))


def bounded_losses(likelihood: Floats, row_weights: Floats, n_classes: int) -> Floats:
    """Log losses when forecasts are mixed with the uniform one, which counts as one row."""
    total = row_weights.sum()
    return np.asarray(-np.log((total * likelihood + 1 / n_classes) / (total + 1)))


def likelihoods(forecasts: Sequence[Floats], sample: Sample) -> Floats:
    """Probability that each forecast, shape (n, K), gave the outcomes, shape (n, M)."""
    return np.column_stack([outcome_probabilities(Q, sample.codes) for Q in forecasts])


def score_members(
    names: Sequence[str], weights: Floats, forecasts: Sequence[Floats], sample: CellSample
) -> tuple[Table, Table]:
    """Losses on unseen rows: in total for members and the mixture, and by fold for members.

    `forecasts` come from the members, then the mixture. The uncalibrated ones are last.
    """
    row_weights = sample.row_weights()
    fold = sample.folds()
    losses = bounded_losses(likelihoods(forecasts, sample), row_weights, sample.n_classes)
    loss, loss_error = mean_and_error(losses[:, :-1], sample)
    gain, gain_error = mean_and_error(losses[:, -1:] - losses[:, :-1], sample)
    scores = Table(
        member=np.array([*names, "mixture"]),
        weight=np.append(weights, 1.0),
        log_loss=loss,
        log_loss_se=loss_error,
        gain=gain,
        gain_se=gain_error,
    )
    by_fold = Table(member=np.array(names))
    of_members = losses[:, : len(names)]
    for held_out in range(fold.max() + 1):
        inside = fold == held_out
        means = np.average(of_members[inside], axis=0, weights=row_weights[inside])
        by_fold[f"fold{held_out}"] = means
    return scores, by_fold


def mean_and_error(values: Floats, sample: Sample) -> tuple[Floats, Floats]:
    """Weighted mean of each column, and its standard error."""
    clusters = sample.clusters
    squares = sample.squared_weights()
    total, *means = by_cluster(clusters, sample.row_weights(), *values.T)
    columns = [Mean() for _ in means]
    for column, rows in zip(columns, means, strict=True):
        column.add(rows, total, squares if clusters is None else None)
    variances = [column.statistic().variance for column in columns]
    return np.array([column.value for column in columns]), np.sqrt(variances)


def expected_gain_error(before: Floats, after: Floats, sample: Sample) -> float:
    """Standard error of the mean gain if the forecasts before, shape (n, K), are calibrated.

    It includes rare outcomes that few rows may not contain: their gains count with the probability
    that was forecast, not with their frequency among the rows.
    """
    weights = sample.row_weights()
    K = sample.n_classes
    gains = bounded_losses(before, weights, K) - bounded_losses(after, weights, K)
    gains -= (before * gains).sum(axis=1, keepdims=True)
    variance = (before * gains**2).sum(axis=1)
    return float(np.sqrt(sample.squared_weights() @ variance) / weights.sum())


def judge(
    sample: Sample, dealt: CellSample, before: Floats, after: Floats, mixture: Map
) -> Verdict:
    """Whether a mixture is better than the uncalibrated forecasts beyond noise.

    `before` and `after`, the mixture out of fold, are forecasts of the dealt rows, shape (n, K).
    """
    weights = dealt.row_weights()
    losses = bounded_losses(likelihoods([before, after], dealt), weights, dealt.n_classes)
    gain, error = (float(v[0]) for v in mean_and_error(losses[:, :1] - losses[:, 1:], dealt))
    half = float(half_width(0.95) * max(error, expected_gain_error(before, after, dealt)))
    loss, impossible, n_rows = _plain_loss(sample, IdentityMap(kind=sample.kind))
    new_loss = mean(log_losses(after, dealt.codes), weights)
    if sample is not dealt and dealt.n_classes > 2:
        # Rows differ from the mean of their cell, and some were not drawn. The loss of the mixture
        # on rows that it was fitted to is too low, by as much as on cells.
        seen = mean(log_losses(mixture.apply(dealt.forecasts), dealt.codes), weights)
        share = float((weights**2 / dealt.squared_weights()).sum()) / n_rows
        new_loss = _plain_loss(sample, mixture)[0] + share * (new_loss - seen)
    n_units = count_units(dealt)
    # The weights of the mixture were chosen on these rows: about a nat of the total gain.
    low = gain - half - 1 / n_units
    return judge_gain(
        Estimate(gain, low, gain + half),
        score_test(before, dealt),
        n_units,
        before=loss,
        after=new_loss,
        based_on="cross-validation",
        n_rows=n_rows,
        impossible=impossible,
    )


def _plain_loss(sample: Sample, change: Map) -> tuple[float, int, int]:
    """Log loss of changed forecasts, number of outcomes of probability 0, and number of rows."""
    loss = 0.0
    total = 0.0
    impossible = 0.0
    n_rows = 0.0
    for rows in slices(len(sample)):
        part = sample.take(rows)
        P = change.apply(part.forecasts)
        weights = part.row_weights()
        loss += float(weights @ log_losses(P, part.codes))
        total += float(weights.sum())
        impossible += part.count_rows(are_impossible(P, part.codes))
        n_rows += float((weights**2 / part.squared_weights()).sum())  # parts of a row add up to 1
    return loss / total, round(impossible), round(n_rows)


def agreed(verdicts: Sequence[Verdict]) -> Verdict:
    """Majority verdict of calibrators fitted to different rows, with mean losses and gains."""
    first, *others = verdicts
    if not others:
        return first
    n_rows = sum(verdict.n_rows for verdict in verdicts)

    def average(name: str) -> float:
        return sum(v.n_rows / n_rows * float(getattr(v, name)) for v in verdicts)

    should = sum(v.should_calibrate for v in verdicts) * 2 > len(verdicts)
    gain = average("gain")
    half = math.hypot(*(v.n_rows / n_rows * (v.high - v.low) / 2 for v in verdicts))
    return replace(
        first,
        should_calibrate=should,
        few_rows=not should and sum(v.few_rows for v in verdicts) * 2 > len(verdicts),
        before=average("before"),
        after=average("after"),
        gain=gain,
        low=gain - half,
        high=gain + half,
        p_value=math.nan,
        n_rows=n_rows,
        impossible=sum(v.impossible for v in verdicts),
        largest_change=math.nan,
        mean_change=math.nan,
        n_folds=len(verdicts),
        n_agreeing=sum(v.should_calibrate == should for v in verdicts),
    )
