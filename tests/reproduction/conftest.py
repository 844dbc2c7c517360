from functools import partial

import numpy as np
import pytest
from reproduction.data import Forecasts, Rows
from reproduction.experiments import PROCEDURES, _published
from reproduction.published import GRID_SIZES, ReferenceBinning

from reproduction import data


@pytest.fixture(scope="module")
def small():
    """Coarse grids, few rows and few splits, so that tests are quick."""
    with pytest.MonkeyPatch.context() as patch:
        for K, steps in ((2, 20), (3, 12), (4, 6)):
            patch.setitem(GRID_SIZES, K, steps)
        patch.setattr(data, "SIZES", (60, 60, 50))
        few = _published(partial(ReferenceBinning, n_splits=6))  # type: ignore[arg-type]
        patch.setitem(PROCEDURES, "recursive binning", few)
        yield


@pytest.fixture(scope="module")
def rows():
    """Features and labels of four classes."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(1, 5), 90)
    return Rows(2 * np.eye(4)[y - 1] + rng.normal(size=(len(y), 4)), y, "clouds")


@pytest.fixture(scope="module")
def forecasts():
    """Function that draws overconfident forecasts of K classes."""

    def draw(K, n=60):
        rng = np.random.default_rng(K)
        truth = rng.dirichlet(np.ones(K), size=2 * n)
        y = (truth.cumsum(axis=1) > rng.random((2 * n, 1))).argmax(axis=1)
        P = truth**2 / (truth**2).sum(axis=1, keepdims=True)
        return Forecasts(P[:n], y[:n], P[n:], y[n:], "generated")

    return draw
