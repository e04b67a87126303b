"""Random planning problems: the same numbers as a network for planners and written out."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from fsmdp.bounds.bellman import (
    BellmanNetwork,
    Intervals,
    flatten_cases,
    network_of_model,
    network_of_structure,
)
from fsmdp.bounds.enumerated import Enumerated, enumerate_known, minimum
from fsmdp.domains import random_model
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Case, Cases
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Table, bound_table

MOST_UNCERTAIN = 5
"""Functions with intervals of some width: the sign patterns written out number 2 to this."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, what a planner is given of it, and the same numbers written out."""

    model: FactoredMDP
    network: BellmanNetwork
    intervals: Intervals
    numbers: Enumerated

    def _repr_pretty_(self, printer, cycle):
        kind = "known" if self.intervals.exact else "uncertain"
        printer.text(f"Problem({self.model!r}, {kind}, basis over {self.network.basis.scopes})")


def enumerate_tables(known, rewards, low, high):
    """Numbers of an uncertain model, looked up one by one in its tables (Cases of Tables)."""
    n_actions, n_states = known.rewards.shape

    def look_up(cases):
        return np.array(
            [[cases.at(a).value(state) for state in known.states] for a in range(n_actions)]
        )

    return replace(
        known,
        rewards=sum((look_up(cases) for cases in rewards), np.zeros((n_actions, n_states))),
        low=np.stack([look_up(cases) for cases in low], axis=-1),
        high=np.stack([look_up(cases) for cases in high], axis=-1),
    )


def stage_optimum(numbers, means, following, view="optimistic"):
    """min E[V_l] subject to V_l(s) >= R(s, a) + discount * backup(s, a), w_{l+1} being given."""
    right = numbers.rewards + numbers.discount * numbers.backup(following, view)
    return minimum(means, np.tile(numbers.features, (len(right), 1)), right.ravel())


def random_basis(model, kind, rng):
    """One of the ready-made bases, or tables of random numbers over random scopes."""
    n_variables = len(model.variables)

    def some_scope():
        count = rng.integers(0, min(2, n_variables) + 1)
        return [int(position) for position in rng.permutation(n_variables)[:count]]

    if kind == "singles":
        return Basis.singles(model)
    if kind == "pairs":
        return Basis.pairs(model)
    if kind == "blocks":
        return Basis.blocks(model, [some_scope() for _ in range(2)])
    scopes = [some_scope() for _ in range(rng.integers(1, 5))]
    return Basis([Table(s, rng.normal(size=[model.sizes[p] for p in s])) for s in scopes])


def nearly_dependent(model, rng):
    """Two functions of each variable, of odd sizes and nearly the same."""
    tables = []
    for variable in model.variables:
        first = rng.normal(size=variable.size)
        tables.append(Table([variable.name], 10.0 ** rng.uniform(-6, 6) * first))
        near = first + 10.0 ** rng.uniform(-9, 0) * rng.normal(size=variable.size)
        tables.append(Table([variable.name], near))
    return Basis(tables)


def known_problem(model, basis, **options):
    """A known model: intervals of no width."""
    network, intervals = network_of_model(model, basis, **options)
    return Problem(model, network, intervals, enumerate_known(model, basis))


def uncertain_problem(model, basis, rng, **options):
    """Intervals around the true means, some of no width, inside the range of each function.

    Rewards are raised by random amounts, as optimism does.
    """
    network, _ = network_of_model(model, basis, **options)
    uncertain = rng.permutation(len(network.basis))[:MOST_UNCERTAIN]
    low, high = [], []
    backprojections = model.marginals(network.basis).backprojections()
    for j, (cases, function) in enumerate(zip(backprojections, network.basis, strict=True)):
        widened = [_widened(table, function, j in uncertain, rng) for table in cases]
        low.append(Cases(tuple(table for table, _ in widened), cases.exceptions))
        high.append(Cases(tuple(table for _, table in widened), cases.exceptions))
    rewards = [
        means.map(
            lambda table: bound_table(
                table.scope, table.values + 0.3 * rng.random(table.values.shape)
            )
        )
        for means in model.reward_means
    ]
    intervals = Intervals(flatten_cases(rewards), flatten_cases(low), flatten_cases(high))
    known = enumerate_known(model, basis)
    return Problem(model, network, intervals, enumerate_tables(known, rewards, low, high))


def _widened(table, function, uncertain, rng):
    mean = table.values
    if not uncertain or function.scope == ():
        return table, table
    open_ = rng.random(mean.shape) < 0.7
    below = np.maximum(mean - function.values.min(), 0) * rng.random(mean.shape)
    above = np.maximum(function.values.max() - mean, 0) * rng.random(mean.shape)
    return (
        bound_table(table.scope, np.where(open_, mean - below, mean)),
        bound_table(table.scope, np.where(open_, mean + above, mean)),
    )


def redrawn(model, rng):
    """Another model with the same structure: every probability and reward drawn anew."""

    def rows(conditional, table):
        children = table.shape[table.ndim - len(conditional.children) :]
        outcomes = int(np.prod(children))
        shape = table.shape[: table.ndim - len(conditional.children)]
        return rng.dirichlet(np.ones(outcomes), size=shape).reshape(table.shape)

    rewards = [
        type(reward)(
            reward.name,
            [
                Case(c.actions, c.parents, rng.uniform(reward.low, reward.high, c.table.shape))
                for c in reward.cases
            ],
            reward.low,
            reward.high,
        )
        for reward in model.rewards
    ]
    conditionals = [
        Conditional(
            one.children,
            [Case(c.actions, c.parents, rows(one, c.table), drawn=c.drawn) for c in one.cases],
        )
        for one in model.conditionals
    ]
    initial = {v.name: start for v, start in zip(model.variables, model.initial, strict=True)}
    return FactoredMDP(
        model.variables,
        model.actions,
        conditionals,
        rewards,
        model.horizon,
        initial,
        model.discount,
        model.latents,
    )


def hull_of(models, basis):
    """A network of the common structure, and the smallest intervals that hold all the models."""
    structure = models[0].structure(basis)
    network = network_of_structure(structure)
    known = [enumerate_known(model, basis) for model in models]

    def entries(cases, numbers):
        """The numbers (n_actions, n_states) at one state and action for each entry."""
        found = []
        for group, scope in enumerate(cases):
            # A default that every action is an exception to has no numbers; any will do.
            members = [a for a in range(len(structure.actions)) if cases.group(a) == group]
            action = members[0] if members else 0
            sizes = [models[0].sizes[position] for position in scope]
            for assignment in np.ndindex(*sizes):
                state = np.zeros(len(models[0].sizes), dtype=int)
                state[list(scope)] = assignment
                found.append(numbers[action, np.ravel_multi_index(state, models[0].sizes)])
        return found

    backups = np.array(
        [
            [
                value
                for j, cases in enumerate(structure.parents)
                for value in entries(cases, one.high[:, :, j])
            ]
            for one in known
        ]
    )
    rewards = np.array([_reward_entries(model, structure) for model in models])
    return network, Intervals(rewards.max(axis=0), backups.min(axis=0), backups.max(axis=0))


def _reward_entries(model, structure):
    found = []
    for term, means in zip(structure.rewards, model.reward_means, strict=True):
        for scope, table in zip(term.parents, means, strict=True):
            assert scope == table.scope
            found += table.values.ravel().tolist()
    return found


def small_models(horizons=(1, 2, 3)):
    """Models of up to 27 states, with blocks, latents, per-group parents and loose ends."""

    def build(seed, variables, actions, horizon, discount, latents, rewards):
        if horizon is None:
            discount = 0.8
        return random_model(
            seed, variables, actions, horizon, discount, latents=latents, rewards=rewards
        )

    return st.builds(
        build,
        seed=st.integers(0, 10_000),
        variables=st.integers(1, 3),
        actions=st.integers(1, 3),
        horizon=st.sampled_from(horizons),
        discount=st.sampled_from([1.0, 0.9]),
        latents=st.integers(0, 1),
        rewards=st.integers(1, 3),
    )


@st.composite
def problems(draw, horizons=(1, 2, 3), uncertain=None, kinds=None):
    """A random model with a random basis, known or with random intervals."""
    model = draw(small_models(horizons))
    kind = draw(st.sampled_from(kinds or ("singles", "pairs", "blocks", "tables")))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    basis = random_basis(model, kind, rng)
    if draw(st.booleans()) if uncertain is None else uncertain:
        return uncertain_problem(model, basis, rng)
    return known_problem(model, basis)


weightings = st.sampled_from(["initial", "uniform"])
