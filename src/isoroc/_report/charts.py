"""The pictures of a report as SVG, drawn from its summary."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from isoroc._evaluation.curves import Axis
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
        right = self.x.position(x)
        up = self.y.position(y)
        return self.left + right * self.width, self.top + (1 - up) * self.height

    def line(self, x: Any, y: Any, **attributes: Any) -> Markup:
        return tag("polyline", points=at_points(*self.at(x, y)), fill="none", **attributes)

    def area(self, x: Any, low: Any, high: Any, **attributes: Any) -> Markup:
        both = self.at(np.append(x, x[::-1]), np.append(low, high[::-1]))
        return tag("polygon", points=at_points(*both), **attributes)

    def mark(self, x: float, y: float, tip: str, **attributes: Any) -> Markup:
        across, down = self.at(x, y)
        centre = {"cx": digits(across), "cy": digits(down), "r": 3.2}
        return tag("circle", tag("title", tip), **centre, **attributes)

    def text(self, x: float, y: float, content: Any, **attributes: Any) -> Markup:
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
        bottom = self.top + self.height
        right = self.left + self.width
        parts = []
        for tick, text in x_ticks.items():
            across = float(self.at(tick, self.y.low)[0])
            a = digits(across)
            parts.append(tag("path", d=f"M{a},{self.top}V{bottom}", class_="grid"))
            position = {"x": a, "y": bottom + 14, "class_": "tick mid"}
            if across > right - 9 and len(text) > 4:  # it would be cut off
                position |= {"x": right + 9, "class_": "tick end"}
            parts.append(tag("text", text, **position))
        for tick, text in y_ticks.items():
            d = self.at(self.x.low, tick)[1]
            parts.append(tag("path", d=f"M{self.left},{digits(d)}H{right}", class_="grid"))
            position = {"x": self.left - 5, "y": digits(d + 3.5)}
            parts.append(tag("text", text, class_="tick end", **position))
        middle = {"x": self.left + self.width / 2, "y": bottom + 30}
        parts.append(tag("text", x_label, class_="label mid", **middle))
        turn = f"translate(11 {digits(self.top + self.height / 2)}) rotate(-90)"
        parts.append(tag("text", y_label, class_="label mid", transform=turn))
        if diagonal:
            parts.append(self.line(self.x[1:], self.y[1:], class_="diagonal"))
        return joined(parts)


def ticks_of(axis: Axis) -> dict[float, str]:
    return {tick: f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in axis.ticks()}


def picture(parts: Sequence[Any], title: str, height: float = 286) -> Markup:
    """Picture with a title for screen readers."""
    return tag("svg", joined(parts), aria_label=title, viewBox=f"0 0 340 {height:g}", role="img")


def cut(name: str, most: int = 34) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def reliability_chart(panel: dict[str, Any]) -> Markup:
    """Smooth curve, its interval, observed rates and histogram; a line before calibration only."""
    axis = Axis(*panel["axis"])
    series = panel["series"]
    most = max(max(tables["histogram"]["percent"]) for tables in series.values())
    plane = Plane(axis, axis, height=250)
    strip = Plane(axis, Axis("linear", 0, max(most, 1) * 1.05), top=274, height=54)
    grid = dict.fromkeys(ticks_of(axis), "")
    parts = [plane.frame("", "observed rate", x_ticks=grid, diagonal=True)]
    label = f"forecast probability of {cut(panel['event'], 24)}"
    bars = [strip.frame(label, "", y_ticks={})]
    for i, (stage, tables) in enumerate(series.items()):
        ici = tables["ici"]["ici"][0]
        text = f"{stage}: " * (panel["name"] != stage) + f"ICI {text_of(ici, 3)}"
        position = {"x": plane.left + 6, "y": plane.top + 14 + 16 * i, "class_": f"score {stage}"}
        parts.append(tag("text", text, **position))
        left, right, percents = tables["histogram"].values()
        points = strip.at(np.repeat([*left, right[-1]], 2), [0.0, *np.repeat(percents, 2), 0.0])
        faint = stage == "before" and len(series) > 1
        kind = f" faint {stage}" if faint else f" {stage}"
        bars.append(tag("polygon", points=at_points(*points), class_=f"histogram{kind}"))
        line = plane.line(*tables["curve"].values(), class_=f"curve{kind}")
        if faint:
            parts.append(line)
            continue
        band = (np.asarray(column) for column in tables["band"].values())
        parts += [plane.area(*band, class_=f"band {stage}"), line]
        for forecast, rate, low, high, weight in zip(*tables["rates"].values(), strict=True):
            parts.append(plane.line([forecast, forecast], [low, high], class_=f"bar {stage}"))
            tip = f"{stage}: forecast {forecast:.3g}, observed {rate:.3g} "
            tip += f"({low:.3g} to {high:.3g}), weight {weight:,.0f}"
            parts.append(plane.mark(forecast, rate, tip, class_=f"dot {stage}"))
    title = f"Reliability diagram of {panel['event']}, {panel['name']}"
    return picture([*parts, *bars], title, height=366)


def curve_chart(curve: dict[str, Any]) -> Markup:
    """Calibrated probability of a class against its forecast or score."""
    x = Axis(*curve["x"])
    y = Axis(*curve["y"])
    plane = Plane(x, y)
    unit = "forecast" if x == y else "score"
    frame = plane.frame(unit, f"calibrated, {cut(curve['name'], 20)}", diagonal=x == y)
    line = plane.line(curve["before"], curve["after"], class_="curve after")
    return picture([frame, line], f"Calibrated probability of {curve['name']} against its {unit}")


def simplex_chart(part: dict[str, Any]) -> Markup:
    """Cells in a triangle, one corner per class, coloured by their calibrated value."""
    shapes = []
    labels = []
    colours = np.rint(mix(np.asarray(part["value"], dtype=np.float64)) * 255).astype(np.uint8)
    for i, polygon in enumerate(part["polygons"]):
        P = np.asarray(polygon)
        fill = f"#{colours[i].tobytes().hex()}"
        points = 20 + 300 * (P[:, 1] + P[:, 2] / 2), 288 - 300 * np.sqrt(3) / 2 * P[:, 2]
        forecast, value = (
            ", ".join(f"{p:.3f}" for p in part[name][i]) for name in ("forecast", "value")
        )
        weight = weight_of(part["weight"][i])
        tip = tag("title", f"weight {weight}, mean forecast ({forecast}), calibrated ({value})")
        shapes.append(tag("polygon", tip, fill=fill, points=at_points(*points), class_="cell"))
    corners = [(16, 308, ""), (324, 308, " end"), (170, 18, " mid")]
    for k, (x, y, anchor) in enumerate(corners):
        text = joined([tag("tspan", "● ", fill=COLOURS[k]), cut(part["names"][k], 22)])
        labels.append(tag("text", text, x=x, y=y, class_=f"corner{anchor}"))
    title = "Cells of forecasts, coloured by their calibrated value"
    return picture([tag("g", joined(shapes)), *labels], title, height=316)


def segments_chart(part: dict[str, Any]) -> Markup:
    """Observed rate over mean forecast with intervals, a line for each segment and series."""
    columns = part["columns"]
    stages = part["series"]
    names = part["columns"]["name"]
    ends = [columns[f"{stage}_{end}"] for stage in stages for end in ("low", "high")]
    x = Axis("linear", min(0.9, *map(min, ends)), max(1.1, *map(max, ends)))
    n = len(names)
    plane = Plane(x, Axis("linear", 0, n), left=8, width=324, height=34 * n)
    parts = [plane.frame("observed rate / mean forecast", "", y_ticks={})]
    parts.append(plane.line([1, 1], [0, n], class_="diagonal"))
    for i, name in enumerate(names):
        parts.append(plane.text(x.low, n - i - 0.3, cut(name, 52), class_="tick"))
        for k, stage in enumerate(stages):
            ratio, low, high = (columns[f"{stage}_{key}"][i] for key in ("ratio", "low", "high"))
            at = n - i - 0.55 - 0.24 * k
            parts.append(plane.line([low, high], [at, at], class_=f"bar {stage}"))
            tip = f"{name}, {stage}: {ratio:.3g} ({low:.3g} to {high:.3g})"
            parts.append(plane.mark(ratio, at, tip, class_=f"dot {stage}"))
    title = "Observed rate over mean forecast of the worst segments"
    return picture(parts, title, 34 * n + 50)


def roc_chart(curve: dict[str, Any]) -> Markup:
    """ROC curves before and after."""
    plane = Plane()
    series = curve["series"]
    parts = [plane.frame("false positive rate", "true positive rate", diagonal=True)]
    for i, (stage, data) in enumerate(series.items()):
        line = data["false_positive_rate"], data["true_positive_rate"]
        parts.append(plane.line(*line, class_=f"curve {stage}"))
        text = (f"{stage}: " if len(series) > 1 else "") + f"AUC {text_of(data['auc'])}"
        parts.append(plane.text(0.97, 0.05 + 0.06 * i, text, class_=f"score end {stage}"))
    return picture(parts, f"ROC curves of {curve['name']}")


def benefit_chart(curve: dict[str, list[float]]) -> Markup:
    """Net benefit against the threshold, cut off where acting on all rows loses much."""
    lines = dict(curve)
    thresholds = lines.pop("thresholds")
    (low, high) = lines.pop("limits")
    x = Axis("linear", thresholds[0], thresholds[-1])
    plane = Plane(x, Axis("linear", low, high), left=58, width=272)
    parts = [plane.frame("threshold", "net benefit")]
    kinds = {"none": "diagonal", "all": "diagonal", "forecasts": "curve before"}
    for name, values in lines.items():
        points = zip(thresholds, values, strict=True)
        line = zip(*(point for point in points if point[1] >= low), strict=True)
        parts.append(plane.line(*line, class_=kinds.get(name, f"curve {name}")))
    return picture(parts, "Net benefit of acting on the forecasts against the threshold")


def coverage_chart(series: dict[str, Any]) -> Markup:
    """Error of the surest rows against their share, with the interval of the last forecasts."""
    highest = max(max(data["error"][len(data["error"]) // 20 :]) for data in series.values())
    plane = Plane(y=Axis("linear", 0, max(1.15 * highest, 0.01)), left=52, width=278)
    parts = [plane.frame("share of rows accepted", "error of accepted rows")]
    for i, (stage, data) in enumerate(series.items()):
        if i == len(series) - 1:
            band = (np.asarray(data[name]) for name in ("coverage", "low", "high"))
            parts.append(plane.area(*band, class_=f"band {stage}"))
        parts.append(plane.line(data["coverage"], data["error"], class_=f"curve {stage}"))
        text = (f"{stage}: " if len(series) > 1 else "") + f"area {text_of(data['area'])}"
        position = {"x": plane.left + 6, "y": plane.top + 14 + 16 * i, "class_": f"score {stage}"}
        parts.append(tag("text", text, **position))
    return picture(parts, "Error of the surest rows against their share")


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
