"""Model files: JSON with a published schema. Loading runs no code and trusts nothing."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    FailFast,
    Field,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
)

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import clip, show, show_names
from fsmdp.foundation.disk import DIGEST, check_seal, read_file, seal, write_file
from fsmdp.foundation.kinds import Document, explain
from fsmdp.foundation.progress import stages
from fsmdp.model.actions import Actions, ActionSpace, as_actions
from fsmdp.model.basis import MOST_AXES
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import LONGEST_HORIZON
from fsmdp.model.tables import Floats, Table
from fsmdp.model.variables import LARGEST_VARIABLE, Variable, table_size

MOST_OBJECTS = 2**17
"""Variables, conditionals, cases and rewards of a file: each takes far more memory than text."""

MOST_ENTRIES = 2**21
"""Lists, and entries of lists and objects, besides tables."""

LARGEST_NUMBER = int(sys.float_info.max)
SHORT = 2**20  # bytes of a wrong table whose entries are searched for the error
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


FORMAT = "fsmdp-model"
VERSION = 1
LARGEST_FILE = 2**26
CHANGED_ON_PURPOSE = 'if that was on purpose, remove its "digest" entry'


def _read_actions(actions: Any) -> Any:
    named = isinstance(actions, list) and all(isinstance(a, str) and a for a in actions)
    if named or actions == "any":
        return actions
    raise ValueError(f'expected "any" or a list of action names, found {show(actions)}')


def _read_initial(initial: Any) -> Any:
    if not isinstance(initial, dict):
        raise ValueError(f"expected an object by variable name, found {show(initial)}")
    for name, start in initial.items():
        listed = isinstance(start, list) and all(type(p) in (int, float) for p in start)
        if type(start) is not int and not listed:
            raise ValueError(
                f"expected a value or a list of probabilities for {show(name)}, found {show(start)}"
            )
    return initial


Name = Annotated[str, StringConstraints(min_length=1)]
Numbers = Annotated[
    Any,
    Field(
        description="A number, or nested lists of numbers of equal length, one level per axis.",
        json_schema_extra={"type": ["number", "array"]},
    ),
]
NAMES_SCHEMA = {"type": "array", "items": {"type": "string", "minLength": 1}}
CaseActions = Annotated[
    Any,
    AfterValidator(_read_actions),
    WithJsonSchema({"anyOf": [{"const": "any", "type": "string"}, NAMES_SCHEMA]}),
]
Initial = Annotated[
    Any,
    AfterValidator(_read_initial),
    WithJsonSchema(
        {
            "description": "For each variable a value, or one probability per value.",
            "type": "object",
            "additionalProperties": {
                "anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "number"}}]
            },
        }
    ),
]


class VariableFile(Document):
    """A variable or latent."""

    name: Name
    size: Annotated[int, Field(ge=1, le=LARGEST_VARIABLE)]
    labels: Annotated[
        list[Name],
        FailFast(),
        Field(description="What each value stands for; left out where nothing is said."),
    ] = []  # noqa: RUF012

    def built(self) -> Variable:
        """The variable itself."""
        return Variable(self.name, self.size, self.labels)


class ForbiddenFile(Document):
    """Values of some action variables that are not allowed together, one list for each."""

    variables: Annotated[list[Name], FailFast()]
    values: Annotated[list[list[int]], FailFast()]


class ActionsFile(Document):
    """Actions that are made of variables: the joint ones, of which some may be ruled out."""

    variables: Annotated[list[VariableFile], FailFast(), Field(min_length=1)]
    at_most: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    forbidden: Annotated[list[ForbiddenFile], FailFast()] = Field([])

    def built(self) -> Actions:
        """The actions themselves; a ModelError if they cannot be."""
        variables = [variable.built() for variable in self.variables]
        size_of = {v.name: v.size for v in variables}
        tables = []
        for at, one in enumerate(self.forbidden):
            where = f"actions.forbidden[{at}]"
            unknown = next((name for name in one.variables if name not in size_of), None)
            if unknown is not None:
                expected = show_names(size_of)
                raise ModelError(f"{where}: unknown variable {show(unknown)}; expected {expected}.")
            shape = [size_of[name] for name in one.variables]
            if table_size(shape) > LARGEST_VARIABLE or len(shape) > MOST_AXES:
                raise ModelError(
                    f"{where}: {len(shape)} variables have too many joint values; give tables of "
                    "fewer variables."
                )
            table = np.zeros(shape)
            for row in one.values:
                if len(row) != len(shape) or not all(
                    0 <= value < size for value, size in zip(row, shape, strict=True)
                ):
                    raise ModelError(
                        f"{where}: {show(row)} is no assignment of {show_names(one.variables)}; "
                        "give one value for each."
                    )
                table[tuple(row)] = 1.0
            tables.append(Table(one.variables, table))
        return Actions(variables, self.at_most, tables)


def actions_from_json(read: Any) -> ActionSpace:
    """The inverse of `ActionSpace.as_json`; a ValueError if it is something else."""
    return as_actions(ActionsFile.model_validate(read).built() if isinstance(read, dict) else read)


class CaseFile(Document):
    """What holds under some actions. Axes of the table: parents, drawn, then the children."""

    actions: CaseActions
    parents: Annotated[list[Name], FailFast()] = Field([])
    drawn: Annotated[list[Name], FailFast()] = Field([])
    table: Numbers


class ConditionalFile(Document):
    """How some variables or latents are drawn jointly."""

    children: Annotated[list[Name], FailFast(), Field(min_length=1)]
    cases: Annotated[list[CaseFile], FailFast(), Field(min_length=1)]


class RewardFile(Document):
    """A term of the reward."""

    name: Name
    cases: Annotated[list[CaseFile], FailFast(), Field(min_length=1)]
    low: float
    high: float
    sigma: Annotated[float, Field(ge=0)] = 0.0


class TerminalFile(Document):
    """States in which an episode is over: where the table is not 0."""

    variables: Annotated[list[Name], FailFast()]
    table: Numbers


class ModelFile(Document):
    """A factored-state MDP."""

    format: Literal["fsmdp-model"]
    version: Literal[1]
    digest: Annotated[
        str | None,
        Field(
            description="SHA-256 of the file with 64 zeros in its place; `save` writes it. Leave "
            "it out of a file written or changed by hand."
        ),
    ] = None
    variables: Annotated[list[VariableFile], FailFast(), Field(min_length=1)]
    latents: Annotated[list[VariableFile], FailFast()] = Field([])
    actions: Annotated[list[Name], FailFast(), Field(min_length=1)]
    conditionals: Annotated[list[ConditionalFile], FailFast()]
    rewards: Annotated[list[RewardFile], FailFast()]
    horizon: Annotated[int, Field(ge=1, le=LONGEST_HORIZON)] | None
    discount: Annotated[float, Field(gt=0, le=1)] = 1.0
    initial: Initial
    allowed: Annotated[list[CaseFile], FailFast()] = Field([])
    terminal: Annotated[list[TerminalFile], FailFast()] = Field([])


class JointModelFile(ModelFile):
    """A factored-state MDP whose actions are made of variables."""

    actions: ActionsFile  # type: ignore[assignment]


def save(model: FactoredMDP, path: str | os.PathLike[str]) -> None:
    """Write a model as JSON with a digest; `load` gives back exactly the same numbers.

    The file appears whole or not at all; one that `load` would refuse for its size is not written.
    """
    content = seal(to_dict(check_model(model, "save")))
    try:
        if len(content) > LARGEST_FILE:
            raise ModelError(f"{len(content)} bytes, expected at most {LARGEST_FILE}.")
        check_amount(content)
    except ModelError as error:
        raise ModelError(f"cannot write {show(str(path))}: {error}") from None
    write_file(path, content)


def load(path: str | os.PathLike[str], *, progress: bool = False) -> FactoredMDP:
    """Read a model written by `save` or by hand; anything wrong is a ModelError.

    Cost: the size of the file. Sizes that only claim to be large allocate nothing, and how much
    there is of everything is known before anything is built. `progress=True` shows that it is at
    work once it takes longer than two seconds.
    """
    content = read_file(path, LARGEST_FILE)
    try:
        with stages(progress, "loading"):
            return from_bytes(content)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def schema() -> dict[str, Any]:
    """JSON Schema of a model file."""
    found, joint = ModelFile.model_json_schema(), JointModelFile.model_json_schema()
    properties = found["properties"]
    properties["actions"] = {"anyOf": [properties["actions"], {"$ref": "#/$defs/ActionsFile"}]}
    found["$defs"] |= joint["$defs"]
    return found | {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{FORMAT} version {VERSION}",
    }


def to_dict(model: FactoredMDP) -> dict[str, Any]:
    """The model as plain lists, numbers and strings."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "variables": [variable.as_json() for variable in model.variables],
        "latents": [latent.as_json() for latent in model.latents],
        "actions": model.actions.as_json(),
        "conditionals": [
            {"children": list(c.children), "cases": [_case_to_dict(case) for case in c.cases]}
            for c in model.conditionals
        ],
        "rewards": [
            {
                "name": r.name,
                "cases": [_case_to_dict(case) for case in r.cases],
                "low": r.low,
                "high": r.high,
                "sigma": r.sigma,
            }
            for r in model.rewards
        ],
        "horizon": model.horizon,
        "discount": model.discount,
        "initial": {
            v.name: start if isinstance(start, int) else start.tolist()
            for v, start in zip(model.variables, model.initial, strict=True)
        },
    } | _conditions_to_dict(model)


def _conditions_to_dict(model: FactoredMDP) -> dict[str, Any]:
    """Allowed actions and terminal states, where there are any."""
    names = [variable.name for variable in model.variables]
    terminal = [
        {"variables": [names[p] for p in table.scope], "table": table.values.tolist()}
        for table in model.conditions.terminal
    ]
    allowed = [_case_to_dict(case) for case in model.allowed]
    return ({"allowed": allowed} if allowed else {}) | ({"terminal": terminal} if terminal else {})


def from_bytes(content: bytes) -> FactoredMDP:
    """A model from the bytes of a model file."""
    data = parse_document(content)
    if isinstance(data, dict) and data.get(DIGEST) is not None:
        check_seal(content, data[DIGEST], "file", CHANGED_ON_PURPOSE)
    if isinstance(data, dict) and "version" in data and type(data["version"]) is not int:
        raise ModelError(f"version: expected the number {VERSION}, found {show(data['version'])}.")
    if isinstance(data, dict) and isinstance(data.get("initial"), dict):
        _parse_initial(data["initial"])
    try:
        made_of_variables = isinstance(data, dict) and isinstance(data.get("actions"), dict)
        read = (JointModelFile if made_of_variables else ModelFile).model_validate(data)
    except ValidationError as error:
        raise ModelError(_explain(error)) from None
    variables = [variable.built() for variable in read.variables]
    latents = [latent.built() for latent in read.latents]
    actions = as_actions(read.actions.built() if isinstance(read, JointModelFile) else read.actions)
    inputs = (*variables, *actions.variables)
    sizes = {v.name: v.size for v in (*inputs, *latents)}
    return FactoredMDP(
        variables=variables,
        latents=latents,
        actions=actions,
        conditionals=[
            Conditional(c.children, _cases(c.cases, c.children, sizes, f"conditionals[{i}]"))
            for i, c in enumerate(read.conditionals)
        ],
        rewards=[
            Reward(r.name, _cases(r.cases, [], sizes, f"rewards[{i}]"), r.low, r.high, r.sigma)
            for i, r in enumerate(read.rewards)
        ],
        horizon=read.horizon,
        discount=read.discount,
        initial=read.initial,
        allowed=_cases(read.allowed, [], sizes, "allowed", "{where}[{i}]"),
        terminal=[_terminal(one, sizes, f"terminal[{i}]") for i, one in enumerate(read.terminal)],
    )


def _terminal(one: TerminalFile, sizes: Mapping[str, int], where: str) -> Table:
    case = CaseFile(actions="any", parents=one.variables, drawn=[], table=one.table)
    (found,) = _cases([case], [], sizes, where, "{where}")
    return Table(found.parents, found.table)


def _case_to_dict(case: Case) -> dict[str, Any]:
    return {
        "actions": list(case.actions) if isinstance(case.actions, tuple) else "any",
        "parents": list(case.parents),
        "drawn": list(case.drawn),
        "table": case.table.tolist(),
    }


def _parse_initial(initial: dict[str, Any]) -> None:
    """Parse the distribution of a variable that is named "table"."""
    for name, start in initial.items():
        if isinstance(start, TableText):
            initial[name] = start.parsed("initial")


def _cases(
    cases: Sequence[CaseFile],
    children: Sequence[str],
    sizes: Mapping[str, int],
    where: str,
    place_of: str = "{where}.cases[{i}]",
) -> list[Case]:
    found = []
    for i, case in enumerate(cases):
        place = place_of.format(where=where, i=i)
        axes = (*case.parents, *case.drawn, *children)
        unknown = next((name for name in axes if name not in sizes), None)
        if unknown is not None:
            raise ModelError(
                f"{place}: unknown variable {show(unknown)}; expected one of {show_names(sizes)}."
            )
        table, shape = case.table, [sizes[name] for name in axes]
        if isinstance(table, TableText):
            table = table.read(shape, f"{place}.table")
        else:
            table = nested_array(table, shape, f"{place}.table")
        actions = ANY if case.actions == "any" else case.actions
        try:
            found.append(Case(actions, case.parents, table, case.drawn))
        except ModelError as error:
            raise ModelError(f"{place}: {error}") from None
    return found


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    found = first["input"]
    if first["loc"] == ("version",):
        return (
            f"version: expected {VERSION}, the one this release reads, found {show(found)}; "
            "use the release that wrote the file, or write it again."
        )
    return explain(error)


if __name__ == "__main__":  # pragma: no cover
    print(json.dumps(schema(), indent=2))
