"""Calibrate a random forest on generated data and compare its scores before and after.

The forest has three classes. It is trained on one third of the rows, calibrated on the second and
evaluated on the third.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from isoroc import AutoCalibrator, IRPCalibrator, Report
from isoroc.metrics import brier_score_loss, log_loss

PICTURE = Path("build/demo/simplex.png")
PAGE = Path("build/demo/report.html")
NEXT = """
Next, with your own table: a column of outcomes and one column of forecasts per class.

  source .venv/bin/activate && pip install '.[all]'
  isoroc fit yours.csv --label y -o model.json
  isoroc evaluate others.csv --label y --model model.json
  isoroc report others.csv --label y --model model.json -o report.html
  isoroc apply model.json new.csv -o calibrated.csv"""


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
    P_cal = forest.predict_proba(X[cal])
    P_test = forest.predict_proba(X[test])

    auto = AutoCalibrator(random_state=0).fit(P_cal, y[cal])
    irp = IRPCalibrator(random_state=0).fit(P_cal, y[cal])
    after = {"auto": auto.predict_proba(P_test), "IRP": irp.predict_proba(P_test)}

    print("Scores of a random forest on 3,000 test rows:\n")
    print("                 before    auto     IRP")
    for name, score in [("log loss", log_loss), ("Brier score", brier_score_loss)]:
        values = [score(y[test], Q) for Q in (P_test, *after.values())]
        print(f"  {name:<12}  " + " ".join(f"{value:>7.4f}" for value in values))

    print("\nThe members of the automatic calibrator, scored on held-out rows:\n")
    print(auto.member_scores_)

    print(f"\nThe {irp.n_bins_} bins of IRP, estimated from 3,000 rows:\n")
    print(irp.bins_.select("weight", "value_0", "value_1", "value_2"))
    print(f"\n{irp.certificate_}")
    draw(irp, P_test, y[test])

    gain = log_loss(y[test], P_test) - log_loss(y[test], after["auto"])
    print(f"\nVerdict: {auto.verdict_}.")
    print(f"On the test rows it saved {gain:.4f} nats per row.")
    write_report(irp, P_test, y[test])
    print(NEXT)


def write_report(calibrator: IRPCalibrator, P: np.ndarray, y: np.ndarray) -> None:
    """Write a page about the calibrator, for any browser."""
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    report = Report.from_estimator(calibrator, P, y, title="Random forest, calibrated by IRP")
    try:
        report.to_html(PAGE)
    except ImportError as error:
        print(f"\nNo report was written: {error}")
        return
    print(f"\nThe report on the test rows: {PAGE}")


def draw(calibrator: IRPCalibrator, P: np.ndarray, y: np.ndarray) -> None:
    """Draw the simplex of three classes before and after calibration."""
    try:
        from isoroc.plots import SimplexDisplay  # noqa: PLC0415
    except ImportError as error:
        print(f"\nNo figure was drawn: {error}")
        return
    display = SimplexDisplay.from_estimator(calibrator, P, y, panels=("forecasts", "bins", "map"))
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    display.figure_.savefig(PICTURE, dpi=130, bbox_inches="tight")
    print(f"\nThe simplex before and after calibration: {PICTURE}")


if __name__ == "__main__":
    main()
