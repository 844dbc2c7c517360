"""Generated forecasts of which the truth is known."""

import numpy as np


def draw_labels(truth, rng):
    return (truth.cumsum(axis=1) > rng.random((len(truth), 1))).argmax(axis=1)


def distorted(n, n_classes, power, seed, spread=1.0):
    """Forecasts that are a power of the truth, so E[Y | P] = truth, the truth, and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(n_classes, spread), n)
    P = truth**power
    return P / P.sum(axis=1, keepdims=True), truth, draw_labels(truth, rng)


def ill_conditioned(n_classes):
    """Pairs of forecasts and labels on which optimisers have trouble."""
    rng = np.random.default_rng(0)
    sharp = 10.0 ** -rng.integers(0, 290, size=(500, n_classes))
    sharp /= sharp.sum(axis=1, keepdims=True)
    separable = sharp.argmax(axis=1)
    rare = np.zeros(500, dtype=int)
    rare[:3] = n_classes - 1
    flat = np.full((500, n_classes), 1 / n_classes)
    return [
        (sharp, separable),
        (sharp, rng.integers(0, n_classes, 500)),
        (sharp, rare),
        (flat, rng.integers(0, n_classes, 500)),
        (np.eye(n_classes)[separable], separable),
    ]
