"""Stages of a query: named columns that later expressions use, and the statement made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from sqlglot import expressions as nodes

from isoroc._backends.sql.dialects import RULES
from isoroc._backends.sql.expressions import Node, adopt, call, case, column, integer, table_node

#: What sqlglot calls the columns that a star leaves out; versions differ.
_EXCEPT = "except_" if "except_" in nodes.Star.arg_types else "except"
#: Columns up to which stages hand on all of them: a star is short, but planners bind each column.
_FEW_COLUMNS = 64
#: Levels of an expression up to which columns become part of it.
_HIGH = 40
#: Expressions that are conditions.
_CONDITIONS = (nodes.LTE, nodes.GTE, nodes.EQ, nodes.And, nodes.Not)


class Stages:
    """Columns by name, each in the first stage that has all that it is computed from.

    Equal expressions are one column; one that is used only once becomes part of what uses it.
    """

    def __init__(self, dialect: str, taken: Sequence[str]) -> None:
        self._dialect = dialect
        self._rules = RULES[dialect]
        #: Most columns that a stage of the statement has, once it was written.
        self.widest = 0
        self._columns: dict[str, Node] = {}
        self._name_of: dict[Node, str] = {}
        self._prefix = "isoroc_"
        while any(name.lower().startswith(self._prefix) for name in taken):
            self._prefix += "_"

    def keep(self, expression: Node) -> Node:
        """The expression as a column, to be used more than once."""
        if isinstance(expression, nodes.Column):
            return expression
        if isinstance(expression, nodes.EQ) and isinstance(expression.expression, nodes.Literal):
            return expression  # whether a place is a number, which is found as fast as a column
        name = self._name_of.get(expression)
        is_condition = isinstance(expression, _CONDITIONS)
        as_number = is_condition and not self._rules.conditions
        if name is None:
            if expression.find(nodes.Column) is None:
                return expression
            stored = adopt(expression)
            if as_number:
                stored = case([(stored, integer(1))], integer(0))
            name = self._name_of[expression] = f"{self._prefix}{len(self._columns)}"
            self._columns[name] = stored
        kept = column(name)
        return nodes.EQ(this=kept, expression=integer(1)) if as_number else kept

    def select(
        self,
        table: Sequence[str],
        keep: Sequence[str] | None,
        outputs: dict[str, Node],
        replaced: Sequence[str] = (),
        where: Node | None = None,
    ) -> Any:
        """The whole statement: some columns of a table, and outputs by their names.

        If `keep` is None, all columns are handed on but the replaced ones, whose names are among
        the outputs; the `star` of the dialect's rules must allow it. Rows must satisfy `where`.
        """
        outputs = self._merge(outputs)
        of_stages = self._stages()
        source: Any = table_node(table)
        source, first, last = self._hand_on(source, keep, replaced)
        live = None if keep is None else self._live(of_stages, len(keep), outputs)
        before, stages = first, []
        for number, own in enumerate(of_stages):
            columns = own
            if live is not None:
                earlier = [column(name) for name in live[number] if name not in own]
                before = [*([node.copy() for node in last] if number else first), *earlier]
                columns = {name: own[name] for name in live[number] if name in own}
            query = nodes.Select(expressions=[*before, *named(columns)]).from_(source, copy=False)
            if where is not None and not number:
                query = query.where(where, copy=False)
            if self._rules.limit is not None:
                query = query.limit(integer(self._rules.limit), copy=False)
            if self._rules.offset:
                query = query.offset(integer(0), copy=False)
            name = nodes.to_identifier(f"{self._prefix}stage_{number}", quoted=True)
            stages.append((name, query))
            source, before = nodes.Table(this=name.copy()), [nodes.Star()]
        query = nodes.Select(expressions=[*last, *named(outputs)]).from_(source, copy=False)
        if where is not None and not stages:
            query = query.where(where, copy=False)
        for name, stage_query in stages:
            query = query.with_(name, as_=stage_query, copy=False)
        return query

    def _merge(self, outputs: dict[str, Node]) -> dict[str, Node]:
        """Outputs after each column that is used only once was put where it is used.

        Planners take longer for columns of stages than for parts of expressions.
        """
        outputs, expressions = dict(outputs), self._columns | outputs
        surveyed = {name: _survey(node) for name, node in expressions.items()}
        uses = Counter(found.name for used, _ in surveyed.values() for found in used)
        height: dict[str, int] = {}
        for name, (used, own) in surveyed.items():
            node, levels = expressions[name], own
            for found in used:
                below = height.get(found.name, _HIGH)
                if uses[found.name] > 1 or own + below > _HIGH:
                    continue
                levels = max(levels, own + below)
                part = self._columns.pop(found.name)
                if found is node:  # an output that is a column
                    outputs[name] = part
                elif isinstance(part, nodes.Binary):
                    found.replace(nodes.Paren(this=part))
                else:
                    found.replace(part)
            # A choice stays by itself: engines limit how deep choices may be nested. And columns of
            # the table are those of the first stage only.
            own_only = all(found.name.startswith(self._prefix) for found in used)
            is_choice = node.find(nodes.Case, nodes.Subquery) is not None
            if own_only and not is_choice:
                height[name] = levels
        return outputs

    def _stages(self) -> list[dict[str, Node]]:
        """Stages of the columns, each with the columns that need no later one."""
        stages: list[dict[str, Node]] = []
        stage_of: dict[str, int] = {}
        for name, node in self._columns.items():
            at = stage_of[name] = 1 + max(stage_of.get(other, -1) for other in _used([node]))
            if at == len(stages):
                stages.append({})
            stages[at][name] = node
        return stages

    def _hand_on(
        self, source: Any, keep: Sequence[str] | None, replaced: Sequence[str]
    ) -> tuple[Any, list[Node], list[Node]]:
        """Where the first stage reads from, and what it and the last one hand on."""
        if keep is not None:
            return source, [column(name) for name in keep], [column(name) for name in keep]
        if self._rules.star == "except":
            left_out = [*self._columns, *replaced]
            added = [nodes.to_identifier(name, quoted=True) for name in left_out]
            return source, [nodes.Star()], [nodes.Star(**{_EXCEPT: added})]
        row = f"{self._prefix}row"
        if self._dialect == "postgres":
            own = f"{self._prefix}source"
            source = nodes.alias_(source, own, table=True, quoted=True)
            whole: Node = nodes.Dot(this=nodes.Paren(this=column(row)), expression=nodes.Star())
            return source, named({row: column(own)}), [whole]
        whole = nodes.Column(this=nodes.Star(), table=nodes.to_identifier(row, quoted=True))
        return source, named({row: call("STRUCT", nodes.Star())}), [whole]

    def _live(
        self, stages: Sequence[dict[str, Node]], n_kept: int, outputs: dict[str, Node]
    ) -> list[list[str]] | None:
        """Columns of each stage, and of those before, that later ones use; None for all, if few."""
        if len(self._columns) <= _FEW_COLUMNS:
            return None
        known, needed, live = list(self._columns), _used(outputs.values()), []
        for stage in reversed(stages):
            live.append([name for name in known if name in needed])
            needed |= _used(stage.values())
            known = [name for name in known if name not in stage]
        self.widest = n_kept + max(len(outputs), *map(len, live))
        return live[::-1]


def _survey(node: Node) -> tuple[list[Node], int]:
    """Columns that an expression uses, twice if for each entry of a list, and its levels."""
    if isinstance(node, nodes.Column):
        return [node], 1
    used: list[Node] = []
    levels = 0
    for part in node.iter_expressions():
        of_part, below = _survey(part)
        used += of_part
        levels = max(levels, below)
    # An expression of entries is computed for each of them.
    for_entries = isinstance(node, (nodes.Comprehension, nodes.Lambda))
    return used * (2 if for_entries else 1), levels + 1


def _used(expressions: Iterable[Node]) -> set[str]:
    return {found.name for node in expressions for found in node.find_all(nodes.Column)}


def named(columns: dict[str, Node]) -> list[Node]:
    """Expressions with their names."""
    return [
        nodes.Alias(this=adopt(expression), alias=nodes.to_identifier(name, quoted=True))
        for name, expression in columns.items()
    ]
