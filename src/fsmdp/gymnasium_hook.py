"""Gymnasium is heavy, so the environments are registered when, and only if, it is imported."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

NAME = "gymnasium"


class _Finder:
    """Finds Gymnasium as others do, and has its loader call `_register` in the end."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Its specification, once; nothing for any other module."""
        if name != NAME or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                _register_after(spec)
                return spec
        return None


def register_when_imported() -> None:
    """Register the environments now if Gymnasium is there, or else as soon as it is."""
    if NAME in sys.modules:
        _register(sys.modules[NAME])
    else:
        sys.meta_path.insert(0, _Finder())


def _register_after(spec: ModuleSpec) -> None:
    loader = spec.loader
    assert loader is not None
    usual = loader.exec_module

    def load(module: ModuleType) -> None:
        usual(module)
        _register(module)

    loader.exec_module = load  # type: ignore[method-assign]


def _register(gymnasium: ModuleType) -> None:
    from fsmdp.domains.registry import register_all
    from fsmdp.io.rddl.loading import register_problems

    register_all(gymnasium)
    register_problems(gymnasium)
