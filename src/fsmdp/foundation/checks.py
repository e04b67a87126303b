"""Checks of what a user gives; an error says where, what was expected and found, what to do."""

import math
from collections.abc import Callable, Iterable, KeysView, Mapping, Set
from difflib import get_close_matches
from numbers import Integral, Real
from reprlib import Repr
from typing import Any, TypeGuard, TypeVar

from fsmdp.errors import FsmdpError, ModelError, SizeError

Item = TypeVar("Item")
Method = TypeVar("Method", bound=Callable[..., object])

WIDTH = 80
"""Messages show no value, name or list in more characters than this."""

EXACT_COUNT = 10**7

LARGEST_OPTION = 1e12
"""The largest number that makes sense as an option."""

LARGEST_SEED = 2**128

_SHORT = Repr()
_SHORT.maxlevel = 4
_SHORT.maxtuple = _SHORT.maxlist = _SHORT.maxarray = 8
_SHORT.maxset = _SHORT.maxfrozenset = _SHORT.maxdict = 4
_SHORT.maxstring = _SHORT.maxother = WIDTH


def show(value: object) -> str:
    """How messages write a value: its repr, clipped; never an error, however large it is."""
    if type(value) is str and len(value) < WIDTH // 2 and value.isprintable():
        return repr(value)  # names of variables, many times for each model
    if isinstance(value, int) and value.bit_length() > 4 * WIDTH:
        return f"a whole number of {value.bit_length()} bits"
    try:
        text = _SHORT.repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return clip(" ".join(text.split()))


def clip(text: str) -> str:
    """A text of at most WIDTH characters."""
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


def show_names(names: Iterable[str]) -> str:
    """How messages list names: the first few, and how many there are."""
    listed = list(names)
    shown: list[str] = []
    for name in listed[:8]:
        if shown and sum(map(len, shown)) + len(show(name)) > WIDTH:
            break
        shown.append(show(name))
    rest = f", ... ({len(listed)} in all)" if len(listed) > len(shown) else ""
    return (", ".join(shown) or "none") + rest


def suggest(name: str, known: Iterable[str]) -> str:
    """How messages end about a name that is not known: the closest one that is, or all of them."""
    listed = list(known)
    close = get_close_matches(name[:WIDTH], listed, n=1)
    return f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(listed)}."


def show_count(count: int) -> str:
    """How messages write a count: exactly, or as a power of two that it does not exceed."""
    return str(count) if count < EXACT_COUNT else f"2^{(count - 1).bit_length()}"


def show_memory(numbers: int) -> str:
    """How messages write the memory that numbers of eight bytes take."""
    return f"{numbers / 2**27:.2g} GiB" if numbers < 2**60 else "more than any memory"


def check_size(
    needed: int,
    limit: int,
    what: str,
    remedy: str,
    *,
    unit: str = "entries",
    error: type[FsmdpError] = SizeError,
) -> None:
    """Refuse what needs more room than there is, before any of it is taken."""
    if needed > limit:
        raise error(
            f"{what} {show_count(needed)} {unit}, the limit is {show_count(limit)}; {remedy}."
        )


def plural(count: int, noun: str) -> str:
    """A count and its noun: 1 variable, 2 variables."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def is_whole(value: object) -> TypeGuard[int]:
    """Whether something is an integer, numpy's included; truth values are not."""
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def is_number(value: object) -> TypeGuard[float]:
    """Whether something is a real number, numpy's included; truth values are not."""
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))


def as_whole(value: object, where: str, least: int, most: int | None = None) -> int:
    """A whole number from `least` to `most`, numpy's included."""
    if is_whole(value) and value >= least and (most is None or value <= most):
        return int(value)
    span = f"of at least {least}" if most is None else f"from {least} to {most}"
    raise ModelError(f"{where}: expected a whole number {span}, found {show(value)}; give one.")


def as_number(value: object, where: str, remedy: str) -> float:
    """A finite number as a float."""
    if not is_number(value):
        raise ModelError(f"{where} is {show(value)}, expected a number; {remedy}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ModelError(f"{where} is {show(value)}, expected a finite number; {remedy}.")
    return number


def as_seed(seed: object) -> int:
    """A seed of a random generator."""
    return as_whole(seed, "seed", 0, LARGEST_SEED)


def as_probability(value: object, where: str = "delta") -> float:
    """A number strictly between 0 and 1: how often something may fail."""
    if is_number(value) and 0 < value < 1:
        return float(value)
    raise ModelError(
        f"{where}: expected a probability between 0 and 1, found {show(value)}; 0.05 is usual."
    )


def as_positive(value: object, where: str, remedy: str) -> float:
    """A number above 0, small enough to be multiplied and added without overflow."""
    if is_number(value) and 0 < value <= LARGEST_OPTION:
        return float(value)
    raise ModelError(
        f"{where}: expected a number above 0 and at most {LARGEST_OPTION:g}, found {show(value)}; "
        f"{remedy}."
    )


def as_not_negative(value: object, where: str, remedy: str) -> float:
    """A number that is 0 or above, and as small as for `as_positive`."""
    if is_number(value) and 0 <= value <= LARGEST_OPTION:
        return float(value)
    raise ModelError(
        f"{where}: expected a number from 0 to {LARGEST_OPTION:g}, found {show(value)}; {remedy}."
    )


def as_scale(scale: object) -> float:
    """What squared radii are multiplied by."""
    return as_positive(scale, "scale", "1 is the theory's")


def as_choice(value: object, where: str, choices: Iterable[str]) -> str:
    """One of a few names."""
    names = list(choices)
    if isinstance(value, str) and value in names:
        return value
    raise ModelError(
        f"{where}: expected one of {', '.join(names)}, found {show(value)}; choose one."
    )


def sound(method: Method) -> Method:
    """Marks a method whose result need not be checked, since it is made of what was checked."""
    method.is_sound = True  # type: ignore[attr-defined]
    return method


def is_sound(method: Callable[..., object]) -> bool:
    """Whether a method is marked so; one that overrides it is not, unless it is marked itself."""
    return getattr(method, "is_sound", False)


def as_step(step: object, horizon: int | None) -> int:
    """A step of an episode, counted from 1."""
    if is_whole(step) and step >= 1 and (horizon is None or step <= horizon):
        return int(step)
    expected = f"1 to {horizon}" if horizon else "a whole number of at least 1"
    raise ModelError(f"step {show(step)}: expected {expected}; steps count from 1.")


def as_name(value: object, where: str) -> str:
    """A non-empty string that can be written to a file."""
    if not isinstance(value, str) or not value:
        raise ModelError(f"{where}: a name is a non-empty string, found {show(value)}; name it.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ModelError(
            f"{where}: a name is text, found {show(value)} with half of a surrogate pair; "
            "rename it."
        ) from None
    return str(value)


def as_items(value: object, where: str, expected: str, remedy: str) -> tuple[Any, ...]:
    """The entries of a list, tuple, array or iterator, in order.

    Sets and dictionaries are refused: the order of a set changes from run to run, and with it the
    meaning of every position.
    """
    if type(value) in (tuple, list):
        return tuple(value)  # type: ignore[arg-type]
    unordered = isinstance(value, Set | Mapping) and not isinstance(value, KeysView)
    if not unordered and not isinstance(value, str | bytes | bytearray):
        try:
            entries = iter(value)  # type: ignore[call-overload]
        except TypeError:
            pass
        else:
            return tuple(entries)
    raise ModelError(f"{where}: expected {expected}, found {show(value)}; {remedy}.")


def as_tuple(value: object, kind: type[Item], where: str, remedy: str) -> tuple[Item, ...]:
    """Objects of one kind, in order; a single one stands for a list of itself."""
    if isinstance(value, kind):
        return (value,)
    items = as_items(value, where, f"a list of {kind.__name__} objects", remedy)
    for position, item in enumerate(items):
        if not isinstance(item, kind):
            raise ModelError(
                f"{where}: entry {position} is {show(item)}, expected a {kind.__name__}; {remedy}."
            )
    return items
