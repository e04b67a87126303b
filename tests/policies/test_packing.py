"""Packing: which scopes share a table."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsmdp.policies.folding import ADDING, OPENING, READING, Piece, pack

N_VARIABLES, N_COLUMNS = 6, 4

pieces = st.lists(
    st.builds(
        Piece,
        st.sets(st.integers(0, N_VARIABLES - 1), max_size=4).map(lambda s: tuple(sorted(s))),
        st.frozensets(st.integers(0, N_COLUMNS - 1), min_size=1),
    ),
    max_size=12,
)
prices = st.sampled_from([0.0, 1 / 16, 1.0, math.inf])
all_sizes = st.lists(st.integers(1, 4), min_size=N_VARIABLES, max_size=N_VARIABLES)
all_uses = st.lists(st.integers(1, 5), min_size=N_COLUMNS, max_size=N_COLUMNS)


def cells(scope, sizes):
    return math.prod(sizes[variable] for variable in scope)


def time_of(scope, columns, uses):
    return OPENING + READING * len(scope) + ADDING * sum(uses[column] for column in columns)


@given(pieces, all_uses, all_sizes, prices)
def test_every_piece_is_in_one_pack_that_holds_it(pieces, uses, sizes, price):
    packs = pack(pieces, uses, sizes, price)
    assert sorted(number for one in packs for number in one.pieces) == list(range(len(pieces)))
    for one in packs:
        members = [pieces[number] for number in one.pieces]
        assert set(one.scope) == {variable for piece in members for variable in piece.scope}
        assert one.columns == {column for piece in members for column in piece.columns}
        assert one.numbers == cells(one.scope, sizes) * len(one.columns)


@given(pieces, all_uses, all_sizes, prices)
def test_no_number_more_costs_more_than_it_saves(pieces, uses, sizes, price):
    packs = pack(pieces, uses, sizes, price)
    apart = [
        (time_of(p.scope, p.columns, uses), cells(p.scope, sizes) * len(p.columns)) for p in pieces
    ]
    saved = sum(t for t, _ in apart) - sum(time_of(p.scope, p.columns, uses) for p in packs)
    grown = sum(p.numbers for p in packs) - sum(n for _, n in apart)
    assert saved >= 0
    if grown > 0:
        assert saved > price * grown - 1e-9


def test_nested_scopes_with_the_same_columns_share_a_table_at_any_price():
    column = frozenset({0})
    nested = [
        Piece((1, 2), column),
        Piece((), column),
        Piece((0, 1, 2), column),
        Piece((2,), column),
    ]
    (one,) = pack(nested, [3], [2, 3, 4], math.inf)
    assert one.scope == (0, 1, 2)
    assert one.numbers == 24


def test_a_large_table_is_not_widened_for_a_small_one():
    wide, narrow = Piece(tuple(range(10)), frozenset({0})), Piece((0,), frozenset({1}))
    assert len(pack([wide, narrow], [1, 1], [2] * 10, 1 / 16)) == 2
    assert len(pack([wide, narrow], [1, 1], [2] * 10, 0.0)) == 1


@pytest.mark.parametrize("n", [10, 400])
def test_neighbours_on_a_ring_share_tables_wherever_they_begin(n):
    ring = [Piece(tuple(sorted((i, (i + 1) % n))), frozenset({i})) for i in range(n)]
    packs = pack(ring, [1] * n, [2] * n, 1 / 16)
    assert len(packs) < 0.45 * n
    assert np.mean([len(one.scope) for one in packs]) < 8
