"""JSON of model files, with tables kept as text until their shapes are known.

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
from fsmdp.foundation.checks import clip, show
from fsmdp.model.tables import Floats
from fsmdp.model.variables import table_size

MOST_OBJECTS = 2**17
"""Variables, conditionals, cases and rewards of a file: each takes far more memory than text."""

MOST_ENTRIES = 2**21
"""Lists, and entries of lists and objects, besides tables."""

LARGEST_NUMBER = int(sys.float_info.max)
SHORT = 2**20  # bytes of a wrong table that is looked at closely
CHUNK = 2**20  # bytes of a table that are turned into numbers at a time

# From one quotation mark to the next that no backslash escapes: matched from left to right,
# these are exactly the strings of a JSON text. A list of numbers and lists may follow.
_STRING = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"(?:[ \t\r\n]*+:[ \t\r\n]*+(\[[-+.\deE,\[\] \t\r\n]*\]))?',
    re.DOTALL,
)
_OUTSIDE = re.compile(rb"[-+.\deE][ \t\r\n]*\[|\][ \t\r\n]*[-+.\deE]")  # a number beside a list
_BUT_LISTS = bytes(set(range(256)) - set(b"[],"))
_PLACEHOLDER = b"NaN"  # no JSON, so that no file can hold one of its own


def parse_document(content: bytes) -> Any:
    """The value of a JSON text, with a `TableText` in place of each list under a key "table".

    A ModelError if it is no JSON, has a key twice in an object, or holds too many things. Strings
    are found as JSON finds them and keys are compared after their escapes are resolved, so what is
    a table does not depend on how its key is written.
    """
    text, tables = _set_tables_aside(content)
    waiting = iter(tables)

    def next_table(literal: str) -> TableText:
        table = next(waiting, None)
        if table is None or literal != _PLACEHOLDER.decode():
            raise ModelError("not JSON: found NaN or Infinity; expected finite numbers.")
        return table

    try:
        return json.loads(
            text.decode(), object_pairs_hook=_refuse_repeated_keys, parse_constant=next_table
        )
    except UnicodeDecodeError as error:
        raise ModelError(f"not JSON: expected text in UTF-8, found byte {error.start}.") from None
    except RecursionError:
        raise ModelError("not a model: nested too deeply; one level per axis of a table.") from None
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(f"not JSON: {clip(str(error))}; correct or write it again.") from None


def check_amount(content: bytes) -> None:
    """Refuse, with a ModelError, a text that holds more than `parse_document` reads."""
    _set_tables_aside(content)


def _set_tables_aside(content: bytes) -> tuple[bytes, list[TableText]]:
    """The text with a placeholder for each table, and the tables in their order."""
    objects = content.count(b"{")
    if objects > MOST_OBJECTS:
        raise ModelError(
            f"{objects} objects (variables, conditionals, cases, rewards), expected at most "
            f"{MOST_OBJECTS}; use fewer."
        )
    tables: list[TableText] = []
    parts: list[bytes] = []
    end = 0
    for match in _STRING.finditer(content):
        # Of a list with text in it, only a part can match: its brackets do not close.
        if match[1] is None or match[1].count(b"[") != match[1].count(b"]"):
            continue
        if _is_table(content[match.start() : match.start(1)]):
            parts += [content[end : match.start(1)], _PLACEHOLDER]
            tables.append(TableText(match[1]))
            end = match.end()
    text = b"".join([*parts, content[end:]])
    entries = text.count(b",") + text.count(b"[")
    if entries > MOST_ENTRIES:
        raise ModelError(
            f"{entries} lists and entries besides tables of numbers, expected at most "
            f"{MOST_ENTRIES}; use fewer."
        )
    return text, tables


def _is_table(key: bytes) -> bool:
    """Whether a string, with a colon after it, is the key "table"."""
    key = key.rstrip(b" \t\r\n:")
    if b"\\" not in key:
        return key == b'"table"'
    try:
        return bool(json.loads(key) == "table")
    except ValueError:  # no JSON, which is said when all is parsed
        return False


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ModelError(f"key {show(key)} appears twice in an object; keep one of them.")
            seen.add(key)
    return found


class TableText:
    """The JSON text of nested lists of numbers, not parsed yet."""

    __slots__ = ("_text",)

    def __init__(self, text: bytes) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text[:100].decode()

    def parsed(self, where: str) -> Any:
        """The lists themselves."""
        return _parse(self._text, where)

    def read(self, sizes: Sequence[int], where: str) -> Floats:
        """The numbers as an array of the given shape; a ModelError if they have another.

        Cost: the text that is there, whatever the shape.
        """
        text = self._text
        if not _has_shape(text, sizes):
            if len(text) > SHORT:
                raise ModelError(
                    f"{where}: expected a table of shape {show(tuple(sizes))}, found one of "
                    f"{text.count(b',') + 1} numbers in {text.count(b'[')} lists; one level per "
                    "axis: parents, drawn, children."
                )
            return nested_array(_parse(text, where), sizes, where)
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


def nested_array(table: Any, sizes: Sequence[int], where: str) -> Floats:
    """The numbers of nested lists of a shape; a ModelError if they have another, or are none.

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
    return np.array(level, dtype=np.float64).reshape(sizes)
