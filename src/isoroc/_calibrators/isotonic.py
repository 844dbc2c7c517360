"""IsotonicCalibrator: isotonic regression of each class against the rest."""

from __future__ import annotations

import numbers
from typing import ClassVar

import numpy as np

from isoroc._calibrators.one_vs_rest import OneVsRestCalibrator
from isoroc._growth import isotonic_steps
from isoroc._input import InputError, Sample, check_number
from isoroc._persistence import states
from isoroc._simplex import Floats


class IsotonicCalibrator(OneVsRestCalibrator):
    """Isotonic regression of each class against the rest, smoothed.

    For two classes it predicts what ``IRPCalibrator(prior="uniform")`` does. For more, each column
    of the forecasts has a map of its own, ``(weight of the class + pseudocount / K) / (weight +
    pseudocount)`` in every block of its isotonic regression, and rows are divided by their sum.
    That is quick, needs few rows and orders each class as the model does; how the classes stand to
    each other it does not keep. Maps of more than 4,096 steps, or of more than 250,000 steps over
    all classes, are compressed as those of `VennAbersCalibrator`.

    Parameters
    ----------
    pseudocount : float, default=1.0
        Weight of the uniform forecast in every block. 0 is for two classes only: of more, all maps
        might say 0 at once.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in the order of the columns.
    n_features_in_ : int
        Columns of the forecasts; 1 for scores.
    cuts_, values_ : list of ndarray
        The maps, one for each class, or one for the second of two: ``values_[k][i]`` for forecasts
        with i of the ascending ``cuts_[k]`` below them.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import IsotonicCalibrator
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([0.5, 0.5, 0.5], size=2000)
    >>> y = [rng.choice(["a", "b", "c"], p=0.6 * p + 0.4 / 3) for p in P]
    >>> cal = IsotonicCalibrator().fit(P, y)
    >>> cal.predict_proba([[0.98, 0.01, 0.01]]).round(2)
    array([[0.71, 0.14, 0.15]])
    """

    fitted_state: ClassVar[dict[str, states.Check]] = dict.fromkeys(
        ("cuts_", "values_"), states.anything
    )

    values_: list[Floats]

    def __init__(self, *, pseudocount: float = 1.0) -> None:
        self.pseudocount = pseudocount

    def _fit(self, sample: Sample) -> None:
        check_number("pseudocount", self.pseudocount, numbers.Real, minimum=0)
        K = sample.n_classes
        if K > 2 and self.pseudocount == 0:
            raise InputError(
                "pseudocount",
                None,
                "is 0, but rows of three classes or more are divided by their sum, which could be "
                "0 without smoothing",
                "expected a number > 0",
            )
        smoothing = self.pseudocount * np.array([1 - 1 / K, 1 / K])
        maps = [
            self._bounded(K, isotonic_steps(counts, smoothing)) for counts in self._counts(sample)
        ]
        self.cuts_ = [cuts for cuts, _ in maps]
        self.values_ = [values for _, values in maps]

    def step_values(self) -> list[Floats]:
        """Values of each map."""
        return self.values_
