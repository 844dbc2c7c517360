"""
First calibration
=================

A classifier is trained, its forecasts turn out to be too timid or too bold, and a calibrator corrects them.
"""

# %%
# Three parts of the data
# -----------------------
#
# The classifier is trained on the first part of the rows. The calibrator is fitted to its forecasts on the second, which the
# classifier has not seen. The third part shows whether that has helped.

import numpy as np
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

X, y = make_classification(6000, n_features=12, n_informative=5, flip_y=0.1, random_state=4)
train, cal, test = np.split(np.arange(6000), 3)
model = GaussianNB().fit(X[train], y[train])
P_cal = model.predict_proba(X[cal])
P_test = model.predict_proba(X[test])

# %%
# Fit and apply
# -------------
#
# :class:`~isoroc.AutoCalibrator` mixes several calibrators by how well they forecast held-out rows. Its verdict says whether
# calibration helps at all.

from isoroc import AutoCalibrator

calibrator = AutoCalibrator(random_state=0).fit(P_cal, y[cal])
Q_test = calibrator.predict_proba(P_test)
print(calibrator.verdict_)

# %%
# Did it help?
# ------------
#
# Measures of both forecasts on the test rows, their changes with intervals, and a verdict.

from isoroc import evaluate

print(evaluate(y[test], P_test, after=Q_test))

# %%
# A reliability diagram compares forecasts with what happened. Calibrated forecasts lie on the diagonal.

from isoroc.plots import CalibrationDisplay

_ = CalibrationDisplay.from_predictions(y[test], P_test, after=Q_test)

# %%
# In one step
# -----------
#
# :class:`~isoroc.CalibratedClassifier` trains and calibrates by cross-validation, so that no rows have to be set aside.

from isoroc import CalibratedClassifier
from isoroc.metrics import log_loss

classifier = CalibratedClassifier(GaussianNB(), cv=5).fit(X[:4000], y[:4000])
print(round(log_loss(y[test], classifier.predict_proba(X[test])), 4))
