"""Proposition 1: the tiny run, and what would change its verdict."""

import numpy as np
import polars
import pytest

from fsmdp.reproduction.claim import Evidence, Form, Verdict
from fsmdp.reproduction.claims import proposition
from fsmdp.reproduction.claims.proposition import GAUSSIAN, MEANING, OURS, RANDOM, TIED, TWO

EPISODES = np.arange(1, 201)


def silent(_):
    pass


@pytest.fixture(scope="module")
def tiny():
    return proposition.run(Form.TINY, 0, silent)


def fabricated(losses=None, low=0.2, largest_value=0.0, growth=1.0):
    """Evidence with a given loss an episode by features; the stated chance is 1/4."""
    each = {OURS: 0.0, RANDOM: 0.3, TWO: 0.3} | (losses or {})
    spans = polars.DataFrame({"basis": [GAUSSIAN, TIED], "spanned": [0.0, 0.25]}).with_columns(
        low=low, stated=0.25, largest_value=largest_value
    )
    regret = polars.concat(
        [
            polars.DataFrame(
                {"episode": EPISODES, "regret": each.get(name, 0.0) * EPISODES}
            ).with_columns(features=polars.lit(name), bits=polars.lit(bits))
            for bits in (2, 4)
            for name in MEANING
        ]
    )
    bounds = polars.DataFrame({"bits": [2, 4], "bound": [10.0, 10.0 * growth**2]})
    return Evidence({"spans": spans, "regret": regret, "bounds": bounds})


def test_the_tiny_run_calls_for_care_and_can_be_drawn(tiny):
    assert proposition.judge(tiny).verdict is Verdict.CORRECTED
    assert len(proposition.draw(tiny).panels[0].lines) == len(MEANING)


def test_the_proposition_holds_when_only_ours_settles():
    assert proposition.judge(fabricated()).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    "options", [{"losses": {TWO: 0.0}}, {"growth": 2.0}], ids=["two features", "bound"]
)
def test_learners_that_do_not_fit_the_story_call_for_a_correction(options):
    assert proposition.judge(fabricated(**options)).verdict is Verdict.CORRECTED


@pytest.mark.parametrize(
    "options",
    [
        {"low": 0.3},
        {"largest_value": 0.1},
        {"losses": {OURS: 0.3}},
        {"losses": {RANDOM: 0.0}},
    ],
    ids=["spanned too often", "values", "ours", "random features"],
)
def test_the_proposition_fails_on(options):
    assert proposition.judge(fabricated(**options)).verdict is Verdict.FAILS


def test_bases_that_tie_states_together_span_exactly_the_equal_rewards():
    basis = proposition.tied_states(4, 3)
    safe = np.zeros(4)
    equal, different = [-1.0, -0.5, -1.0, -1.0], [-1.0, -0.5, -1.0, -0.5]
    targets = np.stack([np.concatenate([safe, one]) for one in (equal, different)], axis=1)
    inside, outside = proposition.residuals(basis, targets)
    assert inside < 1e-12
    assert outside > 0.1


def test_a_full_basis_spans_every_member():
    q_values = np.random.default_rng(0).choice([-1.0, -0.5], size=(8, 5))
    assert (proposition.residuals(np.eye(8), q_values) < 1e-12).all()
