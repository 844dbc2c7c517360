r"""
ROC-regularised isotonic regression
===================================

The paper in one page of code: *Classifier Calibration with ROC-Regularized Isotonic Regression* (Berta, Bach and Jordan, AISTATS 2024).
For readers who know the paper and want to see its objects: the theorem of the convex hull, one split with its certificate, growth, the ROC
surface before and after calibration, the volume under it, and where isoroc departs from the text.
"""

# %%
# The theorem, on ten rows
# ------------------------
#
# The ROC curve of isotonic regression is the convex hull of the ROC curve before. :math:`p_0` is the share of class 0 at or
# below a threshold, :math:`p_1` the share of class 1 above it. ``IRPCalibrator.paper()`` has no smoothing, so with two classes it is
# isotonic regression.

import numpy as np

from isoroc import IRPCalibrator
from isoroc.metrics import roc_auc, roc_convex_hull, symmetric_roc_curve

p = np.array([0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95])
y = np.array([0, 0, 1, 0, 1, 0, 1, 1, 0, 1])
isotonic = IRPCalibrator.paper().fit(p, y)
r = isotonic.predict_proba(p)[:, 1]
print(r.round(2))

hull = roc_convex_hull(y, p)
after = symmetric_roc_curve(y, r)
print("hull before: ", np.column_stack([hull.p0, hull.p1]).round(2).tolist())
print("curve after: ", np.column_stack([after.p0, after.p1]).round(2).tolist())
print(f"AUC {roc_auc(y, p):.2f} before, {hull.area():.2f} of the hull, {roc_auc(y, r):.2f} after")

# %%
# Every value is the mean label of its bin, so the calibration error on these rows is zero.

print(isotonic.bins_.select("lower", "upper", "weight", "rate", "value"))

# %%
# One split, and its certificate
# ------------------------------
#
# With three classes a threshold :math:`\gamma` splits the simplex into :math:`R_k(\gamma) = \{p : \operatorname{argmax}_j (p_j - \gamma_j) = k\}`.
# The split of largest gain :math:`M(\gamma)` is made if the result is ROC monotone: if some :math:`\gamma'` splits the calibrated
# forecasts in the same way.

from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

X, y = make_classification(
    2500, n_features=12, n_informative=5, n_classes=3, flip_y=0.1, class_sep=0.9, random_state=4
)
train, cal, test = np.split(np.arange(2500), [1000, 1500])
bayes = GaussianNB().fit(X[train], y[train])
P_cal = bayes.predict_proba(X[cal])
P_test = bayes.predict_proba(X[test])

one = IRPCalibrator.paper(max_bins=3).fit(P_cal, y[cal])
(gamma,) = one.certificate_.thresholds
(gamma_after,) = one.certificate_.calibrated_thresholds
print("gamma ", gamma.round(3), "on the forecasts")
print("gamma'", gamma_after.round(3), "on the calibrated forecasts")

Q = one.predict_proba(P_cal)
before = (P_cal - gamma).argmax(axis=1)
repeated = (Q - gamma_after).argmax(axis=1)
print("rows in the same region:", (before == repeated).mean())
print(one.verify(P_cal, y[cal]))

# %%
# Growth
# ------
#
# Algorithm 2: split the bin of largest gain, as long as the tree stays ROC monotone. ``path_`` has one row per stage.

irp = IRPCalibrator.paper().fit(P_cal, y[cal])
print(irp.path_.select("n_bins", "gain", "log_loss"))
print(irp.certificate_)

# %%
# Loss and volume on calibration and test rows, against the number of bins, as in the paper's figures. Without smoothing, a class that a
# bin has not seen gets probability 0, which can cost a lot on test rows, so here values are smoothed, as in the experiments.

from isoroc.plots import PathDisplay

smoothed = IRPCalibrator.paper(pseudocount=1, prior="uniform").fit(P_cal, y[cal])
_ = PathDisplay.from_estimator(smoothed, P_cal, y[cal], test=(P_test, y[test]))

# %%
# The ROC surface
# ---------------
#
# Each :math:`\gamma` gets a share of each class right, a point of the unit cube. The points of all :math:`\gamma` are the ROC surface.
# After calibration it has far fewer points.

from isoroc.metrics import roc_surface
from isoroc.plots import RocDisplay

calibrated = irp.predict_proba(P_cal)
for name, forecasts in (("before", P_cal), ("after", calibrated)):
    print(name, roc_surface(y[cal], forecasts))
_ = RocDisplay.from_predictions(y[cal], P_cal, after=calibrated, kind="surface")

# %%
# The volume under it
# -------------------
#
# The hull of the surface, the origin and the unit vectors has volume 1 for perfect forecasts and 1/K! for constant ones. For three classes
# it is exact.

from isoroc.metrics import volume_under_surface

print("before", volume_under_surface(y[cal], P_cal))
print("after ", volume_under_surface(y[cal], calibrated))

# %%
# For more classes it is a lower bound, from a search of the hull in many directions.

rng = np.random.default_rng(0)
P_four = rng.dirichlet(np.full(4, 0.4), size=500)
y_four = (P_four.cumsum(axis=1) > rng.random((500, 1))).argmax(axis=1)
print(volume_under_surface(y_four, P_four, resolution=300))

# %%
# Where isoroc departs from the paper
# -----------------------------------
#
# - *Thresholds.* The experiments try the points of a lattice, isoroc finds the best threshold on each line exactly (``search="grid"`` is
#   the lattice).
# - *Monotonicity.* The text checks the means of the new regions, which overfits. isoroc checks all splits against all cycles of classes and
#   keeps a certificate, by default among the rows that reach a split, because the check over all rows (``monotonicity="global"``, used
#   here) stops growth early with many classes.
# - *Smoothing.* The published values do not sum to one, which makes cross entropies too low. isoroc's do: ``pseudocount`` and ``prior``.
# - *Values.* By default, forecasts of three classes or more vary within a bin, as far as every split keeps its certificate.
# - *Volume.* The paper says that the calibrated volume stays below the initial one. That holds for the thresholds of the splits. Over all
#   thresholds it may be larger, as in the experiments on Covertype.
# - *Empty regions.* A region without calibration rows gets no bin. Its forecasts belong to the nearest child that has one.
#
# The experiments themselves, with tables and figures, are run by ``make paper``.
