"""Pictures show the numbers that they are made of."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from tests.experiments.sweeps import Here

import fsmdp
from fsmdp.experiments.runner import compare
from fsmdp.experiments.specification import specify
from fsmdp.report.curves import moving_mean
from fsmdp.report.plot import dependencies, short_names
from fsmdp.simulation.rollout import record

mpl.use("Agg")

EPISODES = 40
RING = fsmdp.domains.sysadmin(3)


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def histories():
    structure = RING.structure(fsmdp.Basis.singles(RING))

    def learnt(make, seed):
        learner = make(structure, known_rewards=RING.rewards, seed=seed)
        return fsmdp.learn(RING, learner, episodes=EPISODES, seed=seed)

    return {
        "optimistic": [learnt(fsmdp.UCRLFactored, seed) for seed in (0, 1)],
        "sampling": [learnt(fsmdp.PSRLFactored, 0)],
    }


def _lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_a_history_shows_returns_optimism_and_the_bound_on_its_regret(histories):
    one = histories["optimistic"][0]
    above, below = one.plot()
    lines = _lines(above)
    window = EPISODES // 20
    assert np.allclose(lines["UCRLFactored"].get_ydata(), moving_mean(one.returns, window))
    believed = lines["UCRLFactored, optimistic value"].get_ydata()
    assert np.allclose(believed, moving_mean(one.optimistic_values, window))
    (bound,) = below.get_lines()
    assert np.allclose(bound.get_ydata(), one.observable_regret_bound())
    assert below.get_ylabel() == "observable regret bound"


def test_regret_is_drawn_where_the_optimum_is_given(histories):
    one = histories["sampling"][0]
    (_, axes), given = pyplot.subplots(), 2.5
    assert one.plot(axes, what="regret", start_value=given) is axes
    (line,) = axes.get_lines()
    assert np.allclose(line.get_ydata(), one.regret(given))


def test_posterior_sampling_promises_nothing_and_the_picture_says_so(histories):
    axes = histories["sampling"][0].plot(what="regret")
    assert not axes.get_lines()
    assert "no bound on the regret" in axes.texts[0].get_text()


def test_seeds_of_a_learner_become_a_mean_with_a_band(histories):
    by_label = fsmdp.plot.compare(histories)
    two = np.array([one.returns for one in histories["optimistic"]])
    shown = _lines(by_label)["optimistic"].get_ydata()
    assert np.allclose(shown, moving_mean(two, EPISODES // 20).mean(axis=0))
    assert len(by_label.collections) == 1  # one seed has no band
    listed = fsmdp.plot.compare([one for group in histories.values() for one in group])
    assert len(_lines(listed)) == len(_lines(by_label))


def _covers(legend, axes):
    """Whether a legend lies over the axes, or leaves the figure."""
    figure = axes.figure
    figure.draw_without_rendering()
    box = legend.get_window_extent()
    inside = box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y0 >= 0
    return not inside or box.overlaps(axes.get_window_extent())


LONG = "a learner whose name says all of its options, and what they are good for, one by one"


@pytest.mark.parametrize("labels", [("one", "two"), (LONG, f"{LONG}, and some more")])
def test_a_legend_covers_no_curve_however_long_its_names(labels, histories):
    groups = dict(zip(labels, histories.values(), strict=True))
    axes = fsmdp.plot.compare(groups, what=("returns", "regret"))
    assert not any(_covers(each.get_legend(), each) for each in axes)


def test_a_legend_keeps_within_the_callers_axes(histories):
    (figure, axes) = pyplot.subplots()
    histories["optimistic"][0].plot(axes, what="returns")
    figure.draw_without_rendering()
    assert axes.get_legend().get_window_extent().x1 <= axes.get_window_extent().x1


def test_learners_are_told_apart_by_options_only_where_names_do_not():
    assert short_names(["A(1)", "B(2)"]) == {"A(1)": "A", "B(2)": "B"}
    assert short_names(["A(1)", "A(2)", "B(1)"]) == {"A(1)": "A(1)", "A(2)": "A(2)", "B(1)": "B"}


def test_wide_bands_of_few_seeds_leave_the_means_room(histories):
    axes = fsmdp.plot.compare(histories)
    means = np.concatenate([line.get_ydata() for line in axes.get_lines()])
    spread = means.max() - means.min()
    low, high = axes.get_ylim()
    assert low <= means.min() <= means.max() <= high
    assert high - low <= 1.7 * spread


def test_a_folder_of_runs_is_drawn_as_its_histories_are(tmp_path):
    specification = {
        "name": "two",
        "episodes": EPISODES,
        "seeds": 2,
        "models": [{"model": "sysadmin:ring:3"}],
        "learners": [{"learner": "psrl", "known_rewards": True}, {"learner": "random"}],
    }
    compare(specify(specification), tmp_path / "runs", Here())
    returns, regret = fsmdp.plot.compare(tmp_path / "runs", what=("returns", "regret"))
    assert "V*" in _lines(returns)
    assert regret.get_ylabel() == "regret"
    assert len(regret.get_lines()) == 2
    with pytest.raises(fsmdp.ModelError, match="say which to draw"):
        fsmdp.plot.compare(tmp_path / "runs", model="ring:4")


@pytest.mark.parametrize("wrong", [[], {}, [1], {"a": []}, 7])
def test_what_is_no_history_is_refused(wrong):
    with pytest.raises(fsmdp.ModelError, match="expected a list of histories"):
        fsmdp.plot.compare(wrong)


def test_wrong_panels_and_axes_are_refused(histories):
    one = histories["sampling"][0]
    with pytest.raises(fsmdp.ModelError, match="what: expected 'returns' or 'regret'"):
        one.plot(what="returns, please")
    with pytest.raises(fsmdp.ModelError, match="ax: expected 2 Matplotlib axes"):
        one.plot(pyplot.subplots()[1])


def test_a_plan_shows_its_log():
    ring = fsmdp.domains.sysadmin(6)
    plan = fsmdp.plan(ring, fsmdp.Basis.singles(ring), rounds=1)
    lines = _lines(plan.plot())
    assert lines["certified bound"].get_ydata().tolist() == [one.upper_bound for one in plan.log]
    shown = [one.incumbent for one in plan.log if one.incumbent is not None]
    assert lines["policy"].get_ydata().tolist() == shown
    with pytest.raises(fsmdp.PlanningError, match="has no log"):
        fsmdp.plan(ring, method="programs").plot()


def test_a_model_shows_what_depends_on_what():
    found = dependencies(RING)
    assert found.always == ((0, 0), (0, 1), (1, 1), (1, 2), (2, 0), (2, 2))
    assert found.sometimes == ()
    assert found.acted_on == found.rewarded == frozenset({0, 1, 2})
    assert sorted(found.order) == [0, 1, 2]
    axes = RING.plot()
    assert "3 variables, 4 actions" in axes.get_title(loc="left")
    said = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "number and colour: order of elimination" in said


def test_dependencies_under_some_actions_are_told_apart():
    flip = [[0.0, 1.0], [1.0, 0.0]]
    coin = fsmdp.Conditional(
        "coin",
        cases=[
            fsmdp.Case(["wait"], parents=["coin"], table=np.eye(2)),
            fsmdp.Case(["copy"], parents=["lamp"], table=flip),
        ],
    )
    lamp = fsmdp.Conditional("lamp", [fsmdp.Case(fsmdp.ANY, parents=["lamp"], table=np.eye(2))])
    shines = fsmdp.Reward("shines", [fsmdp.Case(fsmdp.ANY, parents=["lamp"], table=[0.0, 1.0])])
    variables = [fsmdp.Variable("coin", 2), fsmdp.Variable("lamp", 2)]
    model = fsmdp.FactoredMDP(variables, ["wait", "copy"], [coin, lamp], [shines], horizon=2)
    found = dependencies(model)
    assert (found.always, found.sometimes) == (((0, 0), (1, 1)), ((1, 0),))
    assert (found.acted_on, found.rewarded) == (frozenset({0}), frozenset({1}))


def test_a_raster_shows_the_states_of_an_episode():
    axes = fsmdp.plot.trajectories(RING, "wait", seed=3)
    found = record(RING, "wait", seed=3)
    assert axes.images[0].get_array().tolist() == found.states[0, :-1].T.tolist()
    assert axes.get_xticklabels()[0].get_text() == "1  wait"
    many = fsmdp.plot.trajectories(RING, "wait", episodes=5)
    assert many.get_xlabel() == "step"
    for shown in (axes, many):
        assert shown.images[0].colorbar.get_ticks().tolist() == [0, 1]


def test_a_policy_in_python_is_recorded_as_compiled_ones_are():
    compiled = record(RING, "reboot-1", episodes=3, seed=1)
    followed = record(RING, lambda state, step: "reboot-1", episodes=3, seed=1)
    for one, other in zip(compiled, followed, strict=True):
        assert np.array_equal(one, other)
