"""``isoroc inspect``: what a model file holds."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

import isoroc
from isoroc._cli.errors import CommandError
from isoroc._cli.io.streams import STANDARD
from isoroc._cli.terminal import say, say_json, say_table
from isoroc._persistence import read
from isoroc._table import Table


def inspect(
    model: str,
    /,
    *,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Show what a model file holds: bins, path, certificate, where it comes from.

    Parameters
    ----------
    model
        Model file of isoroc fit.
    json
        Print JSON.
    """
    if model == STANDARD:
        raise CommandError("a model is read from a file, not from standard input.")
    document, calibrator = read(model), isoroc.load(model)
    about = {
        "file": model,
        "calibrator": type(calibrator).__name__,
        "classes": calibrator.classes_,
        "columns of forecasts": calibrator.n_features_in_,
        "parameters": calibrator.get_params(deep=False),
        "saved": document["saved"],
        "isoroc": document["library"],
        "checksum": document["checksum"],
        "summary": document["summary"],
    }
    tables = _tables(calibrator)
    certificate = getattr(calibrator, "certificate_", None)
    if hasattr(calibrator, "verdict_"):
        about["verdict"] = calibrator.verdict_
    if json:
        held = {name: dict(table) for name, table in tables.items()}
        proof = {} if certificate is None else {"certificate": dict(certificate.table())}
        about["parameters"] = {name: _word(v) for name, v in about["parameters"].items()}
        say_json(about | held | proof)
        return
    flat = [line for name, value in about.items() for line in _lines(name, value)]
    say_table(f"model {model}", ["", "value"], flat)
    for name, table in tables.items():
        say(f"\n{name.replace('_', ' ')}\n{table}")
    if certificate is not None:
        say(f"\n{certificate}")


def _tables(calibrator: Any) -> dict[str, Table]:
    """Fitted tables by name: the bins and the path of a tree, the scores of members."""
    names = [name for name in dir(calibrator) if name.endswith("_") and name[0] != "_"]
    values = {name.removesuffix("_"): getattr(calibrator, name, None) for name in names}
    return {name: value for name, value in values.items() if isinstance(value, Table)}


def _lines(name: str, value: Any) -> list[tuple[str, str]]:
    """Rows of the table about a model: one for each entry of what has entries."""
    if isinstance(value, dict):
        return [line for key, entry in value.items() for line in _lines(f"{name}: {key}", entry)]
    if not isinstance(value, str) and hasattr(value, "__len__"):
        shown = ", ".join(map(str, value[:12]))
        return [(name, shown if len(value) <= 12 else f"{shown}, ... {len(value)} in all")]
    return [(name, f"{value:.6g}" if isinstance(value, float) else str(value))]


def _word(value: Any) -> Any:
    return value if isinstance(value, str | int | float | list | None) else str(value)
