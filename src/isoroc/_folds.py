"""Folds: which rows are held out together."""

from __future__ import annotations

import numpy as np

from isoroc._simplex import Codes, Ints


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
