"""Notes 1 and 2: which scopes the cost network has, and which width governs its elimination."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import networkx
import numpy as np

from fsmdp.bounds.bellman import BellmanNetwork, network_of_model
from fsmdp.elimination import Network, build
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.basis import Basis
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Table
from fsmdp.model.variables import Variable
from fsmdp.reproduction.claim import Finding
from fsmdp.reproduction.models import band_model, fitted_exponent

EXACT = 1e-9
LINEAR = 1.1


def scopes(draws: int, seed: int) -> Finding:
    """Note 1: the largest excess of random weights, with and without the functions' own scopes."""
    rng = generator(seed, Purpose.REPRODUCTION, "networks")
    network, intervals = network_of_model(_swap(rng), Basis([Table(["x"], [0.0, 1.0])]))
    states = np.array(list(product(range(2), repeat=2)))
    without, remaining, wrong = [], 0.0, 0
    for _ in range(draws):
        weights, following = rng.normal(size=(2, len(network.basis)))
        entries = network.excess(weights, following, intervals)
        truth = float(network.elimination.network.value(entries, states, 0).max())
        error = truth - _maximum_of_parents(network, entries)
        without.append(error)
        wrong += error > EXACT
        remaining = max(remaining, abs(truth - network.elimination.maximise(entries).value))
    return Finding(
        note=1,
        says="the network has the scopes of the rewards and the parents of the basis functions",
        truth="it needs the scopes of the basis functions as well, since V(s) is subtracted",
        measured=f"two variables that swap values: without these scopes the largest excess is "
        f"missed for {wrong} of {draws} random weights, by up to {max(without):.2f}; with them "
        f"it agrees with enumeration to {remaining:.0e}",
        wrong=max(without),
        wrong_above=EXACT,
        remaining=remaining,
        remaining_up_to=EXACT,
    )


def _swap(rng: np.random.Generator) -> FactoredMDP:
    """x is drawn from y, and y from x."""
    return FactoredMDP(
        [Variable("x", 2), Variable("y", 2)],
        ["wait"],
        [
            Conditional(child, [Case(ANY, [parent], rng.dirichlet([1.0, 1.0], size=2))])
            for child, parent in (("x", "y"), ("y", "x"))
        ],
        [],
        horizon=2,
        initial=[0, 0],
    )


def _maximum_of_parents(network: BellmanNetwork, entries: Floats) -> float:
    """The maximum over the variables of rewards and parents, the others staying at 0."""
    whole, n_values = network.elimination.network, len(network.values)
    narrow = Network(whole.sizes, whole.n_actions, whole.factors[len(network.basis) :])
    values = entries.copy()
    values[n_values:] = 0.0
    at_zero = whole.value(values, np.zeros(whole.n_variables, dtype=np.int64), 0)
    return float(build(narrow).maximise(entries[n_values:]).value + at_zero)


def widths(chains: Sequence[int], cliques: Sequence[int], seed: int) -> Finding:
    """Note 2: table entries of chains and of cliques, whose longest paths say nothing of them."""
    chain_entries, ratio, chain_width = [], 0.0, 0
    for n in chains:
        path, width, entries = _measures(n, 1, seed)
        chain_entries.append(entries)
        ratio, chain_width = max(ratio, path / width), width
    exponent = fitted_exponent(chains, chain_entries)
    distance, clique_width, clique_entries = _measures(cliques[-1], cliques[-1] - 1, seed)
    return Finding(
        note=2,
        says="the width of the network is its longest path between two variables",
        truth="cost is exponential in the induced width of the elimination order",
        measured=f"a chain of {chains[-1]} variables: path {chains[-1] - 1}, induced width "
        f"{chain_width}, {chain_entries[-1]:,} table entries, which grow with exponent "
        f"{exponent:z.2f}; {cliques[-1]} variables that all touch: distance {distance}, induced "
        f"width {clique_width}, {clique_entries:,} entries",
        wrong=ratio,
        wrong_above=1.0,
        remaining=exponent,
        remaining_up_to=LINEAR,
    )


def _measures(n: int, reach: int, seed: int) -> tuple[int, int, int]:
    """Largest distance in the network, induced width, and table entries."""
    model = band_model(n, reach=reach, seed=seed)
    network, _ = network_of_model(model, Basis.singles(model))
    graph = networkx.Graph()
    for scope in network.elimination.network.all_scopes:
        graph.add_nodes_from(scope)
        graph.add_edges_from(combinations(scope, 2))
    elimination = network.elimination
    return networkx.diameter(graph), elimination.induced_width, elimination.n_rows
