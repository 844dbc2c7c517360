"""The model file: an envelope around a calibrator, read with suspicion and written whole.

`schema.json` is what other tools read and what the loader checks against: one set of rules. `check`
knows the part of the JSON Schema language that it is written in.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version as version_of
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from isoroc._input import InputError
from isoroc._support.files import creation_time, replacing

FORMAT, VERSION = "isoroc-model", 2

#: Larger files are refused before they are parsed, and so are files of more values than this: a
#: value takes some hundred bytes of memory at most, so reading a file never takes much.
MAX_BYTES, MAX_VALUES = 2**25, 2_000_000
#: Levels of nesting that a model file may have; real ones have a dozen.
MAX_DEPTH = 48

_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),), "boolean": (bool,), "integer": (int,), "number": (int, float),
    "string": (str,), "array": (list,), "object": (dict,),
}  # fmt: skip
_NOT_A_MODEL = "Pass a file that was written by a calibrator's save()."
_RESTORE = "The file is damaged or was altered: restore it, or save the model again."


class Fault(Exception):  # noqa: N818
    """What is wrong with a document, and where."""

    def __init__(self, place: str, problem: str, fix: str = _RESTORE) -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.place, self.problem, self.fix = place, problem, fix


class ModelFileError(ValueError):
    """A model file that is damaged, was altered, or is not one.

    The message names the file, the place in it and the fix.
    """


@contextmanager
def faults_of(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn faults of a document into errors about its file."""
    try:
        yield
    except Fault as fault:
        raise ModelFileError(f"{os.fspath(path)}: {fault}. {fault.fix}") from fault


def write(path: str | os.PathLike[str], model: dict[str, Any], summary: dict[str, Any]) -> None:
    """Write the document of a calibrator, and a summary, to a model file, whole or not at all."""
    try:
        document, data = _serialise(model, summary)
    except Fault as fault:
        problem = f"the model is too large for a model file: {fault}"
        fix = "fit it to fewer rows or with fewer bins, members or groups, or use skops or pickle"
        raise InputError(os.fspath(path), None, problem, fix) from fault
    try:
        check(document, schema())
    except Fault as fault:
        raise InputError(os.fspath(path), None, f"it cannot be saved: {fault}") from fault
    with replacing(path) as new:
        new.write_bytes(data)


def checksum(model: dict[str, Any], summary: dict[str, Any]) -> str:
    """Checksum of the file that `write` would write; raises a `Fault` if it would be too large."""
    return str(_serialise(model, summary)[0]["checksum"])


def _serialise(model: dict[str, Any], summary: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The document of a model file, and its bytes, which are not too many."""
    body = {
        "format": FORMAT,
        "version": VERSION,
        "library": version_of("isoroc"),
        "saved": creation_time().strftime("%Y-%m-%dT%H:%M:%SZ"),
        "summary": plain(summary, "summary"),
        "model": model,
    }
    document = body | {"checksum": _checksum(body)}
    lines = [f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in document.items()]
    data = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    _check_size(data)
    return document, data


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Document in a model file, checked against the schema and its own checksum."""
    with Path(path).open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    with faults_of(path):
        _check_size(data)
        document = _parse(data)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            problem = f"an isoroc model file says {FORMAT!r} here, this one does not"
            raise Fault("format", problem, _NOT_A_MODEL)
        version = document.get("version")
        if type(version) is int and version != VERSION:
            shown = version if abs(version) < 10**6 else "a huge number"
            fix = "Update isoroc, or save the model with this version."
            raise Fault("version", f"expected format version {VERSION}, got {shown}", fix)
        check(document, schema())
        if _checksum(document) != document["checksum"]:
            raise Fault("checksum", "does not match the content")
    return document


def plain(value: Any, place: str) -> Any:
    """JSON value of a summary; NaN becomes null, infinity the text "inf"."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): plain(entry, f"{place}.{name}") for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, f"{place}[{i}]") for i, entry in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)  # null would say that it is unknown
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InputError(place, None, f"{type(value).__name__} cannot be serialised to JSON")


def _check_size(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise Fault("", f"larger than {MAX_BYTES // 2**20} MiB", _NOT_A_MODEL)
    # Every value but the first comes after a comma or an opening bracket.
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
        raise Fault("", f"more than {MAX_VALUES} values", _NOT_A_MODEL)


def _parse(data: bytes) -> Any:
    hooks: Any = {"object_pairs_hook": _unique, "parse_constant": _no_constant}
    try:
        return json.loads(data.decode("utf-8"), **hooks)
    except RecursionError as error:
        raise Fault("", "nested too deep", _NOT_A_MODEL) from error
    except ValueError as error:  # also: not UTF-8, integers of thousands of digits
        raise Fault("", f"not JSON, or cut off ({str(error)[:200]})", _NOT_A_MODEL) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise Fault("", "an object has two entries of one name", _NOT_A_MODEL)
    return entries


def _no_constant(name: str) -> None:
    raise Fault("", f"{name} is not a JSON number", _NOT_A_MODEL)


def _checksum(body: dict[str, Any]) -> str:
    """Checksum of all entries but the time of writing: equal models have equal checksums."""
    body = {name: entry for name, entry in body.items() if name not in ("saved", "checksum")}
    try:
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise Fault("", "a number beyond the range of double precision") from error
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


@cache
def schema() -> dict[str, Any]:
    """The published JSON Schema of model files."""
    text = files("isoroc._maps.modelfile").joinpath("schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def check(value: Any, rule: dict[str, Any], place: str = "", depth: int = 0) -> None:
    """Raise a Fault where a parsed JSON value does not follow a rule of the schema."""
    if depth > MAX_DEPTH:
        raise Fault(place, f"nested more than {MAX_DEPTH} levels deep")
    rule = _resolve(rule)
    if "anyOf" in rule:
        rule = _choose(value, rule["anyOf"], place)
    _check_itself(value, rule, place)
    if isinstance(value, list):
        _check_list(value, rule, place, depth)
    elif isinstance(value, dict):
        _check_object(value, rule, place, depth)


def _resolve(rule: dict[str, Any]) -> dict[str, Any]:
    name = rule.get("$ref")
    return rule if name is None else dict(schema()["$defs"][name.removeprefix("#/$defs/")])


def _choose(value: Any, rules: list[dict[str, Any]], place: str) -> dict[str, Any]:
    """The rule for a value: alternatives differ in their JSON type, or in the "type" they name."""
    for rule in map(_resolve, rules):
        named = rule.get("properties", {}).get("type", {}).get("const")
        if type(value) in _types(rule) and (named is None or named == value.get("type")):
            return rule
    raise Fault(place, f"{_shown(value)} has no place in a model file")


def _types(rule: dict[str, Any]) -> set[type]:
    """Python types of a rule's JSON types; exact ones, so that True does not pass for a number."""
    return {kind for name in _names(rule["type"]) for kind in _TYPES[name]}


def _names(types: Any) -> list[str]:
    return [types] if isinstance(types, str) else types


def _check_itself(value: Any, rule: dict[str, Any], place: str) -> None:
    if "type" in rule and type(value) not in _types(rule):
        raise Fault(place, f"expected {' or '.join(_names(rule['type']))}, got {_shown(value)}")
    allowed = [rule["const"]] if "const" in rule else rule.get("enum")
    if allowed is not None and not any(type(value) is type(a) and value == a for a in allowed):
        raise Fault(place, f"expected {' or '.join(map(str, allowed))}, got {_shown(value)}")
    if isinstance(value, str):
        if len(value) > rule.get("maxLength", math.inf):
            raise Fault(place, f"expected at most {rule['maxLength']} characters")
        if "pattern" in rule and not re.search(rule["pattern"], value):
            raise Fault(place, f"expected {rule['pattern']}, got {_shown(value)}")
    elif isinstance(value, int | float):
        if isinstance(value, float) and not math.isfinite(value):
            raise Fault(place, "a number beyond the range of double precision")
        for sign, bound, side in ((">=", "minimum", 1), ("<=", "maximum", -1)):
            if bound in rule and side * value < side * rule[bound]:
                raise Fault(place, f"expected a number {sign} {rule[bound]}, got {_shown(value)}")


def _check_list(value: list[Any], rule: dict[str, Any], place: str, depth: int) -> None:
    if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", math.inf):
        raise Fault(place, f"{len(value)} entries are too few or too many")
    inner = rule["items"]
    # Numbers by the million: a look at their types is enough.
    if set(inner) == {"type"} and {type(entry) for entry in value} <= _types(inner):
        return
    for i, entry in enumerate(value):
        check(entry, inner, f"{place}[{i}]", depth + 1)


def _check_object(value: dict[str, Any], rule: dict[str, Any], place: str, depth: int) -> None:
    properties = rule.get("properties", {})
    for name in rule.get("required", ()):
        if name not in value:
            raise Fault(_join(place, name), "is missing")
    for name in properties.keys() & value.keys():
        if "const" in properties[name]:  # what it is comes first, then what is in it
            check(value[name], properties[name], _join(place, name), depth + 1)
    for name, entry in value.items():
        inner = properties.get(name, rule.get("additionalProperties", False))
        if inner is False:
            raise Fault(_join(place, _shown(name)), "is unknown")
        check(entry, inner, _join(place, name), depth + 1)


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _shown(value: Any) -> str:
    """A value as an error message may show it: short, and printable anywhere."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge integer"
    text = ascii(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
