"""RDDL problems as factored-state MDPs."""

from fsmdp.interop.rddl.load import load

__all__ = ["load"]
