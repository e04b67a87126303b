"""fsmdp: planning and provably efficient learning in factored-state MDPs."""

import lazy_loader
from wrapt import register_post_import_hook

# The names and where they come from stand in __init__.pyi; each is imported when first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# Gymnasium is heavy, so the environments are registered when, and only if, it is imported.
register_post_import_hook("fsmdp.domains.environments:register", "gymnasium")
