from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

SHARED = Path(__file__).resolve().parents[2] / "shared"


def load(*parts):
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this checkout")
    with np.load(path) as data:
        return dict(data)


@pytest.fixture
def cover2():
    """Forecasts and labels of the paper's two-class experiment."""
    return load("data", "cover2.npz")


@pytest.fixture
def cover3():
    """Forecasts and labels of the paper's three-class experiment."""
    return load("data", "cover3.npz")


@pytest.fixture
def arena():
    """Forecasts of real models on real data, by name."""
    return lambda name: load("arena", f"{name}.npz")
