import numpy as np
import pytest
from scipy.stats import binomtest

from isoroc._intervals import wilson


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize(("hits", "n"), [(0, 3), (1, 3), (7, 40), (40, 40)])
def test_wilson_is_scipys(hits, n, confidence):
    low, high = wilson(np.array([hits / n]), np.array([float(n)]), confidence)
    expected = binomtest(hits, n).proportion_ci(confidence, method="wilson")
    np.testing.assert_allclose([low[0], high[0]], [expected.low, expected.high], atol=1e-12)
