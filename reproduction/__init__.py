"""The paper's experiments, and its procedures exactly as published, outside of the package."""
