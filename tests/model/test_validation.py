"""Every mistake in a model is found when it is built, and the message says what to do."""

import math
from fractions import Fraction

import numpy as np
import pytest

from fsmdp import (
    ANY,
    Basis,
    Case,
    Conditional,
    FactoredMDP,
    ModelError,
    PolicyError,
    Reward,
    SizeError,
    Structure,
    Table,
    Variable,
    domains,
)

FAIR = [0.5, 0.5]


def pump(**changes):
    """A small correct model with parts replaced."""
    parts = {
        "variables": [Variable("pump", 2), Variable("tank", 3)],
        "actions": ["wait", "repair"],
        "conditionals": [
            Conditional(
                "pump",
                [
                    Case(["wait"], ["pump"], [[0.98, 0.02], [0.1, 0.9]]),
                    Case(["repair"], [], [0.0, 1.0]),
                ],
            ),
            Conditional("tank", [Case(ANY, ["tank"], [[1 / 3] * 3] * 3)]),
        ],
        "rewards": [Reward("full", [Case(ANY, ["tank"], [0.0, 0.5, 1.0])], 0, 1)],
        "horizon": 10,
        "initial": {"pump": 1, "tank": 0},
    }
    return FactoredMDP(**(parts | changes))


def with_pump_cases(*cases):
    return pump(
        conditionals=[
            Conditional("pump", cases),
            Conditional("tank", [Case(ANY, [], [1 / 3] * 3)]),
        ]
    )


def test_the_model_without_changes_is_accepted():
    assert repr(pump()) == (
        "FactoredMDP(2 variables, 6 states, 2 actions, 1 reward term, horizon 10)"
    )


MISTAKES = {
    "size below one": (lambda: Variable("x", 0), "at least 1, found 0"),
    "size not whole": (lambda: Variable("x", 2.0), "whole number"),
    "size too large": (lambda: Variable("x", 2**60), "above the limit"),
    "empty name": (lambda: Variable("", 2), "non-empty string"),
    "no variables": (lambda: pump(variables=[]), "variables: expected at least one"),
    "duplicate variable": (
        lambda: pump(variables=[Variable("pump", 2), Variable("pump", 2)]),
        "'pump' stands at positions 0 and 1",
    ),
    "duplicate action": (lambda: pump(actions=["wait", "wait"]), "'wait' appears twice"),
    "no actions": (lambda: pump(actions=[]), "actions: expected at least one"),
    "unnamed action": (lambda: pump(actions=["wait", ""]), "non-empty string"),
    "unknown parent": (
        lambda: with_pump_cases(Case(ANY, ["pmp"], [FAIR, FAIR])),
        "unknown variable 'pmp'; expected one of 'pump', 'tank'",
    ),
    "parent twice": (
        lambda: with_pump_cases(Case(ANY, ["pump", "pump"], [[FAIR] * 2] * 2)),
        "'pump' is listed twice",
    ),
    "unknown action": (
        lambda: with_pump_cases(Case(["fix"], [], FAIR), Case(ANY, [], FAIR)),
        "unknown action 'fix'; expected one of 'wait', 'repair'",
    ),
    "action in no group": (
        lambda: with_pump_cases(Case(["wait"], [], FAIR)),
        "'repair' in no group; expected every action in exactly one",
    ),
    "action in two groups": (
        lambda: with_pump_cases(Case(["wait", "repair"], [], FAIR), Case(["wait"], [], FAIR)),
        "'wait' is in two groups",
    ),
    "two cases for any action": (
        lambda: with_pump_cases(Case(ANY, [], FAIR), Case(ANY, [], FAIR)),
        "two cases are for ANY action",
    ),
    "no cases": (lambda: with_pump_cases(), "expected at least one case"),
    "row does not sum to one": (
        lambda: with_pump_cases(Case(ANY, ["pump"], [FAIR, [0.5, 0.47]])),
        r"conditional of 'pump', action group ANY, parents \(pump=1\): probabilities sum to 0.97, "
        "expected 1; normalise the row",
    ),
    "row without parents does not sum to one": (
        lambda: with_pump_cases(Case(["repair"], [], [0.5, 0.6]), Case(ANY, [], FAIR)),
        r"action group \[repair\], no parents: probabilities sum to 1.1",
    ),
    "negative probability": (
        lambda: with_pump_cases(Case(ANY, ["pump"], [FAIR, [-0.5, 1.5]])),
        r"parents \(pump=1\): a probability is -0.5, expected at least 0",
    ),
    "probability not a number": (
        lambda: with_pump_cases(Case(ANY, [], [math.nan, 1.0])),
        r"entry \(0,\) is nan, expected a finite number",
    ),
    "table of text": (lambda: Case(ANY, [], ["a", "b"]), "expected numbers"),
    "ragged table": (lambda: Case(ANY, [], [[1.0], [0.5, 0.5]]), "rectangular array"),
    "wrong shape": (
        lambda: with_pump_cases(Case(ANY, ["tank"], [FAIR, FAIR])),
        r"expected a table of shape \(3, 2\).*found \(2, 2\)",
    ),
    "drawn too late": (
        lambda: pump(
            conditionals=[
                Conditional("pump", [Case(ANY, [], [FAIR] * 3, drawn=["tank"])]),
                Conditional("tank", [Case(ANY, [], [1 / 3] * 3)]),
            ]
        ),
        "uses the value of 'tank' drawn in this step, which is not drawn yet",
    ),
    "drawn by itself": (
        lambda: with_pump_cases(Case(ANY, [], [FAIR] * 2, drawn=["pump"])),
        "not drawn yet",
    ),
    "drawn twice": (
        lambda: pump(conditionals=[Conditional("pump", [Case(ANY, [], FAIR)])] * 2),
        "'pump' is drawn a second time",
    ),
    "never drawn": (
        lambda: pump(conditionals=[Conditional("pump", [Case(ANY, [], FAIR)])]),
        "no conditional draws 'tank'",
    ),
    "latent never drawn": (
        lambda: pump(latents=[Variable("shock", 2)]),
        "no conditional draws 'shock'",
    ),
    "draws nothing": (
        lambda: pump(conditionals=[Conditional([], [Case(ANY, [], 1.0)])]),
        "it draws nothing",
    ),
    "unknown child": (
        lambda: pump(conditionals=[Conditional("pmp", [Case(ANY, [], FAIR)])]),
        "unknown variable 'pmp'",
    ),
    "latent as parent": (
        lambda: pump(
            latents=[Variable("shock", 2)],
            conditionals=[
                Conditional("shock", [Case(ANY, [], FAIR)]),
                Conditional("pump", [Case(ANY, ["shock"], [FAIR] * 2)]),
                Conditional("tank", [Case(ANY, [], [1 / 3] * 3)]),
            ],
        ),
        "parents: 'shock' is a latent, .* name it in drawn=",
    ),
    "reward of wrong shape": (
        lambda: pump(rewards=[Reward("full", [Case(ANY, ["tank"], [0, 1])])]),
        r"reward 'full', action group ANY: expected a table of shape \(3,\)",
    ),
    "reward out of bounds": (
        lambda: pump(rewards=[Reward("full", [Case(ANY, ["tank"], [0, 1, 2])])]),
        r"means run from 0 to 2, expected all within \[0, 1\]",
    ),
    "reward bounds reversed": (lambda: Reward("full", [], 1, 0), "low 1 is above high 0"),
    "reward bound infinite": (lambda: Reward("full", [], 0, math.inf), "finite number"),
    "reward bound not a number": (lambda: Reward("full", [], 0, "1"), "expected a number"),
    "negative sigma": (lambda: Reward("full", [], 0, 1, -1), "sigma is -1"),
    "reward twice": (
        lambda: pump(rewards=[Reward("full", [Case(ANY, [], 0.0)])] * 2),
        "reward 'full' appears twice",
    ),
    "reward of drawn values": (
        lambda: pump(rewards=[Reward("full", [Case(ANY, [], [0, 0], drawn=["pump"])])]),
        "depends on values drawn in this step",
    ),
    "horizon zero": (lambda: pump(horizon=0), "horizon: expected a whole number of at least 1"),
    "discount zero": (lambda: pump(discount=0), "above 0 and at most 1, found 0"),
    "discount of text": (
        lambda: pump(discount="x"),
        "discount is 'x', expected a number; 1 means none",
    ),
    "endless without discount": (lambda: pump(horizon=None), "values would be infinite"),
    "initial of unknown variable": (lambda: pump(initial={"pmp": 0}), "initial: unknown variable"),
    "initial out of range": (lambda: pump(initial={"tank": 3}), "from 0 to 2"),
    "initial of wrong length": (lambda: pump(initial=[1]), "expected 2 values"),
    "initial distribution of wrong shape": (
        lambda: pump(initial={"tank": FAIR}),
        "or 3 probabilities",
    ),
    "initial distribution not normalised": (
        lambda: pump(initial={"pump": [0.5, 0.4]}),
        "sum to 0.9, expected none below 0 and a sum of 1",
    ),
    "table with wrong axes": (lambda: Table(["pump"], [[1.0]]), "expected 1 axes"),
    "table of wrong size": (
        lambda: pump().marginals(Basis([Table(["pump"], [1, 2, 3])])),
        r"expected shape \(2,\)",
    ),
    "table over unknown variable": (
        lambda: pump().marginals(Basis([Table(["pmp"], [1, 2])])),
        "unknown variable 'pmp'",
    ),
    "table over position out of range": (
        lambda: pump().marginals(Basis([Table([7], [1, 2])])),
        "unknown variable 7",
    ),
    "not a basis": (lambda: pump().structure([1]), "expected a Basis, found list"),
    "state too short": (lambda: pump().check_state([1]), "state: expected 2 values"),
    "state out of range": (lambda: pump().check_state([1, 3]), "'tank' is 3, expected a whole"),
    "state of halves": (lambda: pump().check_state([1, 1.5]), "'tank' is 1.5, expected a whole"),
    "parent of no kind": (
        lambda: with_pump_cases(Case(ANY, [None], [FAIR, FAIR])),
        "parents: a name is a non-empty string, found None",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_refused_with_a_message_that_says_what_to_do(mistake):
    build, message = MISTAKES[mistake]
    with pytest.raises(ModelError, match=message):
        build()


def test_numbers_of_numpy_are_numbers():
    model = pump(horizon=np.int64(3), discount=np.float32(0.5))
    assert (model.horizon, model.discount) == (3, 0.5)
    assert Variable("x", np.int64(2)).size == 2
    assert Reward("r", [], np.int64(0), np.float32(1)).high == 1.0


@pytest.mark.parametrize("action", ["fix", 2, -1, 1.5, None, True, np.True_, [0], "x" * 10**6])
def test_unknown_action_is_refused(action):
    with pytest.raises(PolicyError, match="expected one of 'wait', 'repair', or a position from 0"):
        pump().action_index(action)


def test_a_basis_that_would_not_fit_is_refused_before_it_is_built():
    model = FactoredMDP(
        [Variable("x", 2**14)],
        ["wait"],
        [Conditional("x", [Case(ANY, [], [1.0] + [0.0] * (2**14 - 1))])],
        [],
        1,
    )
    with pytest.raises(SizeError, match="limit"):
        Basis.singles(model)


def test_a_structure_by_hand_needs_parents_for_every_variable():
    with pytest.raises(ModelError, match="'tank' has none listed"):
        Structure.from_parents(
            pump().variables,
            pump().actions,
            parents={"pump": [Case(ANY, ["pump"])]},
            rewards=[],
            basis=Basis(),
            horizon=3,
        )


def test_tables_are_copied_and_read_only():
    given = [[0.5, 0.5], [0.5, 0.5]]
    case = Case(ANY, ["pump"], given)
    with pytest.raises(ValueError, match="read-only"):
        case.table[0, 0] = 1.0


def test_a_thousand_machines_store_no_table_once_per_action():
    model = domains.sysadmin(1000)
    assert sum(len(mechanism.cases) for mechanism in model.dynamics.mechanisms) == 2000
    assert sum(len(m.cases.exceptions) for m in model.dynamics.mechanisms) == 1000
    assert model.n_states == 2**1000


def test_a_row_at_the_tolerance_is_refused_as_in_exact_arithmetic():
    # It misses 1 by 1.00000003e-9; added up in floats, by a little less than the tolerance.
    row = [0.1557791319224462, 0.49222913270444874, 0.35199173437310505]
    assert abs(sum(row) - 1) < 1e-9 < abs(sum(map(Fraction, row)) - 1)
    with pytest.raises(ModelError, match="expected 1; normalise the row"):
        FactoredMDP([Variable("x", 3)], ["a"], [Conditional("x", Case(ANY, [], row))], [], 1)
