"""Folded look-ups against the terms one by one."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fsmdp
from fsmdp.bounds.bellman import network_of_structure
from fsmdp.bounds.finish import greedy_lookup
from fsmdp.domains.random import random_model
from fsmdp.learning.learners.learner import TieBreaker
from fsmdp.model.actions import ListedActions
from fsmdp.model.cases import Cases
from fsmdp.model.lookup import Inputs, compile_lookup
from fsmdp.policies import folding
from fsmdp.policies.arrays import FOLDED, GREEDILY, best_actions, check_policy, policy_arrays
from fsmdp.policies.folding import (
    FoldedSteps,
    check_folded,
    fill_totals,
    fold,
    fold_layout,
    lookup_cost,
)
from fsmdp.policies.greedy import BestActions, Greedy


@st.composite
def lookups(draw):
    """A model's own terms, in which groups of actions have parents of their own."""
    model = random_model(
        draw(st.integers(0, 10_000)),
        draw(st.integers(1, 5)),
        draw(st.integers(1, 6)),
        2,
        latents=draw(st.integers(0, 1)),
        rewards=draw(st.integers(1, 3)),
    )
    make = draw(st.sampled_from([fsmdp.Basis.singles, fsmdp.Basis.pairs]))
    network = network_of_structure(model.structure(make(model)))
    return model, greedy_lookup(network)


def states_of(sizes):
    return np.ascontiguousarray(np.indices(sizes).reshape(len(sizes), -1).T, dtype=np.int64)


def whole_numbers(rng, shape):
    """Entries whose sums are exact, so that ties are, too."""
    return rng.integers(-3, 4, shape).astype(float)


def q_one_by_one(lookup, entries, state, n_actions):
    """Q(s, a) for every action: for each item the table that holds under the action."""
    found = []
    for action in range(n_actions):
        tables = lookup.defaults.tolist()
        for e in range(lookup.exception_start[action], lookup.exception_start[action + 1]):
            tables[lookup.exception_item[e]] = int(lookup.exception_table[e])
        total = 0.0
        for table in tables:
            axes = slice(lookup.input_start[table], lookup.input_start[table + 1])
            at = state[lookup.input_slot[axes]] @ lookup.input_stride[axes]
            total += entries[lookup.offset[table] + at]
        found.append(total)
    return np.array(found)


def totals_of(layout, tables, state, n_totals):
    totals = np.zeros(n_totals)
    fill_totals(layout.folded, tables, state, totals)
    return totals


def two_groups(scope, usual, sizes, n_actions=3):
    """One item that looks at `usual`, and at `scope` under the last action."""

    def inputs(slots):
        return Inputs(slots, tuple(sizes[slot] for slot in slots))

    return compile_lookup([Cases((inputs(usual), inputs(scope)), {n_actions - 1: 1})], n_actions)


@settings(max_examples=40)
@given(lookups(), st.sampled_from(folding.ATTEMPTS), st.integers(0, 1000))
def test_folded_totals_are_those_of_the_terms_one_by_one(case, attempt, seed):
    model, lookup = case
    n_actions = len(model.actions)
    entries = whole_numbers(np.random.default_rng(seed), (3, int(lookup.offset[-1])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "ATTEMPTS", (attempt,))
        layout = fold_layout(lookup, model.sizes, n_actions, 3, totals=True)
    tables = fold(layout, entries)
    for step in range(3):
        for state in states_of(model.sizes)[:40]:
            totals = totals_of(layout, tables[step], state, n_actions + 1)
            expected = q_one_by_one(lookup, entries[step], state, n_actions)
            np.testing.assert_array_equal(totals[:-1] + totals[-1], expected)


@settings(max_examples=40)
@given(lookups(), st.integers(0, 1000), st.booleans())
def test_a_folded_policy_takes_the_first_of_the_best_actions(case, seed, whole):
    model, lookup = case
    rng = np.random.default_rng(seed)
    shape = (2, int(lookup.offset[-1]))
    entries = whole_numbers(rng, shape) if whole else rng.normal(size=shape)
    policy = Greedy(model.variables, model.actions, 2, lookup, entries)
    assert policy.compiled().kind == FOLDED
    for step in (1, 2):
        for state in states_of(model.sizes)[:40]:
            q = policy.q_values(state, step)
            chosen = model.actions.index(policy.action(state, step))
            assert q[chosen] >= q.max() - 1e-12
            if whole:
                assert chosen == q_one_by_one(lookup, entries[step - 1], state, len(q)).argmax()


@settings(max_examples=40)
@given(lookups(), st.integers(0, 3000))
def test_a_limit_is_kept_or_nothing_is_folded(case, limit):
    model, lookup = case
    n_actions = len(model.actions)
    layout = fold_layout(lookup, model.sizes, n_actions, 7, limit)
    if layout is None:
        free = fold_layout(lookup, model.sizes, n_actions, 7)
        assert free is None or 7 * free.numbers > limit
    else:
        assert 7 * layout.numbers <= limit
        tables = fold(layout, np.zeros((7, int(lookup.offset[-1]))))
        assert tables.shape == (7, max(1, layout.numbers))


def test_a_policy_beyond_the_limit_is_followed_as_it_stands():
    model = fsmdp.domains.sysadmin(4, horizon=3)
    plan = fsmdp.plan(model, fsmdp.Basis.pairs(model), method="programs")
    free = replace(plan.policy)
    tight = replace(plan.policy)
    sizes = tuple(model.sizes)
    steps = FoldedSteps(plan.lookup, plan.q_entries, sizes, len(model.actions), limit=5)
    object.__setattr__(tight, "_steps", steps)
    assert free.compiled().kind == FOLDED
    assert tight.compiled().kind == GREEDILY
    for state in states_of(sizes):
        assert free.action(state, 2) == tight.action(state, 2)


def test_an_action_that_changes_nothing_has_a_total_of_exactly_zero():
    sizes, rng = (2, 3, 2), np.random.default_rng(0)
    inputs = [Inputs(s, tuple(sizes[i] for i in s)) for s in ((0, 1), (1, 2), (0, 2))]
    lookup = compile_lookup([Cases((one, one), {1: 1}) for one in inputs], 2)
    entries = np.concatenate([np.tile(rng.normal(size=n), 2) for n in (6, 6, 4)])[None]
    layout = fold_layout(lookup, sizes, 2, 1)
    tables = fold(layout, entries)[0]
    for state in states_of(sizes):
        assert totals_of(layout, tables, state, 2).tolist() == [0.0, 0.0]


def test_a_term_far_from_its_default_is_kept_apart():
    sizes = (2,) * 16
    lookup = two_groups(tuple(range(8)), tuple(range(8, 16)), sizes)
    layout = fold_layout(lookup, sizes, 3, 1)
    assert layout.numbers == 2 * 2**8
    entries = whole_numbers(np.random.default_rng(1), (1, 2**9))
    tables = fold(layout, entries)[0]
    for state in np.random.default_rng(2).integers(0, 2, (50, 16)):
        totals = totals_of(layout, tables, state, 3)
        q = q_one_by_one(lookup, entries[0], state, 3)
        np.testing.assert_array_equal(totals, q - q[0])


def test_actions_with_the_same_effect_share_their_tables():
    sizes = (2, 2, 2)
    usual, other = (Inputs(s, tuple(sizes[i] for i in s)) for s in ((0, 1), (1, 2)))
    alone = compile_lookup([Cases((usual, other), {1: 1})], 9)
    shared = compile_lookup([Cases((usual, other), dict.fromkeys(range(1, 9), 1))], 9)
    assert fold_layout(alone, sizes, 9, 1).numbers == fold_layout(shared, sizes, 9, 1).numbers


def test_look_ups_of_pairs_become_few():
    model = fsmdp.domains.sysadmin(12, horizon=5)
    basis = fsmdp.Basis.pairs(model)
    lookup = greedy_lookup(network_of_structure(model.structure(basis)))
    layout = fold_layout(lookup, model.sizes, len(model.actions), 5)
    assert 5 * layout.acting_cost < lookup_cost(lookup)
    assert layout.pays(1e6, lookup_cost(lookup))
    assert not layout.pays(1, lookup_cost(lookup))


@pytest.mark.parametrize("n_states", [1, 5000])
def test_values_of_a_pool_are_those_of_its_states(n_states):
    model = random_model(5, 6, 5, 2)
    network = network_of_structure(model.structure(fsmdp.Basis.pairs(model)))
    lookup, rng = greedy_lookup(network), np.random.default_rng(3)
    best = BestActions(lookup, model.sizes)
    assert (best._layout_for(n_states) is None) == (n_states == 1)
    states = rng.integers(0, model.sizes, (n_states, len(model.sizes)))
    entries = whole_numbers(rng, int(lookup.offset[-1]))
    values, actions = best(entries, states)
    plain_values, plain_actions = np.zeros(n_states), np.zeros(n_states, dtype=np.int64)
    best_actions(lookup, entries, states, plain_values, plain_actions)
    np.testing.assert_array_equal(values, plain_values)
    np.testing.assert_array_equal(actions, plain_actions)


def test_episodes_are_the_same_compiled_and_through_python():
    model = random_model(8, 5, 4, None, 0.9)
    plan = fsmdp.plan(model, fsmdp.Basis.pairs(model), method="programs")
    compiled = fsmdp.rollout(model, plan, 50, steps=20)
    by_hand = fsmdp.rollout(model, lambda state, step: plan.action(state, step), 50, steps=20)
    np.testing.assert_allclose(compiled.returns, by_hand.returns, rtol=0, atol=1e-12)


def test_learners_act_alike_folded_or_not():
    model = random_model(2, 4, 4, 3)
    structure = model.structure(fsmdp.Basis.pairs(model))
    ties = TieBreaker(structure)
    n_cells = int(ties._lookup.offset[-1]) - len(model.actions)
    q = np.random.default_rng(0).normal(size=(3, n_cells))
    once = ties.policy(q, 1.0, np.random.default_rng(1), episodes=0)
    often = ties.policy(q, 1.0, np.random.default_rng(1), episodes=1e9)
    assert (once.kind, often.kind) == (GREEDILY, FOLDED)
    for step in range(3):
        for state in states_of(model.sizes):
            plain = q_one_by_one(once.lookup, once.entries[step], state, len(model.actions))
            totals = np.zeros(len(model.actions))
            fill_totals(often.folded, often.entries[step], state, totals)
            np.testing.assert_allclose(totals - totals[0], plain - plain[0], atol=1e-12)


class TestSteps:
    """Tables made when they are wanted."""

    model = random_model(4, 5, 4, 6)
    lookup = greedy_lookup(network_of_structure(model.structure(fsmdp.Basis.pairs(model))))
    entries = np.random.default_rng(0).normal(size=(6, int(lookup.offset[-1])))

    def steps(self):
        return FoldedSteps(self.lookup, self.entries, self.model.sizes, len(self.model.actions))

    def test_a_step_alone_is_that_of_all(self):
        expected = fold(self.steps().layout, self.entries)
        one = self.steps()
        np.testing.assert_array_equal(one.row(3), expected[3])
        np.testing.assert_array_equal(one.all(), expected)

    def test_threads_find_the_same(self):
        expected, shared = fold(self.steps().layout, self.entries), self.steps()
        with ThreadPoolExecutor(4) as threads:
            rows = list(threads.map(shared.row, [*range(6)] * 4))
        for at, row in enumerate(rows):
            np.testing.assert_array_equal(row, expected[at % 6])

    @pytest.mark.parametrize("again", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
    def test_a_copy_acts_alike(self, again):
        model = self.model
        policy = Greedy(model.variables, model.actions, 6, self.lookup, self.entries)
        first = [policy.action(state, 2) for state in states_of(model.sizes)]
        other = again(policy)
        assert [other.action(state, 2) for state in states_of(model.sizes)] == first

    def test_a_copy_carries_no_tables(self):
        fresh, used = self.steps(), self.steps()
        used.all()
        assert len(pickle.dumps(used)) == len(pickle.dumps(fresh))


class TestChecks:
    """Arrays that would lead compiled code astray."""

    model = fsmdp.domains.sysadmin(9, horizon=2)
    plan = fsmdp.plan(model, fsmdp.Basis.pairs(model), method="programs")
    policy = plan.policy.compiled()

    def check(self, folded):
        numbers = self.policy.entries.shape[1]
        check_folded(folded, self.model.sizes, len(self.model.actions), numbers)

    def test_what_was_folded_is_accepted(self):
        self.check(self.policy.folded)
        check_policy(self.policy, self.model.sizes, self.model.actions)

    @pytest.mark.parametrize(
        ("name", "change", "message"),
        [
            ("offset", lambda a: a[:-1], "a start for each table"),
            ("offset", lambda a: a[:0], "a start for each table"),
            ("offset", lambda a: a + (np.arange(len(a)) == len(a) - 1), "numbers in all"),
            ("offset", lambda a: np.where(np.arange(len(a)) == 1, a[-1] + 1, a), "do not fall"),
            ("input_start", lambda a: a + 1, "from 0"),
            ("input_slot", lambda a: a[1:], "as many entries"),
            ("input_slot", lambda a: a + 9, "positions"),
            ("input_slot", lambda a: a - 9, "positions"),
            ("input_stride", lambda a: -a, "from 0 on"),
            ("input_stride", lambda a: a * 2, "end where"),
            ("input_stride", lambda a: a + 2**62, "end where"),
            ("member_action", lambda a: a + 10, "positions"),
            ("member_column", lambda a: -a - 1, "from 0 on"),
            ("member_column", lambda a: a + 1000, "end where"),
            ("member_start", lambda a: a.astype(np.int32), "64-bit"),
        ],
    )
    def test_what_was_damaged_is_refused(self, name, change, message):
        folded = self.policy.folded
        damaged = folded._replace(**{name: change(getattr(folded, name))})
        with pytest.raises(ValueError, match=message):
            self.check(damaged)

    def test_entries_that_are_not_finite_are_refused(self):
        entries = np.full_like(self.policy.entries, np.nan)
        with pytest.raises(ValueError, match="finite"):
            check_policy(
                self.policy._replace(entries=entries), self.model.sizes, self.model.actions
            )

    def test_a_policy_without_exceptions_has_one_number_and_acts(self):
        inputs = Inputs((0,), (2,))
        lookup = compile_lookup([Cases((inputs,))], 2)
        layout = fold_layout(lookup, (2,), 2, 3)
        tables = fold(layout, np.ones((3, 2)))
        assert tables.shape == (3, 1)
        strides = np.zeros(1, dtype=np.int64)
        policy = policy_arrays(FOLDED, strides, entries=tables, folded=layout.folded)
        check_policy(policy, (2,), ListedActions(("one", "two")))


@pytest.mark.parametrize(
    "state",
    [
        (0, 1, 2),
        (0, True, 1),
        (0, 1),
        (0, 1, -1),
        (0, 1, 2**70),
        (0, 1, 0.0),
        "010",
        np.array([0, 1, 2]),
        np.array([0, 1, 0.0]),
        np.array([True, False, True]),
        np.array([0, 1, 2**64 - 1], dtype=np.uint64),
        np.array([[0, 1, 0]]),
    ],
)
def test_what_is_no_state_is_refused(state):
    model = fsmdp.domains.sysadmin(3, horizon=2)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="programs")
    with pytest.raises(fsmdp.errors.ModelError, match="state"):
        plan.action(state)
