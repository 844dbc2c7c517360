"""``isoroc calibrators``: the calibrators and their parameters."""

from inspect import getdoc, signature
from typing import Any

from docstring_parser import DocstringStyle, parse

from isoroc._calibrators.registry import methods
from isoroc._cli.errors import CommandError, did_you_mean
from isoroc._cli.models import DEFAULT
from isoroc._cli.terminal import print_table, print_text


def calibrators(name: str | None = None, /) -> None:
    """List the calibrators, or the parameters of one of them.

    Parameters
    ----------
    name
        A calibrator.
    """
    known = methods()
    if name is None:
        rows = [
            [key, _documentation(kind).short_description, "*" if key == DEFAULT else ""]
            for key, kind in known.items()
        ]
        print_table("calibrators", ["name", "description", "default"], rows)
        return
    if name not in known:
        raise CommandError(f"{name}: not a calibrator; {did_you_mean(name, known)}")
    documentation = _documentation(known[name])
    print_text(documentation.short_description)
    described = {
        name: entry.description or ""
        for entry in documentation.params
        for name in entry.arg_name.split(", ")
    }
    for key, parameter in signature(known[name]).parameters.items():
        default = "none" if parameter.default is None else parameter.default
        print_text(f"\n--{key.replace('_', '-')} [{default}]")
        print_text(f"    {' '.join(described[key].split())}")


def _documentation(kind: type[Any]) -> Any:
    return parse(getdoc(kind) or "", DocstringStyle.NUMPYDOC)
