from ._report import Report

__all__ = ["Report"]
