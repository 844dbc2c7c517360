"""One self-contained HTML page about forecasts before and after calibration.

Requires jinja2, the extra ``report``.
"""

from isoroc._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__, {"jinja2": "jinja2"})
