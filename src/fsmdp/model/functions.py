"""Tables filled by functions of values: laws, means and conditions as a user would say them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import check_size, clip, is_number, is_whole, show, show_names
from fsmdp.model.variables import Variable, show_assignment, table_size

Floats = NDArray[np.float64]

LARGEST_FILLED = 2**22
"""Numbers of a table that a function fills: a call takes about a microsecond, a number 8 bytes."""

MOST_AXES = 32
"""Axes of an array, in every numpy."""

ROW_TOLERANCE = 1e-9
"""Probabilities may miss a sum of 1 by this much, as decimal fractions do."""


def filled(
    function: Callable[..., object],
    inputs: Sequence[Variable],
    children: Sequence[Variable],
    where: str,
) -> Floats:
    """The function at each assignment of its inputs, as a table.

    It is called with a label, or a number where a variable has none, for each input. Without
    children it returns a number (a truth value is 0 or 1); with children, how they are drawn; see
    `law_of`. Cost: one call for each assignment of the inputs.
    """
    axes = [variable.size for variable in inputs]
    shape = [child.size for child in children]
    remedy = "give the function fewer parents"
    check_size(table_size(axes + shape), LARGEST_FILLED, f"{where}: its table has", remedy)
    n_axes = len(axes) + len(shape)
    check_size(n_axes, MOST_AXES, f"{where}: its table has", remedy, unit="axes")
    values = [variable.labels or range(variable.size) for variable in inputs]
    table = np.zeros((*axes, *shape))
    for index in np.ndindex(*axes):
        given = [known[at] for known, at in zip(values, index, strict=True)]
        try:
            found = function(*given)
            table[index] = law_of(found, children) if children else _number(found)
        except _UnusableError as error:
            raise ModelError(f"{_place(where, index, inputs)}: {error}.") from None
        except Exception as error:
            what = f"{type(error).__name__}: {clip(str(error))}"
            raise ModelError(
                f"{_place(where, index, inputs)}: the function raised {what}; expected a result "
                f"for each assignment (it is called with a value for each of "
                f"{show_names(variable.name for variable in inputs)}, in this order)."
            ) from error
    return table


def as_function(function: object, where: str) -> Callable[..., object]:
    """Refuse what cannot be called."""
    if callable(function):
        return function
    raise ModelError(
        f"{where}: expected a function of values, found {show(function)}; numbers stand in tables."
    )


class _UnusableError(ValueError):
    """What a function returned is no result."""


def _place(where: str, index: Sequence[int], inputs: Sequence[Variable]) -> str:
    return f"{where}, at ({clip(show_assignment(index, inputs))})" if inputs else where


def _number(found: object) -> float:
    if isinstance(found, bool | np.bool_) or (is_number(found) and np.isfinite(float(found))):
        return float(found)
    raise _UnusableError(
        f"the function returned {show(found)}, expected a finite number or a truth value"
    )


def law_of(found: object, children: Sequence[Variable]) -> Floats:
    """Probabilities of the children's next values, from what a function returned.

    A value: drawn for certain. A fraction, for a single binary child: the probability of 1. A
    dictionary: the probability of each value in it. Values of several children are tuples.
    """
    law = np.zeros([child.size for child in children])
    if isinstance(found, Mapping):
        for value, chance in found.items():
            law[_position(value, children)] += _probability(chance)
        if abs(law.sum() - 1) > ROW_TOLERANCE:
            total = f"{law.sum():.10g}"
            raise _UnusableError(f"probabilities {show(found)} sum to {total}, expected 1")
        return law
    if len(children) == 1 and children[0].size == 2:
        if isinstance(found, bool | np.bool_):
            found = int(found)
        if is_number(found) and not is_whole(found):
            law[:] = 1 - _probability(found), _probability(found)
            return law
    law[_position(found, children)] = 1.0
    return law


def _probability(chance: object) -> float:
    if is_number(chance) and 0 <= chance <= 1 + ROW_TOLERANCE:
        return float(chance)
    raise _UnusableError(f"the function returned a probability {show(chance)}, expected 0 to 1")


def _position(value: object, children: Sequence[Variable]) -> tuple[int, ...]:
    given: Any = (value,) if len(children) == 1 else value
    if not isinstance(given, tuple | list) or len(given) != len(children):
        names = show_names(child.name for child in children)
        raise _UnusableError(
            f"the function returned {show(value)}, expected a value for each of {names}"
        )
    found = []
    for one, child in zip(given, children, strict=True):
        at = child.find(one)
        if at is None:
            binary = (
                ", or the probability of 1"
                if [child.size] == [c.size for c in children] == [2]
                else ""
            )
            raise _UnusableError(
                f"the function returned {show(one)} for {show(child.name)}, expected "
                f"{child.expected}{binary}, or a dictionary of values and their probabilities"
            )
        found.append(at)
    return tuple(found)
