"""Generate the JSON Schema of model files from the checks of the fields that they hold.

``python tools/model_schema.py`` writes `docs/model-file.schema.json`. A test compares the file with
`text()`.
"""

import json
from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from isoroc._calibrators.base import COMMON
from isoroc._calibrators.registry import classes_by_name
from isoroc._input.kinds import KINDS
from isoroc._maps.loading import MAPS
from isoroc._maps.modelfile import codec, document

PATH = Path(__file__).resolve().parents[1] / "docs" / "model-file.schema.json"
Rule = dict[str, Any]
SCALAR: Rule = {"type": ["null", "boolean", "number", "string"]}


def reference(name: str) -> Rule:
    """Rule that stands under `$defs`."""
    return {"$ref": f"#/$defs/{name}"}


def mapping(entry: Rule) -> Rule:
    """An object whose entries follow a rule."""
    return {"type": "object", "additionalProperties": entry}


def summary() -> Rule:
    """Rules of the entries of a summary that the library reads."""
    rules: Rule = {}
    for name, (several, least) in document.SUMMARY.items():
        number = {"type": "number", "minimum": least}
        rules[name] = {"type": "array", "items": number} if several else number
    return rules


def record(properties: Rule, optional: Iterable[str] = (), **others: Any) -> Rule:
    """An object with these entries and no others."""
    required = [name for name in properties if name not in optional]
    rule = {"type": "object", "required": required, "additionalProperties": False}
    return others | rule | {"properties": properties}


def tagged(
    tag: str, optional: Iterable[str] = (), description: str = "", **properties: Any
) -> Rule:
    """An object that says in "type" what it is."""
    about = {"description": description} if description else {}
    return record({"type": {"const": tag}, **properties}, optional, **about)


def of_type(hint: Any) -> Rule:
    """Rule of a field of a dataclass, from its type."""
    if isinstance(hint, UnionType):
        return {"type": ["integer", "null"]}
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    simple = {bool: {"type": "boolean"}, int: {"type": "integer"}, float: reference("figure")}
    return simple.get(hint, reference("array"))


def structure(tag: str, kind: Any) -> Rule:
    """Rule of a dataclass."""
    hints = get_type_hints(kind)
    optional = [f.name for f in fields(kind) if f.default is not MISSING]
    parts = {f.name: of_type(hints[f.name]) for f in fields(kind)}
    return tagged(tag, optional, **parts)


def map_rule(name: str, kind: Any) -> Rule:
    """Rule of a map."""
    numbers = {f.name: f.metadata["check"].schema for f in fields(kind) if "check" in f.metadata}
    optional = [f.name for f in fields(kind) if f.default is not MISSING]
    forecasts = {"enum": list(KINDS)}
    parts = {"kind": {"const": name}, "forecasts": forecasts, "numbers": record(numbers, optional)}
    return tagged("map", **parts)


def calibrator_rule(name: str, kind: Any) -> Rule:
    """Rule of a calibrator."""
    value = reference("value")
    learned = {attribute: check.schema for attribute, check in kind._state.items()}  # noqa: SLF001
    parameters = record(dict.fromkeys(kind().get_params(deep=False), value), kind().get_params())
    state = record(learned | dict.fromkeys(COMMON, value), [*learned, *COMMON])
    parts = {"kind": {"const": name}, "parameters": parameters, "state": state}
    return tagged("calibrator", ["map"], **parts, map=reference("map"))


def array_rule() -> Rule:
    """Rule of an array."""
    shape = {"type": "array", "items": {"type": "integer", "minimum": 0}}
    about = (
        "A NumPy array: its values row by row, the last axis fastest. NaN, Infinity and -Infinity "
        "in arrays of floats are strings. Arrays of strings have the number of characters of "
        "each entry as length."
    )
    return tagged(
        "array",
        ["length"],
        about,
        dtype={"enum": list(codec.DTYPES)},
        length={"type": "integer", "minimum": 1, "maximum": codec.MAX_LENGTH},
        shape=shape | {"minItems": 1, "maxItems": codec.MAX_DIMENSIONS},
        values={"type": "array", "items": {"type": ["boolean", "number", "string"]}},
    )


def schema() -> Rule:
    """The JSON Schema of model files of this version."""
    any_value = reference("value")
    objects = {
        "dict": tagged("dict", items=mapping(any_value)),
        "float": tagged("float", value={"enum": list(codec.NON_FINITE)}),
        "array": array_rule(),
        "table": tagged("table", columns=mapping(reference("array"))),
    }
    objects |= {tag: structure(tag, find()) for tag, (find, _) in codec.STRUCTURES.items()}
    maps = {name: map_rule(name, kind) for name, kind in sorted(MAPS.items())}
    calibrators = {
        name: calibrator_rule(name, kind) for name, kind in sorted(classes_by_name().items())
    }
    listed = [SCALAR, {"type": "array", "items": any_value}]
    plain = [SCALAR, {"type": "array", "items": reference("json")}, mapping(reference("json"))]
    names = [*objects, "map", "calibrator"]
    definitions = {
        "json": {"anyOf": plain},
        "figure": {"anyOf": [{"type": "number"}, reference("float")]},
        "value": {"anyOf": [*listed, *map(reference, names)]},
        "map": {"anyOf": list(map(reference, maps))},
        "calibrator": {"anyOf": list(map(reference, calibrators))},
    }
    texts = {name: {"type": "string", "pattern": text} for name, text in document.PATTERNS.items()}
    envelope = {
        "format": {"const": document.MODEL_FORMAT},
        "version": {"const": document.MODEL_VERSION},
        "summary": mapping(reference("json")) | {"properties": summary()},
        "model": reference("calibrator"),
        **texts,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:isoroc:model-file:{document.MODEL_VERSION}",
        "title": f"isoroc model file, version {document.MODEL_VERSION}",
        **record(envelope),
        "$defs": definitions | objects | maps | calibrators,
    }


def text() -> str:
    """The content of the file: one line per definition."""
    rule = schema()
    lines = [f'  "{name}": {json.dumps(part)}' for name, part in rule.pop("$defs").items()]
    head = [f' "{name}": {json.dumps(part)}' for name, part in rule.items()]
    definitions = ' "$defs": {\n' + ",\n".join(lines) + "\n }"
    return "{\n" + ",\n".join([*head, definitions]) + "\n}\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
