"""Rows that a fit has seen: a calibrator judged on its own rows looks better than it is.

A *fingerprint* of the rows of a fit is kept in `summary_` and in the model file. It holds hashes of
some rows, chosen by their content alone. So the order of rows does not matter, and the share of any
rows that the fit has seen can be estimated. Arrays carry no fingerprint, so this process remembers
the fingerprints behind the last outputs of `predict_proba`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isoroc._core.rows import hash_forecasts, hash_words
from isoroc._core.types import Floats, Ints
from isoroc._input.arrays import slices
from isoroc._input.kinds import columns_of
from isoroc._input.sample import Sample

Hashes = NDArray[np.uint64]

#: Distinct rows that a fingerprint holds. They have the smallest hashes.
SIZE = 64
#: Hashes are whole numbers from 0 to this.
_LARGEST_HASH = 2**32 - 1
#: Hash of the last outputs, and the summary of the calibrator that made each.
_outputs: deque[tuple[int, Mapping[str, Any]]] = deque(maxlen=100)


class Fingerprint(NamedTuple):
    """Hashes of some of the distinct forecasts, and of their outcomes."""

    forecasts: Hashes
    """32 bits for each forecast, sorted."""
    outcomes: Hashes
    """8 bits for the number of rows of each class with that forecast."""
    tied: float
    """Share of the rows that share their forecast, which other rows may then do by chance."""

    @classmethod
    def of(cls, sample: Sample, last: int | None = None) -> Self:
        """Fingerprint of a sample. Rows of weight 0 do not count.

        It holds the `SIZE` smallest hashes or, with `last`, all hashes up to `last`.
        """
        sample = sample.positive().on_simplex()
        if last is not None:
            return cls(*_distinct(sample, last))
        # Hashes are spread evenly, so most rows need not be sorted.
        few = _LARGEST_HASH // max(len(sample) // (16 * SIZE), 1)
        forecasts, outcomes, tied = _distinct(sample, few)
        if len(forecasts) < SIZE and few < _LARGEST_HASH:
            forecasts, outcomes, tied = _distinct(sample, _LARGEST_HASH)
        return cls(forecasts[:SIZE], outcomes[:SIZE], tied)

    @classmethod
    def read(cls, summary: Any) -> Self | None:
        """The fingerprint in a summary, which may come from a file, or None if there is none."""
        entry = summary.get("fingerprint") if isinstance(summary, Mapping) else None
        match entry:
            case {"tied": int() | float() as tied, "rows": str(text)}:
                if not re.fullmatch(rf"([0-9a-f]{{10}}){{1,{SIZE}}}", text):
                    return None
                marks = [int(text[i : i + 10], 16) for i in range(0, len(text), 10)]
                forecasts, outcomes = np.divmod(np.array(sorted(marks), np.uint64), np.uint64(256))
                return cls(forecasts, outcomes, float(tied))
        return None

    def entry(self) -> dict[str, Any]:
        """The entry of `summary_`, in types that JSON has."""
        marks = (self.forecasts * np.uint64(256) + self.outcomes).astype(">u8")
        rows = marks.view(np.uint8).reshape(-1, 8)[:, 3:]  # 40 bits of each
        return {"fingerprint": {"tied": round(self.tied, 4), "rows": rows.tobytes().hex()}}

    def share_of(self, sample: Sample) -> float:
        """Share of the rows of a sample that the fit has seen, or 0 without evidence of it.

        It is estimated from the forecasts whose hashes are small enough for the fingerprint. At
        least four of them, and 95 % of those found there, must have the same outcomes. The more
        forecasts are tied, the larger the share must be to count, up to 90 %.
        """
        last = int(self.forecasts[-1]) if len(self.forecasts) == SIZE else _LARGEST_HASH
        others = Fingerprint.of(sample, last)
        hashes = self.forecasts, others.forecasts
        _, here, there = np.intersect1d(*hashes, return_indices=True)
        same = np.count_nonzero(self.outcomes[here] == others.outcomes[there])
        if same < max(4, 0.95 * len(here)):
            return 0.0
        share = same / len(others.forecasts)
        by_chance = 2 * max(others.tied, self.tied)
        return share if share > min(0.1 + by_chance, 0.9) else 0.0


def share_seen(summary: Any, sample: Sample) -> float:
    """Share of the rows of a sample that a fit with this `summary_` has seen, or 0 if unknown."""
    fingerprint = Fingerprint.read(summary)
    return 0.0 if fingerprint is None else fingerprint.share_of(sample)


def remember_output(Q: Any, summary: Mapping[str, Any]) -> None:
    """Remember which fit made forecasts, if they may be forecasts of its own rows."""
    rows = summary.get("rows")
    if type(Q) is not np.ndarray or not isinstance(rows, int) or 8 * len(Q) < rows:
        return
    if summary.get("fingerprint"):
        _outputs.append((_hash_output(Q), summary))


def recall_output(Q: Any) -> Fingerprint | None:
    """Fingerprint of the calibration rows of the calibrator that made these forecasts."""
    if not len(_outputs):
        return None
    key = _hash_output(np.asarray(Q, dtype=np.float64))
    summaries = (summary for each, summary in reversed(_outputs) if each == key)
    return Fingerprint.read(next(summaries, None))


def _hash_output(Q: Floats) -> int:
    """Hash of some rows, the same for two columns and for the second of them."""
    columns = columns_of(Q)
    most = max(20, 400 // max(2, columns.shape[1]))
    some = np.arange(0, len(Q), len(Q) // most + 1)
    rows = np.ascontiguousarray(columns[some])
    hashes, _ = hash_forecasts(rows, _first_telling(rows), _LARGEST_HASH)
    return hash((len(Q), int((hashes * (2 * some.astype(np.uint64) + np.uint64(1))).sum())))


def _distinct(sample: Sample, last: int) -> tuple[Hashes, Hashes, float]:
    """Forecasts with a hash of at most `last`, sorted, their outcomes, and the share of ties."""
    parts = [np.empty(0, np.uint64)]
    kept = [np.empty(0, np.intp)]
    columns = columns_of(sample.forecasts)
    for rows in slices(len(sample)):
        hashes, low = hash_forecasts(columns[rows], _first_telling(columns), last)
        parts.append(hashes)
        kept.append(rows.start + low)
    some = sample.take(np.concatenate(kept))
    times = some.row_weights() ** 2 / some.squared_weights()  # rows that a cell stands for
    K = np.uint64(sample.n_classes)
    pairs = np.concatenate(parts) * K + some.codes.astype(np.uint64)
    order = np.argsort(pairs)
    pairs = pairs[order]
    first = _starts(pairs)
    counts = np.add.reduceat(times[order], first)
    forecasts, label = np.divmod(pairs[first], K)
    first = _starts(forecasts)
    outcomes = np.add.reduceat(_mix(_mix(_bits(counts)) + label), first)
    total = np.add.reduceat(counts, first)
    tied = float(total[total > 1].sum() / total.sum()) if len(total) else 0.0
    return forecasts[first], _mix(outcomes) >> np.uint64(56), tied


def _starts(ordered: Hashes) -> Ints:
    """Place of the first of each run of equal numbers."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])


def _first_telling(columns: Floats) -> int:
    """The first of the columns that tell forecasts apart: all, or the second of two."""
    return int(columns.shape[1] == 2)


def _bits(values: Floats) -> Hashes:
    """Numbers of 40 significant bits, as integers. Zeros have no sign."""
    return ((values + 0.0).view(np.uint64) + np.uint64(2**11)) >> np.uint64(12)


def _mix(x: Hashes) -> Hashes:
    """A permutation of 64 bits in which each bit depends on all others."""
    return hash_words(x[:, None], 1)
