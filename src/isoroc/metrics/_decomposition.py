"""Loss = calibration + refinement: what calibration can save, and what needs a better model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isoroc._estimation.parts import Loss, Parts
from isoroc._input import check_option, check_probabilities
from isoroc._intervals import half_width
from isoroc._losses import mean
from isoroc._simplex import Floats
from isoroc._table import Table

TERMS = ("loss", "calibration", "refinement", "uncertainty", "resolution")


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition:
    """A loss and its parts: ``loss = calibration + uncertainty - resolution``.

    Converted to an array, it gives the five values in the order below.
    """

    loss: float
    """Mean loss of the forecasts."""
    calibration: float
    """What calibration would save: the mean divergence of ``E[Y | p]`` from ``p``."""
    refinement: float
    """What would remain, ``uncertainty - resolution``: the mean entropy of ``E[Y | p]``."""
    uncertainty: float
    """Entropy of the class frequencies: the loss of the best constant forecast."""
    resolution: float
    """How much lower than that the loss would be after calibration."""
    standard_errors: Floats
    """Standard errors of the five values."""
    of: Loss
    """The loss, "log" or "brier"."""
    bins: Literal["exact", "irp"]
    """How ``E[Y | p]`` was estimated."""

    def frame(self, confidence: float = 0.95) -> Table:
        """Table with one row per term: value, standard error and normal interval."""
        value, error = np.asarray(self), self.standard_errors
        half = half_width(confidence) * error
        ends = {"low": value - half, "high": value + half}
        return Table(term=np.array(TERMS), value=value, standard_error=error, **ends)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001
        return np.array([getattr(self, term) for term in TERMS], dtype=dtype)

    def __repr__(self) -> str:
        return (
            f"{self.of} loss {self.loss:.4f} = calibration {self.calibration:.4f} + refinement "
            f"{self.refinement:.4f} (uncertainty {self.uncertainty:.4f} - resolution "
            f"{self.resolution:.4f}), {self.bins}"
        )


def decompose(
    y_true: Any,
    y_prob: Any,
    *,
    loss: Loss = "log",
    bins: Literal["exact", "irp"] | None = None,
    sample_weight: Any = None,
    labels: Any = None,
) -> Decomposition:
    """Split log loss or Brier score into calibration and refinement (equation 1 of the paper).

    ``E[loss(Y, p)] = E[D(g, p)] + E[H(g)]`` with ``g = E[Y | p]``. D and H are the divergence and
    entropy of the loss (Bröcker 2009): Kullback-Leibler divergence and Shannon entropy for "log",
    squared distance and ``1 - sum g**2`` for "brier", half of both for two classes. (The divergence
    is of g from p; equation 1 has the arguments the other way round.)

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    loss : {"log", "brier"}, default="log"
        Log loss or Brier score.
    bins : {"exact", "irp"} or None, default=None
        How ``E[Y | p]`` is estimated. "exact" takes the mean label of equal forecasts; it is for
        forecasts with few distinct values. "irp" is for continuous ones: isotonic recursive
        partitions, and linear maps and means of what they leave, learned from other rows; see
        `calibration_error`. None means "exact" if n rows have at most ``sqrt(n)``
        distinct forecasts, and "irp" otherwise.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.

    Returns
    -------
    Decomposition
        Calibration and refinement add up to the loss.

    Notes
    -----
    With "exact" the calibration term is at least 0, and too large by what chance adds: for "log"
    about ``(K - 1) / 2`` times the number of distinct forecasts over n.

    With "irp" it is the mean of ``sum_k (y_k - p_k) d(g_k, p_k) / (g_k - p_k)``, where d is the
    contribution of class k to D (for "brier" the fraction is ``g_k - p_k``) and g is learned from
    other rows. With the true g the expectation is right. With any g it is 0 if the forecasts are
    calibrated, so noise in g is not mistaken for miscalibration, and the term may be negative. The
    loss that recalibration with g saves would be a simpler estimate, but it is too small by all
    errors of g; it is used if it is larger.

    Standard errors treat g as fixed.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import decompose
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(10_000)
    >>> parts = decompose(rng.random(10_000) < p**2, p, loss="brier")
    >>> parts
    brier loss 0.1721 = calibration 0.0361 + refinement 0.1359
    (uncertainty 0.2186 - resolution 0.0827), irp
    >>> parts.frame()
             term     value  standard_error       low      high
             loss   0.17209       0.0020319   0.16811   0.17608
      calibration  0.036145       0.0015947   0.03302  0.039271
       refinement   0.13595       0.0019783   0.13207   0.13983
      uncertainty   0.21864       0.0016562   0.21539   0.22188
       resolution  0.082688       0.0020621  0.078646  0.086729
    """
    check_option("loss", loss, ("log", "brier"))
    check_option("bins", bins, ("exact", "irp", None))
    sample = check_probabilities(y_true, y_prob, sample_weight, labels, keep_zeros=True)
    parts = Parts.of(sample, "canonical", bins)
    own, best, blind, refinement = parts.loss_terms(loss)
    weights = parts.whole.weights
    total, uncertainty = mean(own, weights), mean(blind, weights)
    rows = np.array([own, own - best, best, blind, blind - best])
    return Decomposition(
        loss=total,
        calibration=total - refinement,
        refinement=refinement,
        uncertainty=uncertainty,
        resolution=uncertainty - refinement,
        standard_errors=_standard_errors(rows, weights),
        of=loss,
        bins="exact" if parts.bins == ["exact"] else "irp",
    )


def _standard_errors(rows: Floats, weights: Floats | None) -> Floats:
    """Standard errors of the weighted means of the rows of an (m, n) array."""
    w = np.ones(rows.shape[1]) if weights is None else weights
    centred = rows - (rows @ w / w.sum())[:, None]
    return np.asarray(np.sqrt((centred**2) @ w**2) / w.sum())
