"""The state of a monitor in the text format of Prometheus, for the collector of node exporter."""

from isoroc._evaluation.monitor import BatchReport, CalibrationMonitor
from isoroc._support.files import replacing


def write_metrics(
    path: str, monitor: CalibrationMonitor, batch: BatchReport, unknown: dict[str, float]
) -> None:
    """Replace the file at once, so that a scrape never sees half of it.

    `unknown` holds the share of rows whose segment is unknown, by column.
    """
    reports = {"batch": batch, "total": monitor.report()}
    # For each gauge, by name: its help text, and its labels and values.
    gauges: dict[str, tuple[str, list[tuple[dict[str, str], float]]]] = {
        "alarm": ("1 if an alarm was raised.", [({}, monitor.alarm_ is not None)])
    }
    figures = {
        "rows": ("Number of rows.", "rows"),
        "evidence_nats": ("Evidence against calibration.", "evidence"),
        "log_loss": ("Mean log loss.", "log_loss"),
        "log_loss_promised": ("Mean log loss that the forecasts promise.", "promised"),
        "calibration_error": ("Root mean square calibration error.", "calibration_error"),
    }
    for name, (text, field) in figures.items():
        values = [({"rows": rows}, getattr(report, field)) for rows, report in reports.items()]
        gauges[name] = text, values
    for kind in ("observed", "forecast"):
        gauges[f"share_{kind}"] = (
            f"Share of a class, {kind}.",
            [
                ({"rows": rows, "class": str(label)}, share)
                for rows, report in reports.items()
                for label, share in zip(monitor.classes_, report.shares[kind], strict=True)
            ],
        )
    if unknown:
        shares = [({"column": column}, share) for column, share in unknown.items()]
        text = "Share of the rows of the batch whose segment is missing or unknown."
        gauges["unknown_segments"] = text, shares
    lines = []
    escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    for name, (text, values) in gauges.items():
        gauge = f"isoroc_monitor_{name}"
        lines += [f"# HELP {gauge} {text}", f"# TYPE {gauge} gauge"]
        for labels, value in values:
            pairs = ({"model": monitor.model or ""} | labels).items()
            shown = ",".join(f'{key}="{word.translate(escapes)}"' for key, word in pairs)
            lines.append(f"{gauge}{{{shown}}} {float(value)!r}")
    with replacing(path) as temporary:
        temporary.write_text("\n".join([*lines, ""]), encoding="utf-8")
