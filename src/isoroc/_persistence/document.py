"""The model file: an envelope around a calibrator, read with suspicion and written whole."""

from __future__ import annotations

import hashlib
import json
import math
import os
from datetime import UTC, datetime
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, Self

import numpy as np

from isoroc._files import replacing
from isoroc._input import InputError
from isoroc._persistence.schema import Fault, check, schema

FORMAT = "isoroc-model"
VERSION = 2

#: Larger files are refused before they are parsed, and so are files of more values than this: a
#: value takes some hundred bytes of memory at most, so reading a file never takes much.
MAX_BYTES = 2**25
MAX_VALUES = 2_000_000


class ModelFileError(ValueError):
    """A model file that is damaged, was altered, or is not one.

    The message names the file, the place in it and the fix.
    """

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        fault: Fault,
        fix: str = "The file is damaged or was altered: restore it, or save the model again.",
    ) -> Self:
        """The error for a fault in a file."""
        return cls(f"{os.fspath(path)}: {fault}. {fix}")


def write(
    path: str | os.PathLike[str], model: dict[str, Any], summary: dict[str, Any] | None = None
) -> None:
    """Write the document of a calibrator to a model file, whole or not at all.

    A summary has further entries: anything that JSON can represent, and arrays.
    """
    document = _with_checksum(model, summary)
    try:
        data = _serialise(document)
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


def checksum(model: dict[str, Any], summary: dict[str, Any] | None = None) -> str:
    """Checksum of the file that `write` would write; raises a `Fault` if it would be too large."""
    document = _with_checksum(model, summary)
    _serialise(document)
    return str(document["checksum"])


def _serialise(document: dict[str, Any]) -> bytes:
    lines = [f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in document.items()]
    data = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    _check_size(data)
    return data


def _with_checksum(model: dict[str, Any], summary: dict[str, Any] | None) -> dict[str, Any]:
    body = {
        "format": FORMAT,
        "version": VERSION,
        "library": version_of("isoroc"),
        "saved": _time().strftime("%Y-%m-%dT%H:%M:%SZ"),
        "summary": plain(summary or {}, "summary"),
        "model": model,
    }
    return body | {"checksum": _checksum(body)}


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Document in a model file, checked against the schema and its own checksum."""
    with Path(path).open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    fix = "Pass a file that was written by a calibrator's save()."
    try:
        _check_size(data)
        document = _check_format(_parse(data))
        fix = "Update isoroc, or save the model with this version."
        _check_version(document)
        fix = "The file is damaged or was altered: restore it, or save the model again."
        check(document, schema())
        _check_checksum(document)
    except Fault as fault:
        raise ModelFileError.of(path, fault, fix) from fault
    return document


def _check_format(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise Fault("format", f"an isoroc model file says {FORMAT!r} here, this one does not")
    return document


def _check_version(document: dict[str, Any]) -> None:
    version = document.get("version")
    if type(version) is int and version != VERSION:
        shown = version if abs(version) < 10**6 else "a huge number"
        raise Fault("version", f"expected format version {VERSION}, got {shown}")


def _check_checksum(document: dict[str, Any]) -> None:
    body = {name: entry for name, entry in document.items() if name != "checksum"}
    if _checksum(body) != document["checksum"]:
        raise Fault("checksum", "does not match the content")


def plain(value: Any, place: str) -> Any:
    """JSON value of a summary; NaN becomes null, infinity the text "inf"."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): plain(entry, f"{place}.{name}") for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, f"{place}[{i}]") for i, entry in enumerate(value)]
    if isinstance(value, float):
        if math.isinf(value):  # null would say that it is unknown
            return "inf" if value > 0 else "-inf"
        return None if math.isnan(value) else value
    if value is None or isinstance(value, bool | int | str):
        return value
    raise InputError(place, None, f"{type(value).__name__} cannot be serialised to JSON")


def _check_size(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise Fault("", f"larger than {MAX_BYTES // 2**20} MiB")
    # Every value but the first comes after a comma or an opening bracket.
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
        raise Fault("", f"more than {MAX_VALUES} values")


def _parse(data: bytes) -> Any:
    hooks: Any = {"object_pairs_hook": _unique, "parse_constant": _no_constant}
    try:
        return json.loads(data.decode("utf-8"), **hooks)
    except RecursionError as error:
        raise Fault("", "nested too deep") from error
    except ValueError as error:  # also: not UTF-8, integers of thousands of digits
        raise Fault("", f"not JSON, or cut off ({str(error)[:200]})") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise Fault("", "an object has two entries of one name")
    return entries


def _no_constant(name: str) -> None:
    raise Fault("", f"{name} is not a JSON number")


def _time() -> datetime:
    """The time, or that of SOURCE_DATE_EPOCH, which makes files reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)


def _checksum(body: dict[str, Any]) -> str:
    """Checksum of all entries but the time of writing: equal models have equal checksums."""
    body = {name: entry for name, entry in body.items() if name != "saved"}
    try:
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise Fault("", "a number beyond the range of double precision") from error
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"
