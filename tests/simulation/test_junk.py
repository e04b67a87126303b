"""Whatever is given to whatever is public, it says what is wrong, and says it briefly."""

import pytest
from tests.junk import (
    AT_LEAST_0,
    BASIS,
    CASES,
    CHANCE,
    EMPTY,
    EXACT,
    LIMIT,
    MODEL,
    NAME,
    NAMES,
    NONE,
    NUMBER,
    ONE,
    POLICY,
    POSITIVE,
    RING,
    SEED,
    VARIABLES,
    ZERO,
    X,
    assert_junk_is_refused_briefly,
)

from fsmdp import (
    ANY,
    Basis,
    Case,
    Conditional,
    Exact,
    FactoredMDP,
    Reward,
    Structure,
    Table,
    Variable,
    domains,
    evaluate_exactly,
    load,
    make_env,
    rollout,
    solve_exactly,
)

SINGLES = Basis.singles(RING)
STATE = [0, 0, 0]

ENDS = {"horizon": 2, "discount": 1.0}
CALLS = {
    "FactoredMDP": (
        FactoredMDP,
        {
            "variables": [X],
            "actions": ["a"],
            "conditionals": [Conditional("x", [Case(ANY, [], [0.5, 0.5])])],
            "rewards": [],
            "initial": None,
            "latents": (),
            **ENDS,
        },
    ),
    "Structure": (
        Structure.from_parents,
        {
            "variables": [X],
            "actions": ["a"],
            "parents": {"x": [Case(ANY)]},
            "rewards": [],
            "basis": Basis(),
            **ENDS,
        },
    ),
    "Variable": (Variable, {"name": "x", "size": 2}),
    "Case": (Case, {"actions": ANY, "parents": (), "table": (), "drawn": ()}),
    "Conditional": (Conditional, {"children": "x", "cases": []}),
    "Reward": (Reward, {"name": "x", "cases": [], "low": 0, "high": 1, "sigma": 0}),
    "Table": (Table, {"scope": ["x"], "values": [0, 1]}),
    "Table.value": (SINGLES.tables[1].value, {"state": STATE}),
    "Basis": (Basis, {"tables": ()}),
    "Basis.singles": (Basis.singles, {"model": RING}),
    "Basis.pairs": (Basis.pairs, {"model": RING}),
    "Basis.blocks": (Basis.blocks, {"model": RING, "scopes": []}),
    "Basis.evaluate": (SINGLES.evaluate, {"state": STATE}),
    "marginals": (RING.marginals, {"basis": SINGLES}),
    "structure": (RING.structure, {"basis": SINGLES}),
    "parents": (RING.parents, {"variable": 0}),
    "mean_reward": (RING.mean_reward, {"state": STATE, "action": 0}),
    "solve_exactly": (solve_exactly, {"model": RING, "limit": 10**6}),
    "Exact": (Exact, {"limit": 10**6, "reachable": "auto", "time_limit": 1.0}),
    "Exact.plan": (Exact().plan, {"model": RING}),
    "evaluate_exactly": (evaluate_exactly, {"model": RING, "policy": "wait", "limit": 10**6}),
    "ExactSolution.value": (EXACT.value, {"state": STATE, "step": 1}),
    "ExactSolution.action": (EXACT.action, {"state": STATE, "step": 1}),
    "rollout": (rollout, {"model": RING, "policy": "wait", "episodes": 2, "seed": 0, "steps": 1}),
    "make_env": (make_env, {"model": RING, "render_mode": None}),
    "reset": (make_env(RING).reset, {"seed": 1, "options": None}),
    "load": (load, {"path": "there-is-no-such-file"}),
    "sysadmin": (domains.sysadmin, {"machines": 3, "topology": "ring", **ENDS}),
    "influence": (
        domains.influence,
        {"nodes": 4, "campaigns": 1, "listening": 0.1, "seed": 0, "neighbours": None, **ENDS},
    ),
    "gridworld": (domains.gridworld, {"rows": 2, "columns": 2, "drift": 0.5, **ENDS}),
    "exogenous_block": (domains.exogenous_block, {"factors": 1, "shock": 0.1, "seed": 0, **ENDS}),
    "exogenous_basis": (domains.exogenous_basis, {"model": RING}),
    "maintenance": (
        domains.maintenance,
        {"units": 2, "shock": 0.1, "alone": 0.1, "cost": 0.1, **ENDS},
    ),
    "proposition_one": (domains.proposition_one, {"bits": 2, "seed": 0, **ENDS}),
    "random_model": (
        domains.random_model,
        {
            "seed": 0,
            "variables": 2,
            "largest_size": 2,
            "largest_parents": 1,
            "blocks": True,
            **ENDS,
        },
    ),
    "build_domain": (domains.build_domain, {"text": "sysadmin"}),
}


# Beyond the reasons given with the junk: numbers of a table are checked against a scope, and the
# positions in a scope against variables, when the model is built that has them; a state is any
# sequence of whole numbers, and a topology without machines is one without dependencies.
ACCEPTED = {
    "FactoredMDP": {
        "variables": VARIABLES,
        "actions": NAME,
        "rewards": EMPTY,
        "initial": (*NONE, "{'x': 1}", "{}"),
        "latents": EMPTY,
        "discount": ONE,
    },
    "Structure": {
        "variables": VARIABLES,
        "actions": NAME,
        "rewards": EMPTY,
        "basis": BASIS,
        "discount": ONE,
    },
    "Variable": {"name": NAME},
    "Case": {
        "actions": (*EMPTY, *NAME, "ANY"),
        "parents": (*NAMES, *EMPTY),
        "table": (*NUMBER, "True", "[[]]", "[]", "array of one", "range", "zeros"),
        "drawn": (*NAMES, *EMPTY),
    },
    "Conditional": {"children": (*NAMES, *EMPTY), "cases": CASES},
    "Reward": {
        "name": NAME,
        "cases": CASES,
        "low": ("-1", *CHANCE),
        "high": AT_LEAST_0,
        "sigma": AT_LEAST_0,
    },
    "Table": {"scope": (*NAMES, *SEED, "-1"), "values": ("range", "zeros")},
    "Table.value": {"state": ("range",)},
    "Basis": {"tables": (*EMPTY, *BASIS, "table")},
    "Basis.singles": {"model": (*EMPTY, *VARIABLES, *MODEL)},
    "Basis.pairs": {"model": MODEL},
    "Basis.blocks": {"model": (*EMPTY, *VARIABLES, *MODEL), "scopes": (*EMPTY, "[[]]", "range")},
    "marginals": {"basis": BASIS},
    "structure": {"basis": BASIS},
    "parents": {"variable": ZERO},
    "mean_reward": {"action": ("0", "array of one")},
    "solve_exactly": {"model": MODEL, "limit": LIMIT},
    "Exact": {"limit": LIMIT, "reachable": ("True",), "time_limit": (*NONE, *POSITIVE)},
    "Exact.plan": {"model": MODEL},
    "evaluate_exactly": {"model": MODEL, "policy": POLICY, "limit": LIMIT},
    "rollout": {"model": MODEL, "policy": POLICY, "seed": SEED, "steps": NONE},
    "make_env": {"model": MODEL, "render_mode": NONE},
    "reset": {"seed": (*SEED, *NONE), "options": (*NONE, "{}")},
    "sysadmin": {"topology": ("{}",), "discount": ONE},
    "influence": {
        "campaigns": ZERO,
        "listening": CHANCE,
        "seed": SEED,
        "neighbours": NONE,
        "discount": ONE,
    },
    "gridworld": {"drift": CHANCE, "discount": ONE},
    "exogenous_block": {"factors": ZERO, "shock": CHANCE, "seed": SEED, "discount": ONE},
    "maintenance": {"shock": CHANCE, "alone": CHANCE, "cost": AT_LEAST_0, "discount": ONE},
    "proposition_one": {"seed": SEED, "discount": ONE},
    "random_model": {"seed": SEED, "largest_parents": ZERO, "blocks": ("True",), "discount": ONE},
}


@pytest.mark.parametrize("name", CALLS)
def test_junk_is_refused_with_a_short_message(name):
    assert_junk_is_refused_briefly(*CALLS[name], ACCEPTED.get(name, {}))
