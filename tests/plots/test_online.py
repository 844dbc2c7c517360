import numpy as np
import pytest

from isoroc import InputError, OnlineCalibrator, TemperatureCalibrator
from isoroc.plots import OnlineDisplay


def test_weights_and_gains_are_those_of_the_history(make_axes):
    rng = np.random.default_rng(0)
    calibrator = OnlineCalibrator(calibrator=TemperatureCalibrator(), half_lives=[None, 200])
    for _ in range(4):
        p = rng.random(100)
        calibrator.partial_fit(p, rng.random(100) < p**2)
    display = OnlineDisplay.from_estimator(calibrator, ax=make_axes())
    assert display.panels == ["weight", "gain in nats"]
    weights = {layer.series: layer.data["value"] for layer in display.of_panel("weight")}
    np.testing.assert_allclose(sum(weights.values()), 1)
    assert [values[-1] for values in weights.values()] == calibrator.weights_.tolist()
    gains = {layer.series: layer.data["value"][-1] for layer in display.of_panel("gain in nats")}
    ledger = calibrator.ledger_
    assert gains["served"] == pytest.approx(ledger.losses[0] - ledger.served)
    assert gains["half-life 200"] == pytest.approx(ledger.losses[0] - ledger.losses[2])
    assert gains["uncalibrated"] == 0
    for other in (TemperatureCalibrator(), OnlineCalibrator(), 3):
        with pytest.raises(InputError, match="pass a fitted OnlineCalibrator"):
            OnlineDisplay.from_estimator(other)
