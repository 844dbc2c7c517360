"""
Three classes and the simplex
=============================

Forecasts of three classes are points of a triangle. Isotonic recursive partitioning (IRP) divides it into bins, and the value of each
bin is how often each class occurred there.
"""

# %%
# The triangle
# ------------
#
# A forecast is a vector :math:`p = (p_1, p_2, p_3)` of probabilities that sum to one. A threshold :math:`\gamma` divides the triangle
# into three regions,
#
# .. math:: R_k(\gamma) = \{p : \operatorname{argmax}_j (p_j - \gamma_j) = k\}.
#
# IRP splits one bin after the other with such thresholds.

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from isoroc import IRPCalibrator

X, y = make_classification(
    6000, n_features=12, n_informative=5, n_classes=3, flip_y=0.1, class_sep=0.9, random_state=4
)
train, cal, test = np.split(np.arange(6000), 3)
forest = RandomForestClassifier(random_state=0).fit(X[train], y[train])
P_cal = forest.predict_proba(X[cal])
P_test = forest.predict_proba(X[test])
irp = IRPCalibrator(random_state=0).fit(P_cal, y[cal])
print(irp.bins_.select("weight", "value_0", "value_1", "value_2"))

# %%
# The same as a picture: forecasts, bins, and where each forecast moves.

from isoroc.plots import SimplexDisplay

_ = SimplexDisplay.from_estimator(irp, P_test, y[test], panels=("forecasts", "bins", "map"))

# %%
# What is guaranteed
# ------------------
#
# A bin is split only if some threshold on the calibrated forecasts makes the same split of the calibration rows that reach it. The
# certificate contains these thresholds, and ``verify`` checks it on the rows. It says nothing about new rows.

print(irp.certificate_)
print(irp.verify(P_cal, y[cal]))

# %%
# How many bins?
# --------------
#
# ``staged_predict_proba`` returns the forecasts of every stage of growth, so the loss of each can be drawn.

from matplotlib import pyplot as plt

from isoroc.metrics import log_loss

_, ax = plt.subplots()
for name, P, rows in (("calibration rows", P_cal, cal), ("test rows", P_test, test)):
    losses = [log_loss(y[rows], Q) for Q in irp.staged_predict_proba(P)]
    ax.plot(irp.path_["n_bins"], losses, label=name)
ax.set(xlabel="number of bins", ylabel="log loss")
_ = ax.legend()
