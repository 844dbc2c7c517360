"""Folds: which rows are held out together."""

from __future__ import annotations

import numpy as np

from isoroc._simplex import Ints


def deal_folds(
    n_rows: int, n_folds: int, random_state: np.random.RandomState | np.random.Generator
) -> Ints:
    """Fold of each row, drawn at random; of fewer rows than folds, each is a fold of its own."""
    return np.asarray(random_state.permutation(n_rows) % min(n_folds, n_rows))
