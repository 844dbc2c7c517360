"""The map of one group, and how much of it the rows of the group support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.member_scores import bounded_losses, mean_and_error
from isoroc._calibrators.weights import mixture_weights
from isoroc._input import Sample
from isoroc._simplex import Floats, Ints
from isoroc._table import Table

#: Weight of the common map relative to that of a group's own, before any row is seen. The own map
#: then has less than `LEAST_WEIGHT`, so that a group keeps the common map exactly unless its rows
#: speak against it (docs/decisions.md has the figures).
COMMON_SHARE = 16.0


@dataclass(frozen=True, eq=False)
class GroupMap:
    """What was found in one group."""

    name: str
    member: Calibrator | None
    """The map of the group, if it has weight."""
    weight: float
    losses: Floats
    """Of each row, under the common map and under the mixture; shape (n, 2)."""
    row_weights: Floats

    @classmethod
    def fit(
        cls, name: str, sample: Sample, fold: Ints, common: Floats, own: Calibrator | None
    ) -> GroupMap:
        """Fit the map of a group, and weigh it.

        Parameters
        ----------
        name : str
            The group.
        sample : Sample
            Its rows.
        fold : ndarray of shape (n,)
            Fold of each row.
        common : ndarray of shape (n,)
            Probability that the common map, fitted to other folds, gave to each label.
        own : Calibrator or None
            What is to be fitted; None if the group keeps the common map.
        """
        row_weights = sample.row_weights()
        likelihood, weights = np.column_stack([common, common]), np.array([1.0, 0.0])
        folds, fold = np.unique(fold, return_inverse=True)
        if own is not None and len(folds) > 1 and np.count_nonzero(sample.class_weights()) > 1:
            Q = own.fit_out_of_fold(sample, fold)
            likelihood[:, 1] = Q[np.arange(len(Q)), sample.codes]
            weights = mixture_weights(likelihood, row_weights, np.array([COMMON_SHARE, 1.0]))
        columns = np.column_stack([common, likelihood @ weights])
        losses = bounded_losses(columns, row_weights, sample.n_classes)
        member = own if weights[1] > 0 else None
        return cls(name, member, float(weights[1]), losses, row_weights)

    def scores(self) -> tuple[Any, ...]:
        """Row of the table of all groups."""
        gains = self.losses[:, :1] - self.losses[:, 1:]
        (common, mixed), _ = mean_and_error(self.losses, self.row_weights, counted=False)
        (gain,), (error,) = mean_and_error(gains, self.row_weights, counted=False)
        return self.name, len(gains), self.weight, common, mixed, gain, error


def score_groups(found: list[GroupMap]) -> Table:
    """Table of all groups."""
    names = ("group", "rows", "weight", "common_log_loss", "log_loss", "gain", "gain_se")
    return Table.from_rows([group.scores() for group in found], *names)
