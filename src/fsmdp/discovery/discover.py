"""Structure from data: who depends on whom, what is drawn together, and what stays open.

First, whether what a structure states to be independent is refuted by what was counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from fsmdp.discovery.parents import (
    NOT_SURE,
    Limits,
    Parents,
    Search,
    Tree,
    compact,
    counted,
    log_bet,
    log_fit,
    regret_of_bet,
)
from fsmdp.discovery.transitions import (
    Transitions,
    as_share,
    as_transitions,
    given_transitions,
    played_model,
)
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_number, as_probability, as_whole, plural, show
from fsmdp.foundation.numbers import facts_table
from fsmdp.foundation.progress import Report, reporting
from fsmdp.learning.cells.layout import Cells
from fsmdp.learning.cells.statistics import Statistics
from fsmdp.model.basis import Basis
from fsmdp.model.cases import ANY, Case, common_groups
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import Scope, Variable, table_size

if TYPE_CHECKING:
    from fsmdp.model.mdp import FactoredMDP
    from fsmdp.model.rewards import Reward

Counted = tuple[Scope, int, list[Integers]]
"""Variables of different groups, how many cells there are, and for each that was visited how often
the variables took their values together."""


@dataclass(frozen=True, slots=True, eq=False)
class Dependence:
    """Variables that are not independent: in one cell, the evidence is e^`log_evidence`."""

    variables: tuple[str, ...]
    visits: int
    log_evidence: float


@dataclass(frozen=True, slots=True, eq=False)
class IndependenceCheck:
    """What the data say of the independence that a structure states.

    `refuted` is right with probability 1 - `delta` at least, if the structure's parents are right.
    That nothing was refuted proves nothing: with few visits little can be.
    """

    refuted: tuple[Dependence, ...]
    cells: int  # that there are to examine
    visits: int  # in all of them together
    delta: float
    needed: float = field(repr=False)  # log of the evidence that one cell needs

    def __bool__(self) -> bool:
        """Whether independence stands as far as the data go."""
        return not self.refuted

    def __repr__(self) -> str:
        looked = f"{plural(self.cells, 'cell')}, {plural(self.visits, 'visit')}"
        if not self.refuted:
            return f"IndependenceCheck(not refuted; {looked}; delta {self.delta:g})"
        worst = max(self.refuted, key=lambda one: one.log_evidence)
        return (
            f"IndependenceCheck(REFUTED for {', '.join(worst.variables)}: evidence "
            f"e^{worst.log_evidence:.1f}, e^{self.needed:.1f} needed; {looked}; "
            f"delta {self.delta:g})"
        )


def check_independence(
    source: Any, structure: Structure | None = None, *, delta: float = 0.05
) -> IndependenceCheck:
    """Test the independence that a structure states on a history, a learner, or transitions.

    A history and a learner bring their structure, and counts of the basis functions that depend on
    several groups (singles depend on none). Transitions are three arrays, states, actions by number
    and next states, with the structure beside them; all pairs of groups are examined.

    In every cell, the chance of the joint counts under a mixture of all joint distributions
    (Dirichlet, 1/2 for each value) is divided by the largest chance that independence gives them.
    If the groups are independent, the quotient is below that of the truth, a martingale of mean 1,
    and ever reaches C / delta in one of all C cells with probability delta at most (Ville), however
    cells were chosen and whenever one looks; see `fsmdp.discovery.parents`. It also does if
    parents are missing: then next values depend on what is not in the cell.
    """
    delta = as_probability(delta)
    if isinstance(source, tuple | list) and len(source) == 3:
        if not isinstance(structure, Structure):
            raise ModelError(
                f"check_independence: transitions need a structure, found {show(structure)}; give "
                "the one whose independence is in doubt."
            )
        stated = _stated(structure)
        data = given_transitions(source, stated.variables, stated.actions)
        return _judged(stated, list(_of_transitions(stated, data)), delta)
    cells, statistics = getattr(source, "cells", None), getattr(source, "statistics", None)
    if not isinstance(cells, Cells) or not isinstance(statistics, Statistics):
        raise ModelError(
            f"check_independence: expected a history, a learner, or (states, actions, next "
            f"states), found {show(source)}; give what learn returned."
        )
    stated = _stated(structure or source.structure)
    return _judged(stated, list(_of_statistics(stated, cells, statistics)), delta)


def _stated(structure: object) -> Structure:
    if not isinstance(structure, Structure) or len(structure.independent) < 2:
        raise ModelError(
            "check_independence: the structure states no groups that are independent; state them "
            "(Structure.from_parents(..., independent=...)), or there is nothing to test."
        )
    return structure


def _judged(structure: Structure, counted: Sequence[Counted], delta: float) -> IndependenceCheck:
    group_of = {p: g for g, group in enumerate(structure.independent) for p in group}
    n_cells = sum(cells for _, cells, _ in counted)
    needed = math.log(max(1, n_cells) / delta)
    refuted, visits = [], 0
    for scope, _, tables in counted:
        parts: dict[int, list[int]] = {}
        for axis, position in enumerate(scope):
            parts.setdefault(group_of[position], []).append(axis)
        for counts in tables:
            visits += int(counts.sum())
            found = log_evidence(counts, list(parts.values()))
            if found >= needed:
                names = tuple(structure.variables[position].name for position in scope)
                refuted.append(Dependence(names, int(counts.sum()), found))
    return IndependenceCheck(tuple(refuted), n_cells, visits, delta, needed)


def log_evidence(counts: Integers, parts: Sequence[Sequence[int]]) -> float:
    """Log of the mixture's chance of joint counts over the largest that independent parts give."""
    seen, fits = counts.astype(np.float64), 0.0
    for part in parts:
        others = tuple(axis for axis in range(counts.ndim) if axis not in part)
        fits += log_fit(seen.sum(axis=others).reshape(1, -1))
    return log_bet(seen.reshape(1, -1)) - fits


def _of_statistics(structure: Structure, cells: Cells, statistics: Statistics) -> Iterator[Counted]:
    """Joint counts of the functions that depend on several groups, each set of outcomes once."""
    group_of = {p: g for g, group in enumerate(structure.independent) for p in group}
    starts, first = np.unique(cells.layout.outcome_start, return_index=True)
    for start, cell in zip(starts.tolist(), first.tolist(), strict=True):
        function = int(cells.function[cell])
        begin, end = cells.layout.scope_start[function : function + 2]
        scope = tuple(cells.layout.scope_slot[begin:end].tolist())
        if len({group_of[position] for position in scope}) < 2:
            continue
        shape = tuple(structure.variables[position].size for position in scope)
        counts = statistics.outcomes[start : start + int(np.prod(shape))].reshape(shape)
        yield scope, 1, [counts] if counts.any() else []


def _of_transitions(structure: Structure, data: Transitions) -> Iterator[Counted]:
    """Joint counts of every pair of groups, in the cells of the parents of both."""
    for one, other in combinations(range(len(structure.independent)), 2):
        parents = common_groups(
            [structure.group_parents[one], structure.group_parents[other]], data.n_actions
        )
        scope = (*structure.independent[one], *structure.independent[other])
        values = tuple(structure.variables[position].size for position in scope)
        outcome = np.ravel_multi_index(tuple(data.outcomes[:, list(scope)].T), values)
        group = np.array([parents.group(action) for action in range(data.n_actions)])[data.taken]
        for number, scopes in enumerate(parents):
            own = group == number
            looked_at = sorted({position for part in scopes for position in part})
            n_cells = table_size(data.sizes[position] for position in looked_at)
            _, cell = np.unique(data.inputs[own][:, looked_at], axis=0, return_inverse=True)
            order = np.argsort(cell.ravel(), kind="stable")
            found, at = np.unique(cell.ravel()[order], return_index=True)
            seen = np.split(outcome[own][order], at[1:]) if len(found) else []
            length = math.prod(values)
            tables = [np.bincount(rows, minlength=length).reshape(values) for rows in seen]
            yield scope, n_cells, tables


INSTEAD = "in these data it cannot be distinguished from {parent}"


@dataclass(frozen=True, slots=True)
class Edge:
    """A variable whose next value depends on an input, beyond what its other parents explain.

    `log_evidence` is the logarithm of the evidence against the opposite, `needed` what it had to
    reach. `instead` names inputs that implied the parent's value in all data, so that they may
    be the ones that matter, in its place: no data like these can tell.
    """

    parent: str
    child: str
    log_evidence: float
    needed: float
    instead: tuple[str, ...] = ()


STATE, PARENTS_FOUND = "state", "parents found"
"""What the next values of two variables were seen to be correlated given, besides the action."""

WITH_ANOTHER = "it seems to matter jointly with another input, which lookahead=2 looks for"

IN_COMMON = "something that was not found explains a correlation with {other}"

MOST_WORK = 2**26
"""Transitions times pairs of inputs that are examined for what explains a correlation: seconds."""


@dataclass(frozen=True, slots=True)
class Together:
    """Two variables whose next values are correlated given the action and `given`.

    Given the whole "state" they are drawn together, whatever their parents are. Given the "parents
    found" of either they are drawn together if the parents of one of them were all found; two that
    have parents in common which were not found look the same.
    """

    one: str
    other: str
    log_evidence: float
    needed: float
    given: str = STATE


@dataclass(frozen=True, slots=True)
class Undecided:
    """An edge that is not claimed, though there may be one, and why."""

    parent: str
    child: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Discovery:
    """What data say about a structure.

    With probability at least 1 - `delta`, for whatever data: no edge leads into a variable from an
    input that does not matter to it, provided that its true parents are among those found, or seem
    to matter (`undecided`); and no two variables are called drawn together that are not: given the
    state without a condition, given the parents found provided that all parents of one of the two
    were found (`Together.given`). Nothing is claimed about edges that are missing, except that
    `undecided` lists those that could have been overlooked. `played` is the model that was played,
    if it was one.
    """

    variables: tuple[Variable, ...]
    actions: Sequence[str]
    evidence: tuple[Edge, ...]  # one for each edge that was found
    together: tuple[Together, ...]
    undecided: tuple[Undecided, ...]
    apart: dict[str, tuple[str, ...]]  # by variable, the actions under which it moves otherwise
    delta: float
    n_transitions: int
    played: FactoredMDP | None = None

    @property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """Parents of each variable."""
        by_child: dict[str, list[str]] = {variable.name: [] for variable in self.variables}
        for edge in self.evidence:
            by_child[edge.child].append(edge.parent)
        return {child: tuple(parents) for child, parents in by_child.items()}

    def structure(
        self,
        basis: Basis | None = None,
        rewards: Sequence[Reward] | None = None,
        horizon: int | None = None,
        discount: float = 1.0,
    ) -> Structure:
        """What a learner can be given: these parents, with rewards and a basis of your own.

        Without a basis, singles. Without rewards, those of the model that was played, and its
        horizon and discount. That variables are drawn independently is not stated: what `together`
        does not name was not seen to be correlated, which proves nothing.
        """
        if rewards is None:
            if self.played is None:
                raise ModelError(
                    "rewards: expected reward terms, since transitions have none; give "
                    "structure(basis, rewards, horizon)."
                )
            rewards, horizon = self.played.rewards, self.played.horizon
            discount = self.played.discount
        cases = {}
        for name, parents in self.parents.items():
            alone = [Case([action], parents=parents) for action in self.apart[name]]
            cases[name] = [*alone, Case(ANY, parents=parents)]
        return Structure.from_parents(
            self.variables,
            self.actions,
            parents=cases,
            rewards=rewards,
            basis=Basis.singles(self.variables) if basis is None else basis,
            horizon=horizon,
            discount=discount,
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the network and return the axes; see `fsmdp.plot.discovery`."""
        from fsmdp.report.plot import discovery

        return discovery(self, ax)

    def _repr_html_(self) -> str:
        edges = [(f"{e.parent} → {e.child}", f"{e.log_evidence:.0f}") for e in self.evidence]
        return facts_table(repr(self), (("edge", "log evidence"), *edges))

    def __repr__(self) -> str:
        edges, variables = (
            plural(len(self.evidence), "edge"),
            plural(len(self.variables), "variable"),
        )
        pairs = f"{plural(len(self.together), 'pair')} drawn together"
        provided = sum(pair.given == PARENTS_FOUND for pair in self.together)
        if provided:
            pairs += f" ({provided} of them if the parents found are all)"
        data = f"{len(self.undecided)} undecided; {self.n_transitions:,} transitions"
        return f"Discovery({edges} among {variables}, {pairs}, {data})"


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
    anywhere: float | None = None,
    seed: int = 0,
    progress: bool | Report | None = None,
) -> Discovery:
    """Find the parents of each variable, and which draws are correlated, in transitions.

    `data` are three arrays (states, actions, next states), or a model or Gymnasium environment to
    be played at random for `episodes` (of at most `steps`), of which the share `anywhere` begins in
    a state drawn at random (by default half of them where that can be asked for, as of a model):
    what random play never comes to cannot be found. Parents are those that a decision tree, or a
    table, predicts best with; each is kept only if the evidence that it matters beyond the action
    and the other parents exceeds what chance gives with probability `delta` over all edges. The
    evidence needs no independent rows: data may come from any policy. Draws are tested in the same
    way.

    What is not claimed is not excluded: `undecided` names inputs of which an effect of `effect` on
    some probability, in all contexts, could have been overlooked, and inputs that cannot be
    distinguished from a parent that was found. A parent that matters only jointly with another
    (as in an exclusive or) is looked for with `lookahead=2`. Rewards' scopes are not looked for.
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
    known = as_transitions(data, variables, actions, episodes, steps, seed, as_share(anywhere))
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
    implied = implied_by_others(
        known, {parent for one in found for parent in one.parents}, max_parents
    )
    edges = tuple(
        Edge(
            names[parent],
            names[one.variable],
            strength.found,
            strength.needed,
            tuple(names[other] for other in implied.get(parent, ()) if other not in one.parents),
        )
        for one in found
        for parent, strength in zip(one.parents, one.evidence, strict=True)
    )
    together, explaining = _together(known, searches)
    return Discovery(
        known.variables,
        known.actions,
        edges,
        together,
        _undecided(names, found, edges, explaining),
        {
            names[one.variable]: tuple(known.actions[action] for action in one.apart)
            for one in found
        },
        delta,
        len(known),
        played_model(data),
    )


def implied_by_others(data: Transitions, inputs: Iterable[int], most: int) -> dict[int, list[int]]:
    """State variables whose value others implied in all rows, and which these are.

    A tree of the others has to predict it, so that few rows, in which anything tells anything,
    are not enough.
    """
    found = {}
    n_variables = len(data.variables)
    for one in sorted(inputs):
        if one < n_variables:  # action variables were chosen
            others = [other for other in range(n_variables) if other != one]
            values, size = data.inputs[:, one], data.sizes[one]
            tree = Tree(data, values, size, others, most=most, by_action=False)
            if tree.certain:
                found[one] = tree.parents
    return found


def _undecided(
    names: Sequence[str],
    found: Sequence[Parents],
    edges: Sequence[Edge],
    explaining: Sequence[tuple[int, int, str]],
) -> tuple[Undecided, ...]:
    """What may matter in a parent's place, then what seems to matter, then what was not seen to."""
    reasons = {
        (other, edge.child): INSTEAD.format(parent=edge.parent)
        for edge in edges
        for other in edge.instead
    }
    reasons |= {(names[parent], names[child]): reason for parent, child, reason in explaining}
    hidden = [(parent, one.variable, reason) for one in found for parent, reason in one.hidden]
    for parent, child, reason in sorted(hidden, key=lambda one: one[2] != NOT_SURE):
        reasons.setdefault((names[parent], names[child]), reason)
    return tuple(Undecided(*pair, reason) for pair, reason in reasons.items())


def _together(
    known: Transitions, searches: Sequence[Search]
) -> tuple[tuple[Together, ...], list[tuple[int, int, str]]]:
    """Pairs whose next values predict one another, and inputs that explain others.

    The null has a law for each action: one that two variables' values both depend on makes them
    predict one another, though they are drawn independently. So do parents in common that were not
    found. Three things are tried: the null of the whole state, which holds all parents, but leaves
    few rows to each state of a large model; the null of the parents found, of either variable; and
    the latter with what a search for pairs of parents adds, since two inputs that matter jointly
    have no effect by themselves.
    """
    found: list[Together] = []
    explained: dict[tuple[int, int], str] = {}
    laws, further = [_Law(search) for search in searches], dict[int, _Law]()
    state = searches[0].contexts(list(range(len(known.sizes))))
    for j, law in enumerate(laws):
        for i, other in enumerate(laws[:j]):
            strength, needed = _correlation(law, other)
            if strength < needed:
                continue
            names = known.names[i], known.names[j]
            given_state = law.bet(other, state) - law.fit(state)
            if given_state >= needed:
                found.append(Together(*names, given_state, needed))
                continue
            both = law, other
            for one in both:
                if one.variable not in further and _can_look_ahead(one.search):
                    further[one.variable] = _Law(one.search.looking_ahead())
            again = [further.get(one.variable, one) for one in both]
            strength, needed = _correlation(*again)
            if strength < needed:
                for one, more in zip(both, again, strict=True):
                    for parent in set(more.search.parents) - set(one.search.parents):
                        explained[parent, one.variable] = WITH_ANOTHER
            elif strength >= needed + law.price(other, state):
                # It would have been seen given the state, too: parents in common are missing.
                for one, name in zip(both, names, strict=True):
                    for parent in set(one.search.candidates) - set(one.search.parents):
                        explained.setdefault((parent, one.variable), IN_COMMON.format(other=name))
            else:
                found.append(Together(*names, strength, needed, PARENTS_FOUND))
    return tuple(found), [(*pair, reason) for pair, reason in sorted(explained.items())]


class _Law:
    """What a variable's next value depends on, as far as a search has found."""

    def __init__(self, search: Search) -> None:
        self.search, self.variable = search, search.variable
        self.contexts = search.contexts(search.parents, search.apart)
        self.fitted = self.fit(search.contexts(search.parents))  # a law for each action
        self.needed = search.needed() + math.log(len(search.data.variables))

    def fit(self, contexts: Integers) -> float:
        """The best law that depends on contexts alone."""
        return log_fit(counted(contexts, self.search.values, self.search.size))

    def bet(self, by: _Law, contexts: Integers) -> float:
        """How well contexts and another next value predict."""
        return log_bet(self._counted(by, contexts))

    def price(self, by: _Law, contexts: Integers) -> float:
        """What the bet loses because it has to learn a law for each context and value."""
        return regret_of_bet(self._counted(by, contexts))

    def _counted(self, by: _Law, contexts: Integers) -> Floats:
        finer = contexts * by.search.size + by.search.values
        return counted(compact(finer), self.search.values, self.search.size)


def _correlation(one: _Law, other: _Law) -> tuple[float, float]:
    """Evidence that two next values are correlated given the parents of either, and its need."""
    pairs = ((one, other), (other, one))
    found = [(of.bet(by, of.contexts) - of.fitted, of.needed) for of, by in pairs]
    return min(found, key=lambda pair: pair[0] - pair[1])


def _can_look_ahead(search: Search) -> bool:
    n_inputs = len(search.candidates)
    return search.limits.lookahead < 2 and n_inputs**2 * len(search.data) <= MOST_WORK
