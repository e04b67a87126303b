"""What fsmdp raises: every message says where, what was expected, what was found, what to do."""


class FsmdpError(Exception):
    """Base of every error that fsmdp raises on purpose."""


class ModelError(FsmdpError, ValueError):
    """A model, table, basis, structure or model file that does not make sense."""


class PolicyError(FsmdpError, ValueError):
    """A policy that cannot be followed: an unknown name, or an action the model does not have."""


class SizeError(FsmdpError):
    """A model too large for a method that enumerates; the message gives the size and the limit."""


class WidthError(SizeError):
    """A network too wide to eliminate within the limit."""


class PlanningError(FsmdpError):
    """A program that cannot be solved as it stands; the message names the cause and the remedy."""


class ExperimentError(FsmdpError):
    """Runs that cannot go on: a folder in use, an engine that is not installed, dying workers."""


class FsmdpWarning(UserWarning):
    """Base of every warning that fsmdp gives: a result that is valid, and less than expected."""


class TrivialBoundWarning(FsmdpWarning):
    """A plan's bound is no better than the largest reward at every step."""


class PoorPolicyWarning(FsmdpWarning):
    """A policy that could not be distinguished from doing nothing or acting at random."""
