"""Small files that ask for much are refused in a sentence, before time or memory is spent."""

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from checked import model_bytes, plan_bytes
from test_junk_files import about_of, entry_of, packed, parts_of, with_about

import fsmdp
from fsmdp import domains
from fsmdp.foundation.disk import array_bytes, read_arrays, write_arrays
from fsmdp.verification import checker

MEMORY = 2**30
"""Bytes that a check may have; numpy alone maps about 300 million."""

CODE = """
import pathlib, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[3]),) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from fsmdp.verification import checker, values
checker.LARGEST_MEMORY = int(sys.argv[4])
try:
    model = checker.read_model(pathlib.Path(sys.argv[1]).read_bytes())
    claim = checker.read_claim(pathlib.Path(sys.argv[2]).read_bytes(), model)
    print(checker.check(model, claim, start_values=values.start_values))
except checker.BadInputError as error:
    print("refused:", error)
"""


def check_apart(model, plan, folder, entries=checker.LARGEST_MEMORY):
    """What the checker says in a process with little memory and a minute."""
    paths = folder / "model.json", folder / "plan.npz"
    for path, content in zip(paths, (model, plan), strict=True):
        path.write_bytes(content)
    command = [sys.executable, "-c", CODE, *map(str, paths), str(MEMORY), str(entries)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    (line,) = done.stdout.splitlines()
    assert len(line) < 500
    return line


def drawn_anew(discount=None, size=2, n_variables=1, horizon=3):
    """Variables drawn anew at each step, and a reward for the first."""
    law = np.full(size, 1 / size)
    names = [f"x{i}" for i in range(n_variables)]
    reward = [fsmdp.Case(fsmdp.ANY, "x0", np.linspace(0, 1, size))]
    return fsmdp.FactoredMDP(
        [fsmdp.Variable(name, size) for name in names],
        ["stay", "wait"],
        [fsmdp.Conditional(name, [fsmdp.Case(fsmdp.ANY, (), law)]) for name in names],
        [fsmdp.Reward("r", reward, 0, 1)],
        horizon if discount is None else None,
        **({} if discount is None else {"discount": discount}),
    )


def changed(plan, **changes):
    return with_about(plan, json.dumps(about_of(plan) | changes))


@pytest.fixture(scope="module")
def small():
    model = domains.sysadmin(3, horizon=2)
    return model_bytes(model), plan_bytes(fsmdp.plan(model, method="joint"))


def test_the_limits_leave_room_for_ordinary_plans(small, tmp_path):
    assert check_apart(*small, tmp_path).startswith("PROVED: ")


def test_sums_over_large_counters_are_refused(tmp_path):
    """Two variables of 2049 values, counted one after another: 10^10 entries."""
    size = 2049
    model = drawn_anew(size=size, n_variables=3, horizon=1)
    plan = plan_bytes(fsmdp.plan(model, fsmdp.Basis([]), method="joint"))
    counts = [[*range(size)], [*range(size)], [0] * size]
    invariant = {"scope": [0, 1, 2], "counts": counts, "least": 0, "most": 4000}
    wrong = changed(plan, invariants=[invariant], restrictions=[[0, []]])
    assert "too wide: the counters of a sum" in check_apart(model_bytes(model), wrong, tmp_path)


def test_many_sums_are_refused_together(tmp_path):
    model = drawn_anew(size=100, n_variables=4, horizon=1)
    plan = plan_bytes(fsmdp.plan(model, fsmdp.Basis([]), method="joint"))
    one = {"scope": [0, 1, 2, 3], "counts": [[*range(100)]] * 4, "least": 0, "most": 90}
    wrong = changed(plan, invariants=[one], restrictions=[[0, []]] * 10**5)
    assert "too wide" in check_apart(model_bytes(model), wrong, tmp_path)


@pytest.mark.parametrize("times", [20_000, pytest.param(300_000, marks=pytest.mark.slow)])
def test_a_hint_that_doubles_a_term_again_and_again_is_refused(small, times, tmp_path):
    model, plan = small
    steps = [[[[0, 0, 1]], []], *([[[at], [at]], []] for at in range(times))]
    hint = {"steps": steps, "finals": [len(steps) - 1] * 4}
    wrong = changed(plan, elimination=hint)
    # With room for one entry, the checker's own schedule is too wide, and that of the plan is read.
    assert "is used too many times" in check_apart(model, wrong, tmp_path, entries=1)


def test_a_discount_close_to_one_takes_few_sweeps(tmp_path):
    model = drawn_anew(1 - 1e-9)
    plan = plan_bytes(fsmdp.plan(model, fsmdp.Basis([]), method="joint"))
    about = about_of(plan)
    about |= {"at_start": about["upper_bound"] / 2, "proof": "exact values"}
    about["start_proof"] = {"states": "all", "boxes": []}
    parts = parts_of(with_about(plan, json.dumps(about)))
    parts["values.npy"] = array_bytes(np.array([0.0, 5e8]))
    line = check_apart(model_bytes(model), packed(parts), tmp_path)
    assert line.startswith(("PROVED", "REFUTED"))


@pytest.mark.parametrize("item", ["[]", "0"])
def test_much_of_nothing_in_a_description_is_refused(small, item, tmp_path):
    model, plan = small
    path = tmp_path / "plan.npz"
    path.write_bytes(plan)
    text = json.dumps(about_of(plan))[:-1] + ',"more":[' + f"{item}," * (10**7 // len(item))
    array = np.frombuffer((text + "0]}").encode(), dtype=np.uint8)
    arrays = read_arrays(path, 2**26, "plan", "none")
    write_arrays(path, arrays | {"about": array}, compress=True)
    wrong = path.read_bytes()
    assert len(wrong) < 2**17
    assert "the limits are" in check_apart(model, wrong, tmp_path)
    with pytest.raises(fsmdp.ModelError, match=r"entries, expected at most"):
        fsmdp.load_plan(path)


@pytest.mark.parametrize("name", ["about.npy", "weights.npy"])
def test_a_bomb_in_any_member_is_not_unpacked(small, name, tmp_path):
    model, plan = small
    bomb = packed(parts_of(plan) | {name: bytes(3 * 10**8)}, compression=8)
    assert len(bomb) < 2**20
    assert "too large: the limit is" in check_apart(model, bomb, tmp_path)
    with pytest.raises(fsmdp.ModelError, match="unpacks to more than"):
        fsmdp.load_plan(tmp_path / "plan.npz")


def test_deep_nesting_is_refused(small, tmp_path):
    model, plan = small
    text = json.dumps(about_of(plan))[:-1] + ',"more":' + "[" * 10**6 + "]" * 10**6 + "}"
    assert "not JSON" in check_apart(model, with_about(plan, text), tmp_path)


def test_many_functions_under_many_actions_are_refused(tmp_path):
    stay = np.eye(2)
    actions = [f"a{i}" for i in range(3000)]
    case = fsmdp.Case(fsmdp.ANY, "x", stay)
    reward = fsmdp.Reward("r", [fsmdp.Case(fsmdp.ANY, "x", [0.0, 1.0])], 0, 1)
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("x", 2)], actions, [fsmdp.Conditional("x", [case])], [reward], 1
    )
    plan = plan_bytes(fsmdp.plan(model, fsmdp.Basis([]), method="joint"))
    many = 2000
    wrong = changed(
        plan,
        scopes=[[], *[[0]] * many],
        functions=[[1], *[[0, 1]] * many],
        bound_weights=[[1.0] * (many + 1), [0.0] * (many + 1)],
    )
    assert "too wide: 6003000 expectations" in check_apart(model_bytes(model), wrong, tmp_path)


def test_long_fractions_are_refused(monkeypatch):
    """Chains of draws whose probabilities have many digits: denominators multiply."""
    third = [0.3, 0.7]
    names = [f"x{i}" for i in range(12)]
    conditionals = [fsmdp.Conditional("x0", [fsmdp.Case(fsmdp.ANY, (), third)])]
    table = [third, [1e-300, 1.0]]
    for before, name in pairwise(names):
        case = fsmdp.Case(fsmdp.ANY, (), table, drawn=before)
        conditionals.append(fsmdp.Conditional(name, [case]))
    reward = fsmdp.Reward("r", [fsmdp.Case(fsmdp.ANY, names[-1], [0.0, 1.0])], 0, 1)
    variables = [fsmdp.Variable(name, 2) for name in names]
    model = fsmdp.FactoredMDP(variables, ["wait"], conditionals, [reward], 2)
    plan = plan_bytes(fsmdp.plan(model, fsmdp.Basis.singles(model), method="joint"))
    mine = checker.read_model(model_bytes(model))
    claim = checker.read_claim(plan, mine)
    assert checker.check(mine, claim).proved
    monkeypatch.setattr(checker, "MOST_BITS", 5000)
    with pytest.raises(checker.TooWideError, match="become too long"):
        checker.check(mine, claim)


def test_sums_at_all_steps_are_limited_together(monkeypatch, small):
    mine = checker.read_model(small[0])
    claim = checker.read_claim(small[1], mine)
    monkeypatch.setattr(checker, "MOST_SUMS", 10)
    with pytest.raises(checker.TooWideError, match="too much work: "):
        checker.check(mine, claim)


def test_long_names_make_short_messages(small, tmp_path):
    model, plan = small
    entry = entry_of("a" * 60000 + ".npy")
    wrong = packed([*parts_of(plan).items(), (entry, b"")])
    assert "not a plan: array aaa" in check_apart(model, wrong, tmp_path)
