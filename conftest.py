"""Doctests of modules that need torch run where it is installed, as `make test-engines` does."""

from importlib.util import find_spec

collect_ignore = (
    [] if find_spec("torch") else ["src/isoroc/_counts/tensors.py", "src/isoroc/export/_torch.py"]
)
