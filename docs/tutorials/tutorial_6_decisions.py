"""
Decisions and drift
===================

A calibrated probability can be multiplied with a cost. Later, a monitor says whether the probabilities are still right.
"""

# %%
# The cheapest action
# -------------------
#
# Sending a patient with a malignant tumour home costs 50 times as much as a biopsy. Naive Bayes separates the tumours well, but its
# probabilities are too close to 0 and 1, so its decisions are expensive.

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB

from isoroc import AutoCalibrator, CalibrationMonitor, TemperatureCalibrator
from isoroc.decisions import decide, expected_cost

data = load_breast_cancer()
y = data.target_names[data.target]
X, X_new, y, y_new = train_test_split(data.data, y, test_size=0.4, random_state=0, stratify=y)
P = cross_val_predict(GaussianNB(), X, y, method="predict_proba", cv=5)
calibrator = AutoCalibrator(random_state=0).fit(P, y)
P_new = GaussianNB().fit(X, y).predict_proba(X_new)
Q_new = calibrator.predict_proba(P_new)

costs = {
    "send home": {"benign": 0, "malignant": 50},
    "biopsy": {"benign": 1, "malignant": 1},
}
print(decide(Q_new, costs, labels=calibrator.classes_)[:5])
print(expected_cost(y_new, P_new, costs, after=Q_new))

# %%
# For all costs at once
# ---------------------

from isoroc.plots import DecisionCurveDisplay

_ = DecisionCurveDisplay.from_predictions(y_new, P_new, after=Q_new)

# %%
# Drift
# -----
#
# Outcomes of new months arrive. After the third, events become more frequent than forecast. The monitor may be looked at after every
# batch: its chance of a false alarm is at most 5 % over all looks together.

rng = np.random.default_rng(0)


def month(drift, n=1000):
    """Scores of a model, and outcomes whose log odds drift away from them."""
    scores = rng.normal(scale=2, size=n)
    return scores, rng.random(n) < 1 / (1 + np.exp(-scores - drift))


scaling = TemperatureCalibrator().fit(*month(0.0, n=5000), unit="logit")
monitor = CalibrationMonitor(scaling)
for drift in (0.0, 0.0, 0.0, 0.4, 0.4, 0.4):
    scores, happened = month(drift)
    monitor.update(happened, scores)
    print(monitor.advice_)

# %%
# The evidence of all rows so far, and the limit at which the alarm is raised:

from matplotlib import pyplot as plt

_, ax = plt.subplots()
ax.plot(monitor.history_["rows"], monitor.history_["evidence"], marker="o")
ax.axhline(monitor.limit, linestyle="--", color="gray")
_ = ax.set(xlabel="rows so far", ylabel="evidence (nats)")
