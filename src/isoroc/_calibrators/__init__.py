"""Calibrators: scikit-learn estimators that map forecasts to calibrated forecasts."""
