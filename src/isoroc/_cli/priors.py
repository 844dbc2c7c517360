"""``isoroc apply --prior`` and ``--adapt-prior``: forecasts for other class shares."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from isoroc._cli.calibrating import ModelRows, Predict
from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import split_words
from isoroc._cli.io.reading import is_sampled
from isoroc._cli.io.source import ROW, file_errors
from isoroc._cli.models import Model, calibrate
from isoroc._cli.terminal import print_note
from isoroc._input import InputError, Names
from isoroc._simplex import Floats
from isoroc.decisions import PriorEstimate, adjust_prior, estimate_prior

#: Class shares are estimated from about this many rows, drawn at random.
ESTIMATED_ROWS = 100_000


def predict_for(
    model: Model, prior: Sequence[str] | None, rows: ModelRows, *, adapt: bool
) -> Predict:
    """What `apply` computes: calibrated forecasts, adjusted to given or to estimated shares.

    Parameters
    ----------
    model : Model
        With its calibrator.
    prior : sequence of str or None
        ``class=share`` for each class, as the user gave them.
    rows : ModelRows
        The rows; they are read once more to estimate shares.
    adapt : bool
        Whether to estimate the shares.
    """
    calibrator = model.calibrator
    calibrated = partial(calibrate, calibrator)
    if prior is None and not adapt:
        return calibrated
    if prior is not None and adapt:
        raise CommandError("--prior sets class shares and --adapt-prior estimates them; use one.")
    labels, old = calibrator.classes_, _old_shares(calibrator)
    if adapt:
        found = _estimate(model, old, rows)
        print_note("class shares of these rows:")
        print_note(repr(found))
        new: Any = found.prior
    else:
        new = parse_shares(split_words(prior) or [])

    def predict(P: Floats, groups: Names | None) -> Floats:
        return adjust_prior(calibrated(P, groups), old, new, labels=labels)

    try:
        adjust_prior(old[None, :], old, new, labels=labels)
    except InputError as error:
        fix = "give the share of each class, CLASS=SHARE; they sum to one"
        raise CommandError(f"--prior {error.problem}; {fix}.") from error
    return predict


def parse_shares(words: Sequence[str]) -> dict[str, float]:
    """Shares by class from words such as ``cat=0.3``.

    Examples
    --------
    >>> parse_shares(["cat=0.3", "dog=0.7"])
    {'cat': 0.3, 'dog': 0.7}
    """
    shares = {}
    for word in words:
        name, _, share = word.rpartition("=")
        try:
            shares[name] = float(share)
        except ValueError:
            expected = "expected CLASS=SHARE for each class, such as cat=0.3,dog=0.7"
            raise CommandError(f"--prior {word}: {expected}.") from None
    return shares


def _old_shares(calibrator: Any) -> Floats:
    weights = np.asarray(calibrator.summary_.get("class_weights", []), dtype=np.float64)
    if weights.shape != calibrator.classes_.shape:
        raise CommandError(
            "the model file does not contain the class weights of its calibration rows, which "
            "--prior and --adapt-prior need; fit the model again with this version."
        )
    if not weights.all():
        absent = calibrator.classes_[int(np.argmin(weights))]
        raise CommandError(
            f"class {absent!s} did not occur in the calibration rows, so its share cannot be "
            "adjusted; fit the model to rows of all classes."
        )
    return np.asarray(weights / weights.sum())


def _estimate(model: Model, old: Floats, rows: ModelRows) -> PriorEstimate:
    name = rows.source.name
    frame = rows.scan().select(ROW, *rows.columns, *([rows.group] if rows.group else []))
    with file_errors(name):
        n = int(frame.select(pl.len()).collect(engine="streaming").item())
        share = ESTIMATED_ROWS / max(n, 1)
        parts = [part.filter(is_sampled(part, share)) for part in frame.collect_batches()]
    if not n:
        raise CommandError(f"{name} has no rows, so there are no class shares to estimate.")
    Q, valid = rows.calibrate(pl.concat(parts), partial(calibrate, model.calibrator))
    return estimate_prior(Q[valid], old, labels=model.calibrator.classes_, random_state=0)
