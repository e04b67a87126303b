"""Charts and final figures: what is computed from the runs, and what is said of it."""

import math
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest
from fabricated import BEST, LEARNERS, fabricate, facts_of_ring

from fsmdp.report.charts import COLORS, DASHES, Role, learner_styles, mark_text, network_chart
from fsmdp.report.curves import (
    Interval,
    columns_shown,
    effort_chart,
    finals_chart,
    interval_chart,
    log_regret_chart,
    model_charts,
    regret_chart,
    rows_of_model,
    summary_frame,
    trials_of_model,
    value_chart,
)
from fsmdp.report.interactive import plotly_figure
from fsmdp.report.page import (
    certified,
    mean_and_half_width,
    opening,
    tally,
    verdict,
    with_interval,
)
from fsmdp.report.print_figures import power_of_ten, printed

UNKNOWN = {"ring-6": facts_of_ring(known=False)}


def charted(results):
    return trials_of_model(results, "ring-6"), results.models["ring-6"]


def lines_of(chart, learner, role=Role.MEASURED):
    return [line for line in chart.lines if (line.learner, line.role) == (learner, role)]


def test_a_regret_curve_is_the_mean_over_seeds_with_its_t_interval():
    trials, facts = charted(fabricate())
    (line,) = lines_of(regret_chart(trials, facts), "ucrl")
    regrets = np.array([run.episodes["regret"].to_numpy() for run in trials[0].runs])
    np.testing.assert_allclose(line.y, regrets.mean(axis=0))
    last = Interval.of(regrets[:, -1].tolist())
    assert line.half_width[-1] == pytest.approx(last.half_width)


def test_one_seed_has_no_band_and_the_caption_says_so():
    trials, facts = charted(fabricate(seeds=1))
    chart = regret_chart(trials, facts)
    assert {line.half_width for line in chart.lines} == {None}
    assert chart.caption.endswith("One seed.")


def test_long_curves_are_thinned_and_keep_their_ends():
    trials, facts = charted(fabricate(episodes=5000, seeds=2))
    for chart in model_charts(trials, facts):
        assert max(len(line.x) for line in chart.lines) <= 250
        measured = [line for line in chart.lines if line.role is Role.MEASURED]
        assert {(line.x[0], line.x[-1]) for line in measured} == {(1, 5000)}


def test_without_the_best_value_bounds_are_shown_and_called_bounds():
    trials, facts = charted(fabricate(UNKNOWN))
    chart = regret_chart(trials, facts)
    observable, shortfall = chart.panels
    assert "V* is not known" in chart.caption
    assert {line.learner for line in observable.lines} == {"ucrl", "ucrl-tight"}
    assert {line.learner for line in shortfall.lines} == {one.id for one in LEARNERS}
    random = next(line for line in shortfall.lines if line.learner == "random")
    returns = np.array([run.episodes["returns"].to_numpy() for run in trials[-1].runs])
    assert random.y[-1] == pytest.approx((facts.plan_upper_bound - returns).sum(axis=1).mean())


def test_log_axes_show_slopes_and_the_theorem_and_leave_out_what_is_not_positive():
    trials, facts = charted(fabricate(episodes=2000))
    chart = log_regret_chart(trials, facts)
    slopes = {line.learner: line.note for line in chart.lines if line.note}
    assert slopes["random"] == "slope 1.00"
    assert float(slopes["ucrl"].split()[1]) == pytest.approx(0.5, abs=0.1)
    assert not lines_of(chart, "plan")
    assert "Known-model plan" in chart.caption
    (theorem,) = lines_of(chart, None, Role.REFERENCE)
    assert theorem.y[-1] == pytest.approx(4e4 * math.sqrt(2000))
    assert len(lines_of(chart, "ucrl", Role.FIT)) == 1


def test_values_stand_beside_returns_with_the_best_value_and_the_bound():
    trials, facts = charted(fabricate())
    chart = value_chart(trials, facts)
    assert [line.label for line in chart.lines if line.role is Role.REFERENCE] == [
        "V*",
        "certified upper bound",
    ]
    assert lines_of(chart, "ucrl", Role.OPTIMISTIC)
    assert not lines_of(chart, "random", Role.OPTIMISTIC)
    (random,) = lines_of(chart, "random")
    assert random.y[-1] == pytest.approx(BEST - 2, abs=0.3)


def test_learners_without_intervals_are_not_shown_as_certain():
    trials, facts = charted(fabricate())
    chart = interval_chart(trials, facts)
    assert {line.learner for line in chart.lines} == {"ucrl", "ucrl-tight"}
    assert [panel.y_label for panel in chart.panels] == [
        "width of the intervals",
        "slack of the policy",
    ]


def test_effort_adds_up():
    trials, facts = charted(fabricate(episodes=64))
    plans, seconds = effort_chart(trials, facts).panels
    assert next(line for line in plans.lines if line.learner == "ucrl").y[-1] == 7
    assert next(line for line in seconds.lines if line.learner == "ucrl").y[-1] == pytest.approx(
        0.07
    )


def test_heuristic_learners_are_marked_in_every_chart():
    trials, facts = charted(fabricate())
    for chart in model_charts(trials, facts):
        labels = {line.label for line in lines_of(chart, "ucrl-tight")}
        assert labels == {"UCRL tight (heuristic)"}, chart.name


def test_final_figures_are_those_of_the_runs():
    trials, facts = charted(fabricate())
    finals = {final.trials.learner: final for final in rows_of_model("ring-6", trials, facts)}
    late = [run.episodes["returns"].tail(20).mean() for run in trials[0].runs]
    found = finals["ucrl"].figures
    assert found["return_last_tenth"].mean == pytest.approx(np.mean(late))
    assert found["percent_below_best"].mean == pytest.approx(100 * (BEST - np.mean(late)) / BEST)
    assert found["replans"].mean == 8
    assert found["seconds"].mean == 1.25
    assert "observable_regret_bound" not in finals["random"].figures


def test_the_table_shows_bounds_only_where_the_best_value_is_not_known():
    for models, shown in ((None, "regret"), (UNKNOWN, "observable_regret_bound")):
        trials, facts = charted(fabricate(models))
        names = [c.figure for c in columns_shown(rows_of_model("ring-6", trials, facts), facts)]
        assert names[0] == shown
        assert len({"regret", "observable_regret_bound"} & set(names)) == 1


def test_the_summary_has_a_row_for_each_learner_and_half_widths():
    trials, facts = charted(fabricate())
    frame = summary_frame(rows_of_model("ring-6", trials, facts))
    assert frame["learner"].to_list() == [one.id for one in LEARNERS]
    assert frame["regret_half_width"].null_count() == 0
    assert frame["observable_regret_bound"].null_count() == 2
    assert frame["heuristic"].to_list() == [False, True, False, False]


def test_the_verdict_names_the_learner_with_the_least_regret_not_one_given_the_model():
    trials, facts = charted(fabricate(seeds=12))
    finals = rows_of_model("ring-6", trials, facts)
    text = verdict("ring-6", finals)
    assert text.startswith("On ring-6, UCRL tight (heuristic) did best: regret ")
    assert "Next came UCRL-Factored: regret" in text
    assert tally([finals]) == "Clearly best: UCRL tight (heuristic) on 1 of 1 models."
    best = next(final for final in finals if final.trials.learner == "ucrl-tight")
    assert with_interval(best.figures["regret"]) in text


def test_the_verdict_follows_the_numbers():
    results = fabricate()
    better = [
        replace(run, episodes=run.episodes.with_columns(regret=run.episodes["regret"] * 0.001))
        if run.learner == "random"
        else run
        for run in results.runs
    ]
    trials, facts = charted(replace(results, runs=tuple(better)))
    assert "Random did best" in verdict("ring-6", rows_of_model("ring-6", trials, facts))


def test_differences_that_may_be_chance_are_said_to_be():
    trials, facts = charted(fabricate())
    overlapping = rows_of_model("ring-6", trials, facts)
    assert "overlaps that of UCRL-Factored" in verdict("ring-6", overlapping)
    assert tally([overlapping]) == ""
    trials, facts = charted(fabricate(seeds=1))
    alone = verdict("ring-6", rows_of_model("ring-6", trials, facts))
    assert alone.endswith("one seed, so no clear winner.")
    assert "interval" not in alone
    same = tuple(replace(LEARNERS[0], id=name, label=name) for name in ("one", "two"))
    trials, facts = charted(fabricate(learners=same))
    assert "no clear winner" in verdict("ring-6", rows_of_model("ring-6", trials, facts))


def test_where_regret_is_not_known_the_verdict_goes_by_the_return_at_the_end():
    trials, facts = charted(fabricate(UNKNOWN))
    text = verdict("ring-6", rows_of_model("ring-6", trials, facts))
    assert "in the last tenth of episodes" in text
    assert "regret" not in text


def test_one_learner_is_not_called_the_best_and_none_leaves_nothing_to_say():
    trials, facts = charted(fabricate(learners=LEARNERS[:1]))
    finals = rows_of_model("ring-6", trials, facts)
    assert verdict("ring-6", finals).startswith("On ring-6, UCRL-Factored ended with regret")
    assert tally([finals]) == ""
    assert verdict("ring-6", ()) == ""


def test_the_opening_counts_what_failed_and_what_is_missing():
    results = fabricate(missing=["ring-6--ucrl--seed-0"], failing=["ring-6--random--seed-1"])
    assert opening(results) == (
        "4 learners on 1 model, 3 seeds each, 200 episodes a run: 12 runs in all, of which "
        "1 refused or failed (listed below) and 1 not finished."
    )


def test_the_certified_gap_is_that_of_bound_and_policy():
    assert "a gap of 6.3 %" in certified(facts_of_ring(bound=9.5))
    assert certified(replace(facts_of_ring(), plan_upper_bound=None)) == ""


@pytest.mark.parametrize(
    ("mean", "half_width", "written"),
    [
        (4.519, 13.2, ("5", "13")),
        (0.12345, 0.0123, ("0.123", "0.012")),
        (-0.01, 4.2, ("0.0", "4.2")),
        (-12.34, 0.5, ("−12.34", "0.50")),
        (1234.5, 678.0, ("1,230", "680")),
        (300.0, 0.0, ("300", "0")),
        (1000.0, 0.0, ("1,000", "0")),
        (9.36006, None, ("9.36", "")),
        (123456.0, None, ("123,456", "")),
    ],
)
def test_means_are_written_to_as_many_places_as_their_interval_warrants(mean, half_width, written):
    assert mean_and_half_width(Interval(mean, half_width)) == written


def test_one_seed_has_no_intervals_in_words():
    trials, facts = charted(fabricate(seeds=1))
    chart = finals_chart(rows_of_model("ring-6", trials, facts), facts)
    assert chart.caption.startswith("Mean return over the last tenth of episodes, of one seed.")
    finals = rows_of_model("ring-6", trials, replace(facts, start_value_exact=1.0))
    assert "not below V* in the last tenth of episodes" in verdict("ring-6", finals)


def test_large_values_are_written_out_and_bounds_rounded_up():
    large = replace(facts_of_ring(bound=6786921.3), start_value_exact=6610300.4)
    trials, _ = charted(fabricate())
    assert "No policy earns more than 6786922, by" in certified(large)
    assert "V* = 6610300 exactly" in regret_chart(trials, large).caption
    unknown = replace(large, start_value_exact=None)
    assert "Σ (6786922 − return)" in regret_chart(trials, unknown).caption
    assert mark_text("V*", 6610300.4) == "V* = 6610300"
    assert mark_text("certified upper bound", 6610300.4) == "certified upper bound = 6610301"


def test_dots_stand_beside_the_certified_bound():
    trials, facts = charted(fabricate())
    chart = finals_chart(rows_of_model("ring-6", trials, facts), facts)
    assert [label for label, _ in chart.marks] == ["V*", "certified upper bound"]
    assert chart.dots[-1].label == "plan behind the bound"
    assert chart.dots[-1].half_width == pytest.approx(1.96 * 0.02, rel=1e-3)


def all_charts(results):
    trials, facts = charted(results)
    finals = rows_of_model("ring-6", trials, facts)
    return [
        *model_charts(trials, facts),
        finals_chart(finals, facts),
        network_chart(
            facts.variable_names, facts.edges, facts.elimination_order, facts.induced_width
        ),
    ]


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("models", [None, UNKNOWN])
def test_plotly_accepts_every_figure(models, seeds):
    styles = learner_styles([one.id for one in LEARNERS])
    for chart in all_charts(fabricate(models, seeds=seeds)):
        found = plotly_figure(chart, styles)
        go.Figure({"data": found["data"], "layout": found["layout"]})


def test_a_learner_keeps_its_colour_and_dash_in_every_figure():
    styles = learner_styles([one.id for one in LEARNERS])
    for chart in all_charts(fabricate()):
        found = plotly_figure(chart, styles)
        for trace in found["data"]:
            if "learner" in trace["meta"]:
                assert trace["meta"]["ink"] == f"learner-{trace['meta']['learner']}"
        for entry in found["legend"]:
            if "learner" in entry:
                assert entry["dash"] == DASHES[entry["learner"]]


def test_forty_two_learners_all_look_different():
    styles = learner_styles([str(n) for n in range(42)]).values()
    assert len({(style.color, style.dash) for style in styles}) == len(COLORS) * len(DASHES) == 42


def test_printed_files_repeat_byte_for_byte():
    styles = learner_styles([one.id for one in LEARNERS])
    chart = all_charts(fabricate())[0]
    first, second = printed(chart, styles), printed(chart, styles)
    assert first == second
    assert first["png"].startswith(b"\x89PNG")
    assert b"<svg" in first["svg"]


@pytest.mark.parametrize(
    ("value", "written"), [(1, "1"), (1e3, "1,000"), (1e4, "10⁴"), (0.01, "10⁻²")]
)
def test_powers_of_ten_are_written_without_markup(value, written):
    assert power_of_ten(value) == written
