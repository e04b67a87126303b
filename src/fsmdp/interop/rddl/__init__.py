"""RDDL problems as factored-state MDPs."""

from fsmdp.interop.rddl.agent import agent
from fsmdp.interop.rddl.cross_check import CrossCheck, cross_check
from fsmdp.interop.rddl.loading import load, object_basis
from fsmdp.interop.rddl.sources import (
    InvalidError,
    RDDLWarning,
    TooLargeError,
    UnsupportedError,
)
from fsmdp.interop.rddl.survey import Report, Survey, report, survey

__all__ = [
    "CrossCheck",
    "InvalidError",
    "RDDLWarning",
    "Report",
    "Survey",
    "TooLargeError",
    "UnsupportedError",
    "agent",
    "cross_check",
    "load",
    "object_basis",
    "report",
    "survey",
]
