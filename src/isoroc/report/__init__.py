"""One self-contained HTML page about forecasts before and after calibration.

Requires jinja2, the extra ``report``.
"""

try:
    import jinja2  # noqa: F401
except ImportError as error:
    raise ImportError("isoroc.report needs jinja2: pip install jinja2") from error

from isoroc.report._report import Report

__all__ = ["Report"]
