import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from isoroc import IRPCalibrator

mpl.use("Agg")


@pytest.fixture(autouse=True)
def unchanged_settings():
    """No test changes a setting of matplotlib."""
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before
    plt.close("all")


@pytest.fixture
def make_axes():
    """Function that creates axes in a figure outside pyplot. The test must not use pyplot."""
    known = plt.get_fignums()
    yield lambda **options: Figure(figsize=(9, 4)).add_subplot(**options)
    assert plt.get_fignums() == known


def overconfident(n, K, seed=0):
    """Overconfident forecasts, and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(K), n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = truth**2
    return P / P.sum(axis=1, keepdims=True), y


@pytest.fixture
def three_classes():
    """Forecasts of three classes, labels, and a calibrator fitted to them."""
    P, y = overconfident(400, 3)
    return P, y, IRPCalibrator(random_state=0).fit(P, y)


@pytest.fixture(scope="session")
def draw_forecasts():
    """Function that draws n forecasts of K classes, and labels."""
    return overconfident
