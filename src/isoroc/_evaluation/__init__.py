"""One evaluation of forecasts before and after calibration, which everything else only shows.

- `pair`: the rows with both forecasts, from arrays or counts.
- `totals`: means over all rows, from sums that batches add to.
- `order`: what calibration did to the order of rows.
- `measures`: all measures with standard errors.
- `evaluation`: the result, its table and its words.
- `evaluate`: the public function.
"""
