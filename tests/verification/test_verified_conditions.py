"""Plan files of models with allowed actions and terminal states, read by the checker."""

import json

import numpy as np
import pytest
from tests.conditioned_models import conditioned
from tests.joint_models import conditioned_joint_model

import fsmdp
from fsmdp.io.models import schema
from fsmdp.verification import checker
from fsmdp.verification.values import start_values

MODELS = [
    *(conditioned(seed, horizon=4) for seed in range(5)),
    *(conditioned(seed, horizon=None, discount=0.8) for seed in range(3)),
    *(conditioned_joint_model(seed) for seed in range(4)),
]


def verdict_of(model, plan, folder):
    """What the checker finds of a plan, from files."""
    fsmdp.save(model, folder / "model.json")
    plan.save(folder / "plan.npz")
    read = checker.read_model((folder / "model.json").read_bytes())
    claim = checker.read_claim((folder / "plan.npz").read_bytes(), read)
    return checker.check(read, claim, start_values=start_values)


@pytest.mark.parametrize("number", range(len(MODELS)))
@pytest.mark.parametrize("method", ["auto", "joint", "stagewise"])
def test_what_a_file_claims_is_proved(number, method, tmp_path):
    model = MODELS[number]
    if method == "stagewise" and model.horizon is None:
        pytest.skip("no stages")
    plan = fsmdp.plan(model, method=method)
    verdict = verdict_of(model, plan, tmp_path)
    assert verdict.proved, str(verdict)
    best = fsmdp.solve_exactly(model).start_value
    assert float(verdict.best) >= best - 1e-9
    if method == "auto":
        assert float(verdict.best) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("number", range(len(MODELS)))
def test_a_plan_is_refuted_for_the_model_without_its_conditions(number, tmp_path):
    model = MODELS[number]
    plan = fsmdp.plan(model, method="joint")
    free = model.replace(allowed=(), terminal=())
    if fsmdp.solve_exactly(free).start_value <= plan.upper_bound + 1e-6:
        pytest.skip("conditions change nothing at the start")
    plan.save(tmp_path / "plan.npz")
    fsmdp.save(free, tmp_path / "free.json")
    read = checker.read_model((tmp_path / "free.json").read_bytes())
    claim = checker.read_claim((tmp_path / "plan.npz").read_bytes(), read)
    assert not checker.check(read, claim, start_values=start_values).proved


@pytest.mark.parametrize("number", range(len(MODELS)))
def test_models_come_back_from_files(number, tmp_path):
    model = MODELS[number]
    fsmdp.save(model, tmp_path / "model.json")
    again = fsmdp.load(tmp_path / "model.json")
    assert again == model
    assert again.conditions == model.conditions
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(json.loads((tmp_path / "model.json").read_text()), schema())


@pytest.mark.parametrize("number", range(5))
def test_both_readers_see_the_same_conditions(number, tmp_path):
    model = MODELS[number]
    fsmdp.save(model, tmp_path / "model.json")
    read = checker.read_model((tmp_path / "model.json").read_bytes())
    for state in np.ndindex(*model.sizes):
        at = dict(enumerate(state))
        over = any(checker.entry(table, at, read.sizes) == 0 for table in read.ends)
        assert over == model.is_terminal(state)
        for action, tables in enumerate(read.allowed):
            fine = all(checker.entry(table, at, read.sizes) == 0 for table in tables)
            assert fine == model.conditions.allows(state, action)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"allowed": [{"actions": ["fly"], "parents": [], "table": 1}]}, "unknown action"),
        ({"allowed": [{"actions": "any", "parents": ["x9"], "table": 1}]}, "unknown"),
        ({"allowed": [{"actions": "any", "parents": ["x0"], "table": [1]}]}, "shape"),
        ({"terminal": [{"variables": ["x9"], "table": 1}]}, "unknown"),
        ({"terminal": [{"variables": ["x0"], "table": [1]}]}, "shape"),
    ],
)
def test_wrong_conditions_in_a_file_are_refused_by_both_readers(change, message, tmp_path):
    path = tmp_path / "model.json"
    fsmdp.save(MODELS[0], path)
    data = {**json.loads(path.read_text()), **change}
    del data["digest"]
    path.write_text(json.dumps(data))
    with pytest.raises(fsmdp.ModelError, match=message):
        fsmdp.load(path)
    with pytest.raises(checker.BadInputError):
        checker.read_model(path.read_bytes())


@pytest.mark.parametrize("seed", range(4))
def test_the_elimination_that_a_plan_describes_is_proved_too(seed, tmp_path):
    model = conditioned(seed, variables=6, horizon=3)
    plan = fsmdp.plan(model, fsmdp.Basis.pairs(model), method="joint", mini_bucket=8)
    fsmdp.save(model, tmp_path / "model.json")
    plan.save(tmp_path / "plan.npz")
    read = checker.read_model((tmp_path / "model.json").read_bytes())
    claim = checker.read_claim((tmp_path / "plan.npz").read_bytes(), read)
    assert claim.hint is not None
    terms = checker.terms_of(read, claim)
    assert len(terms) == len(model.actions) + len(model.terminal)
    schedule = checker.plans_schedule(claim.hint, terms, dict(read.sizes))
    for step in range(len(claim.weights)):
        assert max(schedule.maximum(action, step, {}) for action in range(len(terms))) <= 0
