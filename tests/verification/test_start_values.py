"""Bounds at the start by values of states: never below the truth, whatever a file says."""

import dataclasses
import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from checked import model_bytes, plan_bytes, read
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.joint_models import joint_model
from tests.odd_models import odd_model
from tests.rational import RationalModel

import fsmdp
from fsmdp import domains
from fsmdp.bounds.proofs import ReducedProof, StateValues
from fsmdp.foundation.disk import read_arrays, write_arrays
from fsmdp.reductions.reduction import reductions_of, unchanged
from fsmdp.solver.search.search import search
from fsmdp.solver.state import proof_by_search
from fsmdp.verification import checker
from fsmdp.verification.checker import Box, Start
from fsmdp.verification.values import ListedStates, list_actions, start_values


def random_problem(seed):
    horizon, discount = [(1, 1.0), (3, 1.0), (3, 0.9), (None, 0.8)][seed % 4]
    return domains.random_model(seed, 1 + seed // 4 % 3, 3, horizon, discount, latents=seed % 3 % 2)


def problem_of(model):
    """The model and a plan by linear programs, as the checker has them, and V* at the start."""
    mine, claim = read(model, fsmdp.plan(model, fsmdp.Basis.singles(model), method="programs"))
    return mine, dataclasses.replace(claim, at_start=Fraction(-(10**300)))


def exact(model):
    """V* at the start, and how far that may be off."""
    if model.horizon is not None:
        return RationalModel(model.listed()).start_value(), 0
    solution = fsmdp.solve_exactly(model)
    size = max(1.0, float(np.abs(solution.values).max()))
    return Fraction(solution.start_value), Fraction(1e-9 * size)


def start_of(model, states=None, values=None, boxes=()):
    listed = None if states is None else np.asarray(states, np.uint8).tobytes()
    return Start(listed, 1, None if values is None else np.asarray(values, "<f8").tobytes(), boxes)


def bounds_of(mine, claim, start):
    held = [True] * len(claim.invariants)
    return start_values(mine, dataclasses.replace(claim, start=start), held)


def assert_values_are_tight(model):
    mine, claim = problem_of(model)
    truth, error = exact(model)
    values = None if model.horizon else fsmdp.solve_exactly(model).values[0]
    size = 1 + max(abs(r.low) + abs(r.high) for r in model.rewards) * len(model.rewards) * 10
    states = [*product(*(range(n) for n in model.sizes))]
    low, high = bounds_of(mine, claim, start_of(model, None, values))
    assert low - error <= truth <= high + error
    assert high - low <= 1e-9 * size
    _, listed = bounds_of(mine, claim, start_of(model, states, values))
    assert truth <= listed + error
    assert listed - truth <= 1e-9 * size + error


@given(seed=st.integers(0, 10**4))
@settings(max_examples=12)
def test_values_of_all_states_enclose_the_truth(seed):
    assert_values_are_tight(random_problem(seed))
    assert_values_are_tight(odd_model(seed, [1, 3][seed % 2], 0.9))


@given(seed=st.integers(0, 10**4))
@settings(max_examples=6)
def test_joint_actions_are_listed_within_their_rules(seed):
    assert_values_are_tight(joint_model(seed, horizon=2))


@given(seed=st.integers(0, 10**4))
@settings(max_examples=15)
def test_any_states_values_and_boxes_prove_nothing_false(seed):
    """Some states, values that are moved, boxes that are drawn: the bound is above the truth."""
    rng = np.random.default_rng(seed)
    model = [random_problem, lambda s: odd_model(s, [1, 2, None][s % 3], 0.9)][seed % 2](seed)
    mine, claim = problem_of(model)
    truth, error = exact(model)
    states = np.array([*product(*(range(n) for n in model.sizes))])
    for _ in range(4):
        rows = rng.integers(len(states), size=rng.integers(len(states) + 1))
        values = None
        if model.horizon is None:
            best = fsmdp.solve_exactly(model).values[0]
            values = best[rows] + rng.choice([0, -1, -1e3, 1]) * rng.random(len(rows))
        boxes = [random_box(rng, model) for _ in range(rng.integers(4))]
        found = bounds_of(mine, claim, start_of(model, states[rows], values, boxes))
        assert found[0] is None
        assert truth <= found[1] + error


def random_box(rng, model):
    count = len(model.sizes)
    variables = np.flatnonzero(rng.random(count) < 0.5).tolist() or [0]
    values = [np.flatnonzero(rng.random(model.sizes[v]) < 0.6).tolist() or [0] for v in variables]
    kept = {*variables, *np.flatnonzero(rng.random(count) < 0.5).tolist()}
    return Box(tuple(variables), tuple(map(tuple, values)), tuple(sorted(kept)))


def road(length=4, horizon=6, discount=1.0, leak=0.0):
    """A vehicle on a road one way; at each place a coin that is tossed until it has passed."""
    places = fsmdp.Variable("place", length + 1)
    coins = [fsmdp.Variable(f"coin-{i}", 2) for i in range(length)]
    go = np.zeros((length + 1, length + 1))
    for at in range(length):
        go[at, at], go[at, at + 1] = 0.2, 0.8
    go[length, length] = 1 - leak
    go[length, 0] += leak
    wait = np.eye(length + 1)
    toss = np.full((2, 2), 0.5)
    pay = np.zeros((length + 1, *[2] * length))
    for at in range(length):
        shape = np.arange(2.0).reshape([2 if i == at else 1 for i in range(length)])
        pay[at] += (1 + at) * shape
    cases = [fsmdp.Case("go", "place", go), fsmdp.Case(fsmdp.ANY, "place", wait)]
    return fsmdp.FactoredMDP(
        [places, *coins],
        ["go", "wait"],
        [
            fsmdp.Conditional("place", cases),
            *(fsmdp.Conditional(c.name, [fsmdp.Case(fsmdp.ANY, c.name, toss)]) for c in coins),
        ],
        [fsmdp.Reward("r", [fsmdp.Case(fsmdp.ANY, [v.name for v in (places, *coins)], pay)], 0, 9)],
        horizon,
        discount=discount,
    )


def test_boxes_that_no_action_leaves_merge_states():
    model = road()
    mine, claim = problem_of(model)
    truth, _ = exact(model)
    boxes = [Box((0,), (tuple(range(at, 5)),), (0, *range(1 + at, 5))) for at in range(5)]
    states = {
        (place, *(0 if i < place else coin for i, coin in enumerate(coins)))
        for place in range(5)
        for coins in product(range(2), repeat=4)
    }
    assert len(states) == 31
    _, merged = bounds_of(mine, claim, start_of(model, sorted(states), None, boxes))
    assert truth <= merged <= truth + Fraction(1e-9)
    _, apart = bounds_of(mine, claim, start_of(model, sorted(states)))
    assert apart > truth + Fraction(1e-3)  # without boxes, successors are missing from the list


def test_a_box_that_is_left_is_not_used():
    boxes = [Box((0,), ((4,),), (0,))]
    for leak, found in ((0.0, 1), (1e-9, 0)):
        mine, claim = problem_of(road(leak=leak))
        start = start_of(None, [[0] * 5], None, boxes)
        claim = dataclasses.replace(claim, start=start)
        listed = ListedStates(mine, list_actions(mine), claim, [], lambda _: None)
        assert len(listed.boxes) == found


def searched_plan(model, reduced, trials):
    """A plan whose bound at the start is that of a search, with few or many trials."""
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="programs")
    base = plan.bound
    if reduced.rewritten:
        base = fsmdp.plan(
            reduced.model, fsmdp.Basis.singles(reduced.model), method="programs"
        ).bound
    found = search(reduced.model, base.basis, base.weights, trials=trials)
    proof = proof_by_search(model, reduced, found, reduced.bound(found.upper_bound))
    bound = dataclasses.replace(plan.bound, at_start=(proof,))
    return dataclasses.replace(plan, bound=bound), found


@pytest.mark.parametrize("trials", [3, 3000])
@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_searches_are_proved_as_a_whole(trials, discount, tmp_path):
    models = [road(discount=discount), domains.sysadmin(4, horizon=5)]
    if discount < 1:
        models.append(road(horizon=None, discount=discount))
        models.append(domains.sysadmin(4, horizon=None, discount=discount))
    for model in models:
        plan, _ = searched_plan(model, unchanged(model), trials)
        path = tmp_path / "plan.npz"
        plan.save(path)
        mine = checker.read_model(model_bytes(model))
        claim = checker.read_claim(path.read_bytes(), mine)
        verdict = checker.check(mine, claim, start_values=start_values)
        assert verdict.proved, str(verdict)
        loaded = fsmdp.load_plan(path)
        assert loaded.upper_bound == pytest.approx(plan.upper_bound, abs=1e-9)
        truth, error = exact(model)
        assert truth <= Fraction(loaded.upper_bound) + error


def test_proofs_of_joined_models_are_about_the_original(tmp_path):
    """Two exclusive variables, joined by the solver; the checker knows nothing of it."""
    model = exclusive_model()
    reduced = reductions_of(model)[0]
    assert reduced.rewritten
    plan, found = searched_plan(model, reduced, 3000)
    assert found.solved
    plan.save(tmp_path / "plan.npz")
    mine = checker.read_model(model_bytes(model))
    claim = checker.read_claim((tmp_path / "plan.npz").read_bytes(), mine)
    verdict = checker.check(mine, claim, start_values=start_values)
    assert verdict.proved, str(verdict)
    assert fsmdp.load_plan(tmp_path / "plan.npz").upper_bound == plan.upper_bound


@pytest.mark.filterwarnings("ignore::fsmdp.TrivialBoundWarning")
@pytest.mark.parametrize("horizon", [6, None])
def test_linear_values_of_a_joined_model_are_written_as_the_originals(horizon, tmp_path, caplog):
    """The checker proves the bound of the joined model, of which it knows nothing."""
    model = exclusive_model(horizon, 1.0 if horizon else 0.9)
    reduced = reductions_of(model)[0]
    assert reduced.rewritten
    own = fsmdp.plan(model, fsmdp.Basis([]), method="joint")
    joined = fsmdp.plan(reduced.model, fsmdp.Basis.singles(reduced.model), method="joint")
    proof = ReducedProof.of(reduced, joined.bound.values)
    assert proof.upper_bound < own.upper_bound - 0.1
    bound = dataclasses.replace(own.bound, at_start=(proof,))
    dataclasses.replace(own, bound=bound).save(tmp_path / "plan.npz")
    assert not caplog.text
    again = fsmdp.load_plan(tmp_path / "plan.npz")
    assert again.bound.proof.kind == "elimination"
    assert again.upper_bound == pytest.approx(proof.upper_bound, abs=1e-6)
    truth, error = exact(model)
    assert truth <= Fraction(again.upper_bound) + error
    for state in np.eye(3, dtype=int).tolist():  # where the robot can be
        there = reduced.states(np.array([state]))[0]
        found = joined.bound.value(there)
        assert again.bound.value(state) == pytest.approx(found, abs=1e-6)
    mine = checker.read_model(model_bytes(model))
    claim = checker.read_claim((tmp_path / "plan.npz").read_bytes(), mine)
    assert checker.check(mine, claim, start_values=start_values).proved


def exclusive_model(horizon=6, discount=1.0):
    """A robot at one of three places; `go` moves it on, and the last place pays."""
    names = ["at-0", "at-1", "at-2"]
    variables = [fsmdp.Variable(name, 2) for name in names]
    # What one place gains another loses: drawn from a shared latent.
    moved = fsmdp.Variable("moved", 2)
    conditionals = [fsmdp.Conditional("moved", [fsmdp.Case(fsmdp.ANY, [], [0.3, 0.7])])]
    for i, name in enumerate(names):
        before = names[i - 1] if i else None
        parents = [name] if before is None else [name, before]
        shape = [2] * len(parents) + [2, 2]
        go = np.zeros(shape)
        for values in product(range(2), repeat=len(parents) + 1):
            here, move = values[0], values[-1]
            there = values[1] if before else 0
            stays = here and (not move or i == 2)
            after = int(bool(stays or (there and move)))
            go[(*values, after)] = 1
        cases = [
            fsmdp.Case("go", parents, go, drawn=["moved"]),
            fsmdp.Case(fsmdp.ANY, name, np.eye(2)),
        ]
        conditionals.append(fsmdp.Conditional(name, cases))
    reward = fsmdp.Reward("goal", [fsmdp.Case(fsmdp.ANY, "at-2", [0.0, 1.0])], 0, 1)
    return fsmdp.FactoredMDP(
        variables,
        ["go", "wait"],
        conditionals,
        [reward],
        horizon,
        [1, 0, 0],
        latents=[moved],
        discount=discount,
    )


def test_values_over_all_states_without_a_horizon_need_one_sweep_near_discount_one():
    model = domains.sysadmin(3, horizon=None, discount=1 - 1e-6)
    mine, claim = problem_of(model)
    solution = fsmdp.solve_exactly(model)
    value = Fraction(solution.start_value)
    claim = dataclasses.replace(claim, at_start=value * (1 + Fraction(1, 10**4)))
    start = start_of(model, None, solution.values[0])
    told = []
    claim = dataclasses.replace(claim, start=start)
    low, high = start_values(mine, claim, [], told.append)
    assert low <= value <= high <= claim.at_start
    assert len(told) == 1
    assert checker.check(mine, dataclasses.replace(claim, at_start=high)).tighter is True


def test_what_does_not_fit_is_left_out_with_a_warning(tmp_path, monkeypatch, caplog):
    model = domains.sysadmin(4, horizon=4)
    plan = fsmdp.plan(model, time_limit=10)
    assert plan.bound.proof.kind == "exact values"
    monkeypatch.setattr("fsmdp.verification.values.LARGEST_ARRAY", 2)
    plan.save(tmp_path / "plan.npz")
    assert "is not in the file (too much work: states: 16, the limit is 2)" in caplog.text
    again = fsmdp.load_plan(tmp_path / "plan.npz")
    assert again.upper_bound == plan.certificate.upper_bound > plan.upper_bound
    assert again.bound.proof.kind == "the largest rewards"


def test_a_bound_is_written_as_far_as_it_is_proved(tmp_path, caplog):
    model = domains.sysadmin(4, horizon=4)
    plan = fsmdp.plan(model, time_limit=10)
    (proof,) = plan.bound.at_start
    wrong = StateValues("magic", plan.upper_bound - 1, fits=False)
    lower = dataclasses.replace(plan.bound, at_start=(wrong, proof))
    dataclasses.replace(plan, bound=lower).save(tmp_path / "plan.npz")
    assert ", by magic, cannot be proved by a file, which claims " in caplog.text
    again = fsmdp.load_plan(tmp_path / "plan.npz")
    assert again.upper_bound == pytest.approx(plan.upper_bound)
    assert again.bound.proof.kind == "exact values"
    mine = checker.read_model(model_bytes(model))
    claim = checker.read_claim((tmp_path / "plan.npz").read_bytes(), mine)
    assert checker.check(mine, claim, start_values=start_values).proved


def test_a_loaded_plan_is_saved_with_its_proof(tmp_path):
    model = domains.sysadmin(3, horizon=None, discount=0.9)
    plan = fsmdp.plan(model, time_limit=10)
    plan.save(tmp_path / "one.npz")
    fsmdp.load_plan(tmp_path / "one.npz").save(tmp_path / "two.npz")
    mine = checker.read_model(model_bytes(model))
    claim = checker.read_claim((tmp_path / "two.npz").read_bytes(), mine)
    assert checker.check(mine, claim, start_values=start_values).proved
    assert fsmdp.load_plan(tmp_path / "two.npz").upper_bound == plan.upper_bound


@pytest.mark.parametrize(
    "change",
    [
        {"states": np.zeros((1, 2), np.uint8)},
        {"states": np.full((1, 3), 2, np.uint8)},
        {"states": np.zeros((1, 3), np.int64)},
        {"values": np.zeros(2)},
        {"values": np.full(1, np.nan)},
    ],
)
def test_wrong_states_and_values_are_refused(change, tmp_path):
    model = domains.sysadmin(3, horizon=None, discount=0.9)
    plan = fsmdp.plan(model, method="programs")
    states = np.zeros((1, 3), np.int64)
    proof = StateValues("exact values", plan.upper_bound - 1, None, states, np.zeros(1))
    bound = dataclasses.replace(plan.bound, at_start=(proof,))
    path = tmp_path / "plan.npz"
    path.write_bytes(plan_bytes(dataclasses.replace(plan, bound=bound)))
    mine = checker.read_model(model_bytes(model))
    checker.read_claim(path.read_bytes(), mine)
    fsmdp.load_plan(path)
    write_arrays(path, read_arrays(path, 2**20, "plan", "none") | change)
    with pytest.raises(checker.BadInputError, match=r"states|values"):
        checker.read_claim(path.read_bytes(), mine)
    with pytest.raises(fsmdp.ModelError, match=r"states|values"):
        fsmdp.load_plan(path)


def test_a_loaded_plan_promises_nothing_that_is_not_proved(tmp_path):
    model = domains.sysadmin(3, horizon=3)
    plan = fsmdp.plan(model, time_limit=10)
    assert plan.incumbent.exact
    plan.save(tmp_path / "plan.npz")
    again = fsmdp.load_plan(tmp_path / "plan.npz")
    assert not again.incumbent.exact
    assert again.incumbent.mean == plan.incumbent.mean
    assert "exactly" not in repr(again)
    assert "optimal" not in again.statement()
    assert again.program is None  # nor does it say anything of one
    assert again.bound.trivial == float("inf")
    about = json.loads(np.load(tmp_path / "plan.npz")["about"].tobytes())
    assert "weights_certified" not in about


def proved_boxes(model, boxes):
    mine, claim = problem_of(model)
    claim = dataclasses.replace(claim, start=start_of(model, [[0] * len(model.sizes)], None, boxes))
    return ListedStates(mine, list_actions(mine), claim, [], lambda _: None).boxes


def test_boxes_in_which_something_matters_that_is_not_kept_are_not_used():
    model = road()
    last = Box((0,), ((3, 4),), (0, 4))
    assert proved_boxes(model, [last]) == [last]
    rewarded = Box((0,), ((3, 4),), (0,))  # the last coin pays
    earlier = Box((0,), ((2, 3, 4),), (0, 4))  # and the one before, where it is not passed
    outside = Box((0,), ((3, 4),), (4,))  # what is held must be kept
    assert proved_boxes(model, [rewarded, earlier, outside]) == []
    stay = np.eye(2)
    copied = fsmdp.FactoredMDP(
        [fsmdp.Variable(name, 2) for name in "xy"],
        ["wait"],
        [
            fsmdp.Conditional("x", [fsmdp.Case(fsmdp.ANY, "x", stay)]),
            fsmdp.Conditional("y", [fsmdp.Case(fsmdp.ANY, (), stay, drawn="x")]),
        ],
        [fsmdp.Reward("r", [fsmdp.Case(fsmdp.ANY, "y", [0.0, 1.0])], 0, 1)],
        3,
    )
    assert proved_boxes(copied, [Box((1,), ((0, 1),), (1,))]) == []  # y is a copy of x
    both = Box((1,), ((0, 1),), (0, 1))
    assert proved_boxes(copied, [both]) == [both]


def test_states_with_the_same_key_are_told_apart(monkeypatch):
    model = road()
    mine, claim = problem_of(model)
    truth, _ = exact(model)
    states = [*product(*(range(n) for n in model.sizes))]
    for order in (states, states[::-1]):
        with monkeypatch.context() as patch:
            zeros = lambda self, rows: np.zeros(len(rows), np.uint64)  # noqa: E731
            patch.setattr(ListedStates, "keys", zeros)
            _, high = bounds_of(mine, claim, start_of(model, order))
        assert high >= truth


def test_values_that_are_too_low_are_raised_by_what_they_miss():
    model = domains.sysadmin(3, horizon=None, discount=0.9)
    mine, claim = problem_of(model)
    truth, error = exact(model)
    states = [*product(range(2), repeat=3)]
    best = fsmdp.solve_exactly(model).values[0]
    for amount in (1e-6, 1.0, 100.0):
        for rows in (None, states):
            claim = dataclasses.replace(claim, at_start=truth - Fraction(amount) / 2)
            _, high = bounds_of(mine, claim, start_of(model, rows, best - amount))
            assert high >= truth - error


def test_rules_of_joint_actions_lower_the_values():
    free, ruled = (domains.sysadmin(3, administrators=n, horizon=4) for n in ("each", 1))
    found = []
    for model in (free, ruled):
        mine, claim = problem_of(model)
        _, high = bounds_of(mine, claim, start_of(model))
        truth, _ = exact(model)
        assert truth <= high <= truth + Fraction(1e-9)
        found.append(high)
    assert found[0] > found[1] + Fraction(1e-3)
