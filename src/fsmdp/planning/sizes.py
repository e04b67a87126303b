"""How large planning would be: the cost network of a model and basis, by choice of elimination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from fsmdp.elimination.order import DEFAULT_LIMIT
from fsmdp.errors import WidthError
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.variables import Scope
from fsmdp.planning.bellman import network_of_model

CHOICES = ("shared", "separate")


@dataclass(frozen=True, slots=True, eq=False)
class NetworkSize:
    """One way to eliminate: its sizes, or why it is refused."""

    elimination: str  # "shared" messages, or a "separate" network for each class of actions
    induced_width: int | None
    largest_table: int | None
    rows: int | None
    refused: str | None


def network_sizes(
    model: FactoredMDP, basis: Basis, limit: int = DEFAULT_LIMIT
) -> tuple[NetworkSize, ...]:
    """Sizes under every choice of elimination; nothing of the size of a table is made.

    Cost: the marginals of the basis, and a few elimination orders for each choice.
    """
    return tuple(_size(model, basis, choice, limit) for choice in CHOICES)


def _size(model: FactoredMDP, basis: Basis, choice: str, limit: int) -> NetworkSize:
    try:
        network, _ = network_of_model(model, basis, elimination=choice, limit=limit)
    except WidthError as error:
        return NetworkSize(choice, None, None, None, str(error))
    found = network.elimination
    return NetworkSize(choice, found.induced_width, found.largest_table, found.n_rows, None)


def joined_variables(scopes: Sequence[Scope]) -> tuple[tuple[int, int], ...]:
    """Edges of a cost network: pairs of variables that stand together in some scope."""
    return tuple(sorted({pair for scope in set(scopes) for pair in combinations(scope, 2)}))
