"""From probabilities to decisions: actions of least expected cost, and other class priors."""

import lazy_loader

# The public names stand in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
