"""Models and plans in other forms: readers by registry, model files, plan files, RDDL."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["rddl"])
