"""Structure from data: who depends on whom, what is drawn together, and what stays open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fsmdp.discovery.evidence import counted, log_bet
from fsmdp.discovery.parents import Limits, Search
from fsmdp.discovery.transitions import Transitions, as_transitions
from fsmdp.foundation.checks import as_number, as_whole, plural
from fsmdp.foundation.html import facts_table
from fsmdp.foundation.progress import Report, reporting
from fsmdp.learning.options import as_probability
from fsmdp.model.cases import ANY, Case
from fsmdp.model.structure import Structure
from fsmdp.model.variables import Variable

if TYPE_CHECKING:
    from fsmdp.model.basis import Basis
    from fsmdp.model.rewards import Reward


@dataclass(frozen=True, slots=True)
class Edge:
    """A variable whose next value depends on an input, beyond what its other parents explain.

    `log_evidence` is the logarithm of the evidence against the opposite, `needed` what it had to
    reach.
    """

    parent: str
    child: str
    log_evidence: float
    needed: float


@dataclass(frozen=True, slots=True)
class Together:
    """Two variables whose next values are not drawn independently, given their parents."""

    one: str
    other: str
    log_evidence: float
    needed: float


@dataclass(frozen=True, slots=True)
class Open:
    """An edge that is not claimed, though an effect could have been overlooked, and why."""

    parent: str
    child: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Discovery:
    """What data say about a structure.

    With probability at least 1 - `delta`, for whatever data: no edge leads into a variable from an
    input that does not matter to it, provided that its true parents are among those found; and no
    two variables are called drawn together that are not. Nothing is claimed about edges that are
    missing, except that `open` lists those that could have been overlooked.
    """

    variables: tuple[Variable, ...]
    actions: Sequence[str]
    edges: tuple[Edge, ...]
    together: tuple[Together, ...]
    open: tuple[Open, ...]
    apart: dict[str, tuple[str, ...]]  # by variable, the actions under which it moves otherwise
    delta: float
    n_transitions: int

    @property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """Parents of each variable."""
        by_child: dict[str, list[str]] = {variable.name: [] for variable in self.variables}
        for edge in self.edges:
            by_child[edge.child].append(edge.parent)
        return {child: tuple(parents) for child, parents in by_child.items()}

    def structure(
        self,
        basis: Basis,
        rewards: Sequence[Reward],
        horizon: int | None,
        discount: float = 1.0,
    ) -> Structure:
        """What a learner can be told: these parents, with rewards and a basis of your own."""
        cases = {}
        for name, parents in self.parents.items():
            alone = [Case([action], parents=parents) for action in self.apart[name]]
            cases[name] = [*alone, Case(ANY, parents=parents)]
        return Structure.from_parents(
            self.variables,
            self.actions,
            parents=cases,
            rewards=rewards,
            basis=basis,
            horizon=horizon,
            discount=discount,
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the network and return the axes; see `fsmdp.plot.discovery`."""
        from fsmdp.plot.discoveries import discovery

        return discovery(self, ax)

    def _repr_html_(self) -> str:
        edges = [(f"{e.parent} → {e.child}", f"{e.log_evidence:.0f}") for e in self.edges]
        return facts_table(repr(self), (("edge", "log evidence"), *edges))

    def __repr__(self) -> str:
        edges, variables = plural(len(self.edges), "edge"), plural(len(self.variables), "variable")
        pairs = plural(len(self.together), "pair")
        data = f"{len(self.open)} open; {self.n_transitions:,} transitions"
        return f"Discovery({edges} among {variables}, {pairs} drawn together, {data})"


def discover(
    data: object,
    variables: Sequence[Variable] | None = None,
    actions: Sequence[str] | None = None,
    *,
    max_parents: int = 10,
    delta: float = 0.05,
    effect: float = 0.1,
    lookahead: int = 1,
    episodes: int = 2000,
    steps: int | None = None,
    seed: int = 0,
    progress: bool | Report | None = None,
) -> Discovery:
    """Find the parents of each variable, and which draws are correlated, in transitions.

    `data` are three arrays (states, actions, next states), or a model or Gymnasium environment to
    be played at random for `episodes` (of at most `steps`). Parents are added by how much better
    they predict; each is kept only if the evidence that it matters beyond the action and the other
    parents exceeds what chance gives with probability `delta` over all edges. The evidence needs no
    independent rows: data may come from any policy. Draws are tested in the same way.

    What is not claimed is not excluded: `open` names inputs of which an effect of `effect` on some
    probability could have been overlooked. A parent that matters only jointly with another (as in
    an exclusive or) is looked for with `lookahead=2`. Rewards' scopes are not looked for.
    `progress=True` shows a bar once it takes longer than two seconds; a function is called with the
    variables done and all there are.
    Cost: for each variable, transitions times inputs and actions times the parents found.
    """
    limits = Limits(
        as_whole(max_parents, "max_parents", 1),
        -math.log(as_probability(delta) / 2),
        as_number(effect, "effect", "it says what should have been seen"),
        as_whole(lookahead, "lookahead", 1, 2),
    )
    known = as_transitions(data, variables, actions, episodes, steps, seed)
    searches, found = [], []
    n_variables = len(known.variables)
    with reporting(progress, "discovering", n_variables) as report:
        for variable in range(n_variables):
            search = Search(known, variable, limits)
            found.append(search.run())
            searches.append(search)
            if report is not None:
                report(variable + 1, n_variables)
    names = known.names
    return Discovery(
        known.variables,
        known.actions,
        tuple(
            Edge(names[parent], names[one.variable], strength, search.needed())
            for one, search in zip(found, searches, strict=True)
            for parent, strength in zip(one.parents, one.evidence, strict=True)
        ),
        _together(known, searches),
        tuple(
            Open(names[parent], names[one.variable], reason)
            for one in found
            for parent, reason in one.hidden
        ),
        {
            names[one.variable]: tuple(known.actions[action] for action in one.apart)
            for one in found
        },
        delta,
        len(known),
    )


def _together(known: Transitions, searches: Sequence[Search]) -> tuple[Together, ...]:
    """Pairs whose next values predict one another, given the parents of one of them.

    The null has a law for each action: one that two variables' values both depend on makes them
    predict one another, though they are drawn independently.
    """
    names, found = known.names, []
    fits = [search.fit(search.parents, None) for search in searches]
    contexts = [search.contexts(search.parents, search.apart) for search in searches]
    for j, search in enumerate(searches):
        needed = search.needed()
        for i, other in enumerate(searches[:j]):
            finer = contexts[j] * other.size + other.values
            strength = log_bet(counted(finer, search.values, search.size)) - fits[j]
            if strength >= needed:
                found.append(Together(names[i], names[j], strength, needed))
    return tuple(found)
