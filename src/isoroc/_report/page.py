"""The page of a report: a template that is filled with the summary."""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from isoroc._evaluation.evaluation import p_value_text, rounded_percent
from isoroc._report import charts


def render(summary: dict[str, Any]) -> str:
    """HTML page of a summary. Everything that comes from users is escaped."""
    paired = summary["map"] is not None
    style = _asset("style.css")
    # The hash by which a content security policy refers to an element with this text.
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page: str = _template().render(s=summary, paired=paired, style=style, hash=f"sha256-{digest}")
    return page


@cache
def _template() -> Any:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters = {"number": charts.number_text, "weight": charts.weight_of, "percent": rounded_percent}
    filters["p_value"] = _p_value
    environment.filters |= filters | {"zipped": lambda columns: zip(*columns, strict=True)}
    environment.globals |= {"charts": charts}
    return environment.from_string(_asset("page.html"))


def _p_value(value: float | None) -> str:
    return "unknown" if value is None else p_value_text(value)


def _asset(name: str) -> Markup:
    text = files("isoroc._report").joinpath("assets", name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 -- a file of the package
