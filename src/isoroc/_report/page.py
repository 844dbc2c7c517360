"""The page of a report: a template that is filled with the summary."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from isoroc._evaluation.evaluation import percent
from isoroc._report import charts
from isoroc._report.charts import text_of, weight_of


def render(summary: dict[str, Any]) -> str:
    """HTML page of a summary; everything that comes from users is escaped."""
    page: str = _template().render(
        s=summary,
        paired=summary["map"] is not None,
        style=_asset("style.css"),
        map_charts=_map_charts(summary),
        bins=_bins(summary["bins"]),
    )
    return page


@cache
def _template() -> Any:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": text_of, "percent": percent, "weight": weight_of}
    environment.filters |= {"hash": _hash, "zipped": lambda columns: zip(*columns, strict=True)}
    environment.globals |= {"charts": charts}
    return environment.from_string(_asset("page.html"))


def _asset(name: str) -> Markup:
    text = files("isoroc._report").joinpath("assets", name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 -- a file of the package


def _hash(text: str) -> str:
    """What a content security policy calls an element with this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _map_charts(summary: dict[str, Any]) -> list[tuple[str, Markup]]:
    """Captions and pictures of the calibration map."""
    part, bins = summary["map"], summary["bins"]
    if part is None:
        return []
    if part["kind"] == "curves":
        return [(curve["name"], charts.curve_chart(curve)) for curve in part["curves"]]
    if part["kind"] == "cells":
        values = part["value"]
        columns = zip(*(part[name] for name in ("weight", "forecast", "value")), strict=True)
        tips = [
            f"weight {weight_of(w)}, mean forecast {_listed(p)}, calibrated {_listed(q)}"
            for w, p, q in columns
        ]
    else:
        of_class = (bins["columns"][f"value_{name}"] for name in part["names"])
        values, tips = list(zip(*of_class, strict=True)), _tips(bins, part["names"])
    title = f"{part['kind'].capitalize()} of forecasts, coloured by their calibrated value"
    return [("", charts.simplex_chart(part["polygons"], values, part["names"], title, tips))]


def _tips(bins: dict[str, Any], names: list[str]) -> list[str]:
    """Text about each bin: value, weight, interval and threshold."""
    columns, tips = bins["columns"], []
    for i, (number, split) in enumerate(zip(columns["bin"], bins["splits"], strict=True)):
        parts = [f"Bin {number}, weight {weight_of(columns['weight'][i])}."]
        for name in names:
            names_of = (f"{kind}_{name}" for kind in ("value", "rate_low", "rate_high"))
            value, low, high = (columns[column][i] for column in names_of)
            parts.append(f"{name}: {value:.3f} (observed {low:.3f} to {high:.3f}).")
        if split:
            threshold = _listed(split["threshold"])
            parts.append(f"Made by split {split['split']} at threshold {threshold}.")
        tips.append(" ".join(parts))
    return tips


def _listed(values: list[float]) -> str:
    return "(" + ", ".join(f"{value:.3f}" for value in values) + ")"


def _bins(part: dict[str, Any] | None) -> dict[str, Any] | None:
    """Head and rows of the table of bins; a cell is a text and an interval, empty if there is none.

    Columns of a class begin with its name, and intervals are shown with the rates.
    """
    if part is None:
        return None
    titles = {"rate": "observed", "value": "calibrated", "lower": "from", "upper": "to"}
    columns, head, cells = part["columns"], [], []
    for name, column in columns.items():
        if name.startswith(("rate_low", "rate_high")):
            continue
        kind, _, of = name.partition("_")
        heading = titles.get(kind, name)
        head.append(f"{of}: {heading}" if of and kind in titles else heading)
        intervals = [""] * len(column)
        if kind == "rate":
            lows, highs = (columns[f"rate_{end}{name[4:]}"] for end in ("low", "high"))
            ends = zip(lows, highs, strict=True)
            intervals = [f"{text_of(low)} to {text_of(high)}" for low, high in ends]
        texts = [_text(kind, value) for value in column]
        cells.append(list(zip(texts, intervals, strict=True)))
    return {"head": head, "rows": list(zip(*cells, strict=True))}


def _text(kind: str, value: Any) -> str:
    """Text of a cell: whole numbers, weights, probabilities, or ends of bins of any size."""
    if isinstance(value, str):  # infinity
        return "lowest" if kind == "lower" else "highest"
    if kind in ("rate", "value"):
        return text_of(value)
    return weight_of(value) if kind in ("bin", "weight") else f"{value:.4g}"
