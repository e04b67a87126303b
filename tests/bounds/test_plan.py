"""Plans as a user meets them."""

import json
import re
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

import fsmdp
from fsmdp import ModelError, PlanningError, WidthError, domains
from fsmdp.bounds.bellman import Intervals, network_of_model, state_means
from fsmdp.bounds.bundle import finest_blocks
from fsmdp.bounds.certificate import certify
from fsmdp.bounds.costs import FEW_SECONDS, prefers_rows, seconds_by_oracle, seconds_by_rows
from fsmdp.bounds.joint import Joint, _engine, solve_joint
from fsmdp.bounds.planner import Seconds, Tolerance
from fsmdp.bounds.problem import problem_of_model
from fsmdp.bounds.stagewise import Stagewise
from fsmdp.elimination import lp_rows
from fsmdp.foundation.disk import read_arrays, write_arrays

PROGRAMS = ("programs", "stagewise", "joint", "cutting-planes", "ellipsoid")
OPTIONS = {"ellipsoid": {"epsilon": 0.05}}


def small(method):
    return domains.sysadmin(3, horizon=2 if method == "ellipsoid" else 5)


@pytest.fixture(scope="module", params=PROGRAMS)
def planned(request):
    model = small(request.param)
    return model, fsmdp.plan(model, method=request.param, **OPTIONS.get(request.param, {}))


def test_values_bound_the_optimum_at_every_state_and_step(planned):
    model, plan = planned
    exact = fsmdp.solve_exactly(model)
    for state in exact.flat.states.tolist():
        for step in range(1, model.horizon + 1):
            assert plan.value(state, step) >= exact.value(state, step) - 1e-9


def test_the_upper_bound_holds_for_the_start_of_an_episode(planned):
    model, plan = planned
    assert plan.upper_bound >= fsmdp.solve_exactly(model).start_value - 1e-9
    assert plan.weights.shape == (model.horizon + 1, len(plan.basis))
    assert not plan.weights[-1].any()


def test_actions_are_greedy_in_the_q_values(planned):
    model, plan = planned
    for state in fsmdp.solve_exactly(model).flat.states.tolist():
        q_values = plan.q_values(state, 2)
        chosen = q_values[model.actions.index(plan.action(state, 2))]
        assert chosen >= q_values.max() - 1e-12


def test_q_values_are_rewards_and_expected_values_of_the_next_step(planned):
    model, plan = planned
    exact = fsmdp.solve_exactly(model)
    flat = exact.flat
    for step in (1, 2):
        features = np.array([plan.basis.evaluate(s) for s in flat.states.tolist()])
        values = features @ plan.weights[step]
        expected = flat.rewards + flat.transitions @ values
        for row, state in enumerate(flat.states.tolist()):
            np.testing.assert_allclose(plan.q_values(state, step), expected[:, row], atol=1e-9)


def test_rolling_a_plan_out_follows_its_actions(planned):
    model, plan = planned
    compiled = fsmdp.rollout(model, plan, 40, seed=1)
    through_python = fsmdp.rollout(model, lambda s, step: plan.action(s, step), 40, seed=1)
    np.testing.assert_allclose(compiled.returns, through_python.returns)


def test_a_saved_plan_acts_and_bounds_as_before(planned, tmp_path):
    model, plan = planned
    plan.save(tmp_path / "plan.npz")
    again = fsmdp.Plan.load(tmp_path / "plan.npz")
    assert again.incumbent is not None or repr(again) == repr(plan)
    assert again.upper_bound == plan.upper_bound
    assert list(tmp_path.iterdir()) == [tmp_path / "plan.npz"]
    for state in fsmdp.solve_exactly(model).flat.states.tolist():
        assert again.value(state) == plan.bound.value(state)
        assert again.action(state, 2) == plan.action(state, 2)
    same = fsmdp.rollout(model, again, 20, seed=3).returns
    np.testing.assert_array_equal(same, fsmdp.rollout(model, plan, 20, seed=3).returns)


@pytest.mark.parametrize("content", [b"", b"PK", b"not a plan", b"\x93NUMPY"])
def test_a_file_that_is_no_plan_is_refused(content, tmp_path):
    path = tmp_path / "plan.npz"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"is not a plan|cannot read"):
        fsmdp.load_plan(path)


def test_a_plan_of_another_version_is_refused(tmp_path):
    path = tmp_path / "plan.npz"
    about = json.dumps({"format": "fsmdp-plan", "version": 99}).encode()
    write_arrays(path, {"about": np.frombuffer(about, dtype=np.uint8)})
    with pytest.raises(
        ModelError, match="expected fsmdp-plan version 6, found 'fsmdp-plan' version 99"
    ):
        fsmdp.load_plan(path)


def test_a_plan_with_a_part_missing_is_refused(tmp_path):
    path = tmp_path / "plan.npz"
    fsmdp.plan(small("joint"), method="joint").save(path)
    parts = read_arrays(path, 2**20, "plan", "no remedy")
    del parts["lifts"]
    write_arrays(path, parts)
    with pytest.raises(ModelError, match="missing or wrong"):
        fsmdp.load_plan(path)


CORRUPTIONS = {
    "a table beyond the last": ("lookup_defaults", lambda a: a + 10**6),
    "a slot that is no variable": ("lookup_input_slot", lambda a: a + 99),
    "a negative stride": ("lookup_input_stride", lambda a: -a),
    "a stride too long": ("lookup_input_stride", lambda a: 10 * a + 7),
    "starts that fall": ("lookup_offset", lambda a: a[::-1].copy()),
    "an action too few": ("lookup_exception_start", lambda a: a[:-1]),
    "exceptions too few": ("lookup_exception_item", lambda a: a[:-1]),
    "other integers": ("lookup_offset", lambda a: a.astype(np.int32)),
    "entries too few": ("q_entries", lambda a: a[:, :-1]),
    "weights that are no numbers": ("weights", lambda a: a * np.nan),
}


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_a_corrupted_plan_never_reaches_compiled_code(corruption, tmp_path):
    name, change = CORRUPTIONS[corruption]
    path = tmp_path / "plan.npz"
    fsmdp.plan(small("joint"), method="joint").save(path)
    parts = read_arrays(path, 2**20, "plan", "no remedy")
    write_arrays(path, parts | {name: change(parts[name])})
    with pytest.raises(ModelError, match="missing or wrong"):
        fsmdp.load_plan(path)


def test_a_plan_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "plan.npz"
    fsmdp.plan(small("joint"), method="joint").save(path)
    monkeypatch.setattr("fsmdp.io.plans.LARGEST_FILE", path.stat().st_size + 1)
    with pytest.raises(ModelError, match="unpacks to"):
        fsmdp.load_plan(path)


def test_a_plan_is_for_its_own_model_only():
    plan = fsmdp.plan(domains.sysadmin(3), method="joint")
    with pytest.raises(fsmdp.PolicyError):
        fsmdp.rollout(domains.sysadmin(4), plan, 1)


def test_missing_and_unwritable_plan_files_say_so(tmp_path):
    with pytest.raises(ModelError, match="cannot read"):
        fsmdp.load_plan(tmp_path / "none.npz")
    with pytest.raises(ModelError, match="cannot write"):
        fsmdp.plan(small("joint"), method="joint").save(tmp_path / "no" / "plan.npz")


def test_programs_take_the_policy_of_the_stages_and_the_bound_of_the_joint_program():
    model = domains.sysadmin(8)
    basis = fsmdp.Basis.pairs(model)
    both = fsmdp.plan(model, basis, method="programs")
    stagewise = fsmdp.plan(model, basis, method="stagewise")
    joint = fsmdp.plan(model, basis, method="joint")
    assert both.upper_bound == pytest.approx(joint.upper_bound, abs=1e-7)
    assert both.upper_bound < stagewise.upper_bound - 0.1
    np.testing.assert_allclose(both.weights, stagewise.weights)
    assert any("by rows" in choice for choice in both.record.choices)
    assert any("policy: greedy in the stages" in choice for choice in both.record.choices)
    assert both.program.iterations > 0
    assert both.program.columns > 0


def test_programs_turn_to_bundles_where_the_network_is_wide():
    rng = np.random.default_rng(0)
    topology = {
        i: rng.choice([j for j in range(12) if j != i], 3, replace=False).tolist()
        for i in range(12)
    }
    model = domains.sysadmin(12, topology=topology, horizon=20)
    plan = fsmdp.plan(model, method="programs").require_optimal()
    assert plan.induced_width >= 7
    assert any("by bundles" in choice for choice in plan.record.choices)
    assert plan.upper_bound >= fsmdp.rollout(model, plan, 2000).mean


def test_a_large_ring_is_left_to_rows_however_small_bundles_of_it_look():
    """Two hundred machines take a second by rows; a bundle has not ended after ten minutes."""
    model = fsmdp.domains.sysadmin(200)
    problem = problem_of_model(model, fsmdp.Basis.singles(model))
    network = problem.network
    rows = seconds_by_rows(network, network.horizon)
    assert FEW_SECONDS < rows < seconds_by_oracle(network, finest_blocks(network))
    for left, kind in ((None, fsmdp.Joint), (60.0, fsmdp.Joint), (rows, fsmdp.Bundled)):
        assert isinstance(_engine(problem, 1e-6, left)[0], kind)
    crew = fsmdp.domains.sysadmin(20, administrators=3, horizon=20)
    counted = problem_of_model(crew, fsmdp.Basis.singles(crew))
    assert seconds_by_rows(counted.network, crew.horizon) > FEW_SECONDS
    assert prefers_rows(counted.network, finest_blocks(counted.network))  # but not by far
    assert isinstance(_engine(counted, 1e-6, None)[0], fsmdp.Bundled)


def test_an_infinite_horizon_is_planned_by_every_method_that_can():
    model = domains.sysadmin(4, horizon=None, discount=0.9)
    exact = fsmdp.solve_exactly(model)
    bounds = [
        fsmdp.plan(model, method=method).require_optimal().upper_bound
        for method in ("programs", "joint", "cutting-planes")
    ]
    assert bounds == pytest.approx([bounds[0]] * 3, rel=1e-5)
    assert bounds[0] >= exact.start_value
    plan = fsmdp.plan(model, method="programs")
    assert plan.weights.shape == (1, 5)
    assert plan.value((1, 1, 1, 1), step=99) == plan.value((1, 1, 1, 1))
    with pytest.raises(ModelError, match="finite horizon"):
        fsmdp.plan(model, method="stagewise")


def test_the_policy_of_stagewise_pairs_reaches_the_stated_value_on_a_ring_of_eight():
    model = domains.sysadmin(8)
    plan = fsmdp.plan(model, fsmdp.Basis.pairs(model), method="stagewise", weights="uniform")
    assert fsmdp.evaluate_exactly(model, plan).mean() >= 5.93


def test_a_distribution_of_states_may_weigh_the_bound():
    model = domains.sysadmin(3)
    by_name = fsmdp.plan(
        model, method="joint", weights={f"machine-{i}": [0.5, 0.5] for i in range(3)}
    )
    uniform = fsmdp.plan(model, method="joint", weights="uniform")
    assert by_name.objective == pytest.approx(uniform.objective, abs=1e-7)
    by_means = fsmdp.plan(model, method="joint", weights=np.array([1.0, 0.5, 0.5, 0.5]))
    assert by_means.objective == pytest.approx(uniform.objective, abs=1e-7)


MISTAKES = {
    "unknown method": (
        {"method": "magic"},
        ModelError,
        "one of auto, fitted, programs, stagewise, joint",
    ),
    "unknown option": ({"magic": 3}, ModelError, "has no option 'magic'; expected one of"),
    "misspelt method": ({"method": "stagwise"}, ModelError, "did you mean 'stagewise'"),
    "misspelt option": ({"tim_limit": 3}, ModelError, "did you mean 'time_limit'"),
    "unknown weights": ({"weights": "equal"}, ModelError, "expected 'initial', 'uniform'"),
    "weights of wrong length": (
        {"weights": np.ones(3)},
        ModelError,
        "vector of 5 means that begins with 1",
    ),
    "bad order": ({"elimination_order": [0, 1]}, ModelError, "elimination_order"),
    "unknown name in order": ({"elimination_order": ["x"]}, ModelError, "unknown variable 'x'"),
    "unknown solver": ({"method": "stagewise", "solver": "glpk"}, ModelError, "'simplex'"),
    "too wide": ({"method": "programs", "limit": 2}, WidthError, "induced width"),
    "norm too small": (
        {"method": "joint", "w_norm": 0.1},
        PlanningError,
        "w_norm=10.0001 is enough",
    ),
    "no minimum": (
        {"method": "joint", "weights": np.array([1.0, -50.0, 0.0, 0.0, 0.0])},
        PlanningError,
        "no distribution over states has the means",
    ),
    "no distribution": ({"weights": -np.ones(5)}, ModelError, "begins with 1"),
    "no limit": ({"limit": 0}, ModelError, "limit"),
    "time of text": ({"time_limit": "1"}, ModelError, "time_limit is '1', expected a number"),
    "time before now": ({"time_limit": -1}, ModelError, "time_limit: expected at least 0"),
    "no tolerance": ({"method": "programs", "tolerance": 0}, ModelError, "expected more than 0"),
    "no rounds": ({"method": "cutting-planes", "max_rounds": 0}, ModelError, "max_rounds"),
    "norm of nothing": ({"method": "joint", "w_norm": float("nan")}, ModelError, "w_norm"),
    "no basis": ({"basis": "singles"}, ModelError, "expected a Basis, found str"),
    "elimination of no kind": ({"elimination": "fast"}, ModelError, "'shared' or 'separate'"),
    "order of no kind": ({"elimination_order": 3}, ModelError, "elimination_order"),
    "method of no kind": ({"method": []}, ModelError, "one of auto"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("method", ["auto", "programs"])
def test_mistake_is_refused_with_cause_and_remedy(mistake, method):
    options, error, message = MISTAKES[mistake]
    with pytest.raises(error, match=message):
        fsmdp.plan(domains.sysadmin(4), **{"method": method} | options)


def test_a_plan_that_stopped_early_is_not_optimal_but_bounds():
    model = domains.sysadmin(30)
    plan = fsmdp.plan(model, method="joint", time_limit=1e-3)
    assert plan.upper_bound >= fsmdp.rollout(model, "wait", 500).mean
    with pytest.raises(PlanningError, match="certified but may not be the tightest"):
        plan.require_optimal()


@pytest.mark.parametrize("step", [0, 11])
def test_a_step_outside_the_horizon_is_refused(step):
    plan = fsmdp.plan(domains.sysadmin(3), method="joint")
    with pytest.raises(ModelError, match=f"step {step}"):
        plan.value((1, 1, 1), step)
    with pytest.raises(ModelError, match="expected 3 values"):
        plan.action((1, 1), 1)


@pytest.mark.parametrize("horizon", [4, None])
@pytest.mark.parametrize("rewards", ["costs", "nothing", "tiny", "huge"])
def test_cutting_planes_reach_the_joint_optimum_whatever_the_rewards(horizon, rewards):
    scale, shift = {"costs": (1, -1), "nothing": (0, 0), "tiny": (1e-9, 0), "huge": (1e9, 0)}[
        rewards
    ]
    ring = domains.sysadmin(4)
    model = fsmdp.FactoredMDP(
        ring.variables,
        ring.actions,
        ring.conditionals,
        [
            fsmdp.Reward(
                reward.name,
                [
                    fsmdp.Case(case.actions, case.parents, scale * (case.table + shift))
                    for case in reward.cases
                ],
                min(0.0, 2.0 * scale * shift),
                max(1e-3, scale),
            )
            for reward in ring.rewards
        ],
        horizon,
        [1] * 4,
        discount=0.9,
    )
    by_cuts = fsmdp.plan(model, method="cutting-planes").require_optimal()
    by_rows = fsmdp.plan(model, method="joint").require_optimal()
    assert by_cuts.upper_bound == pytest.approx(by_rows.upper_bound, rel=1e-4, abs=1e-7)
    assert by_cuts.upper_bound >= fsmdp.solve_exactly(model).start_value - 1e-12


@pytest.mark.parametrize("size", [1e-6, 1e6])
@pytest.mark.parametrize("method", ["stagewise", "joint", "cutting-planes"])
def test_the_size_of_functions_does_not_matter(size, method):
    model = domains.sysadmin(4, horizon=4)
    scaled = fsmdp.Basis([fsmdp.Table([i], [0, size]) for i in range(4)])
    plain = fsmdp.plan(model, method=method, weights="uniform").require_optimal()
    found = fsmdp.plan(model, scaled, method=method, weights="uniform").require_optimal()
    assert found.objective == pytest.approx(plain.objective, rel=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_bounds_hold_in_floating_point_even_where_large_weights_cancel(seed):
    model = domains.random_model(seed, variables=3, horizon=3)
    exact = fsmdp.solve_exactly(model)
    rng = np.random.default_rng(seed)
    tables = [fsmdp.Table([p], rng.normal(size=size)) for p, size in enumerate(model.sizes)]
    network, intervals = network_of_model(model, fsmdp.Basis([*tables, *tables]))
    means = state_means("initial", network.basis, model)
    weights = solve_joint(network, intervals, means).weights
    # Functions stand there twice, so these leave every V as it is, but for rounding.
    huge = 1e13 * rng.normal(size=(3, len(tables)))
    weights[:, 1:] += np.hstack([huge, -huge])
    certificate, lifted = certify(network, intervals, weights, means)
    assert certificate.upper_bound >= exact.start_value
    features = np.array([network.basis.evaluate(s) for s in exact.flat.states.tolist()])
    for row in range(3):
        assert (features @ lifted[row] >= exact.values[row]).all()


def test_a_program_of_too_many_rows_is_refused_before_it_is_built(monkeypatch):
    monkeypatch.setattr("fsmdp.bounds.bellman.LARGEST_PROGRAM", 1000)
    for method in ("joint", "stagewise"):
        with pytest.raises(WidthError, match="use method='cutting-planes'"):
            fsmdp.plan(domains.sysadmin(60), method=method)


def test_a_plan_whose_solver_was_wrong_about_the_optimum_is_called_inaccurate():
    model = domains.random_model(7, 3, 2, None, 1 - 1e-12)
    plan = fsmdp.plan(model, method="joint")
    assert plan.upper_bound >= fsmdp.solve_exactly(model).start_value * (1 - 1e-6)
    if plan.status is fsmdp.Status.OPTIMAL:
        assert plan.objective == pytest.approx(plan.upper_bound, rel=1e-3)


def test_a_cautious_plan_is_labelled_and_made_by_stages_only():
    model = domains.sysadmin(3)
    problem = problem_of_model(model, fsmdp.Basis.singles(model))
    wide = Intervals(problem.intervals.rewards, problem.intervals.low - 0.1, problem.intervals.high)
    cautious = replace(problem, intervals=wide, view="pessimistic")
    assert Stagewise().solve(cautious).program.view == "pessimistic"
    with pytest.raises(ModelError, match="plans optimistically"):
        Joint().solve(cautious)
    with pytest.raises(ModelError, match="view: expected one of"):
        replace(problem, view="hopeful")


def test_a_mean_above_the_bound_is_no_gap():
    runs = fsmdp.Runs(np.array([1.0, 1.4]), 3)
    gap = fsmdp.Gap(1.0, runs)
    assert gap.gap == gap.relative == 0
    assert gap.relative == 0.0
    limited = fsmdp.Gap(1.0, runs, lower_limit=1.0)
    assert "within 0 % of the best" in repr(limited)


def paying(low, high, horizon=3):
    """A lamp that fails and is fixed, and what it pays when it is off and on."""
    failing = fsmdp.Case(fsmdp.ANY, ["lamp"], [[0.9, 0.1], [0.3, 0.7]])
    return fsmdp.FactoredMDP(
        variables=[fsmdp.Variable("lamp", 2)],
        actions=["wait", "fix"],
        conditionals=[fsmdp.Conditional("lamp", [failing, fsmdp.Case(["fix"], [], [0.2, 0.8])])],
        rewards=[fsmdp.Reward("light", [fsmdp.Case(fsmdp.ANY, ["lamp"], [low, high])], low, high)],
        horizon=horizon,
    )


POWER_OF_TEN = re.compile(r"\de[+-]\d")


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.7e6), (1e9, 1e9 + 1), (-1.0, 0.0), (0.0, 0.0)])
def test_no_power_of_ten_is_shown_to_people(low, high):
    model = paying(low, high)
    solved = fsmdp.plan(model)
    planned = fsmdp.plan(model, method="stagewise")
    gap = fsmdp.certified_gap(model, planned, 100, baselines=False)
    structure = model.structure(fsmdp.Basis.singles(model))
    history = fsmdp.learn(model, fsmdp.UCRLFactored(structure), 5)
    shown = [repr(fsmdp.solve_exactly(model)), planned.certificate._repr_html_()]
    for one in (solved, planned, gap, gap.runs, history, structure):
        shown += [repr(one), one._repr_html_()]
    assert [text for text in shown if POWER_OF_TEN.search(text)] == []


def test_a_bound_is_shown_rounded_up():
    plan = fsmdp.plan(domains.sysadmin(40), method="programs")
    assert 8.57376 < plan.upper_bound < 8.573765
    assert "more than 8.57377, certified" in repr(plan)


def test_a_policy_that_earns_the_trivial_bound_is_not_told_to_plan_longer():
    model = domains.gridworld(3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fsmdp.plan(model).gap == 0


def test_the_gap_reads_as_a_sentence():
    model = domains.sysadmin(4)
    gap = fsmdp.certified_gap(model, fsmdp.plan(model, method="programs"), 500)
    assert "no policy more than 9.42169; with probability at least 99 % the policy" in repr(gap)
    assert gap.gap == pytest.approx(gap.upper_bound - gap.runs.mean)


def test_planners_are_used_by_themselves_or_handed_to_plan():
    model = domains.sysadmin(4)
    basis = fsmdp.Basis.pairs(model)
    planner = fsmdp.Stagewise(solver="simplex")
    alone = planner.plan(model, basis)
    for other in (
        fsmdp.plan(model, basis, method=planner),
        fsmdp.plan(model, basis, method="stagewise", solver="simplex"),
    ):
        np.testing.assert_array_equal(alone.weights, other.weights)
        assert alone.upper_bound == other.upper_bound
    with pytest.raises(ModelError, match="has its options already"):
        fsmdp.plan(model, basis, method=planner, solver="interior")


def test_a_plan_is_a_policy_and_a_bound():
    model = domains.sysadmin(4)
    plan = fsmdp.plan(model, method="programs")
    for state in ((1, 1, 1, 1), (0, 1, 0, 1)):
        assert plan.policy.action(state, 2) == plan.action(state, 2)
        np.testing.assert_array_equal(plan.policy.q_values(state, 2), plan.q_values(state, 2))
        assert plan.value(state, 2) <= plan.bound.value(state, 2)
    assert plan.bound.upper_bound == plan.upper_bound == plan.bound.certificate.upper_bound


def test_a_planner_of_ones_own_needs_a_method_and_options_with_types():
    @dataclass(frozen=True, slots=True)
    class Cautious(fsmdp.Planner):
        share: Tolerance = 0.5
        time_limit: Seconds = None

        def solve(self, problem, clock):
            return Stagewise().solve(problem, clock)

    model = domains.sysadmin(3)
    assert fsmdp.plan(model, method=Cautious()).upper_bound <= 10 + 1e-9
    with pytest.raises(ModelError, match="share: expected more than 0, found -1"):
        Cautious(share=-1)
    with pytest.raises(ModelError, match="time_limit: expected at least 0"):
        Cautious(time_limit=-1)


def test_stages_and_the_joint_program_share_the_rows_of_one_elimination(monkeypatch):
    made = []

    def counted(schedule):
        made.append(schedule)
        return lp_rows(schedule)

    monkeypatch.setattr("fsmdp.elimination.choose.lp_rows", counted)
    model = domains.sysadmin(4)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="programs")
    assert "bound: the joint program, by rows" in plan.record.choices
    assert "policy: greedy in the stages, one program for each step" in plan.record.choices
    assert len(made) == 1
