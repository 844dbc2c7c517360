"""
A billion rows
==============

Calibrators need one thing of the data: how often each class occurred near each forecast. :class:`~isoroc.Counts` is that statistic.
It is small for any number of rows, so this tutorial counts a small table in the way in which a billion rows are counted.
"""

# %%
# Count where the data are
# ------------------------
#
# The engine that holds the table does one group-by. Here it is polars, on a lazy frame; DuckDB, Dask and Spark work the same way.

import numpy as np
import polars as pl

from isoroc import AutoCalibrator, Counts

PROBS = ["p_0", "p_1", "p_2"]


def day(seed, n=50_000):
    """Forecasts and outcomes of one day."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(3), size=n)
    P = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return pl.LazyFrame({**dict(zip(PROBS, P.T, strict=True)), "y": y})


monday = Counts.from_frame(day(1), probs=PROBS, label="y", resolution=32)
tuesday = Counts.from_frame(day(2), probs=PROBS, label="y", resolution=32)
print(monday)

# %%
# Add up
# ------
#
# Counts of different days or machines merge by addition.

counts = monday.merge(tuesday)
print(counts)

# %%
# Fit to counts
# -------------
#
# Every calibrator can be fitted to counts. ``predict_frame`` stays lazy as well.

calibrator = AutoCalibrator(random_state=0).fit_counts(counts)
print(calibrator.verdict_)
print(calibrator.predict_frame(day(3), probs=PROBS).head(3).collect())

# %%
# What is lost
# ------------
#
# Forecasts that share a cell are replaced by their mean. The loss on a new day, compared with a fit to all rows:

from isoroc.metrics import log_loss

new = day(4).collect()
P_new = new.select(PROBS).to_numpy()
y_new = new["y"].to_numpy()
rows = pl.concat([day(1), day(2)]).collect()
exact = AutoCalibrator(random_state=0)
exact.fit(rows.select(PROBS).to_numpy()[:20_000], rows["y"].to_numpy()[:20_000])
print("before calibration    ", round(log_loss(y_new, P_new), 4))
print("from counts           ", round(log_loss(y_new, calibrator.predict_proba(P_new)), 4))
print("from 20,000 exact rows", round(log_loss(y_new, exact.predict_proba(P_new)), 4))

# %%
# The reliability of each class on the new day, before and after:

from isoroc.plots import CalibrationDisplay

_ = CalibrationDisplay.from_predictions(y_new, P_new, after=calibrator.predict_proba(P_new))
