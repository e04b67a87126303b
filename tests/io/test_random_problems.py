"""Problems put together at random: both forms of actions agree with pyRDDLGym's simulator."""

import importlib
import random

import pytest
from tests.io.rddl_texts import write_problem

import fsmdp
from fsmdp.io.rddl.build import Wanted
from fsmdp.io.rddl.loading import guarded, load_source
from fsmdp.io.rddl.sources import find_source

PVARIABLES = """
    dim(thing) : { action-fluent, bool, default = false };
    hold : { action-fluent, bool, default = true };
    dir : { action-fluent, way, default = @b };
    add : { action-fluent, int, default = 1 };
    gauge : { state-fluent, way, default = @a };
    n : { state-fluent, int, default = 1 };
    at(thing) : { state-fluent, bool, default = false };
"""
CPFS = """
    on'(?t) = if (press(?t)) then Bernoulli(0.7) else if (dim(?t)) then KronDelta(false)
              else if (hold) then KronDelta(on(?t)) else Bernoulli(0.5);
    gauge' = if (dir == @c) then @c
             else if (exists_{?t : thing} [press(?t) & on(?t)])
                then Discrete(way, @a : 0.5, @b : 0.25, @c : 0.25)
             else gauge;
    n' = max[0, min[3, n + add - (sum_{?t : thing} [dim(?t)])]];
    at'(?t) = if (exists_{?o : thing} [press(?o)]) then press(?t) else at(?t);
"""
PRECONDITIONS = (
    "forall_{?t : thing} [press(?t) => ~on(?t)];",
    "forall_{?t : thing} [dim(?t) => (on(?t) & (n > 0))];",
    "(sum_{?t : thing} [press(?t) + dim(?t)]) <= n;",
    "forall_{?t : thing} [press(?t) + dim(?t) <= 1];",
    "(sum_{?t : thing} [press(?t)]) <= 1;",
    "(sum_{?t : thing} [press(?t) + 2 * dim(?t)]) <= 3;",
    "(dir == @c) => ~hold;",
    "(gauge == @c) <=> (dir == @a);",
    "add <= n;",
    "(exists_{?t : thing} [on(?t)]) => (hold | (dir == @a));",
    "~(exists_{?t : thing} [press(?t) & dim(?t)]);",
    "(sum_{?t : thing} [dim(?t)]) < 2;",
    "((sum_{?t : thing} [on(?t)]) + add) >= 1;",
    "(gauge ~= @b) | (sum_{?t : thing} [press(?t)]) == 0;",
    "(sum_{?t : thing} [press(?t)]) - (sum_{?t : thing} [dim(?t)]) <= (sum_{?t : thing} [on(?t)]);",
)
ENDS = (
    "",
    "termination { (n == 3) & (gauge == @c); };",
    "termination { forall_{?t : thing} [on(?t)]; gauge == @b; };",
)
REWARDS = (
    "n + (sum_{?t : thing} [on(?t) * (gauge == @a) - press(?t)])",
    "(if (hold) then n' else 2) + (forall_{?t : thing} [on(?t) | at(?t)])",
)


def _write(folder, seed):
    chance = random.Random(seed)
    chosen = ["add >= 0;", "add <= 2;", *chance.sample(PRECONDITIONS, chance.randint(1, 4))]
    return write_problem(
        folder,
        pvariables=PVARIABLES,
        cpfs=CPFS,
        reward=chance.choice(REWARDS),
        types="thing : object; way : {@a, @b, @c};",
        limit=chance.choice(["", "max-nondef-actions = 2;"]),
        sections=f"action-preconditions {{ {' '.join(chosen)} }};" + chance.choice(ENDS),
        start=chance.choice(["on(t1);", "at(t2);"]),
        horizon=8,
    )


def _check(files, form, seed):
    """A cross-check of the model with actions in one of the two forms."""
    checking = importlib.import_module("fsmdp.io.rddl.cross_check")
    source = find_source(*files)
    imported = load_source(source, Wanted(actions=form), cache=False)
    parts = source, imported, imported.model, 6, 1e-6, seed
    return guarded(source.name, lambda: checking._checked(*parts))


SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 160)]


@pytest.mark.parametrize("form", ["listed", "factored"])
@pytest.mark.parametrize("seed", [8, 10, 20, 21, 29, 38, 46, *SLOW])
def test_the_simulator_agrees_on_random_problems(tmp_path, form, seed):
    found = _check(_write(tmp_path, seed), form, seed).require()
    assert found.verdicts > found.steps


@pytest.mark.parametrize("seed", [8, 21, 38])
def test_both_forms_have_the_same_actions_and_rewards(tmp_path, seed):
    files = _write(tmp_path, seed)
    listed, factored = (
        fsmdp.rddl.load(*files, actions=a, cache=False) for a in ("listed", "factored")
    )
    assert [v.name for v in listed.variables] == [v.name for v in factored.variables]
    state = tuple(listed.initial)
    names = {
        frozenset(part for part in factored.actions.name(row).split("+") if "#" not in part): row
        for row in factored.conditions.joint_actions(state)
    }
    allowed = {frozenset(name.split("+")): name for name in listed.allowed_actions(state)}
    assert names.keys() >= allowed.keys()  # a listed action may stand for others like it
    for key, name in allowed.items():
        assert listed.mean_reward(state, name) == pytest.approx(
            factored.mean_reward(state, names[key])
        )
