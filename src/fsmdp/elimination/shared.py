"""One junction tree for all actions: messages of the default are shared, differences redone."""

from __future__ import annotations

from dataclasses import dataclass

from fsmdp.elimination.junction_tree import JunctionTree, junction_tree
from fsmdp.elimination.network import Change, Network
from fsmdp.elimination.order import Order
from fsmdp.elimination.schedule import Schedule, ScheduleBuilder, Term

MOST_LOCAL_TERMS = 8
"""A node with more tables than this adds them up once; classes subtract what they change."""


def shared_schedule(network: Network, order: Order) -> Schedule:
    """Steps for every class of actions, with the messages of the default network shared.

    up(n)    = max over residual(n)        of local(n) + sum of up(children)
    down(n)  = max over parent \\ separator of local(p) + up(siblings) + down(p),  p the parent
    F_a max  = max over a's own subtree    of its local terms + messages at its border

    A class of actions differs from the default in a few factors. It takes the smallest subtree
    whose variables cover their scopes, puts its own tables in place of the default's, and
    eliminates that small network in an order of its own. Only messages at some border are made.
    The order may be of all scopes or of the default ones alone: a scope that no node holds just
    makes a class's subtree larger.
    Cost: the tree's entries twice, plus those of each class's subtree.
    """
    return _SharedBuilder(network, order).build()


@dataclass(frozen=True, slots=True)
class _Class:
    """A class of actions: what it changes, and the nodes it works out anew."""

    changes: tuple[Change, ...]
    nodes: frozenset[int]


class _SharedBuilder:
    def __init__(self, network: Network, order: Order) -> None:
        self.network = network
        self.builder = ScheduleBuilder(network)
        self.tree: JunctionTree = junction_tree(order)
        self.order = order
        self.classes = [self._class(changes) for changes in network.changes]
        n_nodes = len(self.tree.scopes)
        self.local: list[list[Term]] = [[] for _ in range(n_nodes)]
        self.up: list[list[Term]] = [[] for _ in range(n_nodes)]
        self.down: list[list[Term]] = [[] for _ in range(n_nodes)]
        self.constants: list[Term] = []
        self.home_of_factor: dict[int, int] = {}

    def build(self) -> Schedule:
        self._place_factors()
        needs_up, needs_down = self._needed_messages()
        for node in range(len(self.tree.scopes)):
            if needs_up[node]:
                self._send_up(node)
        for node in reversed(range(len(self.tree.scopes))):
            if needs_down[node]:
                self._send_down(node)
        self._finish_classes()
        return self.builder.build()

    def _class(self, changes: tuple[Change, ...]) -> _Class:
        scopes = []
        for factor, group in changes:
            groups = self.network.factors[factor].groups
            scopes += [groups[0], groups[group]]
        return _Class(changes, frozenset(self.tree.smallest_subtree(scopes)))

    def _place_factors(self) -> None:
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
            tables = [self.builder.table(factor, 0) for factor in factors]
            if len(tables) > MOST_LOCAL_TERMS:
                tables = self.builder.add_up(tables)
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
            nodes = one.nodes or {tree.root}
            for node in nodes:
                for child in tree.children[node]:
                    needs_up[child] |= child not in nodes
            top = min(nodes, key=tree.depths.__getitem__)
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
        self.up[node] = self.builder.add_up(left)

    def _send_down(self, node: int) -> None:
        parent = self.tree.parents[node]
        terms = [*self.local[parent], *self.down[parent]]
        for sibling in self.tree.children[parent]:
            if sibling != node:
                terms += self.up[sibling]
        kept = set(self.tree.separators[node])
        variables = self._ranked({v for v in self.tree.scopes[parent] if v not in kept})
        self.down[node] = self.builder.add_up(self.builder.eliminate(terms, variables))

    def _finish_classes(self) -> None:
        everything = self._terms_of(frozenset({self.tree.root}), ())
        everywhere = self.tree.scopes[self.tree.root] if self.tree.scopes else ()
        if sum(not one.nodes for one in self.classes) > 1:
            # Several classes differ by constants only: the maximum of the rest is found once.
            everything = self.builder.eliminate(everything, self._ranked(set(everywhere)))
        for one in self.classes:
            terms = self._terms_of(one.nodes, one.changes) if one.nodes else [*everything]
            terms += self.constants
            for factor, group in one.changes:
                terms.append(self.builder.table(factor, group))
                if self.home_of_factor.get(factor) not in one.nodes:
                    # The default table is inside a message: there it can only be taken back.
                    terms.append(self.builder.table(factor, 0, sign=-1))
            variables = {variable for term in terms for variable in term.scope}
            self.builder.finish(terms, self._ranked(variables))

    def _terms_of(self, nodes: frozenset[int], changes: tuple[Change, ...]) -> list[Term]:
        """The default terms of a subtree that a class leaves unchanged, and its border."""
        tree = self.tree
        replaced = {self.network.offsets[factor][0] for factor, _ in changes}
        terms: list[Term] = []
        for node in sorted(nodes):
            terms += [
                term
                for term in self.local[node]
                if term.producer >= 0 or term.offset not in replaced
            ]
            for child in tree.children[node]:
                if child not in nodes:
                    terms += self.up[child]
        top = min(nodes, key=tree.depths.__getitem__)
        return terms + self.down[top]

    def _ranked(self, variables: set[int]) -> list[int]:
        return sorted(variables, key=self.tree.elimination_rank.__getitem__)
