"""Notes and corrections: the tiny run, each note's numbers, and what would change the verdict."""

import math

import numpy as np
import polars
import pytest

from fsmdp.domains import influence, sysadmin
from fsmdp.reproduction.claim import (
    CONFIRMED,
    NOT_REPAIRED,
    NOT_SEEN,
    Evidence,
    Form,
    Verdict,
    note_verdict,
)
from fsmdp.reproduction.claims import notes


def silent(_):
    pass


@pytest.fixture(scope="module")
def tiny():
    return notes.run(Form.TINY, 0, silent)


def test_the_tiny_run_bears_every_note_out(tiny):
    table = tiny["notes"]
    assert table["note"].to_list() == [1, 2, 3, 4, 5, 6, 7]
    assert set(table["verdict"]) == {CONFIRMED}
    assert notes.judge(tiny).verdict is Verdict.CORRECTED
    assert len(notes.draw(tiny).panels[0].lines) == 4


@pytest.mark.parametrize(
    ("wrong", "remaining", "expected"),
    [(2.0, 0.5, CONFIRMED), (1.0, 0.5, NOT_SEEN), (2.0, 1.5, NOT_REPAIRED)],
)
def test_a_note_s_verdict_follows_its_two_numbers(wrong, remaining, expected):
    row = {"wrong": wrong, "wrong_above": 1.0, "remaining": remaining, "remaining_up_to": 1.0}
    assert note_verdict(row) == expected


@pytest.mark.parametrize(
    ("wrong", "remaining", "expected"),
    [
        ([2.0, 2.0], [0.5, 0.5], Verdict.CORRECTED),
        ([2.0, 0.5], [0.5, 0.5], Verdict.CORRECTED),
        ([0.5, 0.5], [0.5, 0.5], Verdict.HOLDS),
        ([2.0, 2.0], [0.5, 1.5], Verdict.FAILS),
    ],
)
def test_the_verdict_follows_the_rows_and_not_what_was_written_beside_them(
    wrong, remaining, expected
):
    table = polars.DataFrame({"note": [1, 2], "wrong": wrong, "remaining": remaining}).with_columns(
        measured=polars.lit("so much"),
        verdict=polars.lit(CONFIRMED),
        wrong_above=1.0,
        remaining_up_to=1.0,
    )
    assert notes.judge(Evidence({"notes": table})).verdict is expected


def test_a_radius_that_covers_is_not_found_wrong():
    table = notes.coverage(most=1000, runs=300, seed=0)
    harmless = table.with_columns(low=polars.lit(0.0), at_some_time=polars.lit(0.01))
    assert note_verdict(notes.random_visits(harmless).row()) == NOT_SEEN
    failing = table.with_columns(low=polars.lit(0.2))
    assert note_verdict(notes.random_visits(failing).row()) == NOT_REPAIRED


def test_radii_for_more_are_wider():
    visits = np.arange(1.0, 2000.0)
    radii = notes.radii(visits)
    assert (radii[notes.PAPER] > radii[notes.ONE]).all()
    assert (radii[notes.ALL][100:] > radii[notes.ONE][100:]).all()


def test_the_exact_chance_of_leaving_the_ball_is_that_of_the_binomial():
    # radius of the mean with 4 visits and chance 0.5: 0.51, so nothing is outside.
    assert notes.chance_of_leaving(4, 0.5) == 0.0
    # With 100 visits: 0.102, so counts up to 39 and from 61 on are.
    expected = sum(math.comb(100, count) for count in range(40)) / 2**99
    assert notes.chance_of_leaving(100, 0.5) == pytest.approx(expected)


def test_a_known_model_leaves_slack_only_where_v_is_not_linear():
    assert notes.slack_in_the_limit(influence(4, 2, horizon=4)) == pytest.approx(0, abs=1e-9)
    assert notes.slack_in_the_limit(sysadmin(4, horizon=5)) > 0.01


def test_the_swap_misses_its_maximum_without_the_functions_scopes():
    found = notes.scopes(draws=20, seed=3)
    assert found.wrong > 0.1
    assert found.remaining < 1e-12


def test_constants_of_the_corollary_count_cells_with_width_two():
    structure = notes.alike(n_parents=3)
    # 6 functions of a binary variable with 8 assignments of parents, one action group, horizon 5.
    assert notes.corrected_constants(structure) == (6 * 5 * 5 * 2, 6 * 4 * (2 * 5 * 8 + 1))
