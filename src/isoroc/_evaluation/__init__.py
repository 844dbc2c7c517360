"""One evaluation of forecasts before and after calibration, which everything else only shows."""
