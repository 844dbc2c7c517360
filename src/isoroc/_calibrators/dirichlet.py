"""DirichletCalibrator: matrix scaling of log forecasts with penalties."""

from __future__ import annotations

from typing import Literal

from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._calibrators.matrix import MatrixCalibrator
from isoroc._input import Sample
from isoroc._maps import MatrixMap


class DirichletCalibrator(Calibrator):
    """Dirichlet calibration: softmax regression on the logarithms of the forecasts.

    It is `MatrixCalibrator` with a full matrix and no squares: beta calibration for any number of
    classes, shrunken towards temperature scaling.

    Parameters
    ----------
    penalty : float or "auto", default="auto"
        As in `MatrixCalibrator`.

    Attributes
    ----------
    classes_, n_features_in_, scores_, summary_, map_, checksum
        As in `TemperatureCalibrator`.
    coef_ : ndarray of shape (K, K)
        Influence of the log forecast of each class on each other.
    intercept_ : ndarray of shape (K,)

    See Also
    --------
    MatrixCalibrator : Adds squares of the logarithms, and diagonal matrices for many classes.

    Notes
    -----
    With the logarithms z of the tempered forecasts, the calibrated forecast is
    ``softmax(A z + b)``. Ridge penalties shrink A to the identity and b to 0.

    References
    ----------
    Kull, Perello-Nieto, Kängsepp, Silva Filho, Song and Flach, Beyond temperature scaling, NeurIPS
    2019.

    Examples
    --------
    >>> from isoroc import DirichletCalibrator
    >>> P, y = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]], ["ant", "bee", "cat"]
    >>> DirichletCalibrator().fit(P, y).predict([[0.5, 0.3, 0.2]])
    array(['ant'], dtype='<U3')
    """

    coef_ = FromMap()
    intercept_ = FromMap()

    def __init__(self, *, penalty: float | Literal["auto"] = "auto") -> None:
        self.penalty = penalty

    def _fit(self, sample: Sample) -> MatrixMap:
        scaling = MatrixCalibrator(structure="matrix", quadratic=False, penalty=self.penalty)
        return scaling._fit(sample)
