"""Search against enumeration: bounds hold at every moment and meet at the optimum."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsmdp import (
    ANY,
    Basis,
    Case,
    Conditional,
    FactoredMDP,
    ModelError,
    Reward,
    SizeError,
    Status,
    Variable,
    domains,
    evaluate_exactly,
    plan,
    rollout,
)
from fsmdp.bounds.clock import Clock
from fsmdp.exact.flat import enumerate_states, solve_flat
from fsmdp.exact.reachable import flat_rules
from fsmdp.policies.hashed import pack
from fsmdp.policies.resolve import state_strides
from fsmdp.solver.parameters import LISTED_SUCCESSORS
from fsmdp.solver.search.graph import (
    branching,
    list_successors,
    new_workspace,
    prepare,
)
from fsmdp.solver.search.search import NOTHING_KNOWN, find_relevance, pack_variables, search

ENDS = [
    {"horizon": 1},
    {"horizon": 5},
    {"horizon": 4, "discount": 0.9},
    {"horizon": None, "discount": 0.5},
    {"horizon": None, "discount": 0.9},
]


@st.composite
def models(draw):
    """Random models of every kind: latents, joint draws, several starts, with and without end."""
    return domains.random_model(
        draw(st.integers(0, 10**6)),
        variables=draw(st.integers(1, 5)),
        actions=draw(st.integers(1, 5)),
        latents=draw(st.integers(0, 2)),
        largest_size=draw(st.integers(2, 3)),
        largest_parents=draw(st.integers(0, 3)),
        rewards=draw(st.integers(0, 3)),
        **draw(st.sampled_from(ENDS)),
    )


def one_way(seed, horizon=6, discount=1.0):
    """A place that is never left for an earlier one, and things that matter only before theirs."""
    rng = np.random.default_rng(seed)
    places, things = 4, 3
    names = [f"thing-{i}" for i in range(things)]
    forward = np.zeros((2, places, places))
    for action in range(2):
        for place in range(places):
            reach = min(places, place + 1 + action)
            forward[action, place, place:reach] = rng.dirichlet(np.ones(reach - place))
    conditionals = [
        Conditional(
            "place",
            [Case(ANY, ["place"], forward[0]), Case(["go"], ["place"], forward[1])],
        )
    ]
    rewards = [Reward("toll", Case(ANY, ["place"], rng.uniform(-1, 1, places)), -1, 1)]
    for i, name in enumerate(names):
        # Others matter to a thing, but no thing matters to the place.
        other = names[(i + 1) % things]
        table = rng.dirichlet(np.ones(2), size=(2, 2))
        conditionals.append(Conditional(name, Case(ANY, [name, other], table)))
        worth = rng.uniform(-1, 1, (places, 2))
        worth[i + 1 :] = worth[i + 1 :, :1]
        rewards.append(
            Reward(
                f"worth of {name}",
                [
                    Case(ANY, ["place", name], worth),
                    Case([f"use-{i}"], ["place", name], np.clip(worth * 2, -1, 1)),
                ],
                -1,
                1,
            )
        )
    return FactoredMDP(
        [Variable("place", places), *(Variable(name, 2) for name in names)],
        ["wait", "go", *(f"use-{i}" for i in range(things))],
        conditionals,
        rewards,
        horizon,
        {name: rng.dirichlet(np.ones(2)) for name in names},
        discount,
    )


def with_a_trap(seed, horizon=6, discount=1.0):
    """Two lamps that light each other, and a switch that means nothing once both are out."""
    rng = np.random.default_rng(seed)
    lit = np.zeros((2, 2, 2, 2))  # own, other, switch -> next
    lit[..., 1] = rng.uniform(0.1, 0.9, (2, 2, 2))
    lit[0, 0, :, 1] = 0.0
    lit[..., 0] = 1 - lit[..., 1]
    press = rng.dirichlet(np.ones(2), size=2)
    worth = rng.uniform(-1, 1, (2, 2, 2))
    worth[0, 0] = worth[0, 0, 0]
    return FactoredMDP(
        [Variable("left", 2), Variable("right", 2), Variable("switch", 2)],
        ["wait", "press"],
        [
            Conditional("left", Case(ANY, ["left", "right", "switch"], lit)),
            Conditional("right", Case(ANY, ["right", "left", "switch"], lit)),
            Conditional("switch", [Case(ANY, ["switch"], press), Case(["press"], [], [0.0, 1.0])]),
        ],
        [Reward("light", Case(ANY, ["left", "right", "switch"], worth), -1, 1)],
        horizon,
        {"left": 1, "right": [0.5, 0.5]},
        discount,
    )


def heuristic(model):
    planned = plan(model, Basis.singles(model), method="joint")
    return planned.basis, planned.bound.weights, planned.upper_bound


def exact(model):
    flat = enumerate_states(model)
    values, *_ = solve_flat(flat)
    return flat, values, float(flat.initial() @ values[0])


def check_search(model, **options):
    """Bounds on both sides of the optimum all along; what the policy earns between them."""
    basis, weights, bound = heuristic(model)
    flat, _, best = exact(model)
    slack = 1e-9 * max(1.0, abs(best))
    bounds = []
    found = search(
        model,
        basis,
        weights,
        callback=lambda _, upper, lower: bounds.append((upper, lower)),
        **options,
    )
    bounds.append((found.upper_bound, found.lower_bound))
    assert all(lower - slack <= best <= upper + slack for upper, lower in bounds)
    assert all(a >= b for (a, _), (b, _) in pairwise(bounds))
    assert all(a <= b for (_, a), (_, b) in pairwise(bounds))
    assert found.upper_bound <= bound + slack
    earned = float(flat.initial() @ evaluate_exactly(model, found.policy))
    assert found.lower_bound - slack <= earned <= best + slack
    return found, best


@given(model=models())
@settings(max_examples=30, deadline=None)
def test_a_search_that_ends_by_itself_is_at_the_optimum(model):
    found, best = check_search(model, tolerance=1e-7)
    assert found.solved
    assert found.status is None
    near = pytest.approx(best, rel=2e-7, abs=2e-7 * model.span_of_return + 1e-290)
    assert found.upper_bound == near
    assert found.lower_bound == near


@given(model=models(), trials=st.integers(0, 6), seed=st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_bounds_hold_after_any_number_of_trials(model, trials, seed):
    found, _ = check_search(model, trials=trials, seed=seed)
    assert found.trials <= trials


@given(seed=st.integers(0, 10**6), end=st.sampled_from(ENDS))
@settings(max_examples=15, deadline=None)
def test_what_no_longer_matters_changes_nothing(seed, end):
    model = one_way(seed, **end)
    found, best = check_search(model, tolerance=1e-7)
    assert found.solved
    assert found.upper_bound == pytest.approx(best, rel=0, abs=2e-7 * model.span_of_return)


def keys_of(flat, packing):
    keys = np.zeros((len(flat.states), packing.kept.shape[1]), dtype=np.int64)
    for state, key in zip(flat.states, keys, strict=True):
        pack(packing, state.copy(), key)
    return keys


def check_merging(model):
    """Merged states have equal rewards, merged successors and values; whether any were merged."""
    flat, values, _ = exact(model)
    weights = np.ones(len(flat.states)) / len(flat.states)
    packing = pack_variables(model.sizes, find_relevance(model, flat.states, weights))
    keys, first, group = np.unique(
        keys_of(flat, packing), axis=0, return_index=True, return_inverse=True
    )
    group = group.ravel()
    into = np.zeros((len(flat.states), len(keys)))
    into[np.arange(len(group)), group] = 1.0
    merged = flat.transitions @ into
    np.testing.assert_allclose(merged, merged[:, first[group]], atol=1e-12)
    np.testing.assert_allclose(flat.rewards, flat.rewards[:, first[group]], atol=1e-12)
    np.testing.assert_allclose(values, values[:, first[group]], atol=1e-9)
    return len(keys) < len(flat.states)


@pytest.mark.parametrize("seed", range(5))
def test_things_behind_a_one_way_place_are_merged(seed):
    assert check_merging(one_way(seed))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_of_no_use_in_a_trap_is_merged(seed):
    model = with_a_trap(seed)
    assert check_merging(model)
    found, best = check_search(model, tolerance=1e-7)
    assert found.upper_bound == pytest.approx(best, rel=2e-7, abs=2e-7)


@given(model=models())
@settings(max_examples=60, deadline=None)
def test_merged_states_are_alike_in_rewards_successors_and_values(model):
    check_merging(model)


@given(model=models())
@settings(max_examples=30, deadline=None)
def test_successors_are_those_of_the_matrices(model):
    flat = enumerate_states(model)
    rules, packing = flat_rules(model), pack_variables(model.sizes, NOTHING_KNOWN)
    work = new_workspace(rules, packing)
    keys = keys_of(flat, packing)
    column = {tuple(key): number for number, key in enumerate(keys.tolist())}
    for number, key in enumerate(keys):
        prepare(rules, packing, key, work)
        for action in range(len(model.actions)):
            row = np.zeros(len(keys))
            for i in range(list_successors(rules, packing, action, work)):
                row[column[tuple(work.keys[i].tolist())]] += work.probabilities[i]
            np.testing.assert_allclose(row, flat.transitions[action, number], atol=1e-13)


def test_keys_of_many_variables_take_several_words():
    packing = pack_variables((3,) * 100, NOTHING_KNOWN)
    state = np.arange(100) % 3
    key = np.zeros(packing.kept.shape[1], dtype=np.int64)
    pack(packing, state, key)
    assert packing.kept.shape[1] == 4
    found = key[packing.word] >> packing.shift & packing.field
    np.testing.assert_array_equal(found, state)


def test_the_same_seed_gives_the_same_search():
    model = domains.random_model(3, variables=5, actions=4, horizon=8)
    basis, weights, _ = heuristic(model)

    def facts(seed):
        found = search(model, basis, weights, trials=7, seed=seed)
        return (
            found.upper_bound,
            found.lower_bound,
            found.states,
            found.policy.arrays.hashed.chosen.tolist(),
        )

    assert facts(1) == facts(1)


def test_a_search_without_room_ends_with_valid_bounds():
    model = domains.sysadmin(9, horizon=20)
    basis, weights, _ = heuristic(model)
    _, _, best = exact(model)
    found = search(model, basis, weights, memory_limit=2**20)
    assert not found.solved
    assert found.bytes <= 2**20
    assert found.lower_bound <= best <= found.upper_bound


def test_a_clock_that_has_ended_leaves_the_heuristic():
    model = one_way(0)
    basis, weights, bound = heuristic(model)
    clock = Clock()
    clock.interrupt()
    found = search(model, basis, weights, clock)
    assert found.status is Status.INTERRUPTED
    assert found.trials == 0
    assert found.upper_bound == pytest.approx(bound)
    assert not found.solved
    assert rollout(model, found.policy, 3).steps == 6


def test_a_lower_bound_that_is_given_is_used():
    model = one_way(4)
    basis, weights, _ = heuristic(model)
    worst = FactoredMDP(
        model.variables,
        ["wait"],
        [
            Conditional(
                c.children, [case for case in c.cases if not isinstance(case.actions, tuple)]
            )
            for c in model.conditionals
        ],
        [
            Reward(r.name, Case(ANY, r.cases[0].parents, -r.cases[0].table), -1, 1)
            for r in model.rewards
        ],
        model.horizon,
        dict(zip([v.name for v in model.variables], model.initial, strict=True)),
    )
    waiting = plan(worst, Basis.singles(worst), method="joint").bound
    lower = (waiting.basis, -waiting.weights)
    before = search(model, basis, weights, trials=0)
    after = search(model, basis, weights, trials=0, lower=lower, fallback="wait")
    flat, _, _ = exact(model)
    waits = float(flat.initial() @ evaluate_exactly(model, "wait"))
    assert before.lower_bound < after.lower_bound <= waits + 1e-9
    solved = search(model, basis, weights, lower=lower, fallback="wait")
    assert solved.solved


def test_too_many_starts_are_refused():
    model = domains.random_model(0, variables=4)
    starts = {f"x{i}": np.ones(2) / 2 for i in range(15)}
    wide = FactoredMDP(
        [Variable(name, 2) for name in starts],
        ["wait"],
        [Conditional(name, Case(ANY, [name], np.eye(2))) for name in starts],
        [],
        model.horizon,
        starts,
    )
    with pytest.raises(SizeError, match="32768 states, expected at most 10000"):
        search(wide, Basis(), np.zeros((5, 1)))


def test_weights_of_another_basis_are_refused():
    model = one_way(0)
    with pytest.raises(ModelError, match=r"weights: expected shape \(7, 1\)"):
        search(model, Basis(), np.zeros((3, 2)))


def test_branching_counts_successors():
    few = branching(one_way(1))
    assert 1 <= few.mean <= few.largest <= 3 * 8
    many = branching(domains.sysadmin(30, horizon=10))
    assert many.largest == LISTED_SUCCESSORS + 1


def test_states_of_policies_are_found_whatever_is_irrelevant():
    model = one_way(2)
    basis, weights, _ = heuristic(model)
    found = search(model, basis, weights)
    strides = state_strides(model.sizes)
    assert len(found.policy.arrays.hashed.keys) < int(strides[0]) * 4 * 6
    assert found.policy.action((3, 0, 0, 0), 6) == found.policy.action((3, 1, 1, 1), 6)
