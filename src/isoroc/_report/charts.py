"""The pictures of a report as SVG, drawn from its summary."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from isoroc._evaluation.curves import Axis
from isoroc._evaluation.surface import edges_of, lit, seen
from isoroc._evaluation.triangle import COLOURS, mix


def tag(name: str, content: Any = "", **attributes: Any) -> Markup:
    """Element with escaped attributes and content. Underscores in names stand for hyphens."""
    pairs = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{''.join(pairs)}>{escape(content)}</{name}>")  # noqa: S704 -- escaped


def joined(parts: Iterable[Any]) -> Markup:
    """Parts one after another. Text among them is escaped."""
    return Markup("").join(escape(part) for part in parts)


def digits(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def at_points(x: Any, y: Any) -> str:
    """Positions as text, for paths and polygons."""
    return " ".join(f"{digits(a)},{digits(d)}" for a, d in zip(x, y, strict=True))


#: Width of a picture in its own units, which the page scales.
CHART_WIDTH = 340


class Plane(NamedTuple):
    """A part of a picture and its axes."""

    x: Axis = Axis()
    y: Axis = Axis()
    left: float = 54
    top: float = 10
    width: float = 270
    height: float = 240

    def at(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Position of a point, or of arrays of points."""
        right = self.x.position(x)
        up = self.y.position(y)
        return self.left + right * self.width, self.top + (1 - up) * self.height

    def line(self, x: Any, y: Any, **attributes: Any) -> Markup:
        return tag("polyline", points=at_points(*self.at(x, y)), fill="none", **attributes)

    def curve(self, x: Any, y: Any, **attributes: Any) -> Markup:
        """Line that ends where it leaves the axes."""
        columns = np.array([x, y], dtype=np.float64)
        ends = np.array([self.x[1:], self.y[1:]])
        inside = ((columns >= ends[:, :1]) & (columns <= ends[:, 1:])).all(axis=0)
        return self.line(*columns[:, inside], **attributes)

    def area(self, x: Any, low: Any, high: Any, **attributes: Any) -> Markup:
        x, low, high = np.array([x, low, high], dtype=np.float64)
        inside = (x >= self.x.low) & (x <= self.x.high)
        x, low, high = (column[inside] for column in (x, low, high))
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
        """Grid, ticks, labels and a dotted diagonal. A tick without text has a line only."""
        x_ticks = ticks_of(self.x) if x_ticks is None else x_ticks
        y_ticks = ticks_of(self.y) if y_ticks is None else y_ticks
        bottom = self.top + self.height
        right = self.left + self.width
        parts = []
        for tick, text in x_ticks.items():
            across = float(self.at(tick, self.y.low)[0])
            a = digits(across)
            parts.append(tag("path", d=f"M{a},{self.top}V{bottom}", class_="grid"))
            # A digit is up to 6.2 wide: texts at the right end are moved rather than cut off.
            position = {
                "x": digits(min(across, CHART_WIDTH - 1 - 3.1 * len(text))),
                "y": bottom + 14,
            }
            parts.append(tag("text", text, class_="tick mid", **position))
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
    """Ticks and their texts. Small powers of ten, as on axes of log odds, have exponents."""
    texts = {tick: f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in axis.ticks()}
    small = {1e-4: "10⁻⁴", 1e-5: "10⁻⁵"}
    return {tick: small.get(tick, text) for tick, text in texts.items()}


def picture(parts: Sequence[Any], title: str, height: float = 286) -> Markup:
    """Picture with a title for screen readers."""
    box = f"0 0 {CHART_WIDTH} {height:g}"
    return tag("svg", joined(parts), aria_label=title, viewBox=box, role="img")


def cut(name: str, most: int = 34) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def reliability_chart(panel: dict[str, Any]) -> Markup:
    """Smooth curve, its interval, observed rates and histogram. Before calibration a line."""
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
        text = f"{stage}: " * (panel["name"] != stage) + f"ICI {number_text(ici, 3)}"
        position = {"x": plane.left + 6, "y": plane.top + 14 + 16 * i, "class_": f"score {stage}"}
        parts.append(tag("text", text, **position))
        left, right, percents = tables["histogram"].values()
        points = strip.at(np.repeat([*left, right[-1]], 2), [0.0, *np.repeat(percents, 2), 0.0])
        faint = stage == "before" and len(series) > 1
        kind = f" faint {stage}" if faint else f" {stage}"
        bars.append(tag("polygon", points=at_points(*points), class_=f"histogram{kind}"))
        line = plane.curve(*tables["curve"].values(), class_=f"curve{kind}")
        if faint:
            parts.append(line)
            continue
        parts += [plane.area(*tables["band"].values(), class_=f"band {stage}"), line]
        for forecast, rate, low, high, weight in zip(*tables["rates"].values(), strict=True):
            parts.append(plane.line([forecast, forecast], [low, high], class_=f"bar {stage}"))
            tip = f"{stage}: forecast {forecast:.3g}, observed {rate:.3g} "
            tip += f"({low:.3g} to {high:.3g}), weight {weight:,.0f}"
            parts.append(plane.mark(forecast, rate, tip, class_=f"dot {stage}"))
    title = f"Reliability diagram of {panel['event']}, {panel['name']}"
    return picture([*parts, *bars], title, height=366)


def curve_chart(curve: dict[str, Any]) -> Markup:
    """Calibrated probability of a class against its forecast or score, and its spread."""
    x = Axis(*curve["x"])
    y = Axis(*curve["y"])
    plane = Plane(x, y)
    unit = "forecast" if x == y else "score"
    frame = plane.frame(unit, f"calibrated, {cut(curve['name'], 20)}", diagonal=x == y)
    parts = [frame]
    if "low" in curve:
        parts.append(plane.area(curve["before"], curve["low"], curve["high"], class_="band after"))
    parts.append(plane.curve(curve["before"], curve["after"], class_="curve after"))
    return picture(parts, f"Calibrated probability of {curve['name']} against its {unit}")


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


def segment_plane(part: dict[str, Any], height: float) -> Plane:
    """Plane of a line of the table of segments: logarithms of ratios, at most from 1/5 to 5."""
    ends = [
        [float(value) for value in column if value is not None]  # "inf" is a text
        for name, column in part["columns"].items()
        if name.endswith(("_low", "_high"))
    ]
    low = np.clip(min(map(min, ends), default=1.0), 0.2, 0.8)
    high = np.clip(max(map(max, ends), default=1.0), 1.25, 5.0)
    axis = Axis("linear", float(np.log(low)), float(np.log(high)))
    return Plane(axis, Axis(), left=18, top=0, width=224, height=height)


def segment_ticks(part: dict[str, Any]) -> Markup:
    """The axis above the table of segments."""
    plane = segment_plane(part, 14)
    texts = []
    for value in (0.2, 0.5, 0.8, 1, 1.25, 2, 5):
        across = float(plane.at(np.log(value), 0)[0])
        far = value in (0.2, 0.5, 1, 2, 5) or abs(across - float(plane.at(0.0, 0)[0])) > 26
        if plane.x.low <= np.log(value) <= plane.x.high and far:
            texts.append(tag("text", f"{value:g}", x=digits(across), y=11, class_="tick mid"))
    title = "Axis of observed rates divided by mean forecasts"
    return tag("svg", joined(texts), aria_label=title, viewBox="0 0 260 14", role="img")


def segment_chart(part: dict[str, Any], i: int) -> Markup:
    """Observed rate over mean forecast of a segment, with intervals: a line per series."""
    columns = part["columns"]
    stages = part["series"]
    plane = segment_plane(part, 40)
    parts = [plane.line([0.0, 0.0], [0, 1], class_="diagonal")]
    said = []
    for k, stage in enumerate(stages):
        keys = ("ratio", "low", "high")
        ratio, low, high = (float(columns[f"{stage}_{key}"][i] or "nan") for key in keys)
        if np.isnan([ratio, low, high]).any():
            continue
        said.append(f"{stage} {ratio:.3g} ({low:.3g} to {high:.3g})")
        at = 0.5 if len(stages) == 1 else 0.7 - 0.4 * k
        middle, *ends = np.log(np.clip([ratio, low, high], 1e-9, 1e9)).tolist()
        parts.append(plane.line(ends, [at, at], class_=f"bar {stage}"))
        tip = f"{columns['name'][i]}: {said[-1]}"
        parts.append(plane.mark(middle, at, tip, class_=f"dot {stage}"))
    title = f"Observed rate over mean forecast: {', '.join(said)}"
    return tag("svg", joined(parts), aria_label=title, viewBox="0 0 260 40", role="img")


def roc_chart(curve: dict[str, Any]) -> Markup:
    """ROC curves before and after."""
    plane = Plane()
    series = curve["series"]
    parts = [plane.frame("false positive rate", "true positive rate", diagonal=True)]
    for i, (stage, data) in enumerate(series.items()):
        line = data["false_positive_rate"], data["true_positive_rate"]
        parts.append(plane.line(*line, class_=f"curve {stage}"))
        text = (f"{stage}: " if len(series) > 1 else "") + f"AUC {number_text(data['auc'])}"
        parts.append(plane.text(0.97, 0.05 + 0.06 * i, text, class_=f"score end {stage}"))
    return picture(parts, f"ROC curves of {curve['name']}")


def surface_chart(part: dict[str, Any]) -> Markup:
    """Hulls of ROC surfaces: the body of the first, and the edges of the second."""

    def flat(points: Any) -> tuple[Any, Any]:
        across, up, _ = seen(np.asarray(points, dtype=np.float64)).T
        return 170 + 170 * across, 158 - 170 * up

    box = np.array([[1, 0, 1], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1]])
    parts = [tag("polyline", points=at_points(*flat(box)), fill="none", class_="diagonal")]
    for i, (stage, surface) in enumerate(part["series"].items()):
        faces = np.asarray(surface["faces"]).reshape(-1, 3, 3)
        corners = flat(surface["corners"])
        # Hundreds of corners would hide the shape: thin edges, and no dots.
        many = len(corners[0]) > 60
        if i == 0:
            for face, light in zip(faces, lit(faces), strict=True):
                shade = digits(10 * (0.75 - 0.5 * light))
                style = {"class_": f"face {stage}", "fill_opacity": f"{float(shade) / 10:g}"}
                parts.append(tag("polygon", points=at_points(*flat(face)), **style))
        else:
            lines = (at_points(*flat(edge)) for edge in edges_of(faces))
            kind = f"edge{' fine' * many} {stage}"
            parts += [tag("polyline", points=line, class_=kind) for line in lines]
        for x, y in zip(*corners, strict=True) if not many else ():
            parts.append(tag("circle", cx=digits(x), cy=digits(y), r=1.5, class_=f"dot {stage}"))
        text = f"{stage}: volume {number_text(surface['volume'])}"
        parts.append(tag("text", text, x=4, y=310 + 16 * i, class_=f"score {stage}"))
    # Each label is beside the edge of the box along which the share of its class grows.
    places = [(0.5, 1.12, -0.12, ""), (1.12, 0.5, -0.12, " end"), (1.35, 0.0, 1.4, "")]
    for name, (*place, anchor) in zip(part["names"], places, strict=True):
        (x,), (y,) = flat([place])
        text = f"{cut(name, 16)} right"
        width = 6.4 * len(text)
        x = max(x, width) if anchor else min(x, CHART_WIDTH - width)  # texts stay inside
        at = {"x": digits(x), "y": digits(y), "class_": f"label{anchor}"}
        parts.append(tag("text", text, **at))
    return picture(parts, "ROC surfaces of three classes", height=330)


def path_chart(part: dict[str, Any], measure: str) -> Markup:
    """A measure against the number of bins, and its value before calibration."""
    bins = part["stages"]["n_bins"]
    values = part["stages"][measure]
    before = part["before"][measure][0]
    shown = [*(values[1:] if len(values) > 3 else values), before]
    margin = 0.08 * ((max(shown) - min(shown)) or 1.0)
    y = Axis("linear", min(shown) - margin, max(shown) + margin)
    plane = Plane(Axis("linear", 1, max(bins[-1], 2)), y, left=58, width=272)
    parts = [plane.frame("number of bins", measure)]
    parts.append(plane.line([1, bins[-1]], [before, before], class_="curve before"))
    points = [(n, value) for n, value in zip(bins, values, strict=True) if y.low <= value <= y.high]
    parts.append(plane.line(*zip(*points, strict=True), class_="curve after"))
    tip = f"end of growth: {bins[-1]:g} bins, {measure} {number_text(values[-1])}"
    parts.append(plane.mark(bins[-1], values[-1], tip, class_="dot after"))
    return picture(parts, f"{measure} against the number of bins")


def benefit_chart(part: dict[str, Any]) -> Markup:
    """Net benefit against the threshold, cut off where acting on all rows loses much."""
    thresholds = part["thresholds"]
    lines = part["lines"]
    x = Axis("linear", thresholds[0], thresholds[-1])
    plane = Plane(x, Axis("linear", *part["limits"]), left=60, width=264)
    parts = [plane.frame("threshold probability", "net benefit")]
    series = [name for name in lines if name not in ("none", "all")]
    parts.append(plane.area(thresholds, *part["band"].values(), class_=f"band {series[-1]}"))
    kinds = {"none": "none", "all": "all"} | {name: f"curve {name}" for name in series}
    parts += [plane.curve(thresholds, lines[name], class_=kind) for name, kind in kinds.items()]
    return picture(parts, "Net benefit of acting on the forecasts against the threshold")


def coverage_chart(series: dict[str, Any]) -> Markup:
    """Error of the surest rows against their share, with the interval of the last forecasts."""
    highest = max(max(data["error"][len(data["error"]) // 20 :]) for data in series.values())
    top = max(1.15 * highest, 0.01)
    plane = Plane(y=Axis("linear", 0, top), left=52, width=278)
    parts = [plane.frame("share of rows accepted", "error of accepted rows")]
    for i, (stage, data) in enumerate(series.items()):
        if i == len(series) - 1:
            band = (np.asarray(data[name]) for name in ("coverage", "low", "high"))
            parts.append(plane.area(*band, class_=f"band {stage}"))
        parts.append(plane.line(data["coverage"], data["error"], class_=f"curve {stage}"))
        text = (f"{stage}: " if len(series) > 1 else "") + f"area {number_text(data['area'])}"
        parts.append(plane.text(0.97, (0.05 + 0.06 * i) * top, text, class_=f"score end {stage}"))
    return picture(parts, "Error of the surest rows against their share")


def number_text(value: Any, digits: int = 4) -> str:
    """Number with a number of decimal places, and with a minus sign instead of a hyphen."""
    if value is None:
        return "unknown"
    text = value.replace("inf", "∞") if isinstance(value, str) else f"{value:.{digits}f}"
    text = text.removeprefix("-") if not text.strip("-0.") else text
    return text.replace("-", "\N{MINUS SIGN}")


def weight_of(value: float) -> str:
    """Weight as text: whole numbers with separators."""
    return f"{value:,.0f}" if float(value).is_integer() or value >= 1000 else f"{value:.4g}"
