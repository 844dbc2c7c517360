"""The main job on generated data: forecasts in, calibrated forecasts and a verdict out.

A random forest is trained on one third of the rows, calibrated on the second and judged on the
third.
"""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import brier_score_loss, log_loss

from isoroc import IRPCalibrator
from isoroc.metrics import auc, hull_auc


def main() -> None:
    X, y = make_classification(
        n_samples=9000, n_features=20, n_informative=6, flip_y=0.15, class_sep=0.7, random_state=1
    )
    train, cal, test = np.split(np.arange(len(y)), 3)
    forest = RandomForestClassifier(200, random_state=0, n_jobs=-1).fit(X[train], y[train])
    P_cal, P_test = forest.predict_proba(X[cal]), forest.predict_proba(X[test])

    calibrator = IRPCalibrator().fit(P_cal, y[cal])
    Q_test = calibrator.predict_proba(P_test)

    print("A random forest, judged on 3,000 rows that neither it nor the calibrator has seen:\n")
    print("                 before   after")
    for name, score in [("log loss", log_loss), ("Brier score", brier_score_loss), ("AUC", auc)]:
        before, after = (float(score(y[test], P[:, 1])) for P in (P_test, Q_test))
        print(f"  {name:<12}  {before:>7.4f} {after:>7.4f}")

    print(f"\nThe {calibrator.n_bins_} bins of the calibration map, learned from 3,000 rows:\n")
    print(calibrator.bins_)
    print(f"\n{calibrator.certificate_}")
    before, after = hull_auc(y[cal], P_cal), auc(y[cal], calibrator.predict_proba(P_cal))
    print(f"AUC of the ROC convex hull before: {before:.4f}; AUC after, same rows: {after:.4f}.")

    gain = log_loss(y[test], P_test[:, 1]) - log_loss(y[test], Q_test[:, 1])
    verdict = "calibrate: it pays" if gain > 0 else "leave it: the forecasts were fine"
    print(f"\nVerdict: {verdict} ({gain:+.4f} nats a row in log loss on new data).")


if __name__ == "__main__":
    main()
