"""Cyclic monotonicity of forecasts on given rows, checked from the values alone.

Points q_i are a cyclically monotone function of points z_i iff every cycle of rows has

    sum of <z_j - z_i, q_j> over the steps i -> j of the cycle  >=  0,

that is, iff the complete digraph with these weights has no negative cycle (Rockafellar, 1970). For
two classes the condition is that q increases with the log odds.
"""

from dataclasses import dataclass

import numpy as np

from isoroc._core.types import Floats, Ints

MOST_CHECKED = 2000  # with more rows, this many are drawn and checked
ORDER_TOLERANCE = 1e-12  # relative rounding error that comparisons allow for


@dataclass(frozen=True)
class MonotonicityCheck:
    """What `verify` of a calibrator returns. It is true if no violation was found.

    Attributes
    ----------
    monotone : bool
        Whether the guarantee holds on the rows that were compared.
    rows : int
        Number of rows compared.
    exact : bool
        Whether these are all rows. Otherwise they were drawn at random.
    """

    monotone: bool
    rows: int
    exact: bool

    def __bool__(self) -> bool:
        return self.monotone


def check_cyclic(z: Floats, Q: Floats) -> MonotonicityCheck:
    """Check that forecasts Q are a cyclically monotone function of z, both of shape (n, K)."""
    n, K = Q.shape
    if K == 2:
        return MonotonicityCheck(_increases(z[:, 1] - z[:, 0], Q), n, exact=True)
    if n > MOST_CHECKED:
        rows = np.random.default_rng(0).choice(n, MOST_CHECKED, replace=False)
        z = z[rows]
        Q = Q[rows]
    z = z - z.mean(axis=1, keepdims=True)  # forecasts sum to one, so constants of z cancel
    inner = Q @ z.T
    steps = np.diag(inner)[:, None] - inner  # [j, i]: from row i to row j
    steps += ORDER_TOLERANCE * K * (1 + np.abs(z).max())
    return MonotonicityCheck(not has_negative_cycle(steps), len(Q), exact=n <= MOST_CHECKED)


def _increases(odds: Floats, Q: Floats) -> bool:
    """Whether forecasts of two classes are a non-decreasing function of the log odds."""
    order = np.lexsort((Q[:, 1], odds))
    same = np.diff(odds[order]) == 0
    for q, sign in ((Q[order, 1], 1), (Q[order, 0], -1)):
        rise = sign * np.diff(q)
        allowed = ORDER_TOLERANCE * q[1:]
        if (rise < -allowed).any() or (same & (rise > allowed)).any():
            return False
    return True


def has_negative_cycle(steps: Floats) -> bool:
    """Whether the digraph with edges steps[j, i] from i to j has a negative cycle: Bellman-Ford."""
    n = len(steps)
    nodes = np.arange(n)
    distance = np.zeros(n)
    previous = nodes.copy()  # a node that precedes itself is reached from the source
    for _ in range(n):
        paths = steps + distance
        nearest = paths.argmin(axis=1)
        shortest = paths[nodes, nearest]
        shorter = shortest < distance
        if not shorter.any():
            return False
        distance = np.where(shorter, shortest, distance)
        previous = np.where(shorter, nearest, previous)
        if _returns(previous):  # predecessors form only negative cycles
            return True
    return True


def _returns(previous: Ints) -> bool:
    """Whether following predecessors from some node never reaches the source."""
    ancestor = previous
    for _ in range(len(previous).bit_length()):
        ancestor = ancestor[ancestor]
    return bool((previous[ancestor] != ancestor).any())
