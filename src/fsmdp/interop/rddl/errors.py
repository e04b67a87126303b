"""What importing an RDDL problem raises and warns about."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fsmdp.errors import ModelError, SizeError

LONG_WORD = re.compile(r"\S{200,}")
"""Names may be thousands of letters long; messages quote them in many places."""

KEPT = 60


class ProblemError(Exception):
    """A message in which no word is longer than a line."""

    def __init__(self, text: str = "") -> None:
        super().__init__(LONG_WORD.sub(lambda found: f"{found[0][:KEPT]}…", text))


class InvalidError(ProblemError, ModelError):
    """Files that are not RDDL, or a problem that contradicts itself."""


class UnsupportedError(ProblemError, ModelError):
    """A problem that uses what a factored-state MDP with finite variables cannot express."""


class TooLargeError(ProblemError, SizeError):
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
