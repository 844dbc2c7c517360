"""The pictures of a report as SVG, drawn from its summary."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from isoroc._evaluation.curves import Axis
from isoroc._evaluation.evaluation import percent
from isoroc._evaluation.triangle import COLOURS, mix


def tag(name: str, content: Any = "", **attributes: Any) -> Markup:
    """Element with escaped attributes and content; underscores in names stand for hyphens."""
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


class Plane(NamedTuple):
    """A part of a picture and its axes."""

    x: Axis = Axis()
    y: Axis = Axis()
    left: float = 44
    top: float = 10
    width: float = 286
    height: float = 240

    def at(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Position of a point, or of arrays of points."""
        right, up = self.x.position(x), self.y.position(y)
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
        diagonal: bool = False,
    ) -> Markup:
        """Grid, ticks, labels and a dotted diagonal; a tick without text has a line only."""
        x_ticks = ticks_of(self.x) if x_ticks is None else x_ticks
        y_ticks = ticks_of(self.y) if y_ticks is None else y_ticks
        bottom, right = self.top + self.height, self.left + self.width
        parts = []
        for tick, text in x_ticks.items():
            across = float(self.at(tick, self.y.low)[0])
            a = digits(across)
            parts.append(tag("path", d=f"M{a},{self.top}V{bottom}", class_="grid"))
            place = {"x": a, "y": bottom + 14, "class_": "tick mid"}
            if across > right - 9 and len(text) > 4:  # it would be cut off
                place |= {"x": right + 9, "class_": "tick end"}
            parts.append(tag("text", text, **place))
        for tick, text in y_ticks.items():
            d = self.at(self.x.low, tick)[1]
            parts.append(tag("path", d=f"M{self.left},{digits(d)}H{right}", class_="grid"))
            place = {"x": self.left - 5, "y": digits(d + 3.5)}
            parts.append(tag("text", text, class_="tick end", **place))
        middle = {"x": self.left + self.width / 2, "y": bottom + 30}
        parts.append(tag("text", x_label, class_="label mid", **middle))
        turn = f"translate(11 {digits(self.top + self.height / 2)}) rotate(-90)"
        parts.append(tag("text", y_label, class_="label mid", transform=turn))
        if diagonal:
            parts.append(self.line(self.x[1:], self.y[1:], class_="diagonal"))
        return joined(parts)


def ticks_of(axis: Axis) -> dict[float, str]:
    """Ticks of an axis, and their texts."""
    return {tick: f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in axis.ticks()}


def picture(
    parts: Sequence[Any], title: str, *, width: float = 340, height: float = 286, **attributes: Any
) -> Markup:
    """Picture with a title for screen readers."""
    attributes = {"viewBox": f"0 0 {width:g} {height:g}", "role": "img", **attributes}
    return tag("svg", joined(parts), aria_label=title, **attributes)


def cut(name: str, most: int = 34) -> str:
    """Name that fits into a picture."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def reliability_chart(panel: dict[str, Any]) -> Markup:
    """Observed rates against forecasts, with bands and histograms."""
    axis, series = Axis(*panel["axis"]), panel["series"]
    most = max(max(tables["histogram"]["percent"]) for tables in series.values())
    plane = Plane(axis, axis, height=250)
    strip = Plane(axis, Axis("linear", 0, max(most, 1) * 1.05), top=274, height=54)
    grid = dict.fromkeys(ticks_of(axis), "")
    parts = [plane.frame("", "observed rate", x_ticks=grid, diagonal=True)]
    for of, tables in series.items():
        if band := tables.get("band"):
            for ends in ("_all", ""):
                edges = band["forecast"], band[f"low{ends}"], band[f"high{ends}"]
                parts.append(plane.area(*edges, class_=f"band {of}"))
    for of, tables in series.items():
        parts.append(plane.line(*tables["curve"].values(), class_=f"curve {of}"))
        for forecast, rate, low, high, weight in zip(*tables["rates"].values(), strict=True):
            parts.append(plane.line([forecast, forecast], [low, high], class_=f"bar {of}"))
            tip = (
                f"{of}: forecast {forecast:.3g}, observed {rate:.3g} "
                f"({low:.3g} to {high:.3g}), weight {weight:,.0f}"
            )
            parts.append(plane.mark(forecast, rate, 3.2, class_=f"dot {of}", data_tip=tip))
    label = f"forecast probability of {cut(panel['name'], 24)}"
    parts.append(strip.frame(label, "", y_ticks={}))
    for of, tables in series.items():
        bars = tables["histogram"]
        across = np.repeat([*bars["left"], bars["right"][-1]], 2)
        points = at_points(*strip.at(across, [0.0, *np.repeat(bars["percent"], 2), 0.0]))
        parts.append(tag("polygon", points=points, class_=f"histogram {of}"))
    return picture(parts, f"Reliability diagram of {panel['name']}", height=366)


def curve_chart(part: dict[str, Any], name: str, axis: Axis, **attributes: Any) -> Markup:
    """Calibrated probability of the second class against its forecast or score.

    The axis is that of probabilities; scores have a linear one, whose ends the picture holds.
    """
    low, high = min(part["forecast"]), max(part["forecast"])
    x, unit = axis, "forecast"
    if low < 0 or high > 1:
        x, unit = Axis("linear", low, high if high > low else low + 1), "score"
        attributes |= {"data_x0": x.low, "data_x1": x.high}
    plane = Plane(x, axis)
    frame = plane.frame(unit, f"calibrated, {cut(name, 20)}", diagonal=unit == "forecast")
    line = plane.line(part["forecast"], part["value"], class_="curve after", data_role="map")
    title = f"Calibrated probability of {name} against its forecast"
    return picture([frame, line], title, **attributes)


def simplex_chart(
    polygons: list[Any], values: Any, names: list[str], title: str, tips: list[str] | None = None
) -> Markup:
    """Bins or cells in a triangle, one corner per class; tips make them reachable by keyboard."""
    shapes: list[Markup] = []
    for i, (polygon, colour) in enumerate(zip(polygons, colours_of(values), strict=True)):
        if not polygon:
            continue
        P = np.asarray(polygon)
        places = 20 + 300 * (P[:, 1] + P[:, 2] / 2), 288 - 300 * np.sqrt(3) / 2 * P[:, 2]
        style = {"fill": colour, "class_": "cell", "data_bin": i, "points": at_points(*places)}
        if tips is not None:
            style |= {"data_tip": tips[i], "aria_label": tips[i], "role": "img"}
            style["tabindex"] = -1 if shapes else 0
        shapes.append(tag("polygon", **style))
    corners = [(16, 308, ""), (324, 308, " end"), (170, 18, " mid")]
    labels = []
    for k, (name, (x, y, anchor)) in enumerate(zip(names, corners, strict=True)):
        text = joined([tag("tspan", "● ", fill=COLOURS[k]), cut(name, 22)])
        labels.append(tag("text", text, x=x, y=y, class_=f"corner{anchor}"))
    roving: dict[str, Any] = {} if tips is None else {"data_roving": "", "role": "group"}
    return picture([tag("g", joined(shapes)), *labels], title, height=316, **roving)


def colours_of(values: Any) -> list[str]:
    """Colours of points of the simplex as text."""
    parts = np.rint(mix(np.asarray(values, dtype=np.float64)) * 255).astype(int).tolist()
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in parts]


def pair_chart(pair: dict[str, Any]) -> Markup:
    """Share of the second class of a pair in the sum of both, after against before."""
    plane = Plane()
    first, second = (cut(name, 16) for name in pair["names"])
    x, y = pair["forecast"], pair["value"]
    parts = [plane.frame(f"share of {second} before", "share after", diagonal=True)]
    parts.append(plane.line(x, y, class_="curve after"))
    for before, after in zip(x, y, strict=True):
        tip = f"before {before:.3f}, after {after:.3f}"
        parts.append(plane.mark(before, after, class_="dot after", data_tip=tip))
    title = f"Share of {second} in the sum of {first} and {second}, after against before"
    return picture(parts, title)


def roc_chart(curve: dict[str, Any]) -> Markup:
    """ROC curves before and after."""
    plane, series = Plane(), curve["series"]
    parts = [plane.frame("false positive rate", "true positive rate", diagonal=True)]
    for i, (of, data) in enumerate(series.items()):
        line = data["false_positive_rate"], data["true_positive_rate"]
        parts.append(plane.line(*line, class_=f"curve {of}"))
        text = (f"{of}: " if len(series) > 1 else "") + f"AUC {text_of(data['auc'])}"
        parts.append(plane.text(0.97, 0.05 + 0.06 * i, text, class_=f"score end {of}"))
    return picture(parts, f"ROC curves of {curve['name']}")


def benefit_chart(curve: dict[str, list[float]]) -> Markup:
    """Net benefit against the threshold, cut off where acting on all rows loses much."""
    models = [name for name in curve if name in ("forecasts", "before", "after")]
    top = max(max(curve[name]) for name in models)
    low = min(-0.1 * top, max(min(min(curve[name]) for name in models), -top))
    y = Axis("linear", low, 1.05 * top if top > 0 else 1.0)
    plane = Plane(y=y, left=58, width=272)
    parts = [plane.frame("threshold", "net benefit")]
    kinds = {"none": "diagonal", "all": "diagonal", "forecasts": "curve before"}
    for name in ("none", "all", *models):
        points = zip(curve["thresholds"], curve[name], strict=True)
        line = zip(*(point for point in points if point[1] >= low), strict=True)
        parts.append(plane.line(*line, class_=kinds.get(name, f"curve {name}")))
    return picture(parts, "Net benefit of acting on the forecasts against the threshold")


def surface_chart(surface: dict[str, Any], of: str) -> Markup:
    """Heat map: the best share of the third class where the others have at least some shares."""
    rates = np.asarray(surface["rates"][of])
    steps = len(rates)
    plane = Plane(width=240)  # square
    first, second, third = (cut(name, 20) for name in surface["names"])
    side = plane.width / steps
    parts = []
    tenth = np.minimum(np.floor(10 * rates), 9)
    for level in range(10):  # one path per level is much smaller than a square per cell
        column, row = np.nonzero(tenth == level)
        across, down = plane.at(column / steps, (row + 1) / steps)
        shape = f"h{side:.2f}v{side:.2f}h-{side:.2f}z"
        d = "".join(f"M{corner}{shape}" for corner in at_points(across, down).split())
        parts.append(tag("path", d=d, class_="level", fill_opacity=0.05 + 0.1 * level))
    parts.append(plane.frame(f"share of {first} right, at least", f"share of {second} right"))
    for i in range(2, 10, 2):
        x, y = plane.at(0, 0)[0] + 254, 40 + 20 * i
        swatch = {"width": 14, "height": 14, "fill_opacity": 0.05 + 0.1 * i, "class_": "level"}
        parts.append(tag("rect", x=x, y=y, **swatch))
        parts.append(tag("text", f"{i / 10:g}", x=x + 18, y=y + 11, class_="tick"))
    return picture(parts, f"{of}: best share of {third} against those of the other classes")


def path_chart(path: dict[str, Any], before: float | None) -> Markup:
    """Log loss against the number of bins."""
    stages = path["stages"]
    n = [stage["n_bins"] for stage in stages]
    loss = np.array([stage["log_loss"] for stage in stages])
    shown = loss[1:] if len(loss) > 3 else loss
    margin = 0.08 * (np.ptp(shown) or 1.0)
    near = before is not None and abs(before - shown[-1]) <= 50 * margin
    values = np.append(shown, [before] if near else [])
    y = Axis("linear", float(values.min() - margin), float(values.max() + margin))
    plane = Plane(Axis("log", 1, max(n)), y, left=58, width=272)
    marks = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
    x_ticks = {float(k): str(k) for k in marks if k <= max(n)}
    parts = [plane.frame("number of bins", "log loss", x_ticks=x_ticks)]
    if near:
        parts.append(plane.line(plane.x[1:], [before, before], class_="curve before"))
        level = float(before or 0) + margin / 4
        parts.append(plane.text(max(n), level, "before", class_="score end before"))
    elif before is not None:  # far from the path, whose shape would not be seen
        rises = loss[-1] > shown[0]  # the path ends at the top
        place = {"x": plane.left + (6 if rises else plane.width), "y": plane.top + 12}
        kind = "score before" if rises else "score end before"
        parts.append(tag("text", f"before: {text_of(before)}", class_=kind, **place))
    inside = (y.low <= loss) & (loss <= y.high)
    parts.append(plane.line(np.array(n)[inside], loss[inside], class_="curve after"))
    places = np.column_stack(plane.at(n, loss)).round(1).tolist()
    cx, cy = places[-1]
    here = {"cx": cx, "cy": cy, "r": 6, "class_": "here", "data_places": json.dumps(places)}
    parts.append(tag("circle", **here))
    return picture(parts, "Log loss against the number of bins", id="path-chart")


def stage_chart(name: str, axis: Axis) -> Markup:
    """Axes of the diagram of a stage; the script draws its marks."""
    label = f"calibrated probability of {cut(name, 24)}"
    frame = Plane(axis, axis).frame(label, "observed rate", diagonal=True)
    title = "Observed rates of the bins against their calibrated probability"
    return picture([frame, tag("g", id="stage-marks")], title, id="stage-chart")


def share_bar(share: float) -> Markup:
    """Bar of a share."""
    bar = tag("rect", width=digits(100 * share), height=8, class_="share")
    return picture([bar], percent(share), width=100, height=8, class_="bar")


def text_of(value: Any, digits: int = 4) -> str:
    """Number with a number of decimal places, and with a minus sign instead of a hyphen."""
    if value is None:
        return "unknown"
    text = value.replace("inf", "∞") if isinstance(value, str) else f"{value:.{digits}f}"
    text = text.removeprefix("-") if not text.strip("-0.") else text
    return text.replace("-", "\N{MINUS SIGN}")


def weight_of(value: float) -> str:
    """Weight as text: whole numbers with separators."""
    return f"{value:,.0f}" if float(value).is_integer() or value >= 1000 else f"{value:.4g}"
