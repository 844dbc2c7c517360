from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture
def cover2():
    """Forecasts and labels of the paper's two-class experiment."""
    path = SHARED / "data" / "cover2.npz"
    if not path.exists():
        pytest.skip("the paper's forecasts are not beside this checkout")
    with np.load(path) as data:
        return dict(data)
