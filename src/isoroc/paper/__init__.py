"""The paper's experiments, and its procedures exactly as published."""

from isoroc.paper._reproduce import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
