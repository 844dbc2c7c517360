"""Areas under the ROC curves of all pairs of classes, for many weights of the same rows."""

from __future__ import annotations

import math

import numpy as np

from isoroc._simplex import Codes, Floats, binary_scores, count_classes


def ranked_columns(forecasts: Floats) -> list[tuple[int, Floats]]:
    """Classes and the scores that rank rows by them; two classes have one score.

    Examples
    --------
    >>> import numpy as np
    >>> ranked_columns(np.array([[0.75, 0.25], [0.5, 0.5]]))
    [(1, array([0.25, 0.5 ]))]
    """
    K = count_classes(forecasts)
    if K == 2:
        return [(1, binary_scores(forecasts))]
    return [(k, forecasts[:, k]) for k in range(K)]


class Ranking:
    """Ranks of the rows by the score of each class, and the areas that they give.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    >>> ranking = Ranking(P, np.array([0, 1, 1, 2]))
    >>> ranking.areas(np.ones(4))
    (0.9583333333333334, 0.9583333333333334)
    """

    def __init__(self, forecasts: Floats, codes: Codes) -> None:
        self._codes = codes
        self._n_classes = K = count_classes(forecasts)
        self._groups = []
        for k, scores in ranked_columns(forecasts):
            distinct, rank = np.unique(scores, return_inverse=True)
            self._groups.append((k, len(distinct), rank * K + codes))

    def areas(self, weights: Floats) -> tuple[float, float]:
        """Mean area of one class against the rest, and of one class against another.

        Both are plain means over the classes, or pairs of classes, that have weight. The area of a
        pair of classes is the mean of those by the scores of either (Hand and Till 2001). For two
        classes both are the area under the ROC curve. NaN if only one class has weight.
        """
        K = self._n_classes
        size = np.bincount(self._codes, weights, K)
        wins = np.zeros((K, K))  # of rows of class i over rows of class j, by the score of class i
        for k, n_groups, cell in self._groups:
            group = np.bincount(cell, weights, n_groups * K).reshape(n_groups, K)
            below = np.cumsum(group, axis=0) - group / 2
            wins[k] = group[:, k] @ below
        present = np.flatnonzero(size)
        if len(present) < 2:
            return math.nan, math.nan
        if K == 2:
            area = float(wins[1, 0] / size.prod())
            return area, area
        np.fill_diagonal(wins, 0.0)
        size = size[present]
        wins = wins[np.ix_(present, present)]
        one_vs_rest = wins.sum(axis=1) / (size * (size.sum() - size))
        pairs = wins / np.outer(size, size)
        n_pairs = len(present) * (len(present) - 1)
        return float(one_vs_rest.mean()), float(pairs.sum() / n_pairs)
