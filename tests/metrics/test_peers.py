"""Figures of other packages on fixed rows, computed once with the versions named."""

from typing import Any

import numpy as np
import pytest

from isoroc.metrics import brier_score_loss, calibration_error, log_loss

i = np.arange(1, 501)
CHANCE = i * 0.7548776662466927 % 1
p = i * 0.6180339887498949 % 1
y = (p**1.5 > CHANCE).astype(int)

P = np.log(1 - np.column_stack([i * r % 1 for r in (0.8191725134, 0.6710436067, 0.5497004779)]))
P = P**2 / (P**2).sum(axis=1, keepdims=True)
Y = (P.cumsum(axis=1) > CHANCE[:, None] ** 0.8).argmax(axis=1)


@pytest.mark.parametrize(
    ("norm", "two", "three"),
    [
        # netcal 1.4.0, ECE(15) and MCE(15)
        ("l1", 0.10351418184867325, 0.03958080094656254),
        ("max", 0.16706069622423209, 0.41881127572037014),
        # probmetrics 1.3.0, ece-15, rmsce-15, mce-15, in single precision
        ("l1", 0.1035141795873642, 0.03958083316683769),
        ("l2", 0.11618133634328842, 0.06371039897203445),
        ("max", 0.1670607030391693, 0.41881126165390015),
    ],
)
def test_errors_in_fifteen_bins(norm, two, three):
    assert calibration_error(y, p, norm=norm, bins=15) == pytest.approx(two, abs=1e-7)
    error = calibration_error(Y, P, norm=norm, bins=15, kind="top")
    assert error == pytest.approx(three, abs=1e-7)


def test_ten_bins():
    # scikit-learn 1.9.1, calibration_curve: the largest distance of its points from the diagonal,
    # and the mean distance, where every bin has 50 rows
    for bins in (10, "quantile"):
        options: dict[str, Any] = {"bins": bins} | ({"n_bins": 10} if bins == "quantile" else {})
        error = calibration_error(y, p, norm="max", **options)
        assert error == pytest.approx(0.1696117492737439, abs=1e-12)
        assert calibration_error(y, p, **options) == pytest.approx(0.1035141818486732, abs=1e-12)


def test_scores():
    # scikit-learn 1.9.1, log_loss and brier_score_loss, and probmetrics 1.3.0, logloss and brier
    assert log_loss(y, p) == pytest.approx(0.49744873512262694, abs=1e-12)
    assert log_loss(Y, P) == pytest.approx(0.5573132968641128, abs=1e-12)
    assert brier_score_loss(y, p) == pytest.approx(0.16495872365210676, abs=1e-12)
    full = brier_score_loss(y, p, scale_by_half=False)
    assert full == pytest.approx(0.3299174473042135, abs=1e-12)
    assert brier_score_loss(Y, P) == pytest.approx(0.32575466370195355, abs=1e-12)
