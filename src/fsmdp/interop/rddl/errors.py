"""What importing an RDDL problem raises and warns about."""

from fsmdp.errors import ModelError, SizeError


class UnsupportedError(ModelError):
    """A problem that uses what a factored-state MDP with finite variables cannot express."""


class TooLargeError(SizeError):
    """A problem whose tables or joint actions exceed the limits of the importer."""


class RDDLWarning(UserWarning):
    """Something in an RDDL problem that is left out of the model, or mended."""
