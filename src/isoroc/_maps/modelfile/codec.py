"""Values of parameters and fitted attributes as JSON, and back, bit for bit: see `schema.json`."""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._core.tree import BinTree
from isoroc._core.verdict import Verdict
from isoroc._input import InputError, to_array
from isoroc._maps.modelfile.checks import check_certificate, check_reduction, check_tree
from isoroc._maps.modelfile.document import Fault
from isoroc._maps.monotonicity import Certificate
from isoroc._maps.top import TopReduction
from isoroc._support.table import Table

#: Objects made of arrays and numbers: what the file calls them, and what must hold for them.
_STRUCTURES: dict[str, tuple[Any, Callable[[Any, str], None]]] = {
    "tree": (BinTree, check_tree),
    "reduction": (TopReduction, check_reduction),
    "certificate": (Certificate, check_certificate),
    "verdict": (Verdict, lambda *_: None),  # the schema says all
}
_TAGS = {kind: tag for tag, (kind, _) in _STRUCTURES.items()}
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
#: Characters that an array of strings may take, whether used or not.
_MAX_CHARACTERS = 2**24


def encode(value: Any, place: str, other: Callable[[Any, str], Any]) -> Any:  # noqa: PLR0911
    """JSON value of what messages call `place`; `other` turns what has no entry into a document."""
    if value is None or isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"type": "float", "value": _word(value)}
    if isinstance(value, list | tuple):
        items = [encode(item, f"{place}[{i}]", other) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"type": "tuple", "items": items}
    is_table = isinstance(value, Table)
    if is_table or (type(value) is dict and all(isinstance(name, str) for name in value)):
        named = {name: encode(item, f"{place}.{name}", other) for name, item in value.items()}
        return {"type": "table", "columns": named} if is_table else {"type": "dict", "items": named}
    if type(value) in _TAGS:
        parts = {f.name: getattr(value, f.name) for f in fields(value)}
        inner = {name: encode(part, f"{place}.{name}", other) for name, part in parts.items()}
        return {"type": _TAGS[type(value)], **inner}
    array = to_array(value, name=place)
    return _encode_array(array, place) if array.ndim else other(value, place)


def decode(document: Any, place: str, other: Callable[[dict[str, Any], str], Any]) -> Any:  # noqa: PLR0911
    """What `encode` was given, from a document that follows the schema."""
    if isinstance(document, list):
        return [decode(item, f"{place}[{i}]", other) for i, item in enumerate(document)]
    if not isinstance(document, dict):
        return document
    tag = document["type"]
    if tag == "float":
        return _WORDS[document["value"]]
    if tag == "array":
        return _decode_array(document, place)
    if tag == "tuple":
        return tuple(decode(document["items"], place, other))
    if tag not in ("dict", "table", *_STRUCTURES):
        return other(document, place)
    parts = {name: part for name, part in document.items() if name != "type"}
    parts = parts.get("items", parts.get("columns", parts))
    inner = {name: decode(part, f"{place}.{name}", other) for name, part in parts.items()}
    if tag == "dict":
        return inner
    kind, check = _STRUCTURES.get(tag, (Table, _check_table))
    structure = kind(inner) if tag == "table" else kind(**inner)
    check(structure, place)
    return structure


def _word(value: float) -> str:
    return next(word for word, number in _WORDS.items() if repr(number) == repr(value))


def _encode_array(array: NDArray[Any], place: str) -> dict[str, Any]:
    kind = array.dtype.kind
    values = array.ravel().tolist()
    head: dict[str, Any] = {"type": "array", "dtype": array.dtype.name}
    if kind == "U":
        head |= {"dtype": "str", "length": max(array.dtype.itemsize // 4, 1)}
    elif kind == "f":
        values = [v if math.isfinite(v) else _word(v) for v in values]
    elif kind == "O":
        values = [v.item() if isinstance(v, np.generic) else v for v in values]
        if not all(isinstance(v, bool | int | str | float) and v not in _WORDS for v in values):
            problem = "a model file holds only strings, finite numbers and booleans"
            raise InputError(place, None, problem)
    elif kind not in "biu":
        problem = f"a model file cannot hold {array.dtype}"
        raise InputError(place, None, problem, "use strings, numbers or booleans")
    return head | {"shape": list(array.shape), "values": values}


def _decode_array(document: dict[str, Any], place: str) -> NDArray[Any]:
    values, shape, name = document["values"], document["shape"], document["dtype"]
    if math.prod(shape) != len(values):
        raise Fault(place, f"{len(values)} values do not fill the shape {tuple(shape)}")
    if name == "str":
        length = document.get("length", 1)
        if length * len(values) > _MAX_CHARACTERS:
            raise Fault(place, f"strings of {length} characters are too long")
        array: NDArray[Any] = np.array(_of_types(values, {str}, place), dtype=f"<U{length}")
    elif name == "object":
        array = np.empty(len(values), dtype=object)
        array[:] = values
    else:
        if name.startswith("float"):
            values, types = [_WORDS.get(v, v) for v in values], {float, int}
        else:
            types = {bool} if name == "bool" else {int}
        try:
            with np.errstate(over="ignore"):
                array = np.array(_of_types(values, types, place), dtype=name)
        except OverflowError as error:
            raise Fault(place, f"a value is out of range for dtype {name}") from error
    # An integer too large for float64, a decimal too fine for float32, a string too long.
    if any(a != b and b == b for a, b in zip(array.tolist(), values, strict=True)):  # noqa: PLR0124
        raise Fault(place, f"a value does not fit into dtype {name}")
    return array.reshape(shape)


def _check_table(table: Table, place: str) -> None:
    if len({array.shape for array in table.values()} | {(table.n_rows,)}) > 1:
        raise Fault(place, "the columns differ in length")


def _of_types(values: list[Any], types: set[type], place: str) -> list[Any]:
    if found := {type(value) for value in values} - types:
        raise Fault(place, f"{found.pop().__name__} among the values")
    return values
