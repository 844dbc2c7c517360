"""scikit-learn's own checks, made to run on calibrators.

They feed feature matrices of any kind to every estimator; a calibrator takes forecasts, so those
that get beyond its validation cannot run as they are. They run on a subclass that takes a feature
for a score.
"""

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

ROWS_OFF_THE_SIMPLEX = "feeds rows that are not on the simplex, which a calibrator refuses"
INAPPLICABLE = {
    "check_all_zero_sample_weights_error": ROWS_OFF_THE_SIMPLEX,
    "check_classifier_data_not_an_array": ROWS_OFF_THE_SIMPLEX,
    "check_classifiers_classes": ROWS_OFF_THE_SIMPLEX,
    "check_classifiers_regression_target": ROWS_OFF_THE_SIMPLEX,
    "check_classifiers_train": ROWS_OFF_THE_SIMPLEX,
    "check_dict_unchanged": ROWS_OFF_THE_SIMPLEX,
    "check_dont_overwrite_parameters": ROWS_OFF_THE_SIMPLEX,
    "check_dtype_object": ROWS_OFF_THE_SIMPLEX,
    "check_estimators_dtypes": ROWS_OFF_THE_SIMPLEX,
    "check_estimators_fit_returns_self": ROWS_OFF_THE_SIMPLEX,
    "check_estimators_nan_inf": ROWS_OFF_THE_SIMPLEX,
    "check_estimators_overwrite_params": ROWS_OFF_THE_SIMPLEX,
    "check_estimators_pickle": ROWS_OFF_THE_SIMPLEX,
    "check_f_contiguous_array_estimator": ROWS_OFF_THE_SIMPLEX,
    "check_fit2d_1sample": ROWS_OFF_THE_SIMPLEX,
    "check_fit2d_predict1d": ROWS_OFF_THE_SIMPLEX,
    "check_fit_check_is_fitted": ROWS_OFF_THE_SIMPLEX,
    "check_fit_idempotent": ROWS_OFF_THE_SIMPLEX,
    "check_fit_score_takes_y": ROWS_OFF_THE_SIMPLEX,
    "check_methods_sample_order_invariance": ROWS_OFF_THE_SIMPLEX,
    "check_methods_subset_invariance": ROWS_OFF_THE_SIMPLEX,
    "check_n_features_in": ROWS_OFF_THE_SIMPLEX,
    "check_n_features_in_after_fitting": ROWS_OFF_THE_SIMPLEX,
    "check_pipeline_consistency": ROWS_OFF_THE_SIMPLEX,
    "check_positive_only_tag_during_fit": ROWS_OFF_THE_SIMPLEX,
    "check_readonly_memmap_input": ROWS_OFF_THE_SIMPLEX,
    "check_sample_weight_equivalence_on_dense_data": ROWS_OFF_THE_SIMPLEX,
    "check_sample_weights_list": ROWS_OFF_THE_SIMPLEX,
    "check_sample_weights_not_an_array": ROWS_OFF_THE_SIMPLEX,
    "check_sample_weights_not_overwritten": ROWS_OFF_THE_SIMPLEX,
    "check_sample_weights_pandas_series": ROWS_OFF_THE_SIMPLEX,
    "check_sample_weights_shape": ROWS_OFF_THE_SIMPLEX,
    "check_supervised_y_2d": ROWS_OFF_THE_SIMPLEX,
}

ONE_SCORE = "three classes cannot be told apart by one score; test_bad_input has the refusal"
INAPPLICABLE_ON_FEATURES = {"check_classifier_not_supporting_multiclass": ONE_SCORE}


def on_features(kind):
    """A calibrator class with a feature as score."""

    class OnFeatures(kind):
        def fit(self, X, y, sample_weight=None):
            scores = -validate_data(self, X, dtype=np.float64)[:, -1]
            super().fit(scores, y, sample_weight)
            validate_data(self, X, dtype=np.float64)
            return self

        def _check_new(self, X):
            check_is_fitted(self, "classes_")
            return -validate_data(self, X, dtype=np.float64, reset=False)[:, -1]

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.classifier_tags.multi_class = False  # CalibratedClassifier runs the others
            return tags

    OnFeatures.__name__ = f"{kind.__name__}OnFeatures"
    OnFeatures.__qualname__ = OnFeatures.__name__  # so that it can be pickled by name,
    globals()[OnFeatures.__name__] = OnFeatures  # it has to be found here
    return OnFeatures
