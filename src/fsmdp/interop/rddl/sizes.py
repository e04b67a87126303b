"""How large a problem would become, estimated before anything of that size is made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from fsmdp.foundation.checks import show_count
from fsmdp.interop.rddl.errors import TooLargeError
from fsmdp.interop.rddl.sources import Source

MOST_TOKENS = 2**19
MOST_GROUNDINGS = 2**21
MOST_FLUENTS = 2**15
MOST_PARTS = 800_000
"""Ground parts of formulas; the largest problem of the competitions has 773,202."""

_TOKEN = re.compile(r"[\w'@?-]+|[^\w\s]")


def check_length(source: Source) -> None:
    """Refuse a text that takes long to parse. Cost: the text, at the speed of a search in it."""
    for file, text in zip(source.files, source.texts, strict=True):
        tokens = sum(1 for _ in _TOKEN.finditer(text))
        if tokens > MOST_TOKENS:
            raise TooLargeError(
                f"{file} has {show_count(tokens)} words and signs (limit {MOST_TOKENS}); use "
                "fewer objects or values."
            )


def check_groundings(tree: Any) -> None:
    """Refuse a problem with too many ground fluents, or constants."""
    counts = _object_counts(tree)
    sizes = {
        variable: math.prod(counts.get(one, 1) for one in variable.param_types or ())
        for variable in tree.domain.pvariables
    }
    changing = {variable: size for variable, size in sizes.items() if not variable.is_non_fluent()}
    if any(variable.is_state_fluent() and variable.range == "real" for variable in sizes):
        changing = {}  # continuous, and soon refused for that
    for what, found, limit in (
        ("fluents and constants", sizes, MOST_GROUNDINGS),
        ("fluents", changing, MOST_FLUENTS),
    ):
        total = sum(found.values())
        if total > limit:
            largest = max(found, key=found.__getitem__)
            raise TooLargeError(
                f"its {what} have {show_count(total)} ground instances (limit {limit}), of which "
                f"{largest.name} has {show_count(found[largest])}; use fewer objects, or fewer "
                "arguments."
            )


def _object_counts(tree: Any) -> dict[str, int]:
    objects = dict(one for one in tree.non_fluents.objects or () if one is not None)
    return {
        name: len(objects.get(name, ())) if values == "object" else len(values)
        for name, values in tree.domain.types
    }


def check_expansion(model: Any) -> None:
    """Refuse formulas with too many ground parts, each once for all objects that it speaks of."""
    counts = {name: len(objects) for name, objects in model.type_to_objects.items()}
    formulas = [
        *(
            (f"the formula of {name}", node, dict(given))
            for name, (given, node) in model.cpfs.items()
        ),
        ("the reward", model.reward, {}),
        *(("a precondition", node, {}) for node in model.preconditions),
        *(("a constraint", node, {}) for node in model.ast.domain.constraints),
    ]
    total, largest = 0, (0, "")
    for where, node, types in formulas:
        parts = _parts(node, types, counts)[0]
        total, largest = total + parts, max(largest, (parts, where))
    if total > MOST_PARTS:
        raise TooLargeError(
            f"its formulas have {show_count(total)} ground parts (limit {MOST_PARTS}), most of "
            f"them {largest[1]} ({show_count(largest[0])}); use fewer objects, or sums over fewer "
            "of them."
        )


def _parts(
    node: Any, types: Mapping[str, str], counts: Mapping[str, int]
) -> tuple[int, frozenset[str]]:
    """Ground parts of a formula, and the variables that it leaves free."""
    if isinstance(node, str):
        return 0, frozenset((node,) if node.startswith("?") else ())
    if isinstance(node, list | tuple):
        bound = {one[1][0]: one[1][1] for one in node if is_typed(one)}
        inner = {**types, **bound}
        total, free, names = 0, frozenset[str](), frozenset[str]()
        for one in node:
            if not is_typed(one):
                parts, names = _parts(one, inner, counts)
                total, free = total + parts, free | names
        if bound:  # the body comes once for each list of objects, also if it looks at few of them
            total += math.prod(counts[inner[name]] for name in names | bound.keys())
            total -= math.prod(counts[inner[name]] for name in names)
        return total, free - bound.keys()
    if not hasattr(node, "etype"):
        return 0, frozenset()
    total, free = (
        (0, frozenset[str]()) if node.etype[0] == "constant" else _parts(node.args, types, counts)
    )
    return total + math.prod(counts[types[name]] for name in free), free


def is_typed(part: Any) -> bool:
    """Whether a part of a formula says of which type a variable is."""
    return isinstance(part, tuple) and part[:1] == ("typed_var",)
