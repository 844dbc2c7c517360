"""E[Y | forecast], estimated from rows: bins of forecasts, and cross-fitted partitions.

- `grouping`: bins of rows by their forecasts.
- `crossfit`: what is learned about each row from other rows.
- `parts`: what must be calibrated, and the terms of calibration errors and losses of each row.
- `ordering`: an order of rows and classes that does not depend on how they were passed.
"""
