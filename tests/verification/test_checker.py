"""The checker proves what holds and refutes what does not, as enumeration in fractions says."""

import ast
import dataclasses
import subprocess
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from checked import ORDINARY, lowered, model_bytes, plan_bytes, read, verdict_of
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.odd_models import odd_model
from tests.rational import RationalModel

import fsmdp
from fsmdp import domains
from fsmdp.io import models as model_files
from fsmdp.io import plans as plan_files
from fsmdp.solver.plan import METHODS
from fsmdp.verification import checker

BILLIONTH = Fraction(1, 10**9)


def random_problem(seed):
    """Latents, blocks, draws that look at draws, rewards by action, and all kinds of ends."""
    horizon, discount = [(1, 1.0), (3, 1.0), (3, 0.9), (None, 0.8)][seed % 4]
    variables, latents = 1 + seed // 4 % 3, seed // 12 % 2
    return domains.random_model(seed, variables, 3, horizon, discount, latents=latents)


def plan_of(model, method, seed=0):
    options = {"iteration_limit": 200} if method == "ellipsoid" else {}
    if method in ("auto", "fitted"):
        options |= {"time_limit": 2}
    basis = None if method == "auto" else [fsmdp.Basis.singles, fsmdp.Basis.pairs][seed % 2](model)
    return fsmdp.plan(model, basis, method=method, **options)


def methods_of(model):
    finite = model.horizon is not None
    return [name for name in METHODS if finite or name != "stagewise"]


def entry(table, state, sizes):
    place = 0
    for axis in table.axes:
        place = place * sizes[axis] + state[axis]
    return table.numbers[place]


def largest_violation(model, claim, n_steps=None):
    """By enumeration, in fractions, of the first steps or of all."""
    found = RationalModel(model)

    def values(row):
        pairs = list(zip(row, claim.functions, strict=True))
        return {s: sum(w * entry(h, s, model.sizes) for w, h in pairs) for s in found.states}

    steps = [values(row) for row in claim.weights]
    nothing = dict.fromkeys(found.states, Fraction(0))
    after = steps if model.horizon is None else [*steps[1:], nothing]
    return max(
        found.backup(following, state, action) - now[state]
        for now, following in list(zip(steps, after, strict=True))[:n_steps]
        for state, action in product(found.states, range(len(model.actions)))
    )


def assert_as_enumerated(model, claim):
    """The verdict is that of enumeration; whether every inequality holds."""
    verdict = checker.check(checker.read_model(model_bytes(model)), claim)
    expected = largest_violation(model, claim)
    assert verdict.excess == expected
    assert expected <= -verdict.slack <= expected + ORDINARY
    assert (verdict.slack >= 0) == (expected <= 0)
    first = list(zip(claim.weights[0], claim.functions, strict=True))
    assert verdict.bound == sum(
        chance * weight * entry(function, state, model.sizes)
        for state, chance in RationalModel(model).initial().items()
        for weight, function in first
    )
    return verdict.slack >= 0


def test_it_imports_the_standard_library_alone():
    nodes = list(ast.walk(ast.parse(Path(checker.__file__).read_text("utf-8"))))
    names = {alias.name for one in nodes if isinstance(one, ast.Import) for alias in one.names}
    names |= {one.module or "." for one in nodes if isinstance(one, ast.ImportFrom)}
    assert not any(one.level for one in nodes if isinstance(one, ast.ImportFrom))
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


def test_it_runs_alone_without_any_package(tmp_path):
    model, path = domains.sysadmin(3, horizon=3), tmp_path / "model.json"
    fsmdp.save(model, path)
    plan_of(model, "joint").save(tmp_path / "plan.npz")
    command = [sys.executable, "-I", "-S", checker.__file__, path, tmp_path / "plan.npz"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("PROVED: no policy earns more than ")


def test_it_reads_the_formats_of_this_release():
    assert (model_files.FORMAT, model_files.VERSION) == checker.MODEL
    assert (plan_files.FORMAT, plan_files.VERSION) == checker.PLAN


def assert_plans_are_proved(method, seed):
    for model in (random_problem(seed), odd_model(seed, [1, 3, None][seed % 3], 0.9)):
        if method not in methods_of(model):
            continue
        plan = plan_of(model, method, seed)
        verdict = verdict_of(model, plan)
        assert verdict.proved, str(verdict)
        assert verdict.bound <= Fraction(plan.bound.certificate.upper_bound)
        assert verdict.best <= verdict.bound
        if model.horizon is not None:
            assert RationalModel(model).start_value() <= verdict.best


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 10**4))
@settings(max_examples=3)
def test_plans_of_every_method_are_proved(method, seed):
    assert_plans_are_proved(method, seed)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(100))
def test_many_plans_of_every_method_are_proved(method, seed):
    assert_plans_are_proved(method, seed)


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 10**4))
@settings(max_examples=2)
def test_a_constant_a_billionth_too_low_is_refuted(method, seed):
    model = random_problem(seed)
    if method not in methods_of(model):
        return
    read_model, claim = read(model, plan_of(model, method, seed))
    for step, excess in enumerate(checker.check(read_model, claim).steps):
        # Without a horizon the constant stands on both sides.
        room = -excess if model.horizon else -excess / (1 - read_model.discount)
        enough = lowered(claim, step, 0, room * (1 - BILLIONTH))
        assert checker.check(read_model, enough).slack >= 0
        too_low = checker.check(read_model, lowered(claim, step, 0, room * (1 + BILLIONTH)))
        assert not too_low.proved
        assert too_low.excess > 0
        assert str(too_low).startswith("REFUTED: V >= R + E V' at step ")


@given(seed=st.integers(0, 10**4))
@settings(max_examples=4)
def test_any_weight_a_billionth_too_low_is_refuted(seed):
    model = random_problem(seed)
    method = methods_of(model)[seed % len(methods_of(model))]
    read_model, claim = read(model, plan_of(model, method, seed))
    refuted = 0
    for step, function in product(range(len(claim.weights)), range(len(claim.functions))):

        def holds(amount, step=step, function=function):
            changed = lowered(claim, step, function, amount)
            return checker.check(read_model, changed).slack >= 0

        low, high = Fraction(0), Fraction(1, 10**15)
        while high < 10**6 and holds(high):
            low, high = high, 4 * high
        if high >= 10**6:  # a function that is 0 wherever anything could fail
            continue
        while high - low > high * BILLIONTH:
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        assert assert_as_enumerated(model, lowered(claim, step, function, low))
        assert not assert_as_enumerated(model, lowered(claim, step, function, high))
        refuted += 1
    assert refuted >= len(claim.weights)


@given(seed=st.integers(0, 10**4))
@settings(max_examples=15)
def test_any_weights_are_judged_as_by_enumeration(seed):
    rng = np.random.default_rng(seed)
    for model in (random_problem(seed), odd_model(seed, 2)):
        basis = [fsmdp.Basis.singles, fsmdp.Basis.pairs][seed % 2](model)
        plan = fsmdp.plan(model, basis, method="programs")
        for scale in (0.0, 1e-12, 1.0, 1e6):
            noise = scale * rng.normal(size=plan.bound.weights.shape)
            if model.horizon is not None:
                noise[-1] = 0
            weights = (plan.bound.weights + noise).tolist()
            content = plan_bytes(plan, {"bound_weights": weights})
            claim = checker.read_claim(content, checker.read_model(model_bytes(model)))
            assert assert_as_enumerated(model, claim) or scale > 0


def changed_models(model, rng, count):
    """The model with a probability of one row moved to another value."""
    data = model_files.to_dict(model)
    for _ in range(count):
        changed = model_files.json.loads(model_files.json.dumps(data))
        conditional = changed["conditionals"][rng.integers(len(changed["conditionals"]))]
        case = conditional["cases"][rng.integers(len(conditional["cases"]))]
        table = np.array(case["table"])
        children = len(conditional["children"])
        rows = table.reshape(-1, int(np.prod(table.shape[table.ndim - children :])))
        row = rows[rng.integers(len(rows))]
        taken, given_to = rng.permutation(len(row))[:2] if len(row) > 1 else (0, 0)
        amount = row[taken] * rng.choice([1.0, 1e-3])
        row[taken] -= amount
        row[given_to] += amount
        case["table"] = table.tolist()
        yield model_files.from_bytes(model_files.json.dumps(changed).encode())


@given(seed=st.integers(0, 10**4))
@settings(max_examples=10)
def test_a_model_changed_in_a_probability_that_matters_is_refuted(seed):
    model = random_problem(4 * seed + 1)  # a horizon of 3
    rng = np.random.default_rng(seed)
    _, claim = read(model, plan_of(model, "joint", seed))
    for other in changed_models(model, rng, 6):
        assert_as_enumerated(other, claim)


@pytest.mark.parametrize("method", METHODS)
def test_a_ring_that_breaks_more_rarely_is_refuted(method):
    model = domains.sysadmin(3, horizon=3)
    _, claim = read(model, plan_of(model, method))
    data = model_files.to_dict(model)
    row = next(
        case["table"][1][1]
        for case in data["conditionals"][0]["cases"]
        if len(case["parents"]) == 2
    )
    row[:] = [row[0] - 1e-3, row[1] + 1e-3]
    better = model_files.from_bytes(model_files.json.dumps(data).encode())
    verdict = checker.check(checker.read_model(model_bytes(better)), claim)
    if method == "auto":  # the weights say little there, and exact values the rest
        assert verdict.tighter is False
    elif method == "fitted":  # the largest rewards, whatever the probabilities are
        assert verdict.bound >= 3
        return
    assert not verdict.proved


def test_an_inequality_that_holds_with_nothing_to_spare_is_too_close_to_call():
    rows = [[0.7, 0.3], [0.3, 0.7]]  # as binary floats they do not sum to 1: thirds and the like
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("x", 2)],
        ["wait"],
        [fsmdp.Conditional("x", fsmdp.Case(fsmdp.ANY, "x", rows))],
        [fsmdp.Reward("r", fsmdp.Case(fsmdp.ANY, "x", [0.0, 0.7]), 0, 1)],
        horizon=3,
    )
    read_model, claim = read(model, plan_of(model, "joint"))
    room = -largest_violation(model, claim, 1)
    verdict = checker.check(read_model, lowered(claim, 0, 0, room))
    assert verdict.excess == 0
    assert 0 < -verdict.slack < ORDINARY
    assert not verdict.proved
    assert str(verdict).startswith("NOT PROVED: V >= R + E V' at step 1, state ")


def test_a_bound_below_what_the_weights_prove_is_refuted():
    model = domains.sysadmin(4, horizon=5)
    read_model, claim = read(model, plan_of(model, "joint"))
    bound = checker.check(read_model, claim).bound
    for amount, proved in ((0, True), (BILLIONTH**20, False)):
        changed = dataclasses.replace(claim, upper_bound=bound - amount)
        verdict = checker.check(read_model, changed)
        assert verdict.proved is proved
    assert str(verdict).startswith("REFUTED: the plan claims 4.")


@pytest.mark.parametrize(("horizon", "discount"), [(6, 1.0), (6, 0.9), (None, 0.9)])
def test_exact_values_at_the_start_are_proved_too(horizon, discount):
    model = domains.sysadmin(4, horizon=horizon, discount=discount)
    plan = fsmdp.plan(model, time_limit=10)
    assert plan.bound.proof.kind == "exact values"
    read_model, claim = read(model, plan)
    verdict = checker.check(read_model, claim)
    assert verdict.proved
    assert verdict.tighter is True
    exact = fsmdp.solve_exactly(model).start_value
    assert float(verdict.best) == pytest.approx(exact, rel=1e-6)
    false = dataclasses.replace(claim, at_start=Fraction(exact) * (1 - BILLIONTH))
    wrong = checker.check(read_model, false)
    assert wrong.tighter is False
    assert not wrong.proved
    assert str(wrong).startswith("REFUTED: some policy earns more")
    if horizon is not None:
        low, high = verdict.at_start
        assert low <= RationalModel(model).start_value() <= high


def test_a_tighter_claim_that_cannot_be_checked_is_said_to_be_unproved(monkeypatch):
    model = domains.sysadmin(4, horizon=6)
    read_model, claim = read(model, fsmdp.plan(model, time_limit=10))
    for name, value in (("LARGEST_TABLE", 16), ("MOST_WORK", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(checker, name, value)
            verdict = checker.check(read_model, claim)
        assert verdict.in_part
        assert not verdict.proved
        assert verdict.tighter is None
        assert str(verdict).startswith("PROVED IN PART")
        assert verdict.best == verdict.bound


def test_nothing_changes_when_little_can_be_kept(monkeypatch):
    model = domains.sysadmin(6, horizon=3)
    problem = read(model, plan_of(model, "joint"))
    expected = checker.check(*problem)
    monkeypatch.setattr(checker, "LARGEST_MEMORY", 60)  # what one action needs, and little more
    assert checker.check(*problem).steps == expected.steps


def test_a_network_too_wide_is_refused_with_its_size(monkeypatch):
    model = domains.sysadmin(6, horizon=3)
    problem = read(model, plan_of(model, "joint"))
    with monkeypatch.context() as patch:
        patch.setattr(checker, "LARGEST_TABLE", 2)
        with pytest.raises(
            checker.TooWideError, match=r"an expectation needs .* 2\^3 entries over 3"
        ):
            checker.check(*problem)
    monkeypatch.setattr(checker, "LARGEST_MEMORY", 30)
    with pytest.raises(checker.TooWideError, match=r"an elimination needs 2\^5 entries"):
        checker.check(*problem)


def test_each_action_has_its_own_order_where_one_for_all_would_be_wider():
    """Every action joins the variables in another way; together all of them are joined."""
    count = 8
    names = [f"x{i}" for i in range(count)]
    flip = [[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.1, 0.9]]]
    actions = [f"shift-{k}" for k in range(1, 5)]
    conditionals = [
        fsmdp.Conditional(
            name,
            [
                fsmdp.Case(action, [name, names[(i + k) % count]], flip)
                for k, action in enumerate(actions, start=1)
            ],
        )
        for i, name in enumerate(names)
    ]
    rewards = [fsmdp.Reward(n, fsmdp.Case(fsmdp.ANY, n, [0.0, 1.0]), 0, 1) for n in names]
    variables = [fsmdp.Variable(name, 2) for name in names]
    model = fsmdp.FactoredMDP(variables, actions, conditionals, rewards, 2, [0] * count)
    read_model, claim = read(model, plan_of(model, "joint"))
    terms = checker.terms_of(read_model, claim)
    alone = [checker.own_schedule([own], read_model.sizes) for own in terms]
    largest = max(max(schedule.work) for schedule in alone)
    verdict = checker.check(read_model, claim)
    assert verdict.largest_table == largest
    assert verdict.proved


def test_a_plan_for_another_model_is_refused():
    model = domains.sysadmin(3, horizon=3)
    content = plan_bytes(plan_of(model, "joint"))
    for what, other in (
        ("variables", domains.sysadmin(4, horizon=3)),
        ("horizon", domains.sysadmin(3, horizon=4)),
        ("discount", domains.sysadmin(3, horizon=3, discount=0.5)),
    ):
        with pytest.raises(checker.BadInputError, match=f"another model: {what} differ"):
            checker.read_claim(content, checker.read_model(model_bytes(other)))


@pytest.mark.parametrize("machines", [40, 100])
def test_large_rings_are_proved(machines):
    model = domains.sysadmin(machines, horizon=10)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="stagewise")
    verdict = verdict_of(model, plan)
    assert verdict.proved
    assert verdict.largest_table == 8
    assert verdict.slack > 0


def test_numbers_are_rounded_to_the_safe_side():
    third = Fraction(1, 3)
    assert checker.decimal(third) == "0.333333333334"
    assert checker.decimal(third, down=True) == "0.333333333333"
    assert checker.decimal(-third) == "-0.333333333333"
    assert checker.decimal(Fraction(0)) == "0"
    assert checker.decimal(Fraction(400)) == "400"
    assert checker.decimal(Fraction(1, 10**400)) == "1e-400"


@given(st.integers(0, 10**4))
@settings(max_examples=20)
def test_axes_are_idle_only_if_nothing_depends_on_them(seed):
    rng = np.random.default_rng(seed)
    sizes = dict(enumerate(rng.integers(1, 4, size=3).tolist()))
    axes = tuple(rng.permutation(3).tolist())
    numbers = rng.integers(0, 2, size=[sizes[axis] if rng.random() < 0.6 else 1 for axis in axes])
    full = np.broadcast_to(numbers, [sizes[axis] for axis in axes])
    found = checker.without_idle_axes(checker.Table(axes, full.ravel().tolist()), sizes)
    for state in product(*map(range, sizes.values())):
        assert entry(found, state, sizes) == full[tuple(state[axis] for axis in axes)]
    depends = [a for at, a in enumerate(axes) if (full != full.take([0], axis=at)).any()]
    assert sorted(found.axes) == sorted(depends)


def labelled(labels):
    """A model with a valve that is open or shut, and with these labels of it."""
    valve = fsmdp.Variable("valve", (labels and ["shut", "open"]) or 2)
    stay = fsmdp.Case(
        fsmdp.ANY, ["lamp", "valve"], [[[0.9, 0.1], [0.2, 0.8]], [[1, 0], [0.5, 0.5]]]
    )
    return fsmdp.FactoredMDP(
        [fsmdp.Variable("lamp", (labels and ["dark", "lit"]) or 2)],
        fsmdp.Actions([valve]),
        [fsmdp.Conditional("lamp", stay)],
        [fsmdp.Reward("light", fsmdp.Case(fsmdp.ANY, ["lamp"], [0, 1]))],
        horizon=4,
    )


@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("checked", [True, False])
def test_a_plan_is_proved_whether_or_not_its_model_has_labels(planned, checked):
    assert (b"labels" in model_bytes(labelled(checked))) is checked
    plan = fsmdp.plan(labelled(planned), method="stagewise")
    assert verdict_of(labelled(checked), plan).proved
