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
    """Fold of each row, drawn at random.

    Parameters
    ----------
    n_rows, n_folds : int
        Of fewer rows than folds, each is a fold of its own.
    random_state : RandomState or Generator
        Shuffles the rows.
    codes : ndarray of shape (n_rows,), default=None
        Classes to be spread evenly over the folds.

    Examples
    --------
    >>> import numpy as np
    >>> fold = deal_folds(6, 2, np.random.RandomState(0), codes=np.array([0, 0, 0, 0, 1, 1]))
    >>> np.bincount(fold), np.sort(fold[4:])
    (array([3, 3]), array([0, 1]))
    """
    shuffled = random_state.permutation(n_rows)
    n_folds = min(n_folds, n_rows)
    if codes is None:
        return np.asarray(shuffled % n_folds)
    fold = np.empty(n_rows, dtype=np.intp)
    fold[shuffled[np.argsort(codes[shuffled], kind="stable")]] = np.arange(n_rows) % n_folds
    return fold
