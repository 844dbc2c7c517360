"""
Choosing a calibrator
=====================

When in doubt, use :class:`~isoroc.AutoCalibrator`. This tutorial shows what the others are for, and how to compare them on one's own
data.
"""

# %%
# A comparison by cross-validation
# --------------------------------
#
# All calibrators have the same interface, so a loop compares them.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

import isoroc
from isoroc.metrics import log_loss

X, y = load_digits(return_X_y=True)
P = cross_val_predict(GaussianNB(var_smoothing=1e-3), X, y, method="predict_proba")
folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(P, y))


def held_out_loss(calibrator):
    """Log loss of calibrated forecasts of rows that the calibrator has not seen."""
    Q = np.empty_like(P)
    for fit, new in folds:
        Q[new] = calibrator.fit(P[fit], y[fit]).predict_proba(P[new])
    return log_loss(y, Q, eps=1e-6)


calibrators = [
    isoroc.IdentityCalibrator(),
    isoroc.TemperatureCalibrator(),
    isoroc.MatrixCalibrator(),
    isoroc.IsotonicCalibrator(),
    isoroc.IRPCalibrator(random_state=0),
    isoroc.AutoCalibrator(random_state=0),
]
losses = {type(calibrator).__name__: held_out_loss(calibrator) for calibrator in calibrators}
for name, loss in losses.items():
    print(f"{name:<24}{loss:.4f}")

# %%
# The same as a picture; shorter bars are better.

from matplotlib import pyplot as plt

figure, axes = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
axes.barh(list(losses), list(losses.values()))
axes.invert_yaxis()
_ = axes.set_xlabel("held-out log loss")

# %%
# What the mixture consists of
# ----------------------------
#
# ``member_scores_`` lists the members of the automatic calibrator and their weights.

print(calibrators[-1].member_scores_)

# %%
# Which one for which purpose
# ---------------------------
#
# * The best forecasts: :class:`~isoroc.AutoCalibrator`.
# * The same ranking as before, for two classes: :class:`~isoroc.MonotoneCalibrator`, whose map is strictly increasing.
# * Bins that a person can read, with a certificate: :class:`~isoroc.IRPCalibrator`.
# * Few rows: :class:`~isoroc.TemperatureCalibrator` has the fewest parameters.
# * Intervals for each probability: :class:`~isoroc.VennAbersCalibrator`.
#
# The same ranking matters if decisions depend on the order of rows. The area under the ROC curve before and after:

from isoroc.metrics import roc_auc

two = y >= 5
p = cross_val_predict(GaussianNB(var_smoothing=1e-3), X, two, method="predict_proba")
monotone = isoroc.MonotoneCalibrator().fit(p, two)
print(round(roc_auc(two, p), 6), round(roc_auc(two, monotone.predict_proba(p)), 6))
