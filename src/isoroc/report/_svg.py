"""Pieces of SVG: a plane with scales and axes, lines, areas and marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape


def tag(name: str, content: Any = "", **attributes: Any) -> Markup:
    """Element with escaped attributes and content; underscores in names stand for hyphens.

    Examples
    --------
    >>> print(tag("text", "<b>", class_="label", data_tip='"x"'))
    <text class="label" data-tip="&#34;x&#34;">&lt;b&gt;</text>
    """
    pairs = joined(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), value)
        for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), pairs, content)  # noqa: S704


def joined(parts: Iterable[Any]) -> Markup:
    """Parts one after another; text among them is escaped."""
    return Markup("").join(escape(part) for part in parts)


def digits(value: float) -> str:
    """Coordinate in pixels with one decimal place."""
    return f"{value:.1f}".removesuffix(".0")


def at_points(x: Any, y: Any) -> str:
    """Positions as text, for paths and polygons."""
    return " ".join(f"{digits(a)},{digits(d)}" for a, d in zip(x, y, strict=True))


class Plane:
    """A part of a picture with linear scales; x and y are the values at the ends of the axes."""

    def __init__(
        self,
        *,
        left: float = 44,
        top: float = 10,
        width: float = 286,
        height: float = 240,
        x: tuple[float, float] = (0.0, 1.0),
        y: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.left, self.top, self.width, self.height = left, top, width, height
        self.x, self.y = x, y

    def at(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Position of a point, or of arrays of points."""
        right = (np.asarray(x) - self.x[0]) / (self.x[1] - self.x[0])
        up = (np.asarray(y) - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + right * self.width, self.top + (1 - up) * self.height

    def line(self, x: Any, y: Any, **attributes: Any) -> Markup:
        """Line through points."""
        return tag("polyline", points=at_points(*self.at(x, y)), fill="none", **attributes)

    def area(self, x: Any, low: Any, high: Any, **attributes: Any) -> Markup:
        """Area between two lines."""
        both = self.at(np.append(x, x[::-1]), np.append(low, high[::-1]))
        return tag("polygon", points=at_points(*both), **attributes)

    def mark(self, x: float, y: float, radius: float = 3, **attributes: Any) -> Markup:
        """Circle."""
        across, down = self.at(x, y)
        return tag("circle", cx=digits(across), cy=digits(down), r=digits(radius), **attributes)

    def text(self, x: float, y: float, content: Any, **attributes: Any) -> Markup:
        """Text at a point."""
        across, down = self.at(x, y)
        return tag("text", content, x=digits(across), y=digits(down), **attributes)

    def frame(
        self,
        x_label: str,
        y_label: str,
        *,
        x_ticks: Mapping[float, str] | None = None,
        y_ticks: Mapping[float, str] | None = None,
    ) -> Markup:
        """Grid, ticks and labels; a tick without text has a line only."""
        x_ticks = ticks(*self.x) if x_ticks is None else x_ticks
        y_ticks = ticks(*self.y) if y_ticks is None else y_ticks
        bottom, right = self.top + self.height, self.left + self.width
        parts = []
        for tick, text in x_ticks.items():
            a = digits(self.at(tick, self.y[0])[0])
            parts.append(tag("path", d=f"M{a},{self.top}V{bottom}", class_="grid"))
            parts.append(tag("text", text, x=a, y=bottom + 14, class_="tick mid"))
        for tick, text in y_ticks.items():
            d = self.at(self.x[0], tick)[1]
            parts.append(tag("path", d=f"M{self.left},{digits(d)}H{right}", class_="grid"))
            place = {"x": self.left - 5, "y": digits(d + 3.5)}
            parts.append(tag("text", text, class_="tick end", **place))
        middle = {"x": self.left + self.width / 2, "y": bottom + 30}
        parts.append(tag("text", x_label, class_="label mid", **middle))
        turn = f"translate(11 {digits(self.top + self.height / 2)}) rotate(-90)"
        parts.append(tag("text", y_label, class_="label mid", transform=turn))
        return joined(parts)


def ticks(low: float, high: float, most: int = 6) -> dict[float, str]:
    """Round values in a range, and their texts.

    Examples
    --------
    >>> list(ticks(0, 1)), list(ticks(-3.1, 12))
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 5.0, 10.0])
    """
    step = 10 ** np.floor(np.log10((high - low) / most))
    for factor in (1, 2, 5, 10):
        if (high - low) / (factor * step) <= most - 0.9:
            break
    first = np.ceil(low / (factor * step) - 1e-9)
    last = np.floor(high / (factor * step) + 1e-9)
    found = [float(f"{k * factor * step + 0.0:.10g}") for k in np.arange(first, last + 1)]
    return {tick: f"{tick:g}" for tick in found}


def picture(
    parts: Sequence[Any], title: str, *, width: float = 340, height: float = 286, **attributes: Any
) -> Markup:
    """Picture with a title for screen readers."""
    attributes = {"viewBox": f"0 0 {width:g} {height:g}", "role": "img", **attributes}
    return tag("svg", joined(parts), aria_label=title, **attributes)
