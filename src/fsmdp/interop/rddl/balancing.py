"""Long sums and deep parentheses made shallow, in place and without recursion.

pyRDDLGym wraps a formula once for each pair of parentheses around it, and nests a sum of n terms
n deep, as it does products and junctions. Both would exhaust the stack of whoever walks them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_ASSOCIATIVE = ("+", "*", "^", "&", "|")


def balance(tree: Any) -> None:
    """Unwrap every formula of a parsed problem, and make its chains balanced trees.

    a + b - c + d becomes (a + b) + ((-c) + d). Cost: the nodes, each once.
    """
    waiting = list(formulas(tree))
    while waiting:
        node = waiting.pop()
        if isinstance(node, list | tuple):
            waiting += [one for one in node if not isinstance(one, str)]
        elif hasattr(node, "_expr"):
            _unwrap(node)
            if node.etype[0] != "constant":
                _shorten(node)
                waiting.append(node.args)


def formulas(tree: Any) -> Iterator[Any]:
    """Every formula of a parsed problem."""
    domain = tree.domain
    yield from (definition.expr for definition in domain.cpfs[1])
    yield domain.reward
    for section in (domain.preconds, domain.terminals, domain.invariants, domain.constraints):
        yield from section


def _unwrap(node: Any) -> None:
    inner = node._expr
    while hasattr(inner, "_expr"):
        inner = inner._expr
    node._expr = inner


def _shorten(node: Any) -> None:
    operator = node._expr[0]
    if operator not in (*_ASSOCIATIVE, "-") or len(node._expr[1]) != 2:
        return
    additive = operator in ("+", "-")
    make, parts = type(node), []
    waiting = [(node, False)]
    while waiting:
        part, negative = waiting.pop()
        _unwrap(part)
        inner = part._expr[0]
        same = inner in ("+", "-") if additive else inner == operator
        if same and len(part._expr[1]) == 2:
            left, right = part._expr[1]
            waiting += [(right, negative ^ (inner == "-")), (left, negative)]
        else:
            parts.append(make(("-", (part,))) if negative else part)
    if len(parts) == 2:
        return
    joiner = "+" if additive else operator
    while len(parts) > 2:
        pairs = [
            make((joiner, (one, other)))
            for one, other in zip(parts[::2], parts[1::2], strict=False)
        ]
        parts = [*pairs, *parts[len(pairs) * 2 :]]
    node._expr = (joiner, tuple(parts))
