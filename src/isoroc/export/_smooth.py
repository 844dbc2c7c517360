"""Maps that are smooth, made of logarithms, exponentials and sums."""

from __future__ import annotations

import math
from collections.abc import Sequence

from isoroc._calibrators.identity import IdentityCalibrator
from isoroc._calibrators.matrix import MatrixCalibrator
from isoroc._calibrators.scores import ProbabilityCalibrator
from isoroc._calibrators.spline import SplineCalibrator
from isoroc._calibrators.temperature import TemperatureCalibrator, TemperedCalibrator
from isoroc._simplex import Floats
from isoroc.export._writer import C, Writer, map_of


@map_of.register
def _(calibrator: IdentityCalibrator, w: Writer[C], columns: Sequence[C]) -> list[C]:
    if len(columns) > 1:
        return list(columns)
    [score] = columns
    one = w.number(1.0)
    if not calibrator.log_odds_:
        return [w.subtract(one, score), score]
    # exp of what is never positive cannot overflow, which is an error in some databases.
    [small] = w.keep([w.exp(w.negative(w.absolute(score)))])
    of_small, of_large = w.keep([w.divide(part, w.add(one, small)) for part in (small, one)])
    negative = w.at_most(score, w.number(0.0))
    return [w.where(negative, of_large, of_small), w.where(negative, of_small, of_large)]


@map_of.register
def _(calibrator: TemperatureCalibrator, w: Writer[C], columns: Sequence[C]) -> list[C]:
    return [w.exp(z) for z in w.keep(_tempered(w, calibrator, columns))]


@map_of.register
def _(calibrator: MatrixCalibrator, w: Writer[C], columns: Sequence[C]) -> list[C]:
    z = w.keep(_tempered(w, calibrator, columns))
    coef = calibrator.coef_
    logits = []
    for k, own in enumerate(z):
        linear = _weighted(w, coef[k], z if coef.ndim == 2 else [own])
        square = w.multiply(w.number(calibrator.quadratic_[k]), w.multiply(own, own))
        logits.append(w.run([linear, square, w.number(calibrator.intercept_[k])]))
    return [w.exp(z) for z in w.keep(_log_softmax(w, logits))]


@map_of.register
def _(calibrator: SplineCalibrator, w: Writer[C], columns: Sequence[C]) -> list[C]:
    logs = w.keep(_log_forecasts(w, calibrator, calibrator.floor_, columns))
    odds = w.keep(_log_odds(w, logs))
    zero = w.number(0.0)
    logits = []
    for k, own in enumerate(odds):
        linear = _weighted(w, calibrator.coef_[k], logs)
        above = [w.maximum(w.subtract(own, w.number(knot)), zero) for knot in calibrator.knots_]
        terms = [linear, w.number(calibrator.intercept_[k])]
        if above:
            terms.append(_weighted(w, calibrator.slopes_[k], above))
        logits.append(w.run(terms))
    q = w.keep(w.exp(z) for z in w.keep(_log_softmax(w, logits)))
    return _mixed(w, q, calibrator.smoothing_)


def _tempered(w: Writer[C], calibrator: TemperedCalibrator, columns: Sequence[C]) -> list[C]:
    """Logarithms of tempered and smoothed forecasts."""
    temperature = w.number(calibrator.temperature_)
    logs = _log_forecasts(w, calibrator, calibrator.floor_, columns)
    z = _log_softmax(w, [w.divide(column, temperature) for column in logs])
    if not calibrator.smoothing_:
        return z
    q = w.keep(w.exp(column) for column in w.keep(z))
    return [w.log(column) for column in _mixed(w, q, calibrator.smoothing_)]


def _mixed(w: Writer[C], q: Sequence[C], smoothing: float) -> list[C]:
    """Forecasts mixed with the uniform one."""
    kept, share = w.number(1 - smoothing), w.number(smoothing / len(q))
    return [w.add(w.multiply(kept, column), share) for column in q]


def _log_forecasts(
    w: Writer[C], calibrator: ProbabilityCalibrator, floor: float, columns: Sequence[C]
) -> list[C]:
    """Logarithms of forecasts, none below that of the floor."""
    if len(columns) == 1 and calibrator.log_odds_:
        [score] = columns
        zero, one, log_floor = w.number(0.0), w.number(1.0), w.number(math.log(floor))
        # log(1 / (1 + exp(-score))) = min(score, 0) - log(1 + exp(-|score|))
        size = w.absolute(score)
        [spread] = w.keep([w.log(w.add(one, w.exp(w.negative(size))))])
        sides = w.keep([w.maximum(score, zero), w.maximum(w.negative(score), zero)])
        return [w.maximum(w.subtract(w.negative(side), spread), log_floor) for side in sides]
    if len(columns) == 1:
        columns = [w.subtract(w.number(1.0), columns[0]), *columns]
    return [w.log(w.maximum(column, w.number(floor))) for column in columns]


def _log_odds(w: Writer[C], logs: Sequence[C]) -> list[C]:
    """Log odds of each class, those of the likeliest against the sum of the others."""
    P = w.keep(w.exp(column) for column in logs)
    _, place = w.largest(P)
    [place] = w.keep([place])
    zero = w.number(0.0)
    others = w.run([w.where(w.is_at(place, k), zero, p) for k, p in enumerate(P)])
    others, total = w.keep([others, w.run(P)])
    return [
        w.subtract(z, w.log(w.where(w.is_at(place, k), others, w.subtract(total, p))))
        for k, (z, p) in enumerate(zip(logs, P, strict=True))
    ]


def _log_softmax(w: Writer[C], z: Sequence[C]) -> list[C]:
    """Logarithms of exp(z) normalised to sum to one."""
    z = w.keep(z)
    largest, _ = w.largest(z)
    [largest] = w.keep([largest])
    z = w.keep(w.subtract(column, largest) for column in z)
    [total] = w.keep([w.log(w.run([w.exp(column) for column in z]))])
    return [w.subtract(column, total) for column in z]


def _weighted(w: Writer[C], weights: Floats, columns: Sequence[C]) -> C:
    """Weighted sum of columns."""
    numbers = [w.number(float(weight)) for weight in weights.reshape(-1)]
    return w.run([w.multiply(n, column) for n, column in zip(numbers, columns, strict=True)])
