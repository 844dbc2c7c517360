"""Categories: how every backend matches entries of a column with the levels of a fit."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

#: Spellings of booleans. Databases without that type store 1 and 0.
BOOLEANS = {1: ("true", "True", "TRUE"), 0: ("false", "False", "FALSE")}


def whole_number(text: str) -> int | None:
    """The whole number that a text spells in any way, such as 3, 3.0 or 3e0.

    True is 1 and false is 0. None for fractions, other texts, and numbers that a double may round.
    """
    for number, spellings in BOOLEANS.items():
        if text in spellings:
            return number
    if not re.fullmatch(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?", text):
        return None
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else None


@dataclass(frozen=True)
class Levels:
    """The categories of a column, as texts.

    An entry belongs to the level with the same text. A whole number or boolean also belongs to the
    only level that is the same number: columns of doubles spell 1 as 1.0, and some databases spell
    true as 1. Levels that differ only in their spelling are told apart by it.
    """

    texts: list[str]

    @cached_property
    def places(self) -> dict[str, int]:
        """Place of each level."""
        return {text: k for k, text in enumerate(self.texts)}

    @cached_property
    def numbers(self) -> dict[int, int]:
        """Place of each whole number that exactly one level spells."""
        numbers = [whole_number(text) for text in self.texts]
        times = Counter(numbers)
        return {n: k for k, n in enumerate(numbers) if n is not None and times[n] == 1}

    def find(self, entries: Iterable[str]) -> list[int]:
        """Place of each entry among the levels, -1 if it is unknown."""
        places = self.places
        numbers = self.numbers
        if not numbers:
            return [places.get(entry, -1) for entry in entries]
        return [
            places[entry] if entry in places else numbers.get(whole_number(entry), -1)  # type: ignore[arg-type]
            for entry in entries
        ]
