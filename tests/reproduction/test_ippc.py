"""The scoreboard: what was published, scores, files that are not made twice, and the page."""

import json

import pytest
from typer.testing import CliRunner

import fsmdp
from fsmdp import ModelError
from fsmdp.cli.entry import app
from fsmdp.reproduction import ippc as running
from fsmdp.reproduction.ippc import (
    DOMAINS,
    PLANNERS,
    Problem,
    Settings,
    Task,
    draw,
    measured_2018,
    others,
    page,
    play,
    published,
    read_problems,
    read_results,
    run_problems,
    scores,
    write_page,
)

TRAFFIC, SYSADMIN = Problem("Traffic", 1), Problem("SysAdmin", 1)


def invented(task):
    return invented_result(published()[task.problem]) | {"episodes": task.settings.episodes}


def invented_result(known):
    return {
        "log10_states": 3.0,
        "actions": 5,
        "seconds": 1.0,
        "policy": "invented",
        "mean": (known.base + known.best) / 2,
        "standard_error": 0.5,
        "episodes": 10,
        "decision_seconds": 1e-6,
        "upper_bound": known.best + 1.0,
        "trivial_bound": known.best + 10.0,
        "proof": "elimination",
        "exact": False,
        "statement": "",
        "candidates": 3,
    }


def test_published_results_and_scores_are_those_of_the_sources():
    known = published()
    assert len(known) == 84
    assert {problem.domain for problem in known} == set(DOMAINS)
    traffic = known[TRAFFIC]
    assert (traffic.base, traffic.best, traffic.best_planner) == (-18.6, -3.467, "PROST 2011")
    assert traffic.score(-3.0) == 1.0
    assert traffic.score(-30.0) == 0.0
    assert traffic.score((-18.6 - 3.467) / 2) == pytest.approx(0.5)
    means = {
        name: sum(others(name, list(known)).values()) / len(others(name, list(known)))
        for name in PLANNERS
    }
    # As the collection of these results states them.
    assert means["prost_1s"] == pytest.approx(0.834, abs=1e-3)
    assert means["prost_5s"] == pytest.approx(0.875, abs=1e-3)
    assert means["gurobiplan_5s"] == pytest.approx(0.711, abs=1e-3)
    assert means["jaxplan_5s"] == pytest.approx(0.575, abs=1e-3)


def test_problems_are_read_as_people_write_them():
    assert read_problems(["Traffic:1", "SysAdmin:1", "Traffic:1"]) == [SYSADMIN, TRAFFIC]
    assert len(read_problems(["Elevators"])) == 10
    assert len(read_problems(["published"])) == 84
    assert len(read_problems(["all"])) == 120
    assert len(read_problems(["2018"])) == 140
    assert read_problems(["ChromaticDice-2018:20"]) == [Problem("ChromaticDice-2018", 20)]
    for text in ("Trafic:1", "Traffic:11", "Traffic:x", "", "ChromaticDice-2018:21"):
        with pytest.raises(ModelError):
            read_problems([text])


def test_what_was_played_is_not_played_again(tmp_path, monkeypatch):
    played = []

    def once(task):
        played.append(task.problem)
        return invented(task) if task.problem != SYSADMIN else {"error": "no luck"}

    monkeypatch.setattr(running, "play", once)
    wanted, settings = [SYSADMIN, TRAFFIC], Settings(seconds=1)
    first = run_problems(wanted, settings, tmp_path)
    assert first[SYSADMIN]["error"] == "no luck"
    assert played == wanted
    again = run_problems(wanted, settings, tmp_path)
    assert played == [*wanted, SYSADMIN]  # what failed is tried again
    assert again[TRAFFIC]["mean"] == first[TRAFFIC]["mean"]
    run_problems(wanted, Settings(seconds=2), tmp_path)
    assert played[3:] == wanted  # other settings, other results
    assert list(read_results(tmp_path)) == [TRAFFIC]
    path = tmp_path / "Traffic-1.json"
    path.write_text(path.read_text().replace("0.5", "0.6"))
    with pytest.raises(ModelError, match="remove it"):
        read_results(tmp_path)


def test_one_problem_is_not_plural(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "play", invented)
    done = CliRunner().invoke(app, ["ippc", "Traffic:1", "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("1 problem, 60 s of planning each")
    assert "over 1 problem\n" in done.stdout


def test_the_page_has_a_row_for_each_problem_and_the_figure_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "play", invented)
    results = run_problems([SYSADMIN, TRAFFIC], Settings(), tmp_path / "runs")
    results[TRAFFIC] = {
        **results[TRAFFIC],
        "online_mean": published()[TRAFFIC].best,
        "online_standard_error": 0.1,
    }
    assert scores(results, "mean") == pytest.approx({SYSADMIN: 0.5, TRAFFIC: 0.5})
    assert scores(results, "online_mean") == {TRAFFIC: 1.0}
    text = page(results, "fsmdp ippc Traffic:1")
    rows = [line for line in text.splitlines() if line.startswith("| Traffic 1 |")]
    assert len(rows) == 1
    large = {TRAFFIC: {**results[TRAFFIC], "mean": -3.8688, "standard_error": 120.0}}
    large[TRAFFIC] |= {"upper_bound": 7.4e-11, "exact": False}
    assert "| 0 ± 120 |" in page(large, "fsmdp ippc Traffic:1")
    assert "e-1" not in page(large, "fsmdp ippc Traffic:1")
    assert "| **all** | 2 | 0.500 | 1.000 |" in text
    assert "| **all with on line** | 1 | 0.500 | 1.000 |" in text
    assert draw(results).startswith(b"<?xml")
    path = write_page(results, tmp_path / "ippc.md", "fsmdp ippc Traffic:1")
    assert path.read_text() == text
    assert (tmp_path / "ippc.svg").stat().st_size > 1000
    assert "GB" not in text
    peaks = {SYSADMIN: 1.5e9, TRAFFIC: 2.5e9}
    measured = {p: {**result, "peak_memory": peaks[p]} for p, result in results.items()}
    assert "Planning took at most 2.5 GB (Traffic 1)." in page(measured, "fsmdp ippc")


def test_a_problem_is_planned_and_played():
    pytest.importorskip("pyRDDLGym")
    settings = Settings(seconds=30, episodes=200, online_episodes=2)
    found = play(Task(Problem("Navigation", 1), settings))
    assert found["exact"]
    assert found["online_mean"] == found["mean"]  # nothing is simulated where nothing can be won
    assert found["online_episodes"] == 200
    assert found["upper_bound"] == pytest.approx(-9.5669, abs=1e-3)
    assert abs(found["mean"] + 9.5669) < 6 * found["standard_error"]
    assert found["decision_seconds"] < 1e-3
    assert found["peak_memory"] is None or 1e7 < found["peak_memory"] < 4e9
    json.dumps(found)


def test_the_problems_of_2018_have_a_zero_and_what_was_measured():
    known = measured_2018()
    assert len(known) == 13  # instances 1 and 5 of seven domains, but Manufacturer 5
    one = known[Problem("EarthObservation-2018", 1)]
    assert (one.base, one.best) == (pytest.approx(-46.0533333333), -14.3)
    assert one.best_planner == "PROST, 0.5 s a step, measured"
    assert one.score(-14.3) == 1.0
    assert one.score(one.base) == 0.0


def test_the_page_has_a_second_part_for_2018(tmp_path):
    problem = Problem("EarthObservation-2018", 1)
    result = invented_result(measured_2018()[problem])
    settings = {"seconds": 60.0, "episodes": 10, "milliseconds": 100.0}
    text = page({problem: {"settings": settings, **result}}, "`fsmdp ippc 2018`")
    assert "## The problems of 2018" in text
    assert "EarthObservation-2018 1" in text
    assert "Mean score by domain" not in text


def with_one_object(model, other, rewards):
    """A model without an object's fluents, conditions on them and rewards: others earn no less."""
    kept = [variable for variable in model.variables if other not in variable.name]
    known = {variable.name for variable in kept}
    laws = [one for one in model.conditionals if known.issuperset(one.children)]
    assert not model.latents
    assert all(known.issuperset(case.parents) for law in laws for case in law.cases)
    start = dict(zip((v.name for v in model.variables), model.initial, strict=True))
    return model.replace(
        variables=kept,
        conditionals=laws,
        rewards=[one for one in model.rewards if one.name.split()[0] in rewards],
        allowed=[case for case in model.allowed if known.issuperset(case.parents)],
        initial={name: start[name] for name in known},
    )


@pytest.mark.slow
def test_the_measured_mean_of_cooperative_recon_is_above_what_can_be_earned():
    # V* is at most the sum of what is earned by each object where the other is left out.
    model = fsmdp.rddl.load("CooperativeRecon_ippc2018", 1)
    first = with_one_object(model, "obj01", ("r1", "r2"))
    second = with_one_object(model, "obj00", ("r3", "r4"))
    assert len(first.rewards) + len(second.rewards) == len(model.rewards)
    most = sum(fsmdp.solve_exactly(one).start_value for one in (first, second))
    assert most == pytest.approx(10.08384, abs=1e-6)
    measured = measured_2018()[Problem("CooperativeRecon-2018", 1)]
    assert max(measured.means.values()) > most
