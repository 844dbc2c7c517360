"""Affine formulas: sums and multiples of columns in several steps, as one product with a matrix.

A runtime takes its time for each node, whatever the number of rows, so that one product is faster
than several steps. It has other rounding errors, so this is for smooth maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from isoroc.export._formulas import Column, used

#: Entries of a matrix that take as long as a node does for one row, and as long as one of its
#: columns does for each of many rows.
_PER_NODE, _PER_COLUMN = 1000, 32
#: Entries of a matrix from which on the nodes around a product do not matter.
_MOST_ENTRIES = 2**16
#: A formula may take so many times as long as its steps if it is only a part of others.
_PART = 4


class Affine(NamedTuple):
    """A weighted sum of columns plus a constant."""

    terms: dict[Column, float]
    offset: float


class _Step(NamedTuple):
    """What it takes to compute the columns of an affine kind from their inputs."""

    nodes: int
    #: Entries of a matrix whose product would take as long.
    entries: int


class _Kind(NamedTuple):
    """All columns of a kind as affine formulas, and the kinds that these formulas replace."""

    formulas: dict[Column, Affine]
    steps: dict[int, _Step]


def fold(outputs: Sequence[Column]) -> dict[Column, Affine]:
    """Columns for which one product is faster than several steps, and their formulas."""
    kinds = used(outputs)
    # What other operators take is computed in any case, so that formulas can start from it.
    computed = set(outputs)
    for columns in kinds:
        if not _is_affine(columns[0]) and columns[0].operator != "bundle":
            computed.update(argument for column in columns for argument in _arguments(column))
    known: dict[int, _Kind] = {}
    folded: dict[Column, Affine] = {}
    for columns in kinds:
        first = columns[0]
        if not _is_affine(first) or first.fixed:
            continue
        steps = {first.kind: _step(columns)}
        for argument in _arguments(first):
            if argument.kind in known:
                steps |= known[argument.kind].steps
        most_entries = sum(step.entries for step in steps.values())
        formulas = _formulas(columns, known, min(_PART * most_entries, _MOST_ENTRIES))
        if formulas is None:
            continue
        starts = {start for formula in formulas.values() for start in formula.terms}
        nodes = min(len({start.kind for start in starts}), 2)
        saved = sum(step.nodes for step in steps.values()) - nodes
        if saved > 0 and len(starts) * len(columns) <= most_entries:
            folded |= formulas
        if computed.isdisjoint(columns):
            known[first.kind] = _Kind(formulas, steps)
    return folded


def _is_affine(column: Column) -> bool:
    """Whether a column is a sum or a multiple of others; equal for columns of one kind."""
    numbers = [given.operator == "number" for given in column.inputs]
    if column.operator == "Mul":
        return any(numbers)
    if column.operator == "Div":
        return numbers[1]
    return column.operator in ("Add", "Sub", "sum", "weighted sum")


def _arguments(column: Column) -> list[Column]:
    """Columns that a column is computed from, without numbers."""
    bundled = [given.inputs if given.operator == "bundle" else (given,) for given in column.inputs]
    return [argument for part in bundled for argument in part if argument.operator != "number"]


def _step(columns: Sequence[Column]) -> _Step:
    """What it takes to compute the columns of an affine kind from their inputs."""
    # Nodes add axes and remove them where sums have different arguments or arguments are repeated.
    operator, entries = columns[0].operator, 0
    if operator in ("sum", "weighted sum"):
        several = len({column.inputs[0] for column in columns}) > 1
        nodes = 1 + several * (1 if operator == "sum" else 2)
        if operator == "weighted sum":
            entries = len(columns) * len(columns[0].data)
    else:
        n_different = len({tuple(_arguments(column)) for column in columns})
        nodes = 3 if 1 < n_different < len(columns) else 1
    return _Step(nodes, entries + nodes * min(_PER_NODE, _PER_COLUMN * len(columns)))


def _formulas(
    columns: Sequence[Column], known: dict[int, _Kind], most_entries: int
) -> dict[Column, Affine] | None:
    """Affine formulas of the columns of a kind, if their matrix has at most so many entries."""
    result: dict[Column, Affine] = {}
    starts: set[Column] = set()
    for column in columns:
        formula = _formula(column, known)
        if formula is None:
            return None
        starts.update(formula.terms)
        if len(starts) * len(columns) > most_entries:
            return None
        result[column] = formula
    return result


def _formula(column: Column, known: dict[int, _Kind]) -> Affine | None:
    """Affine formula of a column, if it is as precise as the steps it replaces."""
    terms: dict[Column, float] = {}
    offset = 0.0
    for argument, factor in _multiples(column):
        if argument.operator == "number":
            offset += factor * argument.data
            continue
        kind = known.get(argument.kind)
        part = Affine({argument: 1.0}, 0.0) if kind is None else kind.formulas[argument]
        if part.offset and abs(factor) > 1:
            return None  # The difference may be small and exact, but its two parts are rounded.
        offset += factor * part.offset
        for start, weight in part.terms.items():
            terms[start] = terms.get(start, 0.0) + factor * weight
    return Affine(terms, offset)


def _multiples(column: Column) -> list[tuple[Column, float]]:
    """Columns and numbers whose multiples add up to a column, and their factors."""
    if column.operator == "weighted sum":
        return list(zip(column.inputs[0].inputs, column.data.tolist(), strict=True))
    if column.operator == "sum":
        return [(given, 1.0) for given in column.inputs[0].inputs]
    a, b = column.inputs
    if column.operator == "Mul":
        return [(a, b.data)] if b.operator == "number" else [(b, a.data)]
    if column.operator == "Div":
        return [(a, 1 / b.data)]
    return [(a, 1.0), (b, 1.0 if column.operator == "Add" else -1.0)]
