"""The pictures of a report, drawn from its summary."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from markupsafe import Markup

from isoroc._evaluation.evaluation import percent
from isoroc._views.colours import COLOURS, hexadecimal, mix
from isoroc.report._numbers import text_of
from isoroc.report._svg import Plane, digits, joined, picture, tag

_WIDTH = 340


def cut(name: str, most: int = 34) -> str:
    """Name that fits into a picture."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def reliability_chart(panel: dict[str, Any]) -> Markup:
    """Observed rates against forecasts, with bands and histograms."""
    plane = Plane(height=250)
    strip_height = 54
    most = max(max(s["histogram"]["percent"]) for s in panel["series"].values())
    strip = Plane(top=274, height=strip_height, y=(0, max(most, 1) * 1.05))
    parts = [plane.frame("", "observed rate", show_x=False)]
    parts.append(plane.line([0, 1], [0, 1], class_="diagonal"))
    for of, tables in panel["series"].items():
        if band := tables.get("band"):
            parts.append(
                plane.area(band["forecast"], band["low"], band["high"], class_=f"band {of}")
            )
    for of, tables in panel["series"].items():
        parts += _rates(plane, tables, of)
    for i, (of, tables) in enumerate(panel["series"].items()):
        scores = tables["scores"]
        text = f"MCB {scores['miscalibration'][0]:.4f}  DSC {scores['discrimination'][0]:.4f}"
        text = _named(of, text, panel["series"])
        place = {"x": plane.left + plane.width - 4, "y": plane.top + plane.height - 6 - 13 * i}
        parts.append(tag("text", text, class_=f"score end {of}", **place))
    label = f"forecast probability of {cut(panel['name'], 24)}"
    parts.append(strip.frame(label, "", y_ticks=[]))
    for of, tables in panel["series"].items():
        parts.append(_histogram(strip, tables["histogram"], of))
    title = f"Reliability diagram of {panel['name']}"
    return picture(joined(parts), width=_WIDTH, height=366, title=title)


def _named(of: str, text: str, series: dict[str, Any]) -> str:
    """Text with the name of the series that it belongs to, if there are several."""
    return f"{of}: {text}" if len(series) > 1 else text


def _rates(plane: Plane, tables: dict[str, Any], of: str) -> list[Markup]:
    curve, rates = tables["curve"], tables["rates"]
    parts = [plane.line(curve["forecast"], curve["rate"], class_=f"curve {of}")]
    for forecast, rate, low, high, weight in zip(*rates.values(), strict=True):
        a, d = plane.at([forecast, forecast], [low, high])
        bar = f"M{digits(a[0])},{digits(d[0])}V{digits(d[1])}"
        parts.append(tag("path", d=bar, class_=f"bar {of}"))
        tip = (
            f"{of}: forecast {forecast:.3f}, observed {rate:.3f} "
            f"({low:.3f} to {high:.3f}), weight {weight:,.0f}"
        )
        parts.append(plane.mark(forecast, rate, 3.2, class_=f"dot {of}", data_tip=tip))
    return parts


def _histogram(strip: Plane, data: dict[str, Any], of: str) -> Markup:
    x = np.repeat([*data["left"], data["right"][-1]], 2)
    y = [0.0, *np.repeat(data["percent"], 2), 0.0]
    return tag("polygon", points=strip.points(list(x), y), class_=f"histogram {of}")


def curve_chart(part: dict[str, Any], name: str, **attributes: Any) -> Markup:
    """Calibrated probability of the second class against its forecast or score."""
    low, high = min(part["forecast"]), max(part["forecast"])
    unit = low >= 0 and high <= 1
    x = (0.0, 1.0) if unit else (low, high if high > low else low + 1)
    plane = Plane(x=x)
    parts = [plane.frame("forecast" if unit else "score", f"calibrated, {cut(name, 20)}")]
    if unit:
        parts.append(plane.line([0, 1], [0, 1], class_="diagonal"))
    parts.append(plane.line(part["forecast"], part["value"], class_="curve after", data_role="map"))
    title = f"Calibrated probability of {name} against its forecast"
    scale: dict[str, Any] = {"data_x0": x[0], "data_x1": x[1]}
    return picture(joined(parts), width=_WIDTH, height=286, title=title, **scale, **attributes)


def corners(polygon: Any) -> str:
    """Corners of a polygon of the simplex in the triangle of `simplex_chart`."""
    P = np.asarray(polygon)
    x = 20 + 300 * (P[:, 1] + P[:, 2] / 2)
    y = 288 - 300 * np.sqrt(3) / 2 * P[:, 2]
    return " ".join(f"{digits(a)},{digits(d)}" for a, d in zip(x, y, strict=True))


def simplex_chart(
    polygons: list[Any], colours: list[str], tips: list[str] | None, names: list[str], title: str
) -> Markup:
    """Bins or cells in a triangle, one corner per class; tips make them reachable by keyboard."""
    shapes = []
    first = True
    for i, (polygon, colour) in enumerate(zip(polygons, colours, strict=True)):
        if not polygon:
            continue
        style = {"fill": colour, "class_": "cell", "data_bin": i, "points": corners(polygon)}
        if tips is not None:
            style |= {"data_tip": tips[i], "aria_label": tips[i], "role": "img"}
            style["tabindex"] = 0 if first else -1
            first = False
        shapes.append(tag("polygon", **style))
    places = [(16, 308, ""), (324, 308, " end"), (170, 18, " mid")]
    labels = [
        tag("text", _corner(k, name), x=x, y=y, class_=f"corner{anchor}")
        for k, (name, (x, y, anchor)) in enumerate(zip(names, places, strict=True))
    ]
    roving = {"data_roving": "", "role": "group"} if tips is not None else {"role": "img"}
    return picture(
        joined([tag("g", joined(shapes)), *labels]), width=_WIDTH, height=316, title=title, **roving
    )


def _corner(k: int, name: str) -> Markup:
    """Name of a class after a dot in its colour."""
    return joined([tag("tspan", "● ", fill=COLOURS[k]), cut(name, 22)])


def colours_of(values: list[list[float]]) -> list[str]:
    """Colours of points of the simplex."""
    return hexadecimal(mix(np.asarray(values, dtype=np.float64)))


def pair_chart(pair: dict[str, Any]) -> Markup:
    """Share of the second class of a pair in the sum of both, after against before."""
    plane = Plane()
    first, second = (cut(name, 16) for name in pair["names"])
    parts = [
        plane.frame(f"share of {second} before", "share after"),
        plane.line([0, 1], [0, 1], class_="diagonal"),
        plane.line(pair["forecast"], pair["value"], class_="curve after"),
        *(
            plane.mark(x, y, class_="dot after", data_tip=f"before {x:.3f}, after {y:.3f}")
            for x, y in zip(pair["forecast"], pair["value"], strict=True)
        ),
    ]
    title = f"Share of {second} in the sum of {first} and {second}, after against before"
    return picture(joined(parts), width=_WIDTH, height=286, title=title)


def roc_chart(curve: dict[str, Any]) -> Markup:
    """ROC curves before and after."""
    plane = Plane()
    parts = [plane.frame("false positive rate", "true positive rate")]
    parts.append(plane.line([0, 1], [0, 1], class_="diagonal"))
    for i, (of, data) in enumerate(curve["series"].items()):
        line = data["false_positive_rate"], data["true_positive_rate"]
        parts.append(plane.line(*line, class_=f"curve {of}"))
        text = _named(of, f"AUC {text_of(data['auc'])}", curve["series"])
        parts.append(plane.text(0.97, 0.05 + 0.06 * i, text, class_=f"score end {of}"))
    title = f"ROC curves of {curve['name']}"
    return picture(joined(parts), width=_WIDTH, height=286, title=title)


def path_chart(path: dict[str, Any], before: float | str | None) -> Markup:
    """Log loss against the number of bins."""
    stages = path["stages"]
    n = [stage["n_bins"] for stage in stages]
    known = [s["log_loss"] for s in stages if isinstance(s["log_loss"], float)]
    shown = known[1:] if len(known) > 3 else known
    values = shown or [0.0, 1.0]
    margin = 0.08 * (max(values) - min(values) or 1.0)
    far = not isinstance(before, float) or abs(before - values[-1]) > 50 * margin
    if isinstance(before, float) and not far:
        values = [*values, before]
    y = (min(values) - margin, max(values) + margin)
    plane = Plane(x=(0.0, float(np.log10(max(n)))), y=y, left=50, width=280)
    marks = [k for k in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000) if k <= max(n)]
    parts = [plane.frame("", "log loss", x_ticks=[])]
    for k in marks:
        a, d = plane.at(np.log10(k), y[0])
        parts.append(tag("text", str(k), x=digits(a), y=d + 14, class_="tick mid"))
    parts.append(tag("text", "number of bins", x=190, y=280, class_="label mid"))
    if isinstance(before, float) and not far:
        parts.append(plane.line(plane.x, [before, before], class_="curve before"))
        parts.append(
            plane.text(plane.x[1], before + margin / 4, "before", class_="score end before")
        )
    elif before is not None:  # far from the path, whose shape would not be seen
        text = f"before: {text_of(before)}"
        place = plane.left + plane.width, plane.top + 12
        parts.append(tag("text", text, x=place[0], y=place[1], class_="score end before"))
    inside = [
        (np.log10(s["n_bins"]), s["log_loss"])
        for s in stages
        if isinstance(s["log_loss"], float) and y[0] <= s["log_loss"] <= y[1]
    ]
    if inside:
        x, loss = zip(*inside, strict=True)
        parts.append(plane.line(x, loss, class_="curve after"))
    places = [
        [float(digits(v)) for v in plane.at(np.log10(s["n_bins"]), np.clip(s["log_loss"], *y))]
        if isinstance(s["log_loss"], float)
        else None
        for s in stages
    ]
    last = places[-1] or [0, 0]
    parts.append(
        tag("circle", cx=last[0], cy=last[1], r=6, class_="here", data_places=json.dumps(places))
    )
    return picture(
        joined(parts),
        width=_WIDTH,
        height=286,
        title="Log loss against the number of bins",
        id="path-chart",
    )


def stage_chart(top: bool, name: str) -> Markup:  # noqa: FBT001
    """Axes of the diagram of a stage; the script draws its marks."""
    plane = Plane()
    what = "the most probable class" if top else cut(name, 20)
    parts = [
        plane.frame(f"calibrated probability of {what}", "observed rate"),
        plane.line([0, 1], [0, 1], class_="diagonal"),
        tag("g", id="stage-marks"),
    ]
    title = "Observed rates of the bins against their calibrated probability"
    return picture(joined(parts), width=_WIDTH, height=286, title=title, id="stage-chart")


def surface_chart() -> Markup:
    """Picture of the ROC surface; the script draws and turns it."""
    parts = [tag("path", class_="hull"), tag("path", class_="points before")]
    parts += [tag("path", class_="points after"), tag("path", class_="axes")]
    parts += [tag("text", class_="label mid", data_axis=k) for k in range(3)]
    title = "ROC surface before and after calibration; arrow keys turn it"
    return picture(joined(parts), width=400, height=360, title=title, id="surface", tabindex=0)


def share_bar(share: float) -> Markup:
    """Bar of a share."""
    bar = tag("rect", width=digits(100 * share), height=8, class_="share")
    return picture(bar, width=100, height=8, title=percent(share), class_="bar")
