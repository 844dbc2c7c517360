"""Every feature works on every road, or is refused with a sentence."""

import re
import runpy
import warnings

import pytest

from pages import ROOT
from what_works import ENGINES, FEATURES, ROADS, page

CELLS = [
    pytest.param(road, feature, id=f"{road.name}-{feature}", marks=[pytest.mark.slow] * road.slow)
    for roads in ROADS.values()
    for road in roads
    if road not in ENGINES.values()
    for feature in FEATURES
]


@pytest.mark.parametrize(("road", "feature"), CELLS)
def test_cell(road, feature):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of weights, few rows and reversed scores
        if feature not in road.refuses:
            road.check(feature)
            return
        with pytest.raises((ValueError, TypeError), match=re.escape(road.refuses[feature])):
            road.check(feature)


def test_the_page_shows_the_list():
    path = runpy.run_path(str(ROOT / "tools" / "what_works.py"))["PATH"]
    assert path.read_text(encoding="utf-8") == page(), "run python tools/what_works.py"
