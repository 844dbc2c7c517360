"""The state of a monitor in the text format of Prometheus, for the collector of node exporter."""

from collections.abc import Iterator
from pathlib import Path

from isoroc._evaluation.monitor import BatchReport, CalibrationMonitor
from isoroc._support.files import replacing

#: By name: what a gauge says, and its labels and values.
Gauges = dict[str, tuple[str, list[tuple[dict[str, str], float]]]]


def write_metrics(path: str, monitor: CalibrationMonitor, batch: BatchReport) -> None:
    """Replace the file at once, so that a scrape never sees half of it."""
    total = monitor.report()
    gauges: Gauges = {
        "alarm": ("1 if an alarm was raised.", [({}, float(monitor.alarm_ is not None))])
    }
    figures = {
        "rows": ("Number of rows.", "rows"),
        "evidence_nats": ("Evidence against calibration.", "evidence"),
        "log_loss": ("Mean log loss.", "log_loss"),
        "log_loss_promised": ("Mean log loss that the forecasts promise.", "promised"),
        "calibration_error": ("Root mean square calibration error.", "calibration_error"),
    }
    both = {"batch": batch, "total": total}
    for name, (text, field) in figures.items():
        values = [({"rows": rows}, float(getattr(report, field))) for rows, report in both.items()]
        gauges[name] = text, values
    for kind in ("observed", "forecast"):
        values = [
            ({"rows": rows, "class": str(label)}, float(share))
            for rows, report in both.items()
            for label, share in zip(monitor.classes_, report.shares[kind], strict=True)
        ]
        gauges[f"share_{kind}"] = f"Share of a class, {kind}.", values
    with replacing(path) as temporary:
        Path(temporary).write_text("".join(_lines(gauges, monitor.model or "")), encoding="utf-8")


def _lines(gauges: Gauges, model: str) -> Iterator[str]:
    for name, (text, values) in gauges.items():
        yield f"# HELP isoroc_monitor_{name} {text}\n# TYPE isoroc_monitor_{name} gauge\n"
        for labels, value in values:
            escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
            pairs = ({"model": model} | labels).items()
            shown = ",".join(f'{key}="{word.translate(escapes)}"' for key, word in pairs)
            yield f"isoroc_monitor_{name}{{{shown}}} {value!r}\n"
