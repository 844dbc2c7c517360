"""Whether forecasts are still calibrated, batch after batch."""

from isoroc._monitor.monitor import BatchReport, CalibrationMonitor

__all__ = ["BatchReport", "CalibrationMonitor"]
