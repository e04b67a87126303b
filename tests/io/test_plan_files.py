"""Plan files that are whole but wrong: refused with our errors, or used without a crash."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tests.mutations import mutated_arrays, mutated_data

import fsmdp
from fsmdp import FsmdpError, domains
from fsmdp.foundation.disk import pack_json, read_arrays, write_arrays

ROOT = Path(__file__).parents[2]


def three_valued():
    """Every table has an input of three values: twice a stride of 2^62 wraps in 64 bits."""
    stay, jump = 0.9 * np.eye(3) + 0.1 / 3, np.full((3, 3), 1 / 3)
    names = ["x", "y"]
    cases = [[fsmdp.Case(f"jump-{n}", n, jump), fsmdp.Case(fsmdp.ANY, n, stay)] for n in names]
    return fsmdp.FactoredMDP(
        [fsmdp.Variable(name, 3) for name in names],
        ["wait", "jump-x", "jump-y"],
        [fsmdp.Conditional(name, one) for name, one in zip(names, cases, strict=True)],
        [fsmdp.Reward(n, [fsmdp.Case(fsmdp.ANY, n, [0.0, 0.5, 1.0])], 0, 1) for n in names],
        3,
        [0, 0],
    )


METHODS = ("auto", "programs")  # a policy of any kind, and a greedy one

MODELS = {
    "three-valued": three_valued,
    "finite": lambda: domains.sysadmin(3, horizon=3),
    "infinite": lambda: domains.sysadmin(3, horizon=None, discount=0.9),
}


def wrong_plans(arrays, seed):
    """Pairs of a label and the arrays of a plan with one of them, or the header, changed."""
    import json

    rng = np.random.default_rng(seed)
    for name, array in arrays.items():
        yield f"without {name}", {n: a for n, a in arrays.items() if n != name}
        for label, changed in mutated_arrays(array, rng):
            yield f"{name}: {label}", arrays | {name: changed}
    about = json.loads(arrays["about"].tobytes())
    for label, changed in mutated_data(about):
        yield f"about {label}", arrays | {"about": pack_json(changed)}
    strides = [name for name in arrays if name.endswith("stride")]
    for value in (2**62 + 2**40, 2**63 - 1, 2**62, 2**61, 2**32):
        yield f"all strides {value}", arrays | {n: np.full_like(arrays[n], value) for n in strides}


def use(plan, model):
    """Everything that reads the arrays of a plan."""
    for state in product(*(range(variable.size) for variable in plan.variables)):
        for step in range(1, (plan.horizon or 2) + 1):
            plan.value(state, step)
            if isinstance(plan.policy, fsmdp.Greedy):
                plan.q_values(state, step)
            assert plan.action(state, step) in plan.action_names
    fsmdp.rollout(model, plan, 5, seed=0)
    assert repr(plan)
    assert plan.certificate.violation >= 0
    assert plan.certificate.witness.action in plan.action_names


def try_all(kind, method, folder, every, offset):
    """Write, load and use wrong plans; print each first, so that a crash tells which it was."""
    model, path = MODELS[kind](), Path(folder) / "plan.npz"
    fsmdp.plan(model, method=method).save(path)
    arrays = read_arrays(path, 2**20, "plan", "none")
    used = refused = 0
    for position, (label, wrong) in enumerate(wrong_plans(arrays, 0)):
        if position % every != offset:
            continue
        print(label, flush=True)
        write_arrays(path, wrong)
        try:
            use(fsmdp.load_plan(path), model)
            used += 1
        except FsmdpError:
            refused += 1
    print(f"{used} used, {refused} refused")


def run_apart(code, *arguments):
    """Run Python in a process of its own; its output, or a failure with the last lines of it."""
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"ended with {done.returncode} at {lines[-1:]}\n{done.stderr}"
    return lines


CODE = """
import sys
from tests.io.test_plan_files import try_all
try_all(*sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5]))
"""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", MODELS)
def test_wrong_plans_with_valid_digests_are_refused_or_harmless(kind, method, tmp_path):
    lines = run_apart(CODE, kind, method, tmp_path, 15, 1)
    assert len(lines) > 33


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("offset", range(5))
def test_all_wrong_plans_with_valid_digests_are_refused_or_harmless(kind, method, offset, tmp_path):
    run_apart(CODE, kind, method, tmp_path, 5, offset)


@pytest.mark.parametrize("kind", MODELS)
def test_strides_that_multiply_beyond_integers_are_refused(kind, tmp_path):
    path = tmp_path / "plan.npz"
    fsmdp.plan(MODELS[kind](), method="programs").save(path)
    arrays = read_arrays(path, 2**20, "plan", "none")
    name = "lookup_input_stride"
    for value in (2**62 + 2**40, 2**63 - 1, 2**62, 2**61):
        write_arrays(path, arrays | {name: np.full_like(arrays[name], value)})
        with pytest.raises(fsmdp.ModelError, match="missing or wrong"):
            fsmdp.load_plan(path)


CANDIDATE = {"name": "a", "mean": 1.0, "standard_error": 0.1, "episodes": 9, "seconds": 0.5}
INCUMBENT = {
    **{name: CANDIDATE[name] for name in ("name", "mean", "standard_error", "episodes")},
    **{"lower_limit": 0.5, "level": 0.99, "exact": False},
}
LINE = {
    **{"seconds": 0.1, "what": "a", "incumbent": 1.0, "standard_error": 0.1, "upper_bound": 2.0},
    **{"gap": 0.5, "improved": "policy"},
}


def wrong_records(record):
    """A record with one value of another kind, and with one too many."""
    for name, value in record.items():
        yield record | {name: 1.5 if isinstance(value, str | bool) else "1"}
        yield record | {name: [value]}
        if isinstance(value, float):
            yield record | {name: float("nan")}
    yield record | {"other": 1}


HEADERS = {
    "horizon": ["3", 2.5, True, 0, -1, 10**7],
    "discount": ["1", None, 0, -0.5, 1.5, True],
    "actions": ["wait", [], [1], ["a", "a", "b", "c"], None],
    "variables": [[], [["x", 2]], [["x", 2.0]] * 3, [["x", 2]] * 3, [["x"]], {}],
    "scopes": [[], [[0]], [[-1]], [["x"]], [[1, 0]], None],
    "functions": [[], [[1]], [[1]] * 4, [[2], *[[0, 1]] * 3], [["1"]] * 4, [[None]] * 4, None],
    "bound_weights": [[], [[0.0]], [[0.0] * 3] * 4, [[0.0] * 4] * 3, [["0"] * 4] * 4, None],
    "witness": [[], [0, [0, 0, 0], "reboot-0", 0.0], [1, [0, 0, 2], "reboot-0", 0.0]],
    "view": ["sideways", None, 3],
    "invariants": [
        {},
        [3],
        [{"scope": [0]}],
        [{"scope": [], "allowed": [1]}],
        [{"scope": [0], "allowed": [1, 2]}],
        [{"scope": [0], "allowed": [1, 0, 1, 1, 0]}],
        [{"scope": [99], "allowed": [1, 0]}],
        [{"scope": [0], "counts": [[0, -1]], "least": 0, "most": 1}],
        [{"scope": [0], "counts": [[0]], "least": 0, "most": 1}],
    ],
    "restrictions": [{}, [0], [[0, []]], [[-2, []]]],
    "elimination": [[], "steps", {"steps": []}, {"steps": [[[0]]], "finals": []}],
    "status": ["fine", None, 1],
    "seconds": [{"a": "b"}, [], {"a": -1.0}, None],
    "choices": ["text", [1], None],
    "induced_width": [1.5, "2", None, -1],
    "rows": [1.5, None],
    "columns": ["x"],
    "iterations": [True],
    "method": [1, None],
    "objective": ["1", None, float("nan"), float("inf")],
    "upper_bound": ["1", None, float("nan")],
    "dual_bound": ["1", True, float("nan"), float("inf")],
    "certified_objective": ["1", None, float("nan")],
    "at_start": ["1", True, 1.0],
    "proof": [1, None, ""],
    "start_proof": ["all", {}, {"states": "all", "boxes": []}],
    "policy": [1, True, "at random"],
    "incumbent": ["a policy", {}, *wrong_records(INCUMBENT)],
    "candidates": [None, {}, [[]], *([one] for one in wrong_records(CANDIDATE))],
    "log": [None, {}, [[]], *([one] for one in wrong_records(LINE))],
}


def test_every_field_of_the_header_is_checked(tmp_path):
    import json

    path = tmp_path / "plan.npz"
    fsmdp.plan(MODELS["finite"](), method="programs").save(path)
    arrays = read_arrays(path, 2**20, "plan", "none")
    about = json.loads(arrays["about"].tobytes())
    assert set(HEADERS) == set(about) - {"format", "version"}
    right = {"incumbent": INCUMBENT, "candidates": [CANDIDATE], "log": [LINE]}
    write_arrays(path, arrays | {"about": pack_json(about | right)})
    assert fsmdp.load_plan(path).incumbent.mean == 1.0
    for name, values in HEADERS.items():
        for value in values:
            write_arrays(path, arrays | {"about": pack_json(about | {name: value})})
            with pytest.raises(fsmdp.ModelError, match=r"missing or wrong|no number of JSON"):
                fsmdp.load_plan(path)
