"""Policies that the caller has: judged, kept if they are best, and their states fitted to."""

import json

import numpy as np
import pytest
from tests.joint_models import joint_model
from typer.testing import CliRunner

import fsmdp
from fsmdp import ModelError, PolicyError, domains
from fsmdp.bounds.clock import Clock
from fsmdp.bounds.normalise import unchanged
from fsmdp.bounds.planner import Request
from fsmdp.cli.entry import app
from fsmdp.solver.engines.fits import SINGLES
from fsmdp.solver.scheduler import Auto
from fsmdp.solver.state import SolverState

QUICK = {"exact": False, "rounds": 0}


LENGTH = 12


def long_walk():
    """Only going on twelve times in a row, of 32 actions, leads to the goal."""
    walk, back = np.eye(LENGTH, k=1), np.zeros((LENGTH, LENGTH))
    walk[-1, -1] = back[:, 0] = 1.0
    cases = [fsmdp.Case("go", ["place"], walk), fsmdp.Case(fsmdp.ANY, ["place"], back)]
    return fsmdp.FactoredMDP(
        [fsmdp.Variable("place", LENGTH)],
        ["stay", *(f"reset-{i}" for i in range(30)), "go"],
        [fsmdp.Conditional("place", cases)],
        [fsmdp.Reward("goal", fsmdp.Case(fsmdp.ANY, ["place"], np.eye(LENGTH)[-1]))],
        horizon=LENGTH + 2,
        initial={"place": 0},
    )


def best_of(model):
    return fsmdp.solve_exactly(model)


def given(plan):
    return {c.name: c for c in plan.candidates if c.name.startswith("given")}


def test_every_kind_of_policy_is_judged_and_the_best_one_is_kept():
    model = domains.sysadmin(6, horizon=8)
    best = best_of(model)

    def mine(state, step):
        return best.action(state, step)

    table = best.actions.astype(np.int64)
    plans = [mine, table, best, "wait", fsmdp.plan(model)]
    found = fsmdp.plan(model, policies=plans, **QUICK)
    means = [candidate.mean for candidate in given(found).values()]
    assert list(given(found)) == [
        "given: mine",
        "given policy 2",
        "given policy 3",
        "given: wait",
        "given policy 5",
    ]
    # The same decisions in the same episodes.
    assert means[0] == means[1] == means[2] == means[4] > means[3]
    assert found.incumbent.mean >= best.start_value - 4 * found.incumbent.standard_error - 1e-6
    assert max(c.mean for c in found.candidates) == means[0]


def test_a_given_policy_becomes_the_plan_where_nothing_is_better():
    model, constant = long_walk(), fsmdp.Basis([fsmdp.Table([], 1.0)])
    found = fsmdp.plan(model, constant, policies=["go"], rounds=0)
    assert found.incumbent.name == "given: go"
    assert {found.action([place], 3) for place in range(LENGTH)} == {"go"}
    without = fsmdp.plan(model, constant, rounds=0)
    assert without.incumbent.mean < found.incumbent.mean


def test_functions_of_joint_actions_are_asked_at_every_state():
    model = joint_model(3, horizon=3)
    asked = set()

    def first(state, step):
        asked.add((state, step))
        return {model.actions.variables[0].name: 1}

    found = fsmdp.plan(model, policies=[first], **QUICK)
    assert len(asked) == model.n_states * 3
    name = model.actions.name((1, *[0] * (len(model.actions.variables) - 1)))
    same = fsmdp.plan(model, policies=[name], **QUICK)
    assert given(found)["given: first"].mean == given(same)[f"given: {name}"].mean


def test_states_of_given_policies_join_the_pools_of_fits():
    """A state that neither chance nor idleness meets is met by the policy that leads there."""
    model = long_walk()

    def pool(policies):
        request = Request(model, None, "initial", {}, unchanged(model), policies)
        state = SolverState(request, Clock(), Auto(exact=False), None)
        next(SINGLES.run(state, state.searching))
        return {int(v) for part in state.fits[0].fitting.pool.states for v in np.ravel(part)}

    assert LENGTH - 1 not in pool(())
    assert LENGTH - 1 in pool(("go",))


@pytest.mark.parametrize(
    ("policies", "error", "message"),
    [
        (["fly"], PolicyError, "unknown policy 'fly'"),
        ("wait", PolicyError, r"policies: expected a list of policies, found 'wait'"),
        ([lambda state, step: "fly"], PolicyError, "fly"),
    ],
)
def test_what_is_no_policy_is_refused(policies, error, message):
    with pytest.raises(error, match=message):
        fsmdp.plan(domains.sysadmin(3), policies=policies)


def always_wait(state, step):
    return "wait"


def test_functions_of_too_many_states_are_refused_with_advice():
    with pytest.raises(PolicyError, match=r"given: always_wait: a function .* compiled\(\)"):
        fsmdp.plan(domains.sysadmin(30), policies=[always_wait])


def test_the_command_line_reads_policies(tmp_path, monkeypatch):
    (tmp_path / "rules_of_mine.py").write_text("def rule(state, step):\n    return 'wait'\n")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        app,
        ["plan", "sysadmin:ring:4", "--policy", "wait", "--policy", "rules_of_mine:rule", "--json"],
    )
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    means = {c["name"]: c["mean"] for c in facts["candidates"]}
    assert means["given: wait"] == means["given: rule"]


def test_other_methods_refuse_policies():
    with pytest.raises(ModelError, match="only the solver judges policies"):
        fsmdp.plan(domains.sysadmin(3), method="programs", policies=["wait"])
