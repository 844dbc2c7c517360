"""The main job on generated data: forecasts in, calibrated forecasts and a verdict out.

A random forest with three classes is trained on one third of the rows, calibrated on the second
and judged on the third.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from isoroc import IRPCalibrator
from isoroc.metrics import brier_score, cross_entropy
from isoroc.table import Table

PICTURE = Path("build/demo/simplex.png")


def main() -> None:
    X, y = make_classification(
        n_samples=9000,
        n_features=20,
        n_informative=6,
        n_classes=3,
        n_clusters_per_class=1,
        flip_y=0.15,
        class_sep=0.7,
        random_state=1,
    )
    train, cal, test = np.split(np.arange(len(y)), 3)
    forest = RandomForestClassifier(200, random_state=0, n_jobs=-1).fit(X[train], y[train])
    P_cal, P_test = forest.predict_proba(X[cal]), forest.predict_proba(X[test])

    calibrator = IRPCalibrator(random_state=0).fit(P_cal, y[cal])
    Q_test = calibrator.predict_proba(P_test)

    print("A random forest, judged on 3,000 rows that neither it nor the calibrator has seen:\n")
    print("                 before   after")
    for name, score in [("log loss", log_loss), ("Brier score", brier_score)]:
        print(f"  {name:<12}  {score(y[test], P_test):>7.4f} {score(y[test], Q_test):>7.4f}")

    print(f"\nThe {calibrator.n_bins_} bins of the calibration map, learned from 3,000 rows:\n")
    shown = ("weight", "value_0", "value_1", "value_2")
    print(Table({name: calibrator.bins_[name] for name in shown}))
    print(f"\n{calibrator.certificate_}")
    draw(calibrator, P_test, y[test])

    gain = log_loss(y[test], P_test) - log_loss(y[test], Q_test)
    verdict = "calibrate: it pays" if gain > 0 else "leave it: the forecasts were fine"
    print(f"\nVerdict: {verdict} ({gain:+.4f} nats a row in log loss on new data).")


def log_loss(y: np.ndarray, P: np.ndarray) -> float:
    # A forest may say 0 to what comes true; what it then loses is anybody's guess.
    return cross_entropy(y, P, eps=1e-6)


def draw(calibrator: IRPCalibrator, P: np.ndarray, y: np.ndarray) -> None:
    """The three-class simplex before and after."""
    try:
        from isoroc.plots import SimplexDisplay  # noqa: PLC0415
    except ImportError as error:
        print(f"\nNo picture of the simplex: {error}")
        return
    display = SimplexDisplay.from_estimator(calibrator, P, y, panels=("forecasts", "bins", "map"))
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    display.figure_.savefig(PICTURE, dpi=130, bbox_inches="tight")
    print(f"\nThe simplex before and after calibration: {PICTURE}")


if __name__ == "__main__":
    main()
