"""Doctests of modules that need torch run where it is installed, as `make test-engines` does."""

from importlib.util import find_spec

NEEDING_TORCH = [
    "src/isoroc/_backends/torch.py",
    "src/isoroc/_counts/tensors.py",
    "src/isoroc/export/_torch.py",
]

collect_ignore = [] if find_spec("torch") else NEEDING_TORCH
