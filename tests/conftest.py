import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite",
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# `.ci/run` chooses it, and a seed with an option of pytest.
settings.register_profile(
    "explore", settings.get_profile("suite"), derandomize=False, print_blob=True
)
settings.load_profile(os.environ.get("ISOROC_HYPOTHESIS", "suite"))

#: `make test-engines` runs these, with engines that the other tests do not need.
collect_ignore = [] if "ISOROC_ENGINES" in os.environ else ["engines"]

#: Small data files that belong to the tests.
DATA = Path(__file__).resolve().parent / "data"
#: Larger data, which a checkout may or may not have next to it.
SHARED = Path(__file__).resolve().parents[2] / "shared"


def load(path):
    with np.load(path) as data:
        return dict(data)


@pytest.fixture
def cover2():
    """Forecasts and labels of the paper's two-class experiment."""
    return load(DATA / "cover2.npz")


@pytest.fixture
def cover3():
    """Forecasts and labels of the paper's three-class experiment."""
    return load(DATA / "cover3.npz")


@pytest.fixture
def arena():
    """Forecasts of real models on real data, by name."""

    def load_or_skip(name):
        path = SHARED / "arena" / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"{path} does not exist")
        return load(path)

    return load_or_skip
