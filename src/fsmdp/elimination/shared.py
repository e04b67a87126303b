"""One junction tree for all actions: messages of the default are shared, differences redone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fsmdp.elimination.junction_tree import JunctionTree
from fsmdp.elimination.network import Network
from fsmdp.elimination.order import Order
from fsmdp.elimination.schedule import Room, Schedule, ScheduleBuilder, Term
from fsmdp.model.cases import Change
from fsmdp.model.variables import Scope

MOST_TERMS = 12
"""A message, or the tables of a node, may stay a list of so many terms before they are added up.

Adding up costs rows of its own; a long list costs non-zeros in every row that it enters.
"""


def shared_schedule(network: Network, order: Order, room: Room | None = None) -> Schedule:
    """Steps for every class of actions, with the messages of the default network shared.

    up(n)    = max over residual(n)        of local(n) + sum of up(children)
    down(n)  = max over parent \\ separator of local(p) + up(siblings) + down(p),  p the parent
    F_a max  = max over a's own subtree    of its local terms + messages at its border

    A class of actions differs from the default in a few factors. It takes the smallest subtree
    whose variables cover their scopes, puts its own tables in place of the default's, and
    eliminates that small network in an order of its own. Only messages at some border are made.
    The order may be of all scopes or of the default ones alone: a scope that no node holds just
    makes a class's subtree larger. With a `room` buckets are split into mini-buckets.
    Cost: the tree's entries twice, plus those of each class's subtree.
    """
    tree = JunctionTree.from_order(order, network.sizes)
    classes = [_class(network, tree, changes) for changes in network.changes]
    schedule = _SharedBuilder(network, tree, classes, room).build()
    lowered = [_at_smallest_node(network, tree, one) for one in classes]
    if [one.nodes for one in lowered] == [one.nodes for one in classes]:
        return schedule
    # Smaller tables for the classes, but maybe more messages down to where they are.
    other = _SharedBuilder(network, tree, lowered, room).build()
    return min(schedule, other, key=lambda one: (one.n_splits, one.n_rows))


@dataclass(frozen=True, slots=True)
class _Class:
    """A class of actions: what it changes, and the nodes it works out anew."""

    changes: tuple[Change, ...]
    nodes: frozenset[int]


def _class(network: Network, tree: JunctionTree, changes: tuple[Change, ...]) -> _Class:
    if any(f >= network.n_terms and network.factors[f].groups[0] for f, _ in changes):
        # What a constraint rules out cannot be taken back: no message may hold its table.
        return _Class(changes, frozenset(range(len(tree.scopes))))
    # Where only constants change any place will do; at the root no message down is needed.
    nodes = tree.smallest_subtree(_changed_scopes(network, changes)) or {tree.root}
    return _Class(changes, frozenset(nodes))


def _at_smallest_node(network: Network, tree: JunctionTree, one: _Class) -> _Class:
    variables = {v for scope in _changed_scopes(network, one.changes) for v in scope}
    (node, *more) = one.nodes
    if more or not variables or not variables <= set(tree.scopes[node]):
        return one
    return _Class(one.changes, frozenset({tree.smallest_node(variables, node)}))


def _changed_scopes(network: Network, changes: tuple[Change, ...]) -> list[Scope]:
    """Scopes of the tables that a class takes out and of those that it puts in."""
    factors = network.factors
    return [factors[f].groups[group] for f, other in changes for group in (0, other)]


class _SharedBuilder:
    def __init__(
        self,
        network: Network,
        tree: JunctionTree,
        classes: Sequence[_Class],
        room: Room | None = None,
    ) -> None:
        self.network = network
        self.builder = ScheduleBuilder(network, room)
        self.tree = tree
        self.classes = classes
        n_nodes = len(tree.scopes)
        self.local: list[list[Term]] = [[] for _ in range(n_nodes)]
        self.up: list[list[Term]] = [[] for _ in range(n_nodes)]
        self.down: list[list[Term]] = [[] for _ in range(n_nodes)]
        self.constants: list[Term] = []
        self.home_of_factor: dict[int, int] = {}

    def build(self) -> Schedule:
        needs_up, needs_down = self._needed_messages()
        self._place_factors(needs_up, needs_down)
        for node in range(len(self.tree.scopes)):
            if needs_up[node]:
                self._send_up(node)
        for node in reversed(range(len(self.tree.scopes))):
            if needs_down[node]:
                self._send_down(node)
        return self.builder.build(self._finish_classes())

    def _place_factors(self, needs_up: list[bool], needs_down: list[bool]) -> None:
        used = {node for one in self.classes for node in one.nodes}
        for node, parent in enumerate(self.tree.parents):
            used |= {node} if needs_up[node] else set()
            used |= {parent} if needs_down[node] else set()
        by_node: list[list[int]] = [[] for _ in self.tree.scopes]
        constants = []
        for factor, scope in enumerate(self.network.default_scopes):
            if scope:
                home = self.tree.top(scope)
                assert home is not None, "an order covers every default scope"
                by_node[home].append(factor)
            else:
                constants.append(self.builder.table(factor, 0))
        self.constants = self.builder.add_up(constants, most=1)
        for node, factors in enumerate(by_node):
            if node not in used:
                continue
            terms = [f for f in factors if f < self.network.n_terms]
            tables = [self.builder.table(factor, 0) for factor in terms]
            tables = self.builder.add_up(tables, MOST_TERMS)
            tables += [self.builder.table(f, 0) for f in factors if f >= self.network.n_terms]
            self.local[node] = tables
            on_their_own = {term.offset for term in tables if term.producer < 0}
            for factor in factors:
                if self.network.offsets[factor][0] in on_their_own:
                    self.home_of_factor[factor] = node

    def _needed_messages(self) -> tuple[list[bool], list[bool]]:
        """Which messages some class meets at the border of its subtree, or they depend on."""
        tree = self.tree
        needs_up = [False] * len(tree.scopes)
        needs_down = [False] * len(tree.scopes)
        for one in self.classes:
            for node in one.nodes:
                for child in tree.children[node]:
                    needs_up[child] |= child not in one.nodes
            top = min(one.nodes, key=tree.depths.__getitem__)
            needs_down[top] |= top != tree.root
        for node in range(len(tree.scopes)):
            if needs_down[node]:
                parent = tree.parents[node]
                needs_down[parent] |= parent != tree.root
                for sibling in tree.children[parent]:
                    needs_up[sibling] |= sibling != node
        for node in reversed(range(len(tree.scopes))):
            if needs_up[node]:
                for child in tree.children[node]:
                    needs_up[child] = True
        return needs_up, needs_down

    def _send_up(self, node: int) -> None:
        terms = [*self.local[node]]
        for child in self.tree.children[node]:
            terms += self.up[child]
        left = self.builder.eliminate(terms, self.tree.residuals[node])
        self.up[node] = self.builder.add_up(left, MOST_TERMS)

    def _send_down(self, node: int) -> None:
        parent = self.tree.parents[node]
        terms = [*self.local[parent], *self.down[parent]]
        for sibling in self.tree.children[parent]:
            if sibling != node:
                terms += self.up[sibling]
        kept = set(self.tree.separators[node])
        variables = self._ranked({v for v in self.tree.scopes[parent] if v not in kept})
        left = self.builder.eliminate(terms, variables)
        self.down[node] = self.builder.add_up(left, MOST_TERMS)

    def _finish_classes(self) -> list[int]:
        """The final step of each class; those with the same place and leftovers share these."""
        alike: dict[tuple[frozenset[int], frozenset[int]], list[int]] = {}
        for number, one in enumerate(self.classes):
            dropped = {f for f, _ in one.changes if self.home_of_factor.get(f) in one.nodes}
            alike.setdefault((one.nodes, frozenset(dropped)), []).append(number)
        finals = [0] * len(self.classes)
        for (nodes, dropped_factors), members in alike.items():
            rest = self._unchanged_terms(nodes, dropped_factors)
            added = [self._added_terms(self.classes[n].changes, dropped_factors) for n in members]
            if len(members) > 1:
                touched = _variables(term for terms in added for term in terms)
                rest = self.builder.eliminate(rest, self._ranked(_variables(rest) - touched))
            for number, terms in zip(members, added, strict=True):
                network = [*rest, *terms, *self.constants]
                finals[number] = self.builder.finish(network, self._ranked(_variables(network)))
        return finals

    def _unchanged_terms(self, nodes: frozenset[int], dropped: frozenset[int]) -> list[Term]:
        """The default terms of a subtree without some factors, and the messages at its border."""
        tree = self.tree
        starts = {self.network.offsets[factor][0] for factor in dropped}
        terms: list[Term] = []
        for node in sorted(nodes):
            terms += [t for t in self.local[node] if t.producer >= 0 or t.offset not in starts]
            for child in tree.children[node]:
                if child not in nodes:
                    terms += self.up[child]
        return terms + self.down[min(nodes, key=tree.depths.__getitem__)]

    def _added_terms(self, changes: tuple[Change, ...], dropped: frozenset[int]) -> list[Term]:
        terms = []
        for factor, group in changes:
            terms.append(self.builder.table(factor, group))
            if factor not in dropped:
                # The default table is inside a message: there it can only be taken back.
                terms.append(self.builder.table(factor, 0, sign=-1))
        return terms

    def _ranked(self, variables: set[int]) -> list[int]:
        return sorted(variables, key=self.tree.elimination_rank.__getitem__)


def _variables(terms: Iterable[Term]) -> set[int]:
    return {variable for term in terms for variable in term.scope}
