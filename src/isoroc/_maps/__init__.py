"""Calibration maps: what fitted calibrators do with forecasts, apart from how they are learned."""
