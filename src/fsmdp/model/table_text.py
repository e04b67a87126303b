"""Tables of model files, kept as text until their shapes are known.

Nested lists take thirty times their text in memory, so a table is first compared, as text, with
the shape that its variables give it, and then read into an array. What is left of a file without
its tables is small, or the file is refused.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show
from fsmdp.model.tables import Floats
from fsmdp.model.variables import table_size

MOST_OBJECTS = 2**17
"""Variables, conditionals, cases and rewards of a file: each takes far more memory than text."""

MOST_ENTRIES = 2**21
"""Lists, and entries of lists and objects, besides tables."""

LARGEST_NUMBER = int(sys.float_info.max)
SHORT = 2**20  # bytes of a wrong table that is looked at closely
CHUNK = 2**20  # bytes of a table that are turned into numbers at a time

# A quotation mark without a backslash before it opens a string or closes one; after one that
# closes, `table` is no JSON. So every match is a key with a number or nested lists of numbers.
_TABLE = re.compile(
    rb'(?<!\\)"table"[ \t\r\n]*:[ \t\r\n]*(-?\d[-+.\deE]*|\[[-+.\deE,\[\] \t\r\n]*\])'
)
_OUTSIDE = re.compile(rb"[-+.\deE][ \t\r\n]*\[|\][ \t\r\n]*[-+.\deE]")  # a number beside a list
_BUT_LISTS = bytes(set(range(256)) - set(b"[],"))


def set_tables_aside(content: bytes) -> tuple[bytes, TablesAside]:
    """The text with a number in place of each table; a ModelError if it holds too many things."""
    objects = content.count(b"{")
    if objects > MOST_OBJECTS:
        raise ModelError(
            f"{objects} objects (variables, conditionals, cases, rewards), expected at most "
            f"{MOST_OBJECTS}; use fewer."
        )
    tables: list[bytes] = []
    parts: list[bytes] = []
    end = 0
    for match in _TABLE.finditer(content):
        parts += [content[end : match.start(1)], str(len(tables)).encode()]
        tables.append(match[1])
        end = match.end()
    text = b"".join([*parts, content[end:]])
    entries = text.count(b",") + text.count(b"[")
    if entries > MOST_ENTRIES:
        raise ModelError(
            f"{entries} lists and entries besides tables of numbers, expected at most "
            f"{MOST_ENTRIES}; use fewer."
        )
    return text, TablesAside(tables)


class TablesAside:
    """The texts of tables, by the numbers that stand in their places."""

    def __init__(self, texts: list[bytes]) -> None:
        self._texts = texts

    def put_back(self, entries: dict[str, Any]) -> None:
        """Read what was no table of a case but stood under the same key."""
        if type(entries.get("table")) is int:
            entries["table"] = _parse(self._texts[entries["table"]], "table")

    def read(self, place: Any, sizes: Sequence[int], where: str) -> Any:
        """The table of a case as an array of the given shape; a ModelError if it has another.

        Cost: the text that is there, whatever the shape.
        """
        if type(place) is not int:  # no number, or something that is none among its numbers
            check_nested(place, sizes, where)
            return place
        text = self._texts[place]
        if not _has_shape(text, sizes):
            if len(text) > SHORT:
                raise ModelError(
                    f"{where}: expected a table of shape {show(tuple(sizes))}, found one of "
                    f"{text.count(b',') + 1} numbers in {text.count(b'[')} lists; one level per "
                    "axis: parents, drawn, children."
                )
            nested = _parse(text, where)
            check_nested(nested, sizes, where)
            return nested
        flat = text.replace(b"[", b" ").replace(b"]", b" ")
        return _numbers(flat, table_size(sizes), where).reshape(sizes)


def _has_shape(text: bytes, sizes: Sequence[int]) -> bool:
    """Whether brackets and commas are those of a table; compared whole only if their counts are."""
    count, lists = 1, 0
    for size in sizes:
        lists += count
        count *= size
        if count > len(text):
            return False
    if (text.count(b","), text.count(b"[")) != (count - 1, lists) or _OUTSIDE.search(text):
        return False
    expected = b""
    for size in reversed(sizes):
        expected = b"[" + b",".join([expected] * size) + b"]"
    return text.translate(None, _BUT_LISTS) == expected


def _numbers(text: bytes, count: int, where: str) -> Floats:
    """Numbers with commas between them, read bit by bit so that few are objects at a time."""
    array = np.empty(count)
    begin = end = 0
    while begin <= len(text):
        cut = text.find(b",", begin + CHUNK)
        after = len(text) if cut < 0 else cut
        numbers = _parse(b"[" + text[begin:after] + b"]", where)
        begin, start, end = after + 1, end, end + len(numbers)
        try:
            array[start:end] = numbers
        except OverflowError:
            digits = max(len(str(abs(one))) for one in numbers if type(one) is int)
            raise ModelError(f"{where}: a number has {digits} digits; use fewer.") from None
    if end != count:
        raise ModelError(f"{where}: not JSON: a number is missing; correct or write it again.")
    return array


def _parse(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ModelError(f"{where}: nested too deeply; one level per axis.") from None
    except ValueError as error:
        raise ModelError(f"{where}: not JSON: {error}; correct or write it again.") from None


def check_nested(table: Any, sizes: Sequence[int], where: str) -> None:
    """Refuse other shapes than the declared one, and what numpy would quietly turn into numbers.

    Cost: the entries declared or those found, whichever are fewer; the first mismatch ends it.
    """
    level = [table]
    for axis, size in enumerate(sizes):
        for item in level:
            if type(item) is not list or len(item) != size:
                found = f"a list of {len(item)}" if type(item) is list else show(item)
                raise ModelError(
                    f"{where}: expected a table of shape {show(tuple(sizes))}, lists of {size} at "
                    f"axis {axis}, found {found}; one level per axis: parents, drawn, children."
                )
        level = list(chain.from_iterable(level))
    for item in level:
        if type(item) not in (int, float):
            raise ModelError(
                f"{where}: expected numbers at the innermost level (shape {show(tuple(sizes))}), "
                f"found {show(item)}; one level per axis: parents, drawn, children."
            )
        if type(item) is int and abs(item) > LARGEST_NUMBER:
            raise ModelError(f"{where}: a number has {len(str(item))} digits; use fewer.")
