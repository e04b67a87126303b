"""Preconditions on states, ends of episodes and large formulas become parts of a model."""

import itertools
import math

import numpy as np
import pytest
from tests.io.rddl_texts import KEEP, load_problem, next_distribution, write_problem

import fsmdp
from fsmdp.io.rddl.translation import States

DIM = "on'(?t) = KronDelta((on(?t) | press(?t)) & ~dim(?t));"
TWO = "dim(thing) : { action-fluent, bool, default = false };"
ONLY_ON = "forall_{?t : thing} [dim(?t) => on(?t)];"
FREE = "forall_{?t : thing} [press(?t) => ~on(?t)];"
ONE_EACH = "forall_{?t : thing} [press(?t) + dim(?t) <= 1];"


def precondition(*parts):
    return "action-preconditions { " + " ".join(parts) + " };"


def allowed_names(model, state):
    """Names of the joint actions allowed in a state, however actions are written."""
    if not model.actions.variables:
        return set(model.allowed_actions(state))
    rows = model.conditions.joint_actions(state)
    return {
        "+".join(part for part in model.actions.name(row).split("+") if "#" not in part) or "noop"
        for row in rows
    }


@pytest.mark.parametrize("form", ["listed", "factored"])
@pytest.mark.parametrize(
    "more",
    [
        "",
        "(sum_{?t : thing} [press(?t) + 2 * dim(?t)]) <= 3;",
        "(sum_{?t : thing} [press(?t) + dim(?t)]) <= (sum_{?t : thing} [on(?t)]);",
        "(sum_{?t : thing} [press(?t) + dim(?t)]) <= 2;",
        "(exists_{?t : thing} [on(?t)]) | press(t2);",
    ],
    ids=["each", "budget", "budget by state", "all together", "at least"],
)
def test_exactly_the_actions_that_preconditions_allow_are_allowed(tmp_path, form, more):
    model = load_problem(
        tmp_path,
        form,
        cpfs=DIM,
        pvariables=TWO,
        limit="",
        sections=precondition(ONLY_ON, FREE, ONE_EACH, more),
    )
    for state in itertools.product((0, 1), repeat=3):
        expected = set()
        for press, dim in itertools.product(itertools.product((0, 1), repeat=3), repeat=2):
            spent = sum(press) + 2 * sum(dim)
            count = sum(press) + sum(dim)
            fine = all(
                (not d or s) and (not p or not s) and p + d <= 1
                for s, p, d in zip(state, press, dim, strict=True)
            )
            if "2 *" in more:
                fine &= spent <= 3
            elif "<= (sum" in more:
                fine &= count <= sum(state)
            elif "<= 2" in more:
                fine &= count <= 2
            elif "exists" in more:
                fine &= bool(any(state) or press[1])
            if fine:
                chosen = [f"press(t{i + 1})" for i in range(3) if press[i]]
                chosen += [f"dim(t{i + 1})" for i in range(3) if dim[i]]
                expected.add(frozenset(chosen))
        found = {
            frozenset(() if name == "noop" else name.split("+"))
            for name in allowed_names(model, state)
        }
        assert found == expected


def test_exclusive_fluents_are_one_action_variable_with_their_names(tmp_path):
    model = load_problem(
        tmp_path,
        "factored",
        cpfs=DIM,
        pvariables=TWO,
        limit="",
        sections=precondition(ONLY_ON, ONE_EACH),
    )
    assert [(v.name, v.labels) for v in model.actions.variables] == [
        (f"*(t{i})", ("none", f"press(t{i})", f"dim(t{i})")) for i in (1, 2, 3)
    ]
    assert not model.actions.forbidden
    assert model.actions.name((1, 0, 2)) == "press(t1)+dim(t3)"
    assert model.actions.read("press(t1)+dim(t3)") == (1, 0, 2)


def test_actions_that_no_state_allows_are_left_out(tmp_path):
    model = load_problem(
        tmp_path,
        cpfs=DIM,
        pvariables=TWO,
        limit="",
        sections=precondition(
            "forall_{?t : thing} [dim(?t) => on(t1)];",
            "forall_{?t : thing} [press(?t) => ~on(t1)];",
        ),
    )
    assert len(model.actions) == 2**3 + 2**3 - 1


ENDING = {
    "pvariables": "late : { state-fluent, bool, default = false };",
    "cpfs": KEEP + "late' = Bernoulli(0.2);",
    "reward": "1 + (sum_{?t : thing} [press(?t)])",
    "sections": "termination { late; (sum_{?t : thing} [on(?t)]) >= 3; };",
    "horizon": 10,
}


def test_a_termination_condition_ends_episodes(tmp_path):
    model = load_problem(tmp_path, **ENDING)
    for state in itertools.product((0, 1), repeat=4):
        known = dict(zip((variable.name for variable in model.variables), state, strict=True))
        over = known["late"] or all(known[f"on(t{i})"] for i in (1, 2, 3))
        assert model.is_terminal(state) == bool(over)
    assert len(model.terminal) == 2
    files = write_problem(tmp_path, **ENDING)
    found = fsmdp.rddl.cross_check(*files, walks=10, cache=False).require()
    assert found.steps < 100
    assert found.verdicts > found.steps


def test_constraints_on_states_and_actions_are_conditions_and_noted(tmp_path):
    sections = "state-action-constraints { forall_{?t : thing} [press(?t) => ~on(?t)]; };"
    with pytest.warns(fsmdp.rddl.RDDLWarning, match="in some states only"):
        model = load_problem(tmp_path, cpfs=KEEP, pvariables="", sections=sections)
    assert model.allowed_actions((1, 0, 1)) == ("noop", "press(t2)")


WIDE = {
    "any": ("exists_{?o : thing} [on(?o)]", lambda on: float(any(on))),
    "all": ("forall_{?o : thing} [on(?o)]", lambda on: float(all(on))),
    "count": ("(sum_{?o : thing} [on(?o)]) / 40", lambda on: sum(on) / 40),
    "at least": ("(sum_{?o : thing} [on(?o)]) >= 7", lambda on: float(sum(on) >= 7)),
    "product": (
        "prod_{?o : thing} [1 - 0.5 * on(?o)]",
        lambda on: 0.5 ** sum(on),
    ),
}


@pytest.mark.parametrize("case", WIDE)
def test_a_formula_over_forty_fluents_is_split_and_stays_the_same(tmp_path, case):
    text, value = WIDE[case]
    things = [f"t{i}" for i in range(40)]
    model = load_problem(
        tmp_path,
        cpfs=f"on'(?t) = KronDelta(on(?t) | press(?t)); seen' = Bernoulli({text});",
        pvariables="seen : { state-fluent, bool, default = false };",
        reward=text,
        objects=f"thing : {{{', '.join(things)}}};",
        start="on(t0);",
    )
    sizes = [
        kernel.table.size for mechanism in model.dynamics.mechanisms for kernel in mechanism.cases
    ]
    assert max(sizes) < 2**17
    rng = np.random.default_rng(0)
    states = States(model)
    for chance in (0.0, 0.1, 0.2, 0.9, 1.0):
        on = (rng.random(40) < chance).astype(int)
        known = dict(zip((f"on({name})" for name in things), map(int, on), strict=True))
        state = states.state({**known, "seen": 0})
        assert model.mean_reward(state, "noop") == pytest.approx(value(on))
        assert _next(model, "seen", state)[1] == pytest.approx(value(on))


def _next(model, name, state):
    """P(next value | state, noop), by going through all that is drawn for it."""
    from fsmdp.io.rddl.cross_check import _Laws

    position = [variable.name for variable in model.variables].index(name)
    return _Laws(model, (position,)).at(state, model.action_index("noop"))[2]


def test_auxiliary_state_variables_follow_the_others(tmp_path):
    things = [f"t{i}" for i in range(20)]
    model = load_problem(
        tmp_path,
        cpfs=KEEP,
        pvariables="",
        reward="forall_{?o : thing} [on(?o)]",
        objects=f"thing : {{{', '.join(things)}}};",
    )
    added = [variable.name for variable in model.variables if "#" in variable.name]
    assert added
    assert States(model).state({f"on({name})": int(name == "t1") for name in things}) == tuple(
        model.initial
    )


PLACES = "at(thing) : { state-fluent, bool, default = false };"
GO = "at'(?t) = if (exists_{?o : thing} [press(?o)]) then press(?t) else at(?t);on'(?t) = on(?t);"


def test_places_of_which_one_is_true_are_one_variable_where_that_narrows(tmp_path):
    things = [f"t{i}" for i in range(24)]
    parts = {
        "pvariables": PLACES,
        "cpfs": GO,
        "objects": f"thing : {{{', '.join(things)}}};",
        "start": "at(t3);",
        "reward": "(sum_{?t : thing} [on(?t)]) + (prod_{?o : thing} [1 + 0.37 * at(?o)])",
        "limit": "",
        "sections": precondition(
            "(sum_{?t : thing} [press(?t)]) <= 1;", "forall_{?t : thing} [press(?t) => ~at(?t)];"
        ),
    }
    model = load_problem(tmp_path, **parts)
    joined = next(variable for variable in model.variables if variable.name == "at(*)")
    assert joined.labels == tuple(f"at({name})" for name in things)
    fsmdp.rddl.cross_check(*write_problem(tmp_path, **parts), walks=2, cache=False).require()


DOMAINS_OF_2018 = (
    "AcademicAdvising",
    "ChromaticDice",
    "CooperativeRecon",
    "EarthObservation",
    "Manufacturer",
    "PushYourLuck",
    "RedFinnedBlueEye",
)


@pytest.mark.parametrize("domain", DOMAINS_OF_2018)
def test_the_simulator_agrees_on_the_domains_of_2018(domain):
    found = fsmdp.rddl.cross_check(f"{domain}_ippc2018", 1, walks=3).require()
    assert found.steps > 50
    assert found.verdicts > 5 * found.steps


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS_OF_2018)
@pytest.mark.parametrize("instance", range(2, 21))
def test_the_simulator_agrees_on_all_instances_of_2018(domain, instance):
    fsmdp.rddl.cross_check(f"{domain}_ippc2018", instance, walks=2).require()


def test_a_condition_that_is_left_out_is_found():
    name = "AcademicAdvising_ippc2018"
    model = fsmdp.rddl.load(name, 1)
    wrong = model.replace(allowed=model.allowed[1:])
    found = fsmdp.rddl.cross_check(name, 1, model=wrong, walks=10)
    assert found.disagreements
    with pytest.raises(fsmdp.ModelError, match="allowed actions or ends differ"):
        found.require()


def test_an_end_that_is_left_out_is_found(tmp_path):
    files = write_problem(tmp_path, **ENDING)
    model = fsmdp.rddl.load(*files, cache=False)
    for kept in (model.terminal[1:], model.terminal[:1]):
        wrong = model.replace(terminal=kept)
        assert not fsmdp.rddl.cross_check(*files, model=wrong, walks=20, cache=False).passed


def test_the_cache_gives_conditions_and_labels_back(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = write_problem(
        tmp_path,
        cpfs=DIM,
        pvariables=TWO,
        limit="",
        sections=precondition(ONLY_ON, ONE_EACH) + "termination { on(t1) & on(t2); };",
    )
    first, again = (fsmdp.rddl.load(*files, actions="factored") for _ in range(2))
    assert first == again
    assert [v.labels for v in first.actions.variables] == [
        v.labels for v in again.actions.variables
    ]
    assert len(again.terminal) == 1


COUNT = "n : { state-fluent, int, default = 3 };"


def poisson(rate, k):
    return math.exp(-rate) * rate**k / math.factorial(k)


CUT_OFF = {
    "min[n + Poisson(2.0), 7]": lambda n: [
        *(poisson(2.0, k - n) if k >= n else 0.0 for k in range(3, 7)),
        1 - sum(poisson(2.0, k) for k in range(7 - n)),
    ],
    "max[n - Geometric(0.4), 0]": lambda n: [
        0.6 ** max(n - 1, 0) if n else 1.0,
        *(0.4 * 0.6 ** (n - k - 1) if k < n else 0.0 for k in range(1, 4)),
    ],
    "Binomial(n, 0.25)": lambda n: [
        math.comb(n, k) * 0.25**k * 0.75 ** (n - k) if k <= n else 0.0 for k in range(4)
    ],
}


@pytest.mark.parametrize("formula", CUT_OFF)
def test_draws_of_counts_are_exact_where_they_are_cut_off(tmp_path, formula):
    model = load_problem(tmp_path, pvariables=COUNT, cpfs=KEEP + f"n' = {formula};")
    first = 3 if "min" in formula else 0
    position = [variable.name for variable in model.variables].index("n")
    for value in range(model.variables[position].size):
        state = [0] * len(model.variables)
        state[position] = value
        found = next_distribution(model, "n", state, "noop")
        assert found == pytest.approx(CUT_OFF[formula](first + value), abs=1e-12)


def test_integer_actions_have_the_values_that_preconditions_leave(tmp_path):
    parts = {
        "pvariables": COUNT + "add : { action-fluent, int, default = 0 };",
        "cpfs": KEEP + "n' = max[0, min[4, n + add]];",
        "reward": "n - 0.5 * add",
        "sections": precondition("add >= -1;", "add <= 2;", "(add == 2) => (n <= 2);"),
        "limit": "",
    }
    model = load_problem(tmp_path, **parts)
    plain = {name for name in model.actions if "press" not in name}
    assert plain == {"noop", "add=-1", "add=1", "add=2"}
    names = [variable.name for variable in model.variables]
    for n in range(5):
        state = [0] * 4
        state[names.index("n")] = n
        assert model.allows(state, "add=2") == (n <= 2)
        assert model.mean_reward(state, "add=-1") == n + 0.5
        law = next_distribution(model, "n", state, "add=-1")
        assert law[max(0, n - 1)] == 1.0
    fsmdp.rddl.cross_check(*write_problem(tmp_path, **parts), walks=6, cache=False).require()


def test_a_reward_may_look_at_next_values_that_are_certain(tmp_path):
    parts = {
        "pvariables": "",
        "cpfs": KEEP,
        "reward": "sum_{?t : thing} [on'(?t) - 0.25 * on(?t)]",
    }
    model = load_problem(tmp_path, **parts)
    assert model.mean_reward((1, 0, 0), "press(t2)") == pytest.approx(1.75)
    fsmdp.rddl.cross_check(*write_problem(tmp_path, **parts), walks=4, cache=False).require()
