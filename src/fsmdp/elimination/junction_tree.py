"""Junction trees: the cliques of an elimination order, joined where messages pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from fsmdp.elimination.order import Order
from fsmdp.model.variables import Scope, table_size

MOST_CHILDREN = 8
"""Above this a node's children are put under nodes in between.

The message down to a child sums over its siblings, so a hub of k children would cost k^2.
"""

MOST_LOOKED_AT = 64
"""Nodes examined in search of a small one; a hub's variable may be in thousands."""


@dataclass(frozen=True, slots=True, eq=False)
class JunctionTree:
    """A rooted tree of cliques; any variable's nodes are connected.

    Nodes are numbered children first, so the root is the last. `residuals[node]` are the
    variables eliminated there, in elimination order: its scope without its separator, which is
    what it shares with its parent. Nodes without residuals only join others: the parts of a
    disconnected network under one root, or the many children of a hub.
    """

    scopes: tuple[Scope, ...]
    table_sizes: tuple[int, ...]
    separators: tuple[Scope, ...]
    residuals: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]
    depths: tuple[int, ...]
    elimination_rank: dict[int, int]
    node_of_variable: dict[int, int]

    @classmethod
    def from_order(cls, order: Order, sizes: Sequence[int]) -> JunctionTree:
        """The tree of an order's cliques, without those that are part of a neighbour.

        A clique is joined to that of the first variable eliminated after its own, and takes it
        over when it contains it.
        Cost: the total length of the cliques.
        """
        return _assemble(order).tree(sizes)

    @property
    def root(self) -> int:
        """The last node, towards which upward messages go."""
        return len(self.scopes) - 1

    def top(self, scope: Scope) -> int | None:
        """The node nearest the root that holds a scope, if one does.

        It is where the first variable of the scope is eliminated: no node above holds that one.
        """
        first = min(scope, key=lambda variable: self.elimination_rank.get(variable, -1))
        node = self.node_of_variable.get(first)
        return node if node is not None and set(scope) <= set(self.scopes[node]) else None

    def smallest_node(self, variables: Collection[int], top: int) -> int:
        """The node of the smallest table that holds some variables, looking down from one.

        Cost: the nodes that hold them, up to `MOST_LOOKED_AT`.
        """
        wanted = set(variables)
        holding = [top]
        for node in holding:
            if len(holding) > MOST_LOOKED_AT:
                break
            holding += [c for c in self.children[node] if wanted <= set(self.scopes[c])]
        return min(holding, key=self.table_sizes.__getitem__)

    def smallest_subtree(self, scopes: Iterable[Scope]) -> set[int]:
        """The fewest connected nodes that between them hold every scope.

        A scope that no single node holds is taken apart into its variables. The nodes that hold
        a scope form a subtree; start at the deepest of the subtrees' tops (whatever reaches below
        it also reaches it) and add the path to each subtree not yet visited.
        Cost: the length of those paths.
        """
        pieces: list[tuple[int, Scope]] = []
        for scope in scopes:
            parts = [scope] if scope and self.top(scope) is not None else [(v,) for v in scope]
            pieces += [(top, part) for part in parts if (top := self.top(part)) is not None]
        if not pieces:
            return set()
        pieces.sort(key=lambda piece: -self.depths[piece[0]])
        crest = pieces[0][0]
        nodes = {crest}
        for top, scope in pieces[1:]:
            wanted = set(scope)
            if any(wanted <= set(self.scopes[node]) for node in nodes):
                continue
            low = top
            path = []
            while low not in nodes and low != crest:
                if self.depths[low] >= self.depths[crest]:
                    path.append(low)
                    low = self.parents[low]
                else:
                    crest = self.parents[crest]
                    nodes.add(crest)
                    if wanted <= set(self.scopes[crest]):
                        break
            nodes.update(path)
        return nodes


def _assemble(order: Order) -> _Assembly:
    rank = {variable: position for position, variable in enumerate(order.variables)}
    scopes: list[Scope] = []
    residuals: list[list[int]] = []
    node_of_variable: dict[int, int] = {}
    next_variable: list[int | None] = []
    for variable, clique in zip(order.variables, order.cliques, strict=False):
        later = [other for other in clique if other != variable]
        following = min(later, key=rank.__getitem__) if later else None
        if variable not in node_of_variable:
            node_of_variable[variable] = len(scopes)
            scopes.append(clique)
            residuals.append([])
            next_variable.append(None)
        node = node_of_variable[variable]
        residuals[node].append(variable)
        next_variable[node] = following
        if following is None or following in node_of_variable:
            continue
        if len(order.cliques[rank[following]]) == len(later):
            node_of_variable[following] = node
    parents = [
        None if following is None else node_of_variable[following] for following in next_variable
    ]
    return _Assembly(scopes, residuals, parents, rank)


class _Assembly:
    """Cliques and their parents on the way to a numbered tree."""

    def __init__(
        self,
        scopes: list[Scope],
        residuals: list[list[int]],
        parents: list[int | None],
        rank: dict[int, int],
    ) -> None:
        self.scopes = scopes
        self.residuals = residuals
        self.rank = rank
        self.children: list[list[int]] = [[] for _ in scopes]
        roots: list[int] = []
        for node, parent in enumerate(parents):
            (roots if parent is None else self.children[parent]).append(node)
        self.root = roots[0] if len(roots) == 1 else self._add_node((), roots)

    def _add_node(self, scope: Scope, children: list[int]) -> int:
        self.scopes.append(scope)
        self.residuals.append([])
        self.children.append(children)
        return len(self.scopes) - 1

    def _separator(self, child: int) -> Scope:
        gone = set(self.residuals[child])
        return tuple(variable for variable in self.scopes[child] if variable not in gone)

    def _divide_children(self, node: int) -> None:
        while len(self.children[node]) > MOST_CHILDREN:
            # Neighbours in this list share separators, which keeps the scopes in between small.
            ranked = sorted(self.children[node], key=lambda child: (self._separator(child), child))
            groups = []
            for start in range(0, len(ranked), MOST_CHILDREN):
                members = ranked[start : start + MOST_CHILDREN]
                union = {variable for child in members for variable in self._separator(child)}
                groups.append(
                    self._add_node(tuple(sorted(union)), members)
                    if len(members) > 1
                    else members[0]
                )
            self.children[node] = groups

    def tree(self, sizes: Sequence[int]) -> JunctionTree:
        for node in range(len(self.scopes)):
            self._divide_children(node)
        from_root = [self.root]
        for node in from_root:
            from_root.extend(self.children[node])
        number = {node: new for new, node in enumerate(reversed(from_root))}
        kept = list(reversed(from_root))
        parents = [-1] * len(kept)
        depths = [0] * len(kept)
        for node in from_root:
            for child in self.children[node]:
                parents[number[child]] = number[node]
                depths[number[child]] = depths[number[node]] + 1
        residuals = tuple(tuple(self.residuals[node]) for node in kept)
        return JunctionTree(
            scopes=tuple(self.scopes[node] for node in kept),
            table_sizes=tuple(table_size(sizes[v] for v in self.scopes[node]) for node in kept),
            separators=tuple(self._separator(node) for node in kept),
            residuals=residuals,
            parents=tuple(parents),
            children=tuple(tuple(number[c] for c in self.children[node]) for node in kept),
            depths=tuple(depths),
            elimination_rank=self.rank,
            node_of_variable={v: node for node, vs in enumerate(residuals) for v in vs},
        )
