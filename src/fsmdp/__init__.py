"""fsmdp: planning and provably efficient learning in factored-state MDPs."""

import lazy_loader

from fsmdp.gymnasium_hook import register_when_imported

# The names and where they come from stand in __init__.pyi; each is imported when first used.
_import_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("fsmdp")
        except PackageNotFoundError:  # sources that were never installed
            return "0+unknown"
    return _import_name(name)


register_when_imported()
