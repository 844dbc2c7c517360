"""Forecasts of every feature on engines that the other tests do not need."""

import pytest

from what_works import ENGINES, FEATURES


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("name", ["dask frame", "spark frame", "torch"])
def test_cell(name, feature, request):
    engine = [request.getfixturevalue("spark")] if name == "spark frame" else []
    ENGINES[name].check(feature, *engine)
