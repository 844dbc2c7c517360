"""Newton's method for several problems at once."""

from typing import Any, NamedTuple

import numpy as np

from isoroc._core.newton import newton


class Point(NamedTuple):
    theta: Any
    value: Any


def parabolas(theta):
    """The square of the distance to 1, undefined below 0."""
    square = (theta[:, 0] - 1) ** 2
    return Point(theta, np.where(theta[:, 0] < 0, np.nan, square))


def test_steps_are_halved_while_they_raise_the_value_or_leave_where_it_is_defined():
    start = parabolas(np.array([[3.0], [3.0], [3.0]]))
    factors = np.array([[1.0], [4.0], [-1.0]])  # exact, far too long, in the wrong direction
    found = newton(start, parabolas, lambda point: factors * (1 - point.theta))
    np.testing.assert_allclose(found.theta, [[1.0], [1.0], [3.0]], atol=1e-12)
    np.testing.assert_allclose(found.value, [0.0, 0.0, 4.0], atol=1e-12)
