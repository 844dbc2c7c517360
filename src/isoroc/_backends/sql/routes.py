"""The walk of forecasts down a tree, as an expression of SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from isoroc._backends.columns import Scalars
from isoroc._backends.sql.dialects import Rules
from isoroc._backends.sql.expressions import (
    Node,
    adopt,
    call,
    case,
    integer,
    nodes,
    numbers_in_text,
)
from isoroc._simplex import Floats, Ints
from isoroc._tree import BinTree

#: Places, or splits of a level of a tree, beyond which joins and lists are as fast as CASE.
FEW_PLACES = 16


class Route:
    """Finds the bins of forecasts.

    Splits are written as nested CASE. Where there are lists, a level of many splits is one look-up
    of thresholds and children: planning and running a CASE takes time for each split.
    """

    def __init__(
        self, scalars: Scalars[Node], rules: Rules, tree: BinTree, columns: Sequence[Node]
    ) -> None:
        self._scalars = scalars
        self._rules = rules
        self._tree = tree
        self._columns = [scalars.keep(own) for own in columns]
        self._place_of = {int(node): place for place, node in enumerate(tree.bins)}
        self._unfinished: list[int] = []

    def place(self) -> Node:
        """Place among the bins."""
        scalars, depth = self._scalars, self._rules.depth
        place = self._walk(0, self._levels_by_case())
        while waiting := self._unfinished:
            self._unfinished = []
            at = scalars.keep(place)
            if self._rules.lists and len(waiting) > FEW_PLACES:
                place = self._step(at, np.array(waiting))
            else:
                numbered = enumerate(waiting, start=1)
                ways = [(scalars.is_at(at, -i), self._walk(n, depth)) for i, n in numbered]
                place = case(ways, adopt(at), flat=False)
        return place

    def _levels_by_case(self) -> int:
        """Levels of the tree, from the first on, that are written as one CASE."""
        tree, depth = self._tree, self._rules.depth
        if not self._rules.lists:
            return depth
        level = np.zeros(len(tree.class_weights), dtype=np.intp)
        for node, below in zip(tree.split_nodes, tree.children, strict=True):
            level[below[below >= 0]] = level[node] + 1
        many = np.flatnonzero(np.bincount(level[tree.split_nodes]) > FEW_PLACES)
        return min(depth, *many[:1].tolist()) if len(many) else depth

    def _number(self, node: int) -> int:
        """Place of a bin; -1, -2, ... for nodes at which the walk has to go on."""
        if node in self._place_of:
            return self._place_of[node]
        self._unfinished.append(node)
        return -len(self._unfinished)

    def _walk(self, node: int, depth: int) -> Node:
        """Numbers of nodes some levels below a node, by CASE."""
        if not depth or node in self._place_of:
            return integer(self._number(node))
        tree = self._tree
        split = tree.split_of_node[node]
        kept = np.flatnonzero(tree.children[split] >= 0)
        scalars = self._scalars
        margins = [
            scalars.binary("-", self._columns[k], scalars.number(tree.thresholds[split, k]))
            for k in kept
        ]
        *below, last = [self._walk(int(c), depth - 1) for c in tree.children[split, kept]]
        return case(_first_of_largest(margins, below), last)

    def _step(self, at: Node, waiting: Ints) -> Node:
        """Numbers of nodes one level down, by lists of thresholds and children.

        Rows that are at -i are in the i-th of the waiting nodes; those at 0 or above have arrived.
        """
        tree, K, binary = self._tree, self._tree.n_classes, self._scalars.binary
        splits = tree.split_of_node[waiting]
        children = tree.children[splits]
        # No margin below an infinite threshold is the largest.
        thresholds = np.where(children >= 0, tree.thresholds[splits], np.inf)
        before = binary("*", integer(-K), binary("+", adopt(at), integer(1)))
        numbers = [self._number(c) if c >= 0 else 0 for c in children.ravel().tolist()]
        place = binary("+", before, self._region(at, thresholds))
        entry = call("LIST_EXTRACT", numbers_in_text(numbers, "array<int>"), place)
        arrived = nodes.GTE(this=adopt(at), expression=integer(0))
        return case([(arrived, adopt(at))], entry, flat=False)

    def _region(self, at: Node, thresholds: Floats) -> Node:
        """Regions in which rows that are at -1, -2, ... lie, the first of which is 1."""
        scalars, own = self._scalars, nodes.Neg(this=adopt(at))
        lists = [numbers_in_text(values) for values in thresholds.T.tolist()]
        margins = [
            scalars.keep(scalars.binary("-", x, call("LIST_EXTRACT", values, own)))
            for x, values in zip(self._columns, lists, strict=True)
        ]
        K = len(margins)
        return case(_first_of_largest(margins, map(integer, range(1, K))), integer(K))


def _first_of_largest(margins: list[Node], ways: Iterable[Node]) -> list[tuple[Node, Node]]:
    """Conditions of the regions of a split but the last, and what is returned for each of them.

    The first region whose margin no later one exceeds: no earlier one does either, as each of them
    was exceeded by a later one.
    """
    return [(_none_exceeds(margins[i:]), way) for i, way in enumerate(ways)]


def _none_exceeds(margins: list[Node]) -> Node:
    """Whether the first margin is at least as large as the others."""
    first, *others = margins
    result: Node = nodes.GTE(this=adopt(first), expression=adopt(others[0]))
    for other in others[1:]:
        more = nodes.GTE(this=adopt(first), expression=adopt(other))
        result = nodes.And(this=result, expression=more)
    return result
