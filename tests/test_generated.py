"""Every calibrator, with its defaults, takes every plausible set or refuses it with a reason."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB

import isoroc
from generated import generate
from isoroc import InputError
from zoo import KINDS


def fit_and_check(name, seed, **limits):
    """Fit one calibrator to one set. Returns whether it was refused."""
    P, y, options = generate(seed, **limits)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for own in (ConvergenceWarning, UserWarning):
            warnings.simplefilter("ignore", own)
        try:
            calibrator = getattr(isoroc, name)().fit(P, y, **options)
        except InputError:
            return True
        Q = calibrator.predict_proba(P)
    assert np.isfinite(Q).all()
    assert ((Q >= 0) & (Q <= 1)).all()
    np.testing.assert_allclose(Q.sum(axis=1), 1, rtol=1e-9)
    return False


#: Sets on which the weights of members, or the curvature of a fit, were singular up to rounding,
#: and one on which steps of a descent overflowed.
SINGULAR = [
    (89, "SegmentCalibrator"),
    (114, "AutoCalibrator"),
    (1276, "SplineCalibrator"),
    (1579, "AutoCalibrator"),
    (1579, "MonotoneCalibrator"),
]


@pytest.mark.parametrize(("seed", "name"), SINGULAR)
def test_matrices_that_are_singular_up_to_rounding(seed, name):
    assert not fit_and_check(name, seed, most_numbers=2000)


def test_saturated_forecasts_of_separable_data():
    X, y = make_classification(5000, 20, n_informative=15, class_sep=8, flip_y=0, random_state=3)
    P = GaussianNB().fit(X[:2500], y[:2500]).predict_proba(X[2500:])
    Q = isoroc.AutoCalibrator(random_state=3).fit(P, y[2500:]).predict_proba(P)
    assert np.isfinite(Q).all()


def test_a_member_that_fails_is_left_out(monkeypatch):
    def fail(*_):
        raise np.linalg.LinAlgError("no luck")

    monkeypatch.setattr(isoroc.SplineCalibrator, "_fit_out_of_fold", fail)
    p = np.linspace(0.01, 0.99, 200)
    y = np.random.default_rng(0).random(200) < p
    with pytest.warns(RuntimeWarning, match=r"SplineCalibrator is left out .*no luck"):
        calibrator = isoroc.AutoCalibrator(random_state=0).fit(p, y)
    assert "SplineCalibrator" not in calibrator.member_scores_["member"]
    np.testing.assert_allclose(calibrator.predict_proba(p).sum(axis=1), 1)


@pytest.mark.parametrize("name", KINDS)
def test_generated_sets(name):
    refused = [fit_and_check(name, seed, most_numbers=2000) for seed in range(4)]
    assert not all(refused)
