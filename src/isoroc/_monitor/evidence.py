"""Evidence against calibration: likelihood ratios of alternatives that are fixed in advance.

Let q be the forecast of a row and r another forecast that is a function of q. If q is the
probability of the outcome y given all that happened before, ``r[y] / q[y]`` has mean 1 given the
past. So the product over rows is a martingale, an average of such products over alternatives r is
one too, and by Ville's inequality it ever exceeds 1/alpha with probability alpha at most, however
often one looks (Ramdas, Grünwald, Vovk and Shafer 2023). Evidence is the logarithm of this average.

Forecasts that were right for a year may be wrong from today on. So the average is also taken over
the batch with which an alternative begins: before, its ratio is 1. Otherwise the evidence of the
good year would have to be made up for first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Self

import numpy as np
from scipy.special import log_softmax, logsumexp

from isoroc._simplex import LEAST, Codes, Floats

#: Forecasts to the power of these numbers, normalised: too sharp or not sharp enough.
POWERS = np.exp([-0.8, -0.4, -0.2, -0.1, 0.1, 0.2, 0.4, 0.8])
#: The odds of one class against all others times the exponential of these numbers.
SHIFTS = np.array([-1.6, -0.8, -0.4, -0.2, 0.2, 0.4, 0.8, 1.6])
#: The uniform forecast mixed in with these shares, for outcomes that were forecast as impossible.
SHARES = np.array([0.003, 0.03, 0.3])
#: Logarithm of no share at all; finite, as files cannot hold infinity.
NEVER = -1e300
#: Families of alternatives and their shares in the average.
FAMILIES = {"confidence": 0.4, "class shares": 0.4, "impossible": 0.2}


@dataclass(frozen=True)
class Alternatives:
    """The alternatives for K classes."""

    n_classes: int

    @cached_property
    def family(self) -> list[str]:
        """Family of each alternative."""
        sizes = (len(POWERS), len(SHIFTS) * self.n_classes, len(SHARES))
        return [name for name, size in zip(FAMILIES, sizes, strict=True) for _ in range(size)]

    def log_ratios(self, Q: Floats, codes: Codes) -> Floats:
        """Logarithm of ``r[y] / q[y]`` for each row and alternative, shape (n, M).

        Examples
        --------
        >>> import numpy as np
        >>> Q = np.array([[0.2, 0.8]])
        >>> ratios = np.exp(Alternatives(2).log_ratios(Q, np.array([1])))
        >>> other = np.exp(Alternatives(2).log_ratios(Q, np.array([0])))
        >>> (0.8 * ratios + 0.2 * other).round(12).min()  # 1 for all of them
        np.float64(1.0)
        """
        rows = np.arange(len(Q))
        logs = np.log(np.maximum(Q, LEAST))
        own = logs[rows, codes]
        powers = [log_softmax(t * logs, axis=1)[rows, codes] - own for t in POWERS]
        shifts = [
            np.where(codes == k, b, 0.0) - np.log1p(Q[:, k] * np.expm1(b))
            for k in range(self.n_classes)
            for b in SHIFTS
        ]
        q = np.exp(own)
        shares = [np.log((1 - share) * q + share / self.n_classes) - own for share in SHARES]
        return np.column_stack([*powers, *shifts, *shares])

    @cached_property
    def weights(self) -> Floats:
        """Share of each alternative in the average."""
        sizes = {name: self.family.count(name) for name in FAMILIES}
        return np.array([FAMILIES[name] / sizes[name] for name in self.family])

    @cache  # noqa: B019  # a few families of one or two objects
    def log_weights(self, *families: str) -> Floats:
        """Logarithms of the shares in an average over some families."""
        kept = self.weights * np.isin(self.family, families)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(kept / kept.sum()))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Products of likelihood ratios, averaged over the batches with which they begin.

    Attributes
    ----------
    log_begun : ndarray of shape (M,)
        For each alternative, logarithm of the sum over the batches so far of the share of those
        that begin with it times the product of ratios since then.
    log_rest : float
        Logarithm of the share that begins with a later batch; its ratio is 1 so far.
    """

    log_begun: Floats
    log_rest: float

    @classmethod
    def none(cls, n_alternatives: int) -> Self:
        """Evidence before the first batch."""
        return cls(np.full(n_alternatives, NEVER), 0.0)

    def add(self, log_products: Floats, n_batches: int) -> Self:
        """Evidence with one more batch, after `n_batches` others."""
        share = 1 / (n_batches + 2)  # of the rest: 1/2, 1/6, 1/12, ... of all
        log_begun = np.logaddexp(self.log_begun, self.log_rest + math.log(share)) + log_products
        return type(self)(log_begun, self.log_rest + math.log1p(-share))

    def merge(self, other: Evidence) -> Self:
        """Evidence of two streams of rows: the product, alternative by alternative."""
        parts = [
            self.log_begun + other.log_begun,
            self.log_begun + other.log_rest,
            other.log_begun + self.log_rest,
        ]
        return type(self)(np.asarray(logsumexp(parts, axis=0)), self.log_rest + other.log_rest)

    def value(self, alternatives: Alternatives, *families: str) -> float:
        """Logarithm of the average over alternatives, those of some families or all."""
        shares = alternatives.log_weights(*(families or FAMILIES))
        return float(np.logaddexp.reduce(np.logaddexp(self.log_begun, self.log_rest) + shares))
