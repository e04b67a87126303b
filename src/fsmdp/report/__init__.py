"""Charts, tables and the page of a sweep; pictures from Python."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submodules=["plot"], submod_attrs={"page": ["Report", "write_report"]}
)
