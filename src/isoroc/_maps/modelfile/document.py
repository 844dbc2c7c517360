"""The model file: an envelope around a calibrator, read with suspicion and written whole.

`docs/model-file.schema.json` describes the file to other tools. It is generated from the checks of
the fields, which are what the loader uses.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from isoroc._input import InputError
from isoroc._support.versions import migrate

MODEL_FORMAT = "isoroc-model"
MODEL_VERSION = 2
#: Functions from each older version to the next. The oldest readable version is 2.
MIGRATIONS: list[Callable[[dict[str, Any]], dict[str, Any]]] = []
#: Texts of the envelope, as regular expressions.
PATTERNS = {
    "library": "^.{0,100}$",
    "saved": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$",
    "checksum": "^sha256:[0-9a-f]{64}$",
}
#: Entries of a summary that the library reads: whether each is a list of numbers, and the least.
SUMMARY = {
    "rows": (False, 0.0),
    "weight": (False, 0.0),
    "class_weights": (True, 0.0),
    "forecast_cells": (True, 0.0),
    "range": (True, -1e300),
}
# Larger files are refused before they are parsed, so reading one never takes much memory.
MAX_BYTES = 2**25
MAX_VALUES = 2_000_000  # counted before parsing, for the same reason
MAX_DEPTH = 48  # levels of nesting, of which real files have a dozen

_NOT_A_MODEL = "Pass a file that isoroc fit or a calibrator's save() wrote."
_RESTORE = "The file is damaged or was altered: restore it, or save the model again."


class Fault(Exception):  # noqa: N818
    """What is wrong with a document, and where."""

    def __init__(self, place: str, problem: str, fix: str = _RESTORE) -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.place = place
        self.problem = problem
        self.fix = fix


class ModelFileError(ValueError):
    """The file is damaged, was altered, or is not a model file."""


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
        check_summary(summary)
    except Fault as fault:
        raise InputError(fault.place, None, fault.problem, "choose another name") from fault
    try:
        _, data = _serialise(model, summary)
    except Fault as fault:
        problem = f"the model is too large for a model file: {fault}"
        fix = "fit it to fewer rows or with fewer bins, members or groups, or use skops or pickle"
        raise InputError(os.fspath(path), None, problem, fix) from fault
    from isoroc._support.files import replacing  # noqa: PLC0415  # slow to import

    with replacing(path) as new:
        new.write_bytes(data)


def checksum(model: dict[str, Any], summary: dict[str, Any]) -> str:
    """Checksum of the file that `write` would write. Raises a `Fault` if it is too large."""
    return _serialise(model, summary)[0]


def _serialise(model: dict[str, Any], summary: dict[str, Any]) -> tuple[str, bytes]:
    """Checksum and bytes of a model file."""
    return serialise(
        MODEL_FORMAT, MODEL_VERSION, {"summary": plain(summary, "summary"), "model": model}
    )


def serialise(format_name: str, version: int, content: dict[str, Any]) -> tuple[str, bytes]:
    """Checksum and bytes of a file: its content in an envelope with format and version."""
    from importlib.metadata import version as version_of  # noqa: PLC0415  # slow to import

    from isoroc._support.files import creation_time  # noqa: PLC0415  # slow to import

    body: dict[str, Any] = {
        "format": format_name,
        "version": version,
        "library": version_of("isoroc"),
        "saved": creation_time().strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    body |= content
    _check_depth(body)
    checksum = _checksum(body)
    document = body | {"checksum": checksum}
    lines = [f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in document.items()]
    data = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    _check_size(data)
    return checksum, data


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Document in a model file: of this version, its envelope and its checksum checked."""
    document = read_envelope(
        path, MODEL_FORMAT, MODEL_VERSION, ("summary", "model"), migrations=MIGRATIONS
    )
    with faults_of(path):
        check_summary(document["summary"])
        check_calibrator(document["model"], "model")
    return document


def read_envelope(
    path: str | os.PathLike[str],
    format_name: str,
    version: int,
    content: Iterable[str],
    *,
    migrations: Sequence[Callable[[dict[str, Any]], dict[str, Any]]] = (),
    fix: str = _NOT_A_MODEL,
) -> dict[str, Any]:
    """Document in a file of some format, with the entries `content` that are not checked yet."""
    with open(path, "rb") as file:  # noqa: PTH123 -- pathlib is slow to import
        data = file.read(MAX_BYTES + 1)
    with faults_of(path):
        _check_size(data)
        document = _parse(data)
        return open_envelope(
            document, format_name, version, content, migrations=migrations, fix=fix
        )


def open_envelope(
    parsed: Any,
    format_name: str,
    version: int,
    content: Iterable[str],
    *,
    migrations: Sequence[Callable[[dict[str, Any]], dict[str, Any]]] = (),
    fix: str = _NOT_A_MODEL,
) -> dict[str, Any]:
    """A document of some format in its newest version, its envelope and checksum checked."""
    document: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
    if document.get("format") != format_name:
        what = format_name.removeprefix("isoroc-")
        problem = f"an isoroc {what} file says {format_name!r} here, this one does not"
        raise Fault("format", problem, fix)
    _check_depth(document)
    if _checksum(document) != document.get("checksum"):
        raise Fault("checksum", "does not match the content")
    try:
        document = migrate(document, version, migrations)
    except ValueError as error:
        problem, advice = error.args
        raise Fault("version", problem, f"{advice}.") from error
    entries(document, "", ("format", "version", *content, *PATTERNS))
    for name, pattern in PATTERNS.items():
        if not isinstance(document[name], str) or not re.search(pattern, document[name]):
            raise Fault(name, f"expected {pattern}, got {shown(document[name])}")
    return document


def entries(
    value: Any, place: str, required: Iterable[str] | None = None, optional: Iterable[str] = ()
) -> dict[str, Any]:
    """Check that a value is an object with the required entries, if given, and no unknown ones."""
    if not isinstance(value, dict):
        raise Fault(place, f"expected an object, got {shown(value)}")
    if required is not None:
        inside = f"{place}." if place else ""
        required = list(required)
        for name in required:
            if name not in value:
                raise Fault(f"{inside}{name}", "is missing")
        for name in value.keys() - {*required, *optional}:
            raise Fault(f"{inside}{shown(name)[1:-1]}", "is unknown")
    return value


def check_summary(summary: Any) -> None:
    """Check the entries of a summary that the library reads. Others may hold anything."""
    entries(summary, "summary")
    for name in SUMMARY.keys() & summary.keys():
        several, least = SUMMARY[name]
        value = summary[name]
        numbers = value if several else [value]
        real = isinstance(numbers, list) and all(type(x) in (int, float) for x in numbers)
        if not real or not all(least <= x < 1e300 for x in numbers):
            expected = "a list of numbers" if several else "a number"
            raise Fault(f"summary.{name}", f"expected {expected} in its range, got {shown(value)}")


def check_calibrator(document: Any, place: str) -> None:
    """Check the entries of a calibrator. Values of parameters and state are checked later."""
    entries(document, place, ("type", "kind", "parameters", "state"), ("map",))
    if document["type"] != "calibrator" or not isinstance(document["kind"], str):
        raise Fault(f"{place}.kind", "expected the name of a calibrator")
    for name in ("parameters", "state"):
        entries(document[name], f"{place}.{name}")


def plain(value: Any, place: str) -> Any:
    """JSON value of a summary. NaN becomes null, and infinity the text "inf"."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, dict):
        return {str(name): plain(entry, f"{place}.{name}") for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, f"{place}[{i}]") for i, entry in enumerate(value)]
    if isinstance(value, float):
        return None if math.isnan(value) else str(value)  # null would say that it is unknown
    if value is None or isinstance(value, bool | int | str):
        return value
    raise InputError(place, None, f"{type(value).__name__} cannot be serialised to JSON")


def shown(value: Any) -> str:
    """A value as an error message may show it: short, and printable anywhere."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge integer"
    text = ascii(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _check_size(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise Fault("", f"larger than {MAX_BYTES // 2**20} MiB", _NOT_A_MODEL)
    # Every value but the first comes after a comma or an opening bracket.
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
        raise Fault("", f"more than {MAX_VALUES} values", _NOT_A_MODEL)


def _check_depth(value: Any, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise Fault("", f"nested more than {MAX_DEPTH} levels deep")
    inside = value.values() if isinstance(value, dict) else value
    for entry in inside:
        if isinstance(entry, dict | list):
            _check_depth(entry, depth + 1)


def _parse(data: bytes) -> Any:
    try:
        text = data.decode("utf-8")
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
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
