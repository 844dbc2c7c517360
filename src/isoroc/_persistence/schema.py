"""The published JSON Schema, and the part of the JSON Schema language that it is written in.

`schema.json` is what other tools read and what the loader checks against: one set of rules.
"""

from __future__ import annotations

import json
import math
import re
from functools import cache
from importlib.resources import files
from typing import Any

#: Levels of nesting that a model file may have; real ones have a dozen.
MAX_DEPTH = 48

_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),), "boolean": (bool,), "integer": (int,), "number": (int, float),
    "string": (str,), "array": (list,), "object": (dict,),
}  # fmt: skip


class Fault(Exception):  # noqa: N818
    """What is wrong with a document, and where."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.place = place
        self.problem = problem


@cache
def schema() -> dict[str, Any]:
    """The published JSON Schema of model files."""
    text = files("isoroc._persistence").joinpath("schema.json").read_text(encoding="utf-8")
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
    names = [rule["type"]] if isinstance(rule["type"], str) else rule["type"]
    return {kind for name in names for kind in _TYPES[name]}


def _check_itself(value: Any, rule: dict[str, Any], place: str) -> None:
    if "type" in rule and type(value) not in _types(rule):
        raise Fault(place, f"expected {_listed(rule['type'])}, got {_shown(value)}")
    allowed = [rule["const"]] if "const" in rule else rule.get("enum")
    if allowed is not None and not any(type(value) is type(a) and value == a for a in allowed):
        raise Fault(place, f"expected {_listed(allowed)}, got {_shown(value)}")
    if isinstance(value, str):
        if len(value) > rule.get("maxLength", math.inf):
            raise Fault(place, f"expected at most {rule['maxLength']} characters")
        if "pattern" in rule and not re.search(rule["pattern"], value):
            raise Fault(place, f"expected {rule['pattern']}, got {_shown(value)}")
    elif isinstance(value, int | float):
        if isinstance(value, float) and not math.isfinite(value):
            raise Fault(place, "a number beyond the range of double precision")
        if value < rule.get("minimum", -math.inf):
            raise Fault(place, f"expected a number >= {rule['minimum']}, got {_shown(value)}")
        if value > rule.get("maximum", math.inf):
            raise Fault(place, f"expected a number <= {rule['maximum']}, got {_shown(value)}")


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


def _listed(options: Any) -> str:
    return options if isinstance(options, str) else " or ".join(map(str, options))


def _shown(value: Any) -> str:
    """A value as an error message may show it: short, and printable anywhere."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge integer"
    text = ascii(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
