"""Precisions of normal priors, learned by evidence.

Parameters of a group have the prior ``N(0, 1 / precision)``. If the posterior variance of a
parameter is v, the rows determine a share ``1 - precision * v`` of it: 0 if they say nothing, 1 if
the prior does not matter. The evidence, the probability of the outcomes with all parameters
integrated out, is stationary where the precision is the sum of these shares over the sum of the
squared parameters. Each update sets it to that ratio, and the fit follows (MacKay, Bayesian
interpolation, Neural Computation 4, 1992).
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from isoroc._core.types import Floats


def updated_precision(n_known: Any, squares: Any, prior: Floats | None = None) -> Any:
    """Precision of larger evidence, given numbers of known parameters and sums of their squares.

    With the initial precision `prior`, one known parameter of the size that it expects is added.
    """
    if prior is None:
        return n_known / np.maximum(squares, 1e-12)
    return (n_known + 1) / (squares + 1 / prior)


class Priors:
    """Normal priors of parameters in groups, each with one precision, learned by evidence.

    Parameters
    ----------
    sizes : mapping of str to int
        Number of parameters of each group, in the order of theta.
    prior : mapping of str to float
        Initial precision of each group.
    fixed : collection of str
        Groups that keep their initial precision.
    most_change : float, default=100.0
        Largest ratio of a learned precision to the initial one, either way.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        prior: Mapping[str, float],
        fixed: Collection[str] = (),
        *,
        most_change: float = 100.0,
    ) -> None:
        self.group_of = np.repeat(np.arange(len(sizes)), list(sizes.values()))
        self._prior = np.array([prior[group] for group in sizes])
        self._learned = np.array([group not in fixed for group in sizes])
        self._most_change = most_change
        self.precisions = self._prior.copy()

    def precision(self) -> Floats:
        """Precision of the prior of each parameter."""
        return self.precisions[self.group_of]

    def learn(self, theta: Floats, variances: Floats) -> float:
        """Set precisions of larger evidence, and return the largest change of a log precision."""
        known = np.maximum(1 - self.precision() * variances, 0.0)  # rounding may make it negative
        n_groups = len(self._prior)
        n_known = np.bincount(self.group_of, known, n_groups)
        squares = np.bincount(self.group_of, theta**2, n_groups)
        learned = updated_precision(n_known, squares, self._prior)
        least = self._prior / self._most_change
        learned = np.clip(learned, least, self._prior * self._most_change)
        learned = np.where(self._learned, learned, self._prior)
        change = np.abs(np.log(learned / self.precisions)).max()
        self.precisions = learned
        return float(change)
