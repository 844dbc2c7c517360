"""scikit-learn's own tests of CalibratedClassifierCV, run on CalibratedClassifier."""

import pytest
from sklearn.tests import test_calibration as theirs

from isoroc import CalibratedClassifier, TemperatureCalibrator

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:cv. 2 of 3 folds hold out rows of one class:UserWarning"),
]


class CalibratedClassifierCV(CalibratedClassifier):
    """CalibratedClassifier with the parameters and defaults of scikit-learn's class."""

    def __init__(self, estimator=None, *, method="sigmoid", cv=None, n_jobs=None, ensemble="auto"):
        # A weight of 2 is the row twice in scikit-learn.
        options = {"cv": cv, "n_jobs": n_jobs, "ensemble": ensemble, "weighting": "frequency"}
        super().__init__(estimator, method, **options)


data = theirs.data
dict_data = theirs.dict_data
dict_data_pipeline = theirs.dict_data_pipeline


@pytest.fixture
def global_random_seed():
    return 42


#: Tests that must fail, and why.
DIFFERENCES = {
    "test_calibration_ensemble_false[isotonic-calibrator1]": "values are smoothed by a pseudocount",
    "test_calibration_ensemble_false[temperature-calibrator2]": "mixes in a uniform forecast",
    "test_temperature_scaling[False-5]": "the learned floor ties small forecasts of a class",
    "test_calibration_less_classes[True]": (
        "a class that a fold's classifier has not seen gets the probability that its held-out rows "
        "show, not 0"
    ),
}


@pytest.fixture(autouse=True)
def ours(monkeypatch, request):
    if request.node.name in DIFFERENCES:
        reason = DIFFERENCES[request.node.name]
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    monkeypatch.setattr(theirs, "CalibratedClassifierCV", CalibratedClassifierCV)
    inverse = property(lambda calibrator: 1 / calibrator.temperature_)
    monkeypatch.setattr(TemperatureCalibrator, "beta_", inverse, raising=False)


def uses_the_class(name, value):
    """Without tests of the array API: the calibrators are compiled for the CPU."""
    names = getattr(getattr(value, "__code__", None), "co_names", ())
    return (
        name.startswith("test_") and "CalibratedClassifierCV" in names and "array_api" not in name
    )


#: Those that take seconds.
LONG = {
    "test_calibrated_classifier_cv_works_with_large_confidence_scores",
    "test_calibration",
    "test_calibration_multiclass",
    "test_parallel_execution",
}
tests = {n: value for n, value in vars(theirs).items() if uses_the_class(n, value)}
globals().update({n: pytest.mark.slow(t) if n in LONG else t for n, t in tests.items()})
