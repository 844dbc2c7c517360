"""Values of parameters and fitted attributes as JSON, and back, bit for bit.

JSON's own values stay unchanged. Every other value is an object with a "type".
"""

import math
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import partial
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from isoroc._core.ledger import Ledger
from isoroc._core.tree import BinTree
from isoroc._core.verdict import Verdict
from isoroc._input import InputError, to_array
from isoroc._maps.modelfile.checks import (
    check_certificate,
    check_decayed,
    check_ledger,
    check_reduction,
    check_tree,
    decayed_counts,
)
from isoroc._maps.modelfile.document import Fault, check_calibrator, entries, shown
from isoroc._maps.monotonicity import Certificate
from isoroc._maps.top import TopReduction
from isoroc._support.table import Table
from isoroc._support.versions import Document

#: Function that decodes a document inside another one, given its place.
Inner = Callable[[Any, str], Any]
#: Functions that return dataclasses, by their names in the file, and what must hold for them beyond
#: the types of fields.
STRUCTURES: dict[str, tuple[Callable[[], Any], Callable[[Any, str], None]]] = {
    "tree": (lambda: BinTree, check_tree),
    "reduction": (lambda: TopReduction, check_reduction),
    "certificate": (lambda: Certificate, check_certificate),
    "verdict": (lambda: Verdict, lambda *_: None),
    "ledger": (lambda: Ledger, check_ledger),
    "decayed": (decayed_counts, check_decayed),
}
#: Numbers that JSON does not have.
NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
#: Types of arrays that a file may hold.
DTYPES = ("bool", *INTEGERS, "float16", "float32", "float64", "str", "object")
MAX_DIMENSIONS = 4
MAX_LENGTH = 100_000


def encode(value: Any, place: str, other: Callable[[Any, str], Any]) -> Any:
    """JSON value of an object, called `place` in messages. `other` encodes all other objects."""
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, np.random.RandomState | np.random.Generator):
        value = None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"type": "float", "value": _word(value)}
    if isinstance(value, list | tuple):
        return [encode(item, f"{place}[{i}]", other) for i, item in enumerate(value)]
    if type(value) in (Table, dict) and all(isinstance(name, str) for name in value):
        named = {name: encode(part, f"{place}.{name}", other) for name, part in value.items()}
        is_table = isinstance(value, Table)
        return {"type": "table", "columns": named} if is_table else {"type": "dict", "items": named}
    for tag, (find_type, _) in STRUCTURES.items():
        if type(value) is find_type():
            parts = {f.name: getattr(value, f.name) for f in fields(value)}
            return {"type": tag} | encode(parts, place, other)["items"]
    array = to_array(value, name=place)
    return _encode_array(array, place) if array.ndim else other(value, place)


def decode(document: Any, place: str, other: Callable[[Document, str], Any]) -> Any:
    """What `encode` was given. `other` decodes maps and calibrators."""
    if isinstance(document, list):
        return [decode(item, f"{place}[{i}]", other) for i, item in enumerate(document)]
    if not isinstance(document, dict):
        return document
    tag = document.get("type")
    if tag == "calibrator":
        check_calibrator(document, place)
    if tag in ("map", "calibrator"):
        return other(document, place)
    if not isinstance(tag, str) or tag not in _DECODERS:
        raise Fault(place, f"{shown(document)} of type {shown(tag)} has no place in a model file")
    return _DECODERS[tag](document, place, partial(decode, other=other))


def _float(document: Document, place: str, _: Inner) -> float:
    word = entries(document, place, ("type", "value"))["value"]
    if not isinstance(word, str) or word not in NON_FINITE:
        raise Fault(f"{place}.value", f"expected {' or '.join(NON_FINITE)}, got {shown(word)}")
    return NON_FINITE[word]


def _dict(document: Document, place: str, inner: Inner, entry: str = "items") -> Document:
    entries(document, place, ("type", entry))
    named = entries(document[entry], f"{place}.{entry}")
    return {name: inner(part, f"{place}.{name}") for name, part in named.items()}


def _table(document: Document, place: str, inner: Inner) -> Table:
    table = Table(_dict(document, place, inner, "columns"))
    for name, column in table.items():
        if not isinstance(column, np.ndarray):
            raise Fault(f"{place}.{name}", "expected an array")
    if len({column.shape for column in table.values()} | {(table.n_rows,)}) > 1:
        raise Fault(place, "the columns differ in length")
    return table


def _structure(document: Document, place: str, inner: Inner) -> Any:
    """Dataclass from a document. Fields with a default may be missing."""
    find_type, check = STRUCTURES[document["type"]]
    structure_type = find_type()
    required = ["type", *(f.name for f in fields(structure_type) if f.default is MISSING)]
    entries(document, place, required, [f.name for f in fields(structure_type)])
    hints = get_type_hints(structure_type)
    values = {}
    for name in document.keys() - {"type"}:
        value = inner(document[name], f"{place}.{name}")
        if not _is_of(value, hints[name]):
            expected = getattr(hints[name], "__name__", hints[name])
            raise Fault(f"{place}.{name}", f"expected {expected}, got {shown(document[name])}")
        values[name] = value
    structure = structure_type(**values)
    check(structure, place)
    return structure


def _is_of(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    allowed = get_args(hint) if isinstance(hint, UnionType) else (get_origin(hint) or hint,)
    if float in allowed and type(value) is int:
        return abs(value) < 2**1023  # larger integers are not valid floats
    return type(value) in allowed


def _word(value: float) -> str:
    return next(word for word, number in NON_FINITE.items() if repr(number) == repr(value))


def _encode_array(array: NDArray[Any], place: str) -> Document:
    dtype = array.dtype.name
    values = array.ravel().tolist()
    length = {}
    if array.dtype.kind == "U":
        dtype = "str"
        length = {"length": max(array.dtype.itemsize // 4, 1)}
    elif array.dtype.kind == "f":
        values = [v if math.isfinite(v) else _word(v) for v in values]
    elif dtype == "object":
        values = [v.item() if isinstance(v, np.generic) else v for v in values]
        if not all(isinstance(v, bool | int | str | float) and v not in NON_FINITE for v in values):
            problem = "a model file holds only strings, finite numbers and booleans"
            raise InputError(place, None, problem)
    if dtype not in DTYPES or array.ndim > MAX_DIMENSIONS:
        problem = f"a model file cannot hold {array.ndim} dimensions of {array.dtype}"
        raise InputError(place, None, problem, "use strings, numbers or booleans")
    shape = list(array.shape)
    return {"type": "array", "dtype": dtype, **length, "shape": shape, "values": values}


def _array(document: Document, place: str, _: Inner) -> NDArray[Any]:
    entries(document, place, ("type", "dtype", "shape", "values"), ("length",))
    values = document["values"]
    shape = document["shape"]
    name = document["dtype"]
    if name not in DTYPES:
        raise Fault(f"{place}.dtype", f"expected {' or '.join(DTYPES)}, got {shown(name)}")
    if not isinstance(shape, list) or not 1 <= len(shape) <= MAX_DIMENSIONS:
        raise Fault(f"{place}.shape", f"expected a list of 1 to {MAX_DIMENSIONS} numbers")
    if not all(type(n) is int and n >= 0 for n in shape):
        raise Fault(f"{place}.shape", "expected whole numbers >= 0")
    if not isinstance(values, list) or math.prod(shape) != len(values):
        raise Fault(place, f"{shown(values)} values do not fill the shape {tuple(shape)}")
    others: Document = {"str": {str}, "object": {bool, int, float, str}, "bool": {bool}}
    types = others.get(name, {int})
    dtype = f"<U{_length(document, place)}" if name == "str" else name
    if name.startswith("float"):
        types = {int, float}
        values = [NON_FINITE.get(v, v) if isinstance(v, str) else v for v in values]
    for other in {type(value) for value in values} - types:
        raise Fault(place, f"{other.__name__} among the values")
    try:
        with np.errstate(over="ignore"):
            array = np.array(values, dtype=dtype)
    except OverflowError as error:
        raise Fault(place, f"a value is out of range for dtype {name}") from error
    # An integer too large for float64, a decimal too fine for float32, a string too long.
    if any(a != b and b == b for a, b in zip(array.tolist(), values, strict=True)):  # noqa: PLR0124
        raise Fault(place, f"a value does not fit into dtype {name}")
    return array.reshape(shape)


def _length(document: Document, place: str, most: int = 2**24) -> int:
    """Characters per string of an array. All strings together may have at most `most`."""
    length = document.get("length", 1)
    if type(length) is not int or not 1 <= length <= MAX_LENGTH:
        raise Fault(f"{place}.length", f"expected a number from 1 to {MAX_LENGTH}")
    if length * len(document["values"]) > most:
        raise Fault(place, f"strings of {length} characters are too long")
    return length


_DECODERS: dict[str, Callable[[Document, str, Inner], Any]] = {
    "float": _float, "dict": _dict, "table": _table, "array": _array,
}  # fmt: skip
_DECODERS |= dict.fromkeys(STRUCTURES, _structure)
