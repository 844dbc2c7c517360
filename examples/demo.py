"""The main job on generated data: forecasts in, calibrated forecasts and a verdict out.

A random forest with three classes is trained on one third of the rows, calibrated on the second
and judged on the third.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from isoroc import AutoCalibrator, IRPCalibrator
from isoroc._table import Table
from isoroc.metrics import brier_score, cross_entropy

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

    auto = AutoCalibrator(random_state=0).fit(P_cal, y[cal])
    irp = IRPCalibrator(random_state=0).fit(P_cal, y[cal])
    after = {"auto": auto.predict_proba(P_test), "IRP": irp.predict_proba(P_test)}

    print("A random forest, judged on 3,000 rows that neither it nor the calibrators have seen:\n")
    print("                 before    auto     IRP")
    for name, score in [("log loss", log_loss), ("Brier score", brier_score)]:
        values = [score(y[test], Q) for Q in (P_test, *after.values())]
        print(f"  {name:<12}  " + " ".join(f"{value:>7.4f}" for value in values))

    print("\nThe automatic calibrator, each member scored on rows that it has not seen:\n")
    print(auto.member_scores_)

    print(f"\nThe {irp.n_bins_} bins of IRP, learned from 3,000 rows:\n")
    print(Table({name: irp.bins_[name] for name in ("weight", "value_0", "value_1", "value_2")}))
    print(f"\n{irp.certificate_}")
    draw(irp, P_test, y[test])

    gain = log_loss(y[test], P_test) - log_loss(y[test], after["auto"])
    print(f"\nVerdict: {auto.verdict_}.")
    print(f"On the rows kept back it saved {gain:.4f} nats a row.")


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
