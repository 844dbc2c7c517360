"""Functions of SciPy, imported at the first call: most commands call none of them."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]


def _imported(name: str, module: str = "special") -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(f"scipy.{module}"), name)(*arguments, **options)

    return call


#: Probabilities from log odds, log odds from probabilities, and x log(y), which is 0 where x is 0.
expit: Callable[[_Floats], _Floats] = _imported("expit")
logit: Callable[[_Floats], _Floats] = _imported("logit")
xlogy: Callable[[_Floats, _Floats], _Floats] = _imported("xlogy")
#: Distribution function at x of a gamma variable with shape a.
gammainc: Callable[[float, float], float] = _imported("gammainc")
#: Quantile of the standard normal distribution.
normal_quantile: Callable[[float], float] = _imported("ndtri")
#: Quantile of Student's distribution with some degrees of freedom.
t_quantile: Callable[[float, float], float] = _imported("stdtrit")
#: Quantile of the F distribution.
f_quantile: Callable[[float, float, float], float] = _imported("fdtri")
#: Quantile of the chi-squared distribution, of its upper tail.
chi2_quantile: Callable[[float, float], float] = _imported("chdtri")
#: Root of a function between two numbers at which its signs differ.
find_root: Callable[..., float] = _imported("brentq", "optimize")
#: Convex hull of points, one row each.
convex_hull: Callable[[_Floats], Any] = _imported("ConvexHull", "spatial")
