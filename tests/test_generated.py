"""Every calibrator, with its defaults, takes every plausible set or refuses it with a reason."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import isoroc
from generated import generate
from isoroc import InputError

KINDS = [name for name in isoroc.__all__ if name.endswith("Calibrator")]


def fit_and_check(name, seed, **limits):
    """Fit one calibrator to one set; returns whether it was refused."""
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


@pytest.mark.parametrize("name", KINDS)
def test_generated_sets(name):
    refused = [fit_and_check(name, seed, most_numbers=2000) for seed in range(12)]
    assert not all(refused)
