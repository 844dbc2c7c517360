"""Doctests open no windows; `make test-engines` runs those that need torch."""

import os
import sys
from collections.abc import Iterator

import pytest

NEEDING_TORCH = [
    "src/isoroc/_backends/torch.py",
    "src/isoroc/_counts/tensors.py",
    "src/isoroc/export/_torch.py",
]

collect_ignore = [] if "ISOROC_ENGINES" in os.environ else NEEDING_TORCH
os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Figures of pyplot stay open until they are closed."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
