"""Doctests open no windows; `make test-engines` runs those that need torch."""

import os
import sys
from collections.abc import Iterator

import pytest

NEEDING_TORCH = [
    f"{root}/isoroc/{module}.py"
    for root in ("src", "build/fused-lib")  # the second for `make test-digits`
    for module in ("_backends/torch", "_counts/tensors", "export/_torch")
]

collect_ignore = [] if "ISOROC_ENGINES" in os.environ else NEEDING_TORCH
os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Figures of pyplot stay open until they are closed."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
