"""Generated forecasts of which the truth is known."""

import numpy as np


def draw_labels(truth, rng):
    return (truth.cumsum(axis=1) > rng.random((len(truth), 1))).argmax(axis=1)


def distorted(n, n_classes, power, seed, spread=1.0):
    """Forecasts that are a power of the truth, so E[Y | P] = truth; the truth; and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(n_classes, spread), n)
    P = truth**power
    return P / P.sum(axis=1, keepdims=True), truth, draw_labels(truth, rng)
