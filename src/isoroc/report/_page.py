"""The page of a report: a template that is filled with the summary."""

from __future__ import annotations

import base64
import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from isoroc._evaluation.evaluation import percent
from isoroc.report import _charts
from isoroc.report._numbers import text_of, weight_of


def render(summary: dict[str, Any]) -> str:
    """HTML page of a summary; everything that comes from users is escaped."""
    page: str = _template().render(
        s=summary,
        style=_asset("style.css"),
        script=_asset("script.js"),
        data=_embedded(_data(summary)),
        map_charts=_map_charts(summary),
        bins=_bins(summary),
        download=_download(summary),
        before_loss=_before_loss(summary),
    )
    return page


@cache
def _template() -> Any:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": text_of, "percent": percent, "weight": weight_of}
    environment.filters["zipped"] = lambda columns: list(zip(*columns, strict=True))
    environment.globals |= {"charts": _charts}
    return environment.from_string(_file("page.html"))


def _file(name: str) -> str:
    return files("isoroc.report").joinpath("assets", name).read_text(encoding="utf-8")


def _asset(name: str) -> Markup:
    return Markup(_file(name))  # noqa: S704 -- a file of the package


def _embedded(value: Any) -> Markup:
    """JSON inside a script element: no character that could end it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))  # noqa: S704


def _data(summary: dict[str, Any]) -> dict[str, Any]:
    """What the script needs."""
    path = summary["path"]
    found = {"path": path, "surface": summary["roc"]["surface"], "colours": None}
    if path is not None and "node_values" in path and summary["data"]["n_classes"] == 3:
        found["colours"] = _charts.colours_of(path["node_values"])
    return found


def _before_loss(summary: dict[str, Any]) -> Any:
    for row in summary["headline"]["rows"]:
        if row["measure"] == "log_loss" and "before" in row:
            return row["before"]["value"]
    return None


def _tips(summary: dict[str, Any]) -> list[str]:
    """Text about each bin: value, weight, interval and threshold."""
    bins, names = summary["bins"], summary["map"]["names"]
    columns = bins["columns"]
    tips = []
    for i, number in enumerate(columns["bin"]):
        parts = [f"Bin {number}, weight {weight_of(columns['weight'][i])}."]
        for name in names:
            value, low, high = (
                columns[f"{kind}_{name}"][i] for kind in ("value", "rate_low", "rate_high")
            )
            parts.append(f"{name}: {value:.3f} (observed {low:.3f} to {high:.3f}).")
        if split := bins["splits"][i]:
            threshold = ", ".join(f"{t:.3f}" for t in split["threshold"])
            parts.append(f"Made by split {split['split']} at threshold ({threshold}).")
        tips.append(" ".join(parts))
    return tips


def _map_charts(summary: dict[str, Any]) -> dict[str, Any]:
    """Pictures of the calibration map, and that which follows the slider."""
    part = summary["map"]
    if part is None:
        return {"shown": [], "staged": None}
    names = [entry["name"] for entry in summary["data"]["classes"]]
    path = summary["path"]
    moves = path is not None and "node_values" in path
    if part["kind"] == "curve":
        staged = _charts.curve_chart(part, names[-1], id="stage-map") if moves else None
        return {"shown": [_charts.curve_chart(part, names[-1])], "staged": staged}
    if part["kind"] == "pairs":
        return {"shown": [_charts.pair_chart(pair) for pair in part["pairs"]], "staged": None}
    if part["kind"] == "cells":
        tips = [
            f"weight {weight_of(weight)}, mean forecast {_listed(forecast)}, "
            f"calibrated {_listed(value)}"
            for weight, forecast, value in zip(
                part["weight"], part["forecast"], part["value"], strict=True
            )
        ]
        colours = _charts.colours_of(part["value"])
        title = "Cells of forecasts, coloured by their calibrated value"
        args = (part["polygons"], colours, tips, part["names"], title)
        return {"shown": [_charts.simplex_chart(*args)], "staged": None}
    columns = summary["bins"]["columns"]
    values = [columns[f"value_{name}"] for name in part["names"]]
    colours = _charts.colours_of([list(row) for row in zip(*values, strict=True)])
    common = (part["polygons"], colours)
    shown = _charts.simplex_chart(
        *common, _tips(summary), part["names"], "Bins, coloured by their calibrated value"
    )
    staged = _charts.simplex_chart(*common, None, part["names"], "Bins of the chosen stage")
    return {"shown": [shown], "staged": Markup('<div id="stage-map">{}</div>').format(staged)}


def _listed(values: list[float]) -> str:
    return "(" + ", ".join(f"{value:.3f}" for value in values) + ")"


def _bins(summary: dict[str, Any]) -> dict[str, Any] | None:
    """Head and rows of the table of bins."""
    if summary["bins"] is None:
        return None
    columns = summary["bins"]["columns"]
    shown = {name: column for name, column in columns.items() if not _is_end(name)}
    cells = [
        [
            _Cell(value, _text(name, value), _interval(columns, name, i))
            for i, value in enumerate(column)
        ]
        for name, column in shown.items()
    ]
    return {"head": [_heading(name) for name in shown], "rows": list(zip(*cells, strict=True))}


class _Cell(NamedTuple):
    """A value to sort by, its text, and that of its interval."""

    value: Any
    text: str
    interval: str


def _is_end(column: str) -> bool:
    """Whether a column holds ends of intervals, which are shown with the rates."""
    return column.startswith(("rate_low", "rate_high"))


def _interval(columns: dict[str, list[Any]], name: str, i: int) -> str:
    of = name.removeprefix("rate")
    if of == name:
        return ""
    low, high = (columns[f"rate_{end}{of}"][i] for end in ("low", "high"))
    return f"{text_of(low)} to {text_of(high)}"


def _text(column: str, value: Any) -> str:
    """Text of a cell: whole numbers, weights, probabilities, or ends of bins of any size."""
    if column == "bin" or isinstance(value, str):
        return text_of(value) if isinstance(value, str) else str(value)
    if column == "weight":
        return weight_of(value)
    return text_of(value) if column.startswith(("rate", "value")) else f"{value:.4g}"


def _heading(column: str) -> str:
    """Heading of a column of bins: what belongs to a class begins with its name.

    Examples
    --------
    >>> _heading("weight"), _heading("rate_bird"), _heading("value_bird"), _heading("value")
    ('weight', 'bird: observed', 'bird: calibrated', 'calibrated')
    """
    for prefix, words in _COLUMNS.items():
        if column == prefix:
            return words
        if column.startswith(f"{prefix}_"):
            return f"{column.removeprefix(prefix)[1:]}: {words}"
    return column


#: Columns of bins and their headings.
_COLUMNS = {"rate": "observed", "value": "calibrated", "lower": "from", "upper": "to"}


def _download(summary: dict[str, Any]) -> str | None:
    """The model file as an address that holds its content."""
    if summary["model"] is None or summary["model"]["file"] is None:
        return None
    content = base64.b64encode(summary["model"]["file"].encode()).decode()
    return f"data:application/json;base64,{content}"
