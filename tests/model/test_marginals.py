"""Marginals and structures against plain enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle import all_states, marginal, next_state_probabilities

from fsmdp import ANY, Basis, Case, Conditional, FactoredMDP, Structure, Table, Variable, domains
from fsmdp.errors import WidthError
from fsmdp.model.cases import Cases, common_groups
from fsmdp.model.marginals import compute_marginal

FAIR = [0.5, 0.5]


def random_scopes(model, rng):
    positions = range(len(model.variables))
    return [
        tuple(sorted(rng.choice(positions, size=min(size, len(positions)), replace=False)))
        for size in (1, 2, 2, 3)
    ]


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_marginals_equal_enumeration(seed):
    model = domains.random_model(seed)
    rng = np.random.default_rng(seed)
    basis = Basis(
        [
            Table([int(p) for p in scope], rng.normal(size=[model.sizes[p] for p in scope]))
            for scope in random_scopes(model, rng)
        ]
    )
    marginals = model.marginals(basis)
    backprojections = marginals.backprojections()
    states = all_states(model)
    for action in range(len(model.actions)):
        for state in (states[i] for i in rng.choice(len(states), size=min(4, len(states)))):
            joint = next_state_probabilities(model, state, action)
            for table, cases, back in zip(
                marginals.basis, marginals.cases, backprojections, strict=True
            ):
                expected = marginal(joint, table.scope, model.sizes)
                found = cases.at(action)
                axes = len(found.parent_scope) + len(found.scope)
                assert found.probabilities.ndim == axes
                parents = tuple(state[p] for p in found.parent_scope)
                np.testing.assert_allclose(found.probabilities[parents], expected, atol=1e-12)
                mean = float((expected * table.values).sum())
                assert back.at(action).value(state) == pytest.approx(mean, abs=1e-9)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_parent_scopes_are_minimal_and_equal_groups_are_merged(seed):
    model = domains.random_model(seed)
    for cases in model.marginals(Basis.pairs(model)).cases:
        seen = set()
        for found in cases:
            for axis in range(len(found.parent_scope)):
                assert np.ptp(found.probabilities, axis=axis).max() > 1e-12
            seen.add((found.parent_scope, np.round(found.probabilities, 10).tobytes()))
        assert len(seen) == len(cases.groups)


def coin_model(probability, table):
    """Two variables that copy a shared latent coin, with parents that may or may not matter."""
    return FactoredMDP(
        [Variable("left", 2), Variable("right", 2)],
        ["wait", "act", "rest"],
        [
            Conditional("coin", [Case(ANY, [], [1 - probability, probability])]),
            Conditional(
                "left",
                [
                    Case(["act"], ["left", "right"], table, drawn=["coin"]),
                    Case(ANY, ["left"], [[[0.9, 0.1], [0.1, 0.9]]] * 2, drawn=["coin"]),
                ],
            ),
            Conditional("right", [Case(ANY, [], [[1.0, 0.0], [0.0, 1.0]], drawn=["coin"])]),
        ],
        [],
        3,
        latents=[Variable("coin", 2)],
    )


def test_a_parent_on_which_nothing_depends_is_dropped_and_groups_that_agree_are_merged():
    same_everywhere = [[[[0.9, 0.1], [0.1, 0.9]]] * 2] * 2
    marginals = coin_model(0.3, same_everywhere).marginals(Basis([Table(["left"], [0, 1])]))
    assert [found.parent_scope for found in marginals.cases[1]] == [()]
    assert dict(marginals.cases[1].exceptions) == {}


def test_correlation_through_a_latent_is_summed_out_exactly():
    model = coin_model(0.3, [[[[0.9, 0.1], [0.1, 0.9]]] * 2] * 2)
    (both,) = model.marginals(Basis([Table(["left", "right"], np.eye(2))])).cases[1]
    np.testing.assert_allclose(both.probabilities, [[0.63, 0.03], [0.07, 0.27]], atol=1e-15)


def describe(structure):
    """Everything a structure holds, in comparable form."""
    return (
        structure.variables,
        structure.actions,
        structure.horizon,
        structure.discount,
        [(r.name, r.parents.groups, dict(r.parents.exceptions)) for r in structure.rewards],
        [(r.low, r.high, r.sigma) for r in structure.rewards],
        [(cases.groups, dict(cases.exceptions)) for cases in structure.parents],
        [(table.scope, table.values.tolist()) for table in structure.basis],
    )


def with_other_probabilities(model, rng):
    """The same model with every probability and reward mean drawn anew, coincidences included."""

    def rows(case, children):
        table = rng.dirichlet(np.ones(int(np.prod(case.table.shape[-children:]))))
        if rng.random() < 0.5:
            return np.broadcast_to(table.reshape(case.table.shape[-children:]), case.table.shape)
        lead = case.table.shape[:-children]
        drawn = rng.dirichlet(np.ones(table.size), size=int(np.prod(lead, dtype=int)))
        return drawn.reshape(case.table.shape)

    return FactoredMDP(
        model.variables,
        model.actions,
        [
            Conditional(
                c.children,
                [
                    Case(case.actions, case.parents, rows(case, len(c.children)), case.drawn)
                    for case in c.cases
                ],
            )
            for c in model.conditionals
        ],
        model.rewards,
        model.horizon,
        model.initial,
        model.discount,
        model.latents,
    )


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_structure_does_not_change_when_the_probabilities_do(seed):
    model = domains.random_model(seed)
    other = with_other_probabilities(model, np.random.default_rng(seed))
    basis = Basis.singles(model)
    assert describe(model.structure(basis)) == describe(other.structure(basis))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_structure_covers_every_parent_that_matters(seed):
    model = domains.random_model(seed)
    basis = Basis.pairs(model)
    told, true = model.structure(basis).parents, model.marginals(basis).cases
    for action in range(len(model.actions)):
        for scope, found in zip(told, true, strict=True):
            assert set(found.at(action).parent_scope) <= set(scope.at(action))


def test_a_structure_by_hand_equals_that_of_the_model():
    model = domains.sysadmin(4)
    basis = Basis.pairs(model)
    by_hand = Structure.from_parents(
        model.variables,
        model.actions,
        parents={
            f"machine-{i}": [
                Case([f"reboot-{i}"], []),
                Case(ANY, [f"machine-{i}", f"machine-{(i - 1) % 4}"]),
            ]
            for i in range(4)
        },
        rewards=model.rewards,
        basis=basis,
        horizon=10,
    )
    assert describe(by_hand) == describe(model.structure(basis))
    assert by_hand.cells == sum(
        2 ** len(scope) for cases in by_hand.parents[1:] for scope in cases.groups
    )
    assert "4 variables" in repr(by_hand)


def test_singles_of_a_ring_have_two_groups_and_two_parents():
    marginals = domains.sysadmin(5).marginals(Basis.singles(domains.sysadmin(5)))
    assert [len(cases.groups) for cases in marginals.cases] == [1, 2, 2, 2, 2, 2]
    assert marginals.cases[3].groups[0].parent_scope == (1, 2)
    assert marginals.cases[3].at(3).parent_scope == ()
    assert len(marginals) == 6


def test_a_marginal_too_large_for_memory_is_refused_first():
    n = 40
    model = FactoredMDP(
        [Variable(f"x{i}", 2) for i in range(n)],
        ["wait"],
        [Conditional(f"x{i}", [Case(ANY, [f"x{i}"], [FAIR, [0.1, 0.9]])]) for i in range(n)],
        [],
        1,
    )
    with pytest.raises(WidthError, match="needs a table of"):
        compute_marginal(tuple(range(n)), model.dynamics, model.sizes)


def one_action(variables, conditionals, latents=()):
    return FactoredMDP(variables, ["wait"], conditionals, [], 1, latents=latents)


def test_a_chain_of_two_hundred_drawn_parents_is_summed_out_link_by_link():
    n = 200
    link = np.array([[0.9, 0.1], [0.2, 0.8]])
    chain = one_action(
        variables=[Variable(f"x{i}", 2) for i in range(n)],
        conditionals=[
            Conditional("x0", [Case(ANY, ["x0"], link)]),
            *(
                Conditional(f"x{i}", [Case(ANY, [], link, drawn=[f"x{i - 1}"])])
                for i in range(1, n)
            ),
        ],
    )
    marginals = chain.marginals(Basis.singles(chain))
    for i in (0, 1, 50):
        expected = np.linalg.matrix_power(link, i + 1)
        np.testing.assert_allclose(marginals.cases[1 + i].groups[0].probabilities, expected)


def test_more_parents_than_letters_are_multiplied():
    parents = [Variable(f"y{i}", 1) for i in range(20)]
    variables = [Variable(f"x{i}", 2) for i in range(4)]
    latents = [Variable(f"z{i}", 1) for i in range(60)]
    built = one_action(
        variables=[*variables, *parents],
        latents=latents,
        conditionals=[
            *(Conditional(v, [Case(ANY, [], [1.0])]) for v in (*parents, *latents)),
            *(
                Conditional(
                    v,
                    [
                        Case(
                            ANY,
                            parents[5 * i : 5 * i + 5],
                            np.broadcast_to(FAIR, (1,) * 20 + (2,)),
                            drawn=latents[15 * i : 15 * i + 15],
                        )
                    ],
                )
                for i, v in enumerate(variables)
            ),
        ],
    )
    (found,) = built.marginals(
        Basis([Table(variables, np.ones((2,) * 4) + np.eye(4).reshape([2] * 4))])
    ).cases[1]
    np.testing.assert_allclose(found.probabilities, np.full((2,) * 4, 1 / 16))


class TestBasis:
    def test_the_constant_is_always_there_and_first_and_only_once(self):
        basis = Basis([Table([], 1.0), Table([0], [0, 1]), Table([], 1.0)])
        assert [table.scope for table in basis] == [(), (0,)]
        assert basis.tables[0].values == 1.0

    def test_singles_have_an_indicator_for_each_non_zero_value(self):
        model = domains.random_model(3)
        assert len(Basis.singles(model)) == 1 + sum(size - 1 for size in model.sizes)

    def test_pairs_add_the_product_with_each_parent(self):
        basis = Basis.pairs(domains.sysadmin(5))
        assert basis.scopes[6:] == ((0, 1), (0, 4), (1, 2), (2, 3), (3, 4))
        assert "11 functions" in repr(basis)

    def test_blocks_span_every_function_of_their_scopes(self):
        model = domains.sysadmin(3)
        basis = Basis.blocks(model, [["machine-2", "machine-0"], ["machine-1"]])
        matrix = np.array([basis.evaluate(state) for state in all_states(model)])
        assert len(basis) == 5
        assert np.linalg.matrix_rank(matrix) == 5
        target = np.array([s[0] * 3.0 - s[2] * s[0] + 2 * s[1] for s in all_states(model)])
        residual = matrix @ np.linalg.lstsq(matrix, target, rcond=None)[0] - target
        assert np.abs(residual).max() < 1e-12

    def test_own_tables_may_name_variables_in_any_order(self):
        model = domains.sysadmin(3)
        values = np.arange(4.0).reshape(2, 2)
        bound = Basis([Table(["machine-2", "machine-0"], values)]).bind(model.variables)
        assert bound.tables[1].scope == (0, 2)
        assert bound.tables[1].value((1, 0, 0)) == values[0, 1]


class TestCases:
    def test_common_groups_are_the_coarsest(self):
        first = Cases(("a", "b"), {1: 1, 2: 1})
        second = Cases(("c", "d"), {2: 1, 3: 1})
        together = common_groups([first, second], 5)
        assert [together.at(action) for action in range(5)] == [
            ("a", "c"),
            ("b", "c"),
            ("b", "d"),
            ("a", "d"),
            ("a", "c"),
        ]

    def test_no_group_is_without_actions(self):
        first = Cases(("a", "b"), {0: 1, 1: 1})
        second = Cases(("c", "d"), {2: 1})
        together = common_groups([first, second], 3)
        assert set(together.groups) == {("b", "c"), ("a", "d")}
        assert [together.at(action) for action in range(3)] == [("b", "c"), ("b", "c"), ("a", "d")]

    def test_merging_keeps_the_item_of_every_action(self):
        cases = Cases((1.0, 2.0, 1.0), {4: 1, 5: 2})
        merged = cases.merge_equal(lambda item: item)
        assert [merged.at(a) for a in range(6)] == [cases.at(a) for a in range(6)]
        assert merged.groups == (1.0, 2.0)
        assert len(merged) == 2
