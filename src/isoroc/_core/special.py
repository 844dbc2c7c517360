"""Functions of SciPy, imported at the first call: most commands call none of them."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from isoroc._core.types import Floats


def _imported(name: str, module: str = "special") -> Callable[..., Any]:
    @cache
    def function() -> Callable[..., Any]:
        return getattr(import_module(f"scipy.{module}"), name)  # type: ignore[no-any-return]

    def call(*arguments: Any, **options: Any) -> Any:
        return function()(*arguments, **options)

    return call


expit: Callable[[Floats], Floats] = _imported("expit")
logit: Callable[[Floats], Floats] = _imported("logit")
xlogy: Callable[[Floats, Floats], Floats] = _imported("xlogy")
#: Distribution function at x of a gamma variable with shape a.
gammainc: Callable[[float, float], float] = _imported("gammainc")
normal_quantile: Callable[[float], float] = _imported("ndtri")
t_quantile: Callable[[float, float], float] = _imported("stdtrit")  # first the degrees of freedom
f_quantile: Callable[[float, float, float], float] = _imported("fdtri")
chi2_quantile: Callable[[float, float], float] = _imported("chdtri")  # of the upper tail
chi2_tail: Callable[[float, float], float] = _imported("chdtrc")
f_tail: Callable[[float, float, float], float] = _imported("fdtrc")
find_root: Callable[..., float] = _imported("brentq", "optimize")
convex_hull: Callable[[Floats], Any] = _imported("ConvexHull", "spatial")
#: Distribution function at k of a binomial variable: k, number of trials, probability.
binomial_cdf: Callable[[Any, Any, float], Any] = _imported("bdtr")
#: Quantile of a beta variable: its two parameters, probability.
beta_quantile: Callable[[float, float, float], float] = _imported("betaincinv")
