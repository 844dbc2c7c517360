"""Doctests open no windows; those that need torch run where it is installed."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

NEEDING_TORCH = [
    "src/isoroc/_backends/torch.py",
    "src/isoroc/_counts/tensors.py",
    "src/isoroc/export/_torch.py",
]

collect_ignore = [] if find_spec("torch") else NEEDING_TORCH
os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Figures of pyplot stay open until they are closed."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
