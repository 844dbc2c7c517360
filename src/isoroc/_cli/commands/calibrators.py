"""``isoroc calibrators``: what can be fitted, and with which parameters."""

from __future__ import annotations

import re
from inspect import Parameter, getdoc
from typing import Any

from isoroc._cli.errors import CommandError, did_you_mean
from isoroc._cli.models import DEFAULT, calibrator_classes, parameters_of
from isoroc._cli.terminal import say, say_table


def calibrators(name: str | None = None, /) -> None:
    """List the calibrators, or the parameters of one.

    Parameters
    ----------
    name
        A calibrator.
    """
    known = calibrator_classes()
    if name is None:
        rows = [[key, _first(kind), "*" if key == DEFAULT else ""] for key, kind in known.items()]
        say_table("calibrators", ["name", "what it is", "default"], rows)
        return
    if name not in known:
        raise CommandError(f"{name}: not a calibrator; {did_you_mean(name, known)}")
    kind = known[name]
    say(_first(kind))
    described = _descriptions(kind)
    for parameter in parameters_of(kind).values():
        say(f"\n--{parameter.name.replace('_', '-')} [{_shown(parameter)}]")
        say(f"    {described.get(parameter.name, '')}")


def _first(kind: type[Any]) -> str:
    return (getdoc(kind) or "").partition("\n")[0]


def _shown(parameter: Parameter) -> str:
    return "none" if parameter.default is None else str(parameter.default)


def _descriptions(kind: type[Any]) -> dict[str, str]:
    """What the docstring says of each parameter, on one line."""
    _, _, section = (getdoc(kind) or "").partition("Parameters\n----------\n")
    section = re.split(r"\n\n\w+\n-+\n", section)[0]
    entries = re.findall(r"^(\w+) : .*\n((?:    .*\n?)+)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}
