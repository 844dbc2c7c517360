"""The paper's experiments, and its procedures exactly as published; not part of the package."""
