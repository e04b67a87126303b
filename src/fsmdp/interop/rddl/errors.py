"""What importing an RDDL problem raises and warns about."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fsmdp.errors import ModelError, SizeError


class InvalidError(ModelError):
    """Files that are not RDDL, or a problem that contradicts itself."""


class UnsupportedError(ModelError):
    """A problem that uses what a factored-state MDP with finite variables cannot express."""


class TooLargeError(SizeError):
    """A problem whose tables or joint actions exceed the limits of the importer."""


class RDDLWarning(UserWarning):
    """Something in an RDDL problem that is left out of the model, or corrected."""


@contextmanager
def located(place: str | Callable[[], str]) -> Iterator[None]:
    """Say in front of an error's message where it happened, unless the message does."""
    try:
        yield
    except (ModelError, SizeError) as error:
        text, where = str(error), place if isinstance(place, str) else place()
        raise type(error)(text if text.startswith(where) else f"{where}: {text}") from None
