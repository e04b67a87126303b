"""The paper's claims in their tiny form: runs, rules, pages."""

import json

import polars
import pytest
from typer.testing import CliRunner

from fsmdp import ModelError
from fsmdp.cli import entry
from fsmdp.reproduction import reproduce as on_disk
from fsmdp.reproduction.claim import Claim, Evidence, Form, Judgement, Verdict, find_claims
from fsmdp.reproduction.claims import beyond, diameter, oracle, planner, reformulation, regret
from fsmdp.reproduction.reproduce import html_page, markdown_page, reproduce


def silent(_):
    pass


@pytest.fixture(scope="module")
def tiny():
    """Tiny runs, made once."""
    made = {}

    def run(claim):
        if claim.name not in made:
            made[claim.name] = claim.run(Form.TINY, 0, silent)
        return made[claim.name]

    return run


@pytest.mark.parametrize("claim", find_claims(), ids=lambda claim: claim.name)
def test_a_claim_s_tiny_run_depends_on_its_seed_alone(claim, tiny):
    first, second = tiny(claim), claim.run(Form.TINY, 0, silent)
    assert first.tables.keys() == second.tables.keys()
    for name, table in first.tables.items():
        assert table.equals(second.tables[name]), name


@pytest.mark.parametrize("claim", find_claims(), ids=lambda claim: claim.name)
def test_a_claim_s_tiny_run_is_judged_and_drawn(claim, tiny):
    evidence = tiny(claim)
    judged = claim.judge(evidence)
    assert judged.verdict in Verdict
    assert any(letter.isdigit() for letter in judged.reason)
    drawn = claim.draw(evidence)
    for chart in drawn if isinstance(drawn, tuple) else (drawn,):
        assert chart.caption
        assert all(len(line.x) == len(line.y) > 0 for line in chart.lines)


def with_table(evidence, name, change):
    """The same evidence with one table changed."""
    tables, timed = dict(evidence.tables), dict(evidence.timed)
    target = tables if name in tables else timed
    target[name] = change(target[name])
    return Evidence(tables, timed)


def times(exponent):
    """Seconds of the oracle that grow with an exponent."""
    rows = [
        {
            "sweep": sweep,
            "size": n,
            "grown": n,
            "method": oracle.ELIMINATION,
            "seconds": n**exponent,
        }
        for sweep in oracle.SWEEPS
        for n in (2, 4, 8)
    ]
    rows += [
        {
            "sweep": "variables",
            "size": n,
            "grown": n,
            "method": oracle.ENUMERATION,
            "seconds": 2.0**n,
        }
        for n in (2, 4, 8)
    ]
    return polars.DataFrame(rows)


@pytest.mark.parametrize(
    ("exponent", "difference", "verdict"),
    [(1.0, 0.0, "holds"), (3.0, 0.0, "does not hold as stated"), (1.0, 0.1, "does not hold")],
)
def test_the_oracle_must_be_polynomial_and_right(exponent, difference, verdict):
    agreement = polars.DataFrame([{"variables": 4, "difference": difference}])
    evidence = Evidence({"agreement": agreement}, {"seconds": times(exponent)})
    assert str(oracle.judge(evidence).verdict).startswith(verdict)


def test_an_exponent_of_zero_has_no_sign():
    agreement = polars.DataFrame([{"variables": 4, "difference": 0.0}])
    evidence = Evidence({"agreement": agreement}, {"seconds": times(-0.001)})
    assert "-0.00" not in oracle.judge(evidence).reason
    assert all("-0.00" not in line.note for line in oracle.draw(evidence).lines)


def planned(seconds, cuts_value):
    """Three sizes planned by all methods, the time growing as told."""
    values, timed = [], []
    for size in (2, 4, 8):
        for method in (planner.ELLIPSOID, planner.CUTS, planner.JOINT, planner.STAGEWISE):
            value = cuts_value if method == planner.CUTS else 1.0
            key = {"sweep": "machines", "size": size, "method": method}
            values.append(key | {"value": value})
            timed.append(key | {"weights": size, "seconds": seconds(size), "formula": size**3.0})
    return Evidence({"values": polars.DataFrame(values)}, {"seconds": polars.DataFrame(timed)})


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (planned(lambda n: float(n), 1.0), Verdict.HOLDS),
        (planned(lambda n: float(n**5), 1.0), Verdict.FAILS),
        (planned(lambda n: float(n), 1.1), Verdict.FAILS),
    ],
)
def test_planners_must_agree_and_grow_no_faster_than_the_count(evidence, verdict):
    assert planner.judge(evidence).verdict is verdict


def test_the_reformulation_fails_when_values_differ_or_rows_do_not_shrink(tiny):
    evidence = tiny(reformulation.CLAIM)
    assert reformulation.judge(evidence).verdict is Verdict.HOLDS
    wrong = with_table(
        evidence, "values", lambda table: table.with_columns(difference=polars.lit(0.01))
    )
    assert reformulation.judge(wrong).verdict is Verdict.FAILS
    large = with_table(
        evidence, "rows", lambda table: table.with_columns(factored=polars.lit(10**9))
    )
    assert reformulation.judge(large).verdict is Verdict.FAILS


def regrets(printed, stagewise, bound=1e9):
    """Regret that grows with given exponents, in two families."""
    curves, ends = [], []
    for family in ("influence", "exogenous block"):
        for learner in (regret.PAPER, regret.HOEFFDING, regret.PRACTICAL):
            exponent = printed if learner == regret.PAPER else stagewise
            for episode in (1, 10, 50, 100):
                curves.append(
                    {
                        "family": family,
                        "learner": learner,
                        "episode": episode,
                        "regret": float(episode) ** exponent,
                        "slack": 1.0,
                    }
                )
            ends.append({"regret": 100.0**exponent, "general_bound": bound})
    frame = polars.DataFrame(ends)
    return Evidence({"curves": polars.DataFrame(curves), "ends": frame, "sizes": frame})


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (regrets(0.5, 0.5), Verdict.HOLDS),
        (regrets(1.0, 0.5), Verdict.CORRECTED),
        (regrets(1.0, 1.0), Verdict.FAILS),
        (regrets(0.5, 0.5, bound=1.0), Verdict.FAILS),
    ],
)
def test_regret_must_grow_like_a_root_and_stay_below_the_theorem(evidence, verdict):
    assert regret.judge(evidence).verdict is verdict


@pytest.mark.parametrize(
    ("disconnected_regret", "steps", "verdict"),
    [
        (10.0, float("inf"), Verdict.HOLDS),
        (20.0, float("inf"), Verdict.FAILS),
        (10.0, 50.0, Verdict.FAILS),
    ],
)
def test_the_diameter_must_be_infinite_and_the_regret_unchanged(
    disconnected_regret, steps, verdict
):
    evidence = Evidence(
        {
            "ends": polars.DataFrame(
                {
                    "model": [diameter.CONNECTED, diameter.DISCONNECTED],
                    "regret": [10.0, disconnected_regret],
                }
            ),
            "diameters": polars.DataFrame(
                {
                    "model": [diameter.CONNECTED, diameter.DISCONNECTED],
                    "diameter": [50.0, steps],
                }
            ),
        }
    )
    assert diameter.judge(evidence).verdict is verdict


def test_the_diameter_of_a_cycle_that_moves_half_of_the_time():
    from fsmdp import ANY, Case, Conditional, FactoredMDP, Variable
    from fsmdp.exact.flat import enumerate_states

    forward = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]
    model = FactoredMDP(
        [Variable("place", 3)],
        ["go"],
        [Conditional("place", [Case(ANY, ["place"], forward)])],
        [],
        horizon=1,
    )
    assert diameter.diameter(enumerate_states(model)) == pytest.approx(4)  # two moves of two steps


@pytest.mark.parametrize(
    ("regret_of", "initial", "verdict"),
    [
        ([5, 4, 3, 2, 1], 1.1, Verdict.HOLDS),
        ([5, 4, 3, 2, 4], 1.1, Verdict.CORRECTED),
        ([1, 2, 3, 4, 5], 1.9, Verdict.FAILS),
    ],
)
def test_improvements_must_improve(regret_of, initial, verdict):
    ends = polars.DataFrame({"learner": list(beyond.LEARNERS), "regret": regret_of})
    bounds = polars.DataFrame([{"best": 1.0, "uniform": 1.5, "initial": initial}])
    assert beyond.judge(Evidence({"ends": ends, "bounds": bounds})).verdict is verdict


def test_an_ungrouped_structure_has_cells_for_every_action():
    import fsmdp

    model = fsmdp.domains.sysadmin(3)
    structure = model.structure(fsmdp.Basis.singles(model))
    # Each machine looks at itself and one other, or at nothing when it is rebooted.
    assert beyond.ungrouped(structure).cells == 3 * (3 * 4 + 1)
    assert structure.cells == 3 * (4 + 1)


@pytest.fixture
def only_cheap(monkeypatch):
    """A claim that counts how often it is run."""
    runs = []

    def run(form, seed, callback):
        runs.append((form, seed))
        callback("counting")
        table = {"n": [1.0, 2.0], "what_it_is": ["V* | <i>one</i>", None]}
        return Evidence({"count": polars.DataFrame(table)})

    def draw(_):
        return reformulation.draw(
            Evidence(
                {
                    "rows": polars.DataFrame(
                        {"variables": [1, 2], "factored": [1, 2], "enumerated": [3, 4]}
                    )
                }
            )
        )

    claim = Claim(
        "cheap",
        "A <b>cheap</b> claim",
        "One plus one is two.",
        "Counting.",
        "Holds if two.",
        run,
        lambda evidence: Judgement(Verdict.HOLDS, f"{evidence['count']['n'].sum()}"),
        draw,
        tables={"count": ("n", "what_it_is")},
    )
    monkeypatch.setattr("fsmdp.reproduction.reproduce.find_claims", lambda _: (claim,))
    return runs


def test_a_claim_is_not_run_twice_unless_asked_for(only_cheap, tmp_path):
    first = reproduce(tmp_path, form=Form.TINY)
    second = reproduce(tmp_path, form=Form.TINY)
    assert only_cheap == [(Form.TINY, 0)]
    assert second.findings[0].judgement.reason == first.findings[0].judgement.reason
    reproduce(tmp_path, form=Form.TINY, again=True)
    reproduce(tmp_path, form=Form.TINY, seed=1)
    assert only_cheap == [(Form.TINY, 0), (Form.TINY, 0), (Form.TINY, 1)]


def test_evidence_that_cannot_be_read_is_made_again(only_cheap, tmp_path):
    reproduce(tmp_path, form=Form.TINY)
    (tmp_path / "cheap" / "count.parquet").write_bytes(b"PAR1 but not really")
    reproduce(tmp_path, form=Form.TINY)
    (tmp_path / "cheap" / on_disk.FACTS).write_text("{")
    reproduce(tmp_path, form=Form.TINY)
    assert len(only_cheap) == 3


def test_pages_hold_verdict_reason_rule_and_command_with_names_escaped(only_cheap, tmp_path):
    done = reproduce(tmp_path, form=Form.TINY)
    page = done.page.read_text()
    for words in ("✔ holds", "3.0", "Holds if two.", "fsmdp reproduce --only cheap", "<svg"):
        assert words in page
    assert "A &lt;b&gt;cheap&lt;/b&gt; claim" in page
    assert "<?xml" not in page
    assert "http-equiv" in html_page(done.findings, Form.TINY)
    markdown = markdown_page(done.findings, Form.TINY)
    assert "(cheap/reformulation.svg)" in markdown
    assert "| n | what it is |" in markdown
    assert "| 1 | V\\* \\| <i>one</i> |" in markdown
    assert "<td>V* | &lt;i&gt;one&lt;/i&gt;</td>" in page
    assert (tmp_path / "cheap" / "reformulation.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_prints_verdicts_for_machines_and_for_people(only_cheap, tmp_path):
    arguments = ["reproduce", "--output", str(tmp_path)]
    found = json.loads(CliRunner().invoke(entry.app, [*arguments, "--json"]).output)
    assert found["claims"][0] | {"seconds": 0} == {
        "name": "cheap",
        "verdict": "holds",
        "reason": "3.0",
        "seconds": 0,
    }
    assert only_cheap == [(Form.SMALL, 0)]
    shown = CliRunner().invoke(entry.app, arguments).output
    assert "holds" in shown


def test_an_unknown_claim_and_a_folder_that_cannot_be_made_are_refused(tmp_path):
    with pytest.raises(ModelError, match="did you mean 'oracle'"):
        find_claims(("orakle",))
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="name another folder"):
        reproduce(tmp_path / "file" / "under", form=Form.TINY)


def test_trials_on_two_processes_give_the_numbers_of_one():
    from fsmdp.reproduction.losses import Trial, measure_all

    islands = diameter.TwoIslands(3, connected=True)
    trials = [
        Trial({"model": "islands"}, islands.prepare, diameter.practical, 10, seed)
        for seed in range(2)
    ]
    told = []
    both, alone = (measure_all(trials, workers, told.append) for workers in (2, 1))
    assert both.equals(alone)
    assert told == ["1 of 2 runs", "2 of 2 runs"]
