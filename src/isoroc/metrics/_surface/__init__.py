"""ROC surfaces and the volumes under them.

- `surface`: the public functions, which choose how to compute.
- `line_scan`: three classes, exactly, by scanning lines of thresholds.
- `tree_thresholds`: four classes or more, exactly, for few rows.
- `hull_ascents`: four classes or more, a lower bound, by coordinate ascents.
- `roc_points`, `volumes`: what these share.
"""
