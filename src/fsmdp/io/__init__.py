"""Other formats: RDDL."""

from fsmdp.io import rddl

__all__ = ["rddl"]
