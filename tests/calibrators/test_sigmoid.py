"""SigmoidCalibrator and BetaCalibrator: what the contract does not cover."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from isoroc import BetaCalibrator


@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # about forecasts that are inverted
@pytest.mark.parametrize("power", [-1.0, -0.2, 0.0, 0.5, 2.0])
@pytest.mark.parametrize("shift", [-2.0, 0.0])
def test_beta_calibration_is_the_best_map_that_increases(power, shift):
    """Also where the likeliest map falls, for both coefficients or for one."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, 300)
    y = rng.random(300) < expit(power * np.log(p / (1 - p)) + shift)
    cal = BetaCalibrator().fit(p, y)
    n = np.bincount(y)
    targets = np.where(y, (n[1] + 1) / (n[1] + 2), 1 / (n[0] + 2))
    X = np.column_stack([np.log(p), -np.log(1 - p), np.ones(300)])

    def loss(theta):
        z = X @ theta
        return (np.logaddexp(0, z) - targets * z).sum(), X.T @ (expit(z) - targets)

    limits = [(0, None), (0, None), (None, None)]
    precise = {"ftol": 1e-15, "gtol": 1e-9}
    best = minimize(loss, np.zeros(3), jac=True, method="L-BFGS-B", bounds=limits, options=precise)
    found = np.array([cal.coef_[1], cal.rest_[1], cal.intercept_[1]])
    assert found[:2].min() >= 0
    assert loss(found)[0] == pytest.approx(best.fun, abs=1e-6)
    np.testing.assert_allclose(cal.predict_proba(p)[:, 1], expit(X @ found), atol=1e-9)
