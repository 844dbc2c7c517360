"""The data of a published example, drawn as R draws them."""

import numpy as np
from scipy.special import expit, ndtri


def uniform(seed, n):
    """`set.seed(seed); runif(n)` of R: its Mersenne Twister with its scrambling of seeds."""
    state = np.empty(625, dtype=np.uint32)
    for _ in range(50):
        seed = (69069 * seed + 1) % 2**32
    for i in range(625):
        seed = (69069 * seed + 1) % 2**32
        state[i] = seed
    bits = np.random.MT19937()
    bits.state = {"bit_generator": "MT19937", "state": {"key": state[1:], "pos": 624}}
    return bits.random_raw(n) * 2.3283064365386963e-10


def pmcalibration_example():
    """Outcomes and forecasts of the README of the R package pmcalibration.

    ``set.seed(2345); dat <- sim_dat(1000, a1 = -3, a3 = .3)``: two normal variables, then binomial
    outcomes with an interaction that the forecasts lack.
    """
    n = 1000
    steps = 2**27
    u = uniform(2345, 5 * n)
    x1, x2 = ndtri((np.floor(steps * u[: 4 * n : 2]) + u[1 : 4 * n : 2]) / steps).reshape(2, n)
    truth = expit(-3 + x1 + x2 + 0.3 * x1 * x2)
    rarer = u[4 * n :] >= np.maximum(truth, 1 - truth)  # whether the rarer outcome occurred
    return np.where(truth > 0.5, ~rarer, rarer), expit(-3 + x1 + x2), (x1, x2)
