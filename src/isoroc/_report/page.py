"""The page of a report: a template that is filled with the summary."""

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
        map_charts=_map_charts(summary["map"]),
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


def _map_charts(part: dict[str, Any] | None) -> list[tuple[str, Markup]]:
    """Captions and pictures of the calibration map."""
    if part is None:
        return []
    if part["kind"] == "curves":
        return [(curve["name"], charts.curve_chart(curve)) for curve in part["curves"]]
    columns = zip(*(part[name] for name in ("weight", "forecast", "value")), strict=True)
    tips = [
        f"weight {weight_of(w)}, mean forecast {_listed(p)}, calibrated {_listed(q)}"
        for w, p, q in columns
    ]
    return [("", charts.simplex_chart(part["polygons"], part["value"], part["names"], tips))]


def _listed(values: list[float]) -> str:
    return "(" + ", ".join(f"{value:.3f}" for value in values) + ")"
