"""What users may have meant by a name that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(given: object, names: Iterable[object]) -> str:
    """A question with the name that is most like the given one; empty if none is."""
    close = get_close_matches(str(given), [str(name) for name in names], n=1, cutoff=0.6)
    return f"Did you mean {close[0]!r}?" if close else ""
