"""Plans of models with rewards of any size, and of states that cannot be reached."""

import signal
import subprocess
import sys

import numpy as np
import pytest

import fsmdp
from fsmdp.bounds.gap import RelativeGap


def _switch(low, high, horizon=3, discount=1.0):
    """One variable that an action sets; the optimum is high at all steps but the first."""
    sets = [fsmdp.Case(["a"], [], [1, 0]), fsmdp.Case(["b"], [], [0, 1])]
    reward = fsmdp.Reward("r", [fsmdp.Case(fsmdp.ANY, ["x"], [low, high])], low=low, high=high)
    variables, conditionals = [fsmdp.Variable("x", 2)], [fsmdp.Conditional("x", sets)]
    return fsmdp.FactoredMDP(
        variables, ["a", "b"], conditionals, [reward], horizon, {"x": 0}, discount
    )


@pytest.mark.parametrize("unit", [1e-10, 1e-5, 1.0, 1e10, 1e300])
def test_the_unit_of_rewards_makes_no_difference(unit):
    model = _switch(0.0, unit)
    plan = fsmdp.plan(model)
    assert plan.action([0]) == "b"
    assert plan.gap == 0
    assert plan.upper_bound == pytest.approx(2 * unit, rel=1e-6)


def test_rewards_that_floats_cannot_add_up_are_refused():
    with pytest.raises(fsmdp.ModelError, match="measure them in a larger unit"):
        _switch(-1.7e308, 1.7e308)
    with pytest.raises(fsmdp.ModelError, match="measure them in a larger unit"):
        _switch(0.0, 1e307, None, 0.999)


@pytest.mark.parametrize(("bound", "mean"), [(np.inf, 1.0), (np.inf, -np.inf), (1.0, np.nan)])
def test_nothing_is_said_of_what_is_not_finite(bound, mean):
    assert "nothing is established" in RelativeGap(bound, mean, 0.0, mean, 0.99).statement()


def test_a_gap_that_says_nothing_is_told_by_both_ends():
    said = RelativeGap(2e-13, 0.0, 0.0, 0.0, 0.99).statement()
    assert said == (
        "the policy earns at least 0 with probability at least 99 %, no policy more than 2e-13"
    )
    assert RelativeGap(2e-13, 0.0, scale=10.0) == 0.0
    assert RelativeGap(2e-13, 0.0, scale=1e-12) == 1.0


def test_a_discount_too_near_one_is_told_what_to_use_instead():
    model = _switch(0.0, 1.0, None, 1 - 1e-9)
    with pytest.raises(fsmdp.ModelError, match="method='programs', or solve_exactly"):
        fsmdp.plan(model)


def test_states_that_cannot_be_reached_have_actions_as_well():
    """Two exclusive variables are joined; no joined state has both nonzero."""
    moves = np.array([[0.5, 0.5], [1.0, 0.0]])
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("here", 2), fsmdp.Variable("there", 2)],
        ["stay", "go"],
        [
            fsmdp.Conditional(
                "here",
                [fsmdp.Case(["stay"], ["here"], moves), fsmdp.Case(["go"], [], [1.0, 0.0])],
            ),
            fsmdp.Conditional(
                "there",
                [fsmdp.Case(["stay"], [], [1.0, 0.0]), fsmdp.Case(["go"], ["there"], moves)],
            ),
        ],
        [fsmdp.Reward("r", [fsmdp.Case(fsmdp.ANY, ["there"], [0.0, 1.0])], low=0, high=1)],
        horizon=4,
        initial={"here": 0, "there": 0},
    )
    assert len(fsmdp.join(model).model.variables) == 1
    plan = fsmdp.plan(model)
    states = [(a, b) for a in range(2) for b in range(2)]
    assert plan.actions(states).tolist() == [plan.action(state) for state in states]
    value = fsmdp.evaluate_exactly(model, plan)
    assert value[0] == pytest.approx(fsmdp.solve_exactly(model).start_value)


@pytest.mark.parametrize(
    "options",
    [{"callback": 3}, {"callback": 3, "progress": True}, {"exact": "yes"}, {"exact": None}],
)
def test_options_of_the_wrong_kind_are_refused(options):
    with pytest.raises(fsmdp.ModelError, match="expected"):
        fsmdp.plan(fsmdp.domains.sysadmin(2), **options)


def test_what_is_no_plan_has_no_gap_and_no_picture():
    ring = fsmdp.domains.sysadmin(2)
    with pytest.raises(fsmdp.ModelError, match="expected a plan"):
        fsmdp.certified_gap(ring, fsmdp.solve_exactly(ring))
    for draw in (fsmdp.plot.plan, fsmdp.plot.history, fsmdp.plot.model):
        with pytest.raises(fsmdp.ModelError, match="plot: expected a"):
            draw(3)
    for models, learners in ((None, None), (ring, None), (None, "random")):
        with pytest.raises(fsmdp.ModelError, match="expected"):
            fsmdp.compare(models, learners)


def test_a_polite_end_hands_out_the_plan(tmp_path):
    command = [sys.executable, "-m", "fsmdp", "plan", "sysadmin:ring:30", "--time-limit", "600"]
    output = tmp_path / "plan.npz"
    with subprocess.Popen(
        [*command, "--output", str(output)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for line in process.stderr:  # wait until the solver is at work
            if "doing nothing" in line:
                break
        process.send_signal(signal.SIGTERM)
        printed = process.communicate()[0]
        assert process.returncode == 130
    assert "certified upper bound" in printed
    assert fsmdp.load_plan(output).upper_bound > 0
