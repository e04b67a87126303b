"""Other formats: RDDL."""

from fsmdp.interop import rddl

__all__ = ["rddl"]
