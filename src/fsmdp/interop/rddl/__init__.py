"""RDDL problems as factored-state MDPs."""

from fsmdp.interop.rddl.agent import agent
from fsmdp.interop.rddl.bases import object_basis
from fsmdp.interop.rddl.cross_check import CrossCheck, cross_check
from fsmdp.interop.rddl.errors import (
    InvalidError,
    RDDLWarning,
    TooLargeError,
    UnsupportedError,
)
from fsmdp.interop.rddl.inspection import Report, report
from fsmdp.interop.rddl.loading import load
from fsmdp.interop.rddl.survey import Survey, survey

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
