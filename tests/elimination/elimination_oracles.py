"""Random networks, and the plain answers that elimination is compared with."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import strategies as st

from fsmdp.elimination import Network
from fsmdp.model.cases import Cases


@st.composite
def networks(draw, most_variables=5, most_actions=4, most_factors=6, most_groups=3):
    """Networks of every odd kind: sizes of 1, empty scopes, unused variables, separate parts."""
    sizes = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=most_variables)))
    n_actions = draw(st.integers(1, most_actions))
    scope = st.sets(st.integers(0, len(sizes) - 1), max_size=3).map(lambda s: tuple(sorted(s)))
    factors = []
    for _ in range(draw(st.integers(0, most_factors))):
        groups = tuple(draw(st.lists(scope, min_size=1, max_size=most_groups)))
        group = st.integers(0, len(groups) - 1)
        exceptions = draw(st.dictionaries(st.integers(0, n_actions - 1), group))
        factors.append(Cases(groups, exceptions))
    return Network(sizes, n_actions, tuple(factors))


def random_entries(network, seed=0, with_ties=False):
    rng = np.random.default_rng(seed)
    if with_ties:
        return rng.integers(-1, 2, network.n_entries).astype(float)
    return rng.normal(size=network.n_entries)


def all_states(network):
    return np.array(list(product(*map(range, network.sizes))))


def enumerated_maxima(network, entries):
    states = all_states(network)
    return np.array(
        [network.value(entries, states, action).max() for action in range(network.n_actions)]
    )


def bucket_elimination(network, entries, action, variables):
    """Textbook elimination of one action's network: the maximum, and every table made."""
    tables = []
    for factor, starts in zip(network.factors, network.offsets, strict=True):
        scope = factor.at(action)
        start = starts[factor.group(action)]
        shape = [network.sizes[variable] for variable in scope]
        values = entries[start : start + network.table_size(scope)].reshape(shape)
        tables.append((scope, values))
    made = []
    for variable in variables:
        bucket = [table for table in tables if variable in table[0]]
        if not bucket:
            continue
        scope = tuple(sorted(set().union(*(table[0] for table in bucket))))
        total = np.zeros([network.sizes[other] for other in scope])
        for part, values in bucket:
            shape = [network.sizes[other] if other in part else 1 for other in scope]
            total = total + values.reshape(shape)
        made.append(total)
        rest = tuple(other for other in scope if other != variable)
        tables = [table for table in tables if variable not in table[0]]
        tables.append((rest, total.max(axis=scope.index(variable))))
    return sum(float(values) for _, values in tables), made


def ring(n_machines, pairs=False):
    """The network of the ring of machines, each rebooted by an action of its own."""

    def scope(*variables):
        return tuple(sorted({variable % n_machines for variable in variables}))

    machines = range(n_machines)
    factors = [Cases(((),))]
    factors += [Cases(((i,),)) for i in machines for _ in ("reward", "basis")]
    factors += [Cases((scope(i - 1, i), ()), {i + 1: 1}) for i in machines]
    if pairs:
        factors += [Cases((scope(i - 1, i),)) for i in machines]
        factors += [
            Cases(
                (scope(i - 2, i - 1, i), scope(i - 2, i - 1), scope(i - 1, i)),
                {i + 1: 1, (i - 1) % n_machines + 1: 2},
            )
            for i in machines
        ]
    return Network((2,) * n_machines, n_machines + 1, tuple(factors))
