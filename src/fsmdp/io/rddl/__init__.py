"""RDDL problems as factored-state MDPs."""

from fsmdp.io.rddl.agent import agent
from fsmdp.io.rddl.cross_check import CrossCheck, cross_check
from fsmdp.io.rddl.loading import load, object_basis
from fsmdp.io.rddl.sources import (
    InvalidError,
    RDDLWarning,
    TooLargeError,
    UnsupportedError,
)
from fsmdp.io.rddl.survey import Report, Survey, report, survey

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
