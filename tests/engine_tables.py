"""Tables for the tests of engines."""

import numpy as np


def make_columns(K, n=4000, seed=0):
    """Forecasts, labels, weights and keys as columns."""
    rng = np.random.default_rng(seed)
    P = rng.random((n, 1)) if K == 1 else rng.dirichlet(np.full(K, 0.3), n)
    P[:50] = P[:50].round(1)
    if K > 1:
        P[:50] /= P[:50].sum(axis=1, keepdims=True)
    labels = np.array([f"c{k:02}" for k in range(max(K, 2))])
    columns = {f"p{k}": P[:, k] for k in range(K)}
    columns["y"] = labels[rng.integers(0, len(labels), n)]
    columns["w"] = rng.integers(0, 5, n) / 2
    columns["key"] = rng.integers(-(10**12), 10**12, n)
    return P, columns
