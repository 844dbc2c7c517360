"""Folds: which rows are held out together."""

from __future__ import annotations

import warnings

import numpy as np

from isoroc._input import InputError
from isoroc._simplex import Codes, Ints

#: Rows to train on and rows held out.
Fold = tuple[Ints, Ints]


def deal_folds(
    n_rows: int,
    n_folds: int,
    random_state: np.random.RandomState | np.random.Generator,
    codes: Codes | None = None,
) -> Ints:
    """Fold of each row, drawn at random; classes, if given, are spread evenly over the folds.

    Of fewer rows than folds, each is a fold of its own.
    """
    shuffled = random_state.permutation(n_rows)
    n_folds = min(n_folds, n_rows)
    if codes is None:
        return np.asarray(shuffled % n_folds)
    fold = np.empty(n_rows, dtype=np.intp)
    fold[shuffled[np.argsort(codes[shuffled], kind="stable")]] = np.arange(n_rows) % n_folds
    return fold


def usable_folds(folds: list[Fold], codes: Ints, *, calibrated_apart: bool) -> list[Fold]:
    """Folds that a classifier can be trained on, and calibrated on where each has a calibrator.

    If each is calibrated apart, folds that hold out rows of one class are left out with a warning.
    """
    for f, (train, _) in enumerate(folds):
        if len(np.unique(codes[train])) < 2:
            problem = f"fold {f} leaves rows of one class only to train on"
            raise InputError("cv", None, problem, "use fewer folds, or stratified ones")
    if not calibrated_apart:
        return folds
    usable = [fold for fold in folds if len(np.unique(codes[fold[1]])) > 1]
    if not usable:
        problem = "every fold holds out rows of one class only, and calibrating takes two"
        raise InputError("cv", None, problem, "use fewer folds, or ensemble=False")
    if len(usable) < len(folds):
        warnings.warn(
            f"cv: {len(folds) - len(usable)} of {len(folds)} folds hold out rows of one class "
            "only; their classifiers cannot be calibrated and are left out.",
            UserWarning,
            stacklevel=5,
        )
    return usable
