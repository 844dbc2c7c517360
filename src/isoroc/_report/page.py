"""The page of a report: a template that is filled with the summary."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from isoroc._evaluation.curves import Axis
from isoroc._evaluation.evaluation import percent
from isoroc._report import charts
from isoroc._report.charts import text_of, weight_of


def render(summary: dict[str, Any]) -> str:
    """HTML page of a summary; everything that comes from users is escaped."""
    path, model = summary["path"], summary["model"]
    panels = summary["reliability"]["panels"]
    axis = Axis(*panels[0]["axis"]) if panels else Axis()
    data = {"path": path, "colours": None, "axis": axis._asdict()}
    if path is not None and "node_values" in path and summary["data"]["n_classes"] == 3:
        data["colours"] = charts.colours_of(path["node_values"])
    download = None
    if model is not None and model["file"] is not None:  # an address that holds its content
        content = base64.b64encode(model["file"].encode()).decode()
        download = f"data:application/json;base64,{content}"
    shown, staged = _map_charts(summary, axis)
    losses = {row["measure"]: row for row in summary["headline"]["rows"]}["log_loss"]
    page: str = _template().render(
        s=summary,
        axis=axis,
        paired=summary["map"] is not None,
        style=_asset("style.css"),
        script=_asset("script.js"),
        data=data,
        map_charts=shown,
        staged_map=staged,
        bins=_bins(summary["bins"]),
        download=download,
        before_loss=losses["before"]["value"],
    )
    return page


@cache
def _template() -> Any:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": text_of, "percent": percent, "weight": weight_of}
    environment.filters |= {"hash": _hash, "zipped": lambda columns: zip(*columns, strict=True)}
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.globals |= {"charts": charts}
    return environment.from_string(_asset("page.html"))


def _asset(name: str) -> Markup:
    text = files("isoroc._report").joinpath("assets", name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 -- a file of the package


def _hash(text: str) -> str:
    """What a content security policy calls an element with this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _map_charts(
    summary: dict[str, Any], axis: Axis
) -> tuple[list[tuple[str, Markup]], Markup | None]:
    """Captions and pictures of the calibration map, and the picture that follows the slider."""
    part, path = summary["map"], summary["path"]
    if part is None:
        return [], None
    moves = path is not None and "node_values" in path
    if part["kind"] == "curve":
        name = summary["data"]["classes"][-1]["name"]
        staged = charts.curve_chart(part, name, axis, id="stage-map") if moves else None
        return [(name, charts.curve_chart(part, name, axis))], staged
    if part["kind"] == "pairs":
        pairs = part["pairs"]
        return [(" and ".join(pair["names"]), charts.pair_chart(pair)) for pair in pairs], None
    if part["kind"] == "cells":
        columns = zip(*(part[name] for name in ("weight", "forecast", "value")), strict=True)
        tips = [
            f"weight {weight_of(w)}, mean forecast {_listed(p)}, calibrated {_listed(q)}"
            for w, p, q in columns
        ]
        args = (part["polygons"], part["value"], part["names"])
        title = "Cells of forecasts, coloured by their calibrated value"
        return [("", charts.simplex_chart(*args, title, tips))], None
    columns = summary["bins"]["columns"]
    values = list(zip(*(columns[f"value_{name}"] for name in part["names"]), strict=True))
    args = (part["polygons"], values, part["names"])
    tips = _tips(summary["bins"], part["names"])
    shown = charts.simplex_chart(*args, "Bins, coloured by their calibrated value", tips)
    staged = charts.simplex_chart(*args, "Bins of the chosen stage")
    return [("", shown)], Markup('<div id="stage-map">{}</div>').format(staged)


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


#: Columns of bins and their headings.
_COLUMNS = {"rate": "observed", "value": "calibrated", "lower": "from", "upper": "to"}


def _bins(part: dict[str, Any] | None) -> dict[str, Any] | None:
    """Head and rows of the table of bins; a cell is a value to sort by, its text and its interval.

    Ends of intervals are shown with the rates. What belongs to a class begins with its name.
    """
    if part is None:
        return None
    columns, head, cells = part["columns"], [], []
    for name, column in columns.items():
        if name.startswith(("rate_low", "rate_high")):
            continue
        kind, _, of = name.partition("_")
        heading = _COLUMNS.get(kind, name)
        head.append(f"{of}: {heading}" if of and kind in _COLUMNS else heading)
        intervals = [""] * len(column)
        if kind == "rate":
            lows, highs = (columns[f"rate_{end}{name[4:]}"] for end in ("low", "high"))
            ends = zip(lows, highs, strict=True)
            intervals = [f"{text_of(low)} to {text_of(high)}" for low, high in ends]
        texts = [_text(kind, value) for value in column]
        cells.append(list(zip(column, texts, intervals, strict=True)))
    return {"head": head, "rows": list(zip(*cells, strict=True))}


def _text(kind: str, value: Any) -> str:
    """Text of a cell: whole numbers, weights, probabilities, or ends of bins of any size."""
    if isinstance(value, str):  # infinity
        return "lowest" if kind == "lower" else "highest"
    if kind in ("rate", "value"):
        return text_of(value)
    return weight_of(value) if kind in ("bin", "weight") else f"{value:.4g}"
