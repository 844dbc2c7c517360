"""E[Y | forecast], estimated from rows: bins of forecasts, and cross-fitted partitions."""
