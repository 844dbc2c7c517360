"""Conditions of ``--where``: SQL whose literals and columns get the types that it needs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import polars as pl

from isoroc._cli.errors import CommandError, did_you_mean, first_line

#: Text between single quotes, a name between double quotes, a word; whatever else, one by one.
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[^\W\d]\w*|.", re.DOTALL)
_DATE = re.compile(r"'\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?'")
#: Number of readings of a condition that are tried.
_MOST = 4096


def parse_condition(
    where: str, schema: Mapping[str, pl.DataType], *, untyped: bool = False
) -> pl.Expr:
    """Condition on the rows of a table.

    SQL compares a date with the text ``'2025-01-01'``; polars does not. So the condition is read as
    it stands if its types fit, and otherwise with the fewest of these changes: text that looks like
    a date becomes one, and columns of text become numbers or booleans. Dates without an offset are
    in the time zone of the column.

    Parameters
    ----------
    where : str
        The condition.
    schema : mapping of str to DataType
        Columns of the table.
    untyped : bool, default=False
        Whether columns of text may hold numbers and booleans.

    Examples
    --------
    >>> import datetime
    >>> days = pl.DataFrame({"day": [datetime.date(2025, 1, 1), datetime.date(2024, 1, 1)]})
    >>> days.filter(parse_condition("day >= '2025-01-01'", days.schema)).height
    1
    >>> texts = pl.DataFrame({"zip": ["01234", "1234"], "n": ["10", "9"]})
    >>> condition = parse_condition("zip = '01234' AND n > 9", texts.schema, untyped=True)
    >>> texts.filter(condition).height
    1
    """
    names = _root_names(where, schema)
    tokens = _TOKEN.findall(where)
    zones = {zone for name in names if (zone := getattr(schema[name], "time_zone", None))}
    # A column is read in the same way wherever it occurs, each literal on its own.
    has_dates = any(_DATE.fullmatch(token) for token in tokens)
    choices: dict[object, list[str]] = {}
    keys: list[object] = []
    for place, token in enumerate(tokens):
        name = _name(token, tokens[place + 1 :])
        keys.append(name if name in names else place)
        if name in names:
            choices[name] = [token]
            if untyped and schema[name] == pl.String:
                truth = [_truth(name)] if _is_truth(tokens, place) else []
                choices[name] = [*truth, token, f"TRY_CAST({_quote(name)} AS DOUBLE)"]
            elif has_dates and getattr(schema[name], "time_zone", None):
                # polars would take text for UTC, whatever the time zone of the column
                choices[name] = [f"CAST({_quote(name)} AS TIMESTAMPTZ)"]
        else:
            choices[place] = _readings_of_literal(token, zones)
    problem = None
    for reading in _fewest_changes_first(choices):
        condition = pl.sql_expr("".join(reading[key] for key in keys))
        try:
            _sample_row(schema, names).filter(condition).collect()
        except pl.exceptions.PolarsError as error:
            problem = problem or error
        else:
            return condition
    raise CommandError(f"--where {where!r}: {first_line(problem or ValueError(where))}.")


def _root_names(where: str, schema: Mapping[str, pl.DataType]) -> list[str]:
    """Columns of a condition."""
    try:
        names = list(dict.fromkeys(pl.sql_expr(where).meta.root_names()))
    except pl.exceptions.PolarsError as error:
        raise CommandError(
            f"--where {where!r}: {first_line(error)}; write a condition as in SQL, for example "
            "\"y IS NOT NULL AND day >= '2025-01-01'\"."
        ) from error
    for name in names:
        if name not in schema:
            raise CommandError(f"--where: no column {name!r}; {did_you_mean(name, schema)}")
    return names


def _name(token: str, rest: list[str]) -> str | None:
    """Name that a token stands for; None for functions and everything else."""
    if token.startswith('"'):
        return token[1:-1].replace('""', '"')
    follows = next((other for other in rest if other.strip()), "")
    return token if token.isidentifier() and follows != "(" else None


def _is_truth(tokens: list[str], place: int) -> bool:
    """Whether a column is used as a condition: ``flag``, ``NOT flag``, ``flag = true``."""
    before = [word.lower() for word in tokens[:place] if word.strip()]
    after = [word.lower() for word in tokens[place + 1 :] if word.strip()]
    if before[-1:] == ["("] and before[-2:-1] not in ([], ["("], ["not"], ["and"], ["or"]):
        return False  # the argument of a function
    alone = (not before or before[-1] in ("(", "not", "and", "or")) and (
        not after or after[0] in (")", "and", "or")
    )
    return alone or (after[:1] == ["="] and after[1:2] in (["true"], ["false"]))


def _truth(name: str) -> str:
    return f"(LOWER({_quote(name)}) = 'true')"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _readings_of_literal(token: str, zones: set[str]) -> list[str]:
    """A literal as it stands, and as a point in time: in a time zone if columns have one."""
    if not _DATE.fullmatch(token):
        return [token]
    try:
        time = datetime.fromisoformat(token[1:-1])
    except ValueError:
        return [token]
    readings = [token]
    if time.tzinfo is None:
        readings.append(f"CAST('{time.isoformat(' ')}' AS TIMESTAMP)")
        if len(zones) == 1:
            time = time.replace(tzinfo=ZoneInfo(next(iter(zones))))
    if time.tzinfo is not None and zones:
        moment = time.astimezone(UTC).replace(tzinfo=None).isoformat()
        readings.insert(0, f"CAST('{moment}Z' AS TIMESTAMPTZ)")
    return readings


def _fewest_changes_first(choices: Mapping[object, list[str]]) -> Iterator[dict[object, str]]:
    """Combinations of readings; those that change least come first."""
    several = {key: readings for key, readings in choices.items() if len(readings) > 1}
    fixed = {key: readings[0] for key, readings in choices.items()}
    counts = (range(len(readings)) for readings in several.values())
    tried = itertools.islice(itertools.product(*counts), _MOST)
    for numbers in sorted(tried, key=lambda found: (sum(map(bool, found)), found)):
        changed = zip(several.items(), numbers, strict=True)
        yield fixed | {key: readings[number] for (key, readings), number in changed}


def _sample_row(schema: Mapping[str, pl.DataType], names: list[str]) -> pl.LazyFrame:
    """A row to try a condition on: polars checks some types only if there are values."""
    columns = [
        pl.Series(name, [""] if schema[name] == pl.String else [None], schema[name])
        for name in names
    ]
    return pl.LazyFrame(columns)
