"""Phrases of sentences."""

from collections.abc import Sequence


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Names with commas and "and" before the last, of which at most some are given by name."""
    words = [*names]
    if most is not None and len(names) > most:
        words = [*names[:most], f"{len(names) - most} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
