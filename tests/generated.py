"""Generated calibration sets: everything that real forecasts may look like, by seed."""

from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax


class Generated(NamedTuple):
    """Arguments of `fit`."""

    P: np.ndarray
    y: np.ndarray
    options: dict[str, object]


def generate(seed, most_numbers=20_000):
    """A set of 2 to 50 classes and 5 to 5,000 rows.

    Forecasts are timid or saturated, tie, hold exact zeros and ones or denormal numbers, and have
    any precision. Classes may be rare, rows repeated, and weights span ten orders of magnitude.
    """
    rng = np.random.default_rng(seed)
    K = int(np.exp(rng.uniform(np.log(2), np.log(50.99))))
    n = int(np.exp(rng.uniform(np.log(5), np.log(min(5000, most_numbers / K)))))
    z = rng.normal(size=(n, K)) * np.exp(rng.uniform(np.log(0.3), np.log(200)))
    if rng.random() < 0.3:
        z[:, 0] += rng.choice([5.0, 20.0])  # the others are rare
    if rng.random() < 0.3:
        z = z.round(rng.integers(0, 2))
    truth = np.exp(log_softmax(z * rng.choice([0.02, 0.3, 1.0, 5.0]), axis=1))
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = np.exp(log_softmax(z, axis=1))
    if rng.random() < 0.2:
        P = np.eye(K)[P.argmax(axis=1)]
    if rng.random() < 0.3:
        P = (P * 20).round() / 20
        P[P.sum(axis=1) == 0] = 1 / K
        P /= P.sum(axis=1, keepdims=True)
    if rng.random() < 0.2 and K > 2:
        P[rng.random(P.shape) < 0.1] *= 1e-310
        P /= P.sum(axis=1, keepdims=True)
    if rng.random() < 0.3:
        rows = rng.integers(0, n, n)
        P = P[rows]
        y = y[rows]
        z = z[rows]
    options: dict[str, object] = {"labels": range(K)}
    form = (
        rng.choice(["columns", "scores", "logits"]) if K == 2 else rng.choice(["columns", "logits"])
    )
    if form == "scores":
        P = P[:, 1]
        options["unit"] = "probability"
    elif form == "logits":
        P = z
        options["unit"] = "logit"
    dtype = rng.choice(["float64", "float32", "float16"], p=[0.6, 0.3, 0.1])
    P = np.clip(P, -6e4, 6e4).astype(dtype)
    if rng.random() < 0.3:
        options["sample_weight"] = 10.0 ** rng.uniform(0, 10, n)
    return Generated(P, y, options)
