import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from isoroc import IRPCalibrator

mpl.use("Agg")


@pytest.fixture(autouse=True)
def global_settings_stay():
    """No display changes a setting, whatever a test does with it."""
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before
    plt.close("all")


@pytest.fixture
def aside():
    """An axes in a figure that pyplot does not know; pyplot must not hear of it."""
    known = plt.get_fignums()
    yield lambda **options: Figure(figsize=(9, 4)).add_subplot(**options)
    assert plt.get_fignums() == known


def draw_classes(n, K, seed=0):
    """Forecasts that are sharper than the truth, and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(K), n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = truth**2
    return P / P.sum(axis=1, keepdims=True), y


@pytest.fixture
def three():
    """Forecasts of three classes, labels, and a calibrator fitted to them."""
    P, y = draw_classes(400, 3)
    return P, y, IRPCalibrator(random_state=0).fit(P, y)


@pytest.fixture
def classes():
    return draw_classes
