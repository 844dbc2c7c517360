"""One self-contained HTML page about forecasts before and after calibration."""
