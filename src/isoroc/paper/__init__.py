"""The paper's experiments, and its procedure exactly as published."""
