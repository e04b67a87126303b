"""Reports as files: what is written, what is escaped, and what is refused."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import polars
import pytest
from fabricated import LEARNERS, fabricate, facts_of_ring, write_folder
from typer.testing import CliRunner

from fsmdp.cli import entry
from fsmdp.errors import ModelError
from fsmdp.experiments.store import read_results
from fsmdp.foundation.disk import digest_bytes, seal
from fsmdp.report import write_report
from fsmdp.report.page import file_stems

CONTROL = re.compile("[\x00-\x08\x0b\x1b\u202e]")
SCRIPT = "<script>alert(1)</script>"
HOSTILE = (SCRIPT, "a\"'&b<b>bold</b>", "$x^2$ %{y} \x00\x1b[31m\u202e", "_under", "表 \N{SNOWMAN}")


class Reader(HTMLParser):
    """Counts elements and gathers the text that a reader sees."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.links, self.inside = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append(tag)
        self.inside = tag
        self.links += [value for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside not in ("script", "style"):
            self.text.append(data)


def hostile_results():
    names = tuple(HOSTILE[i % len(HOSTILE)] + str(i) for i in range(6))
    learners = tuple(
        replace(one, label=label, options={label: label})
        for one, label in zip(LEARNERS, HOSTILE, strict=False)
    )
    model = facts_of_ring(names=names, text=SCRIPT)
    results = fabricate(
        {"ring-6": model},
        learners,
        name=SCRIPT,
        failing=["ring-6--random--seed-0"],
        missing=["ring-6--ucrl--seed-2"],
    )
    failed = [replace(run, message=SCRIPT) if run.message else run for run in results.runs]
    return replace(
        results,
        runs=tuple(failed),
        provenance={"command": SCRIPT, "versions": {SCRIPT: SCRIPT}},
    )


def figures_of(page):
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)
    return json.loads(found.group(1))


def test_a_report_is_one_page_two_files_a_figure_and_a_table(tmp_path):
    report = write_report(fabricate(), tmp_path / "out")
    names = {path.stem for path in report.figures}
    assert names == {
        f"ring-6-{name}"
        for name in ("regret", "regret-log", "values", "intervals", "effort", "finals", "network")
    }
    assert len(report.figures) == 14
    assert all(path.stat().st_size > 1000 for path in report.figures)
    assert polars.read_csv(report.summary).height == 4
    page = Reader(report.path.read_text())
    assert page.elements.count("figure") == 7
    assert not [link for link in page.links if not link.startswith("#")]


def test_the_page_holds_everything_and_forbids_the_rest(tmp_path):
    page = write_report(fabricate(), tmp_path, figures=False).path.read_text()
    assert "default-src 'none'" in page
    assert page.count("'sha256-") == 2
    assert "plotly.js v" in page


def test_names_stay_text_wherever_they_stand(tmp_path):
    report = write_report(hostile_results(), tmp_path, figures=False)
    text = report.path.read_text()
    page, harmless = (
        Reader(text),
        Reader(write_report(fabricate(), tmp_path, figures=False).path.read_text()),
    )
    assert page.elements.count("script") == harmless.elements.count("script")
    assert "b" not in page.elements
    assert SCRIPT in "".join(page.text)
    figures = figures_of(text)["figures"]
    for figure in figures.values():
        for trace in figure["data"]:
            for shown in (
                trace.get("name", ""),
                *trace.get("text", ()),
                *trace.get("hovertext", ()),
            ):
                assert "<script" not in shown
                assert "<b>" not in shown
    labels = [entry["label"] for entry in figures["figure-0-regret"]["legend"]]
    assert labels[0] == SCRIPT  # the page's own legend sets text, not markup


def test_control_characters_reach_no_file(tmp_path):
    report = write_report(hostile_results(), tmp_path)
    texts = {path: path.read_text() for path in report.figures if path.suffix == ".svg"}
    for path, text in texts.items():
        ElementTree.fromstring(text)
        assert not CONTROL.search(text), path
    page = Reader(report.path.read_text())
    assert not CONTROL.search("".join(page.text))


def test_what_failed_and_what_is_missing_is_listed_with_its_reason(tmp_path):
    failing = [f"ring-6--random--seed-{seed}" for seed in range(3)]
    missing = ["ring-6--ucrl--seed-2"]
    report = write_report(fabricate(failing=failing, missing=missing), tmp_path, figures=False)
    assert (report.failed, report.missing) == (tuple(failing), tuple(missing))
    text = "".join(Reader(report.path.read_text()).text)
    assert "Random, seeds 0, 1, 2, failed: SizeError: 2^60 states, the limit is 2^25" in text
    assert "ring-6--ucrl--seed-2 has not finished" in text
    assert "Means over 2 to 3 seeds" in text


def test_a_model_on_which_every_run_failed_still_has_its_section(tmp_path):
    models = {"ring-6": facts_of_ring(), "wide": facts_of_ring()}
    failing = [f"wide--{one.id}--seed-{seed}" for one in LEARNERS for seed in range(3)]
    report = write_report(fabricate(models, failing=failing), tmp_path)
    assert {path.stem for path in report.figures if "wide" in path.stem} == {
        "wide-finals",
        "wide-network",
    }
    assert "No run on this model has finished" in report.path.read_text()


def test_several_models_have_a_navigation_and_a_tally(tmp_path):
    models = {f"ring-{n}": facts_of_ring() for n in range(6)}
    report = write_report(fabricate(models, seeds=2, episodes=30), tmp_path, figures=False)
    page = Reader(report.path.read_text())
    assert page.links == [*(f"#model-{n}" for n in range(6)), "#provenance"]
    text = "".join(page.text)
    assert text.count("no clear winner") == 6  # two seeds are too few


def test_a_folder_is_read_and_its_report_lies_in_it(tmp_path):
    folder = write_folder(fabricate(), tmp_path / "runs")
    report = write_report(folder, figures=False)
    assert report.path == folder / "report" / "report.html"
    again = write_report(folder, tmp_path / "again", figures=False)
    assert again.path.read_bytes() == report.path.read_bytes()


def test_a_report_of_a_hundred_runs_stays_below_ten_megabytes(tmp_path):
    models = {f"ring-{n}": facts_of_ring(60, episodes=3000) for n in range(10)}
    learners = (
        tuple(replace(one, id=f"{one.id}-{n}") for n in range(2) for one in LEARNERS[:2])
        + LEARNERS[3:]
    )
    results = fabricate(models, learners, seeds=2, episodes=3000)
    assert len(results.runs) == 100
    assert write_report(results, tmp_path, figures=False).path.stat().st_size < 10e6


def test_file_names_stay_in_their_folder_and_apart():
    assert file_stems(["ring-6", "../../etc/x"]) == ["ring-6", "-etc-x"]
    assert file_stems(["a:b", "a/b"]) == ["0-a-b", "1-a-b"]


def seal_again(folder):
    """Digests of the files as they are now, so that their content is what is looked at."""
    for path in (folder / "models.json", *folder.glob("runs/*/run.json")):
        try:
            data = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        data.pop("digest")
        if "digests" in data:
            frames = {name: (path.parent / name).read_bytes() for name in data["digests"]}
            data["digests"] = {name: digest_bytes(content) for name, content in frames.items()}
        path.write_bytes(seal(data))


def damaged(folder, change):
    """The folder with one of its files changed."""
    write_folder(fabricate(seeds=1), folder)
    change(folder)
    seal_again(folder)
    return folder


def drop_column(folder):
    path = folder / "runs" / "ring-6--ucrl--seed-0" / "episodes.parquet"
    polars.read_parquet(path).drop("returns").write_parquet(path)


def cut_rows(folder):
    path = folder / "runs" / "ring-6--ucrl--seed-0" / "timings.parquet"
    polars.read_parquet(path).head(5).write_parquet(path)


def leave_gaps(folder):
    path = folder / "runs" / "ring-6--ucrl--seed-0" / "episodes.parquet"
    frame = polars.read_parquet(path)
    gaps = polars.when(polars.col("episode") == 3).then(None).otherwise(polars.col("returns"))
    frame.with_columns(gaps.alias("returns")).write_parquet(path)


def edit(name, **changes):
    def change(folder):
        path = folder / name
        data = json.loads(path.read_text())
        target = data["ring-6"] if name == "models.json" else data
        target.update(changes)
        path.write_text(json.dumps(data))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_column, "expected columns"),
        (cut_rows, "timings.parquet: expected episodes from 1 on, each once"),
        (leave_gaps, "expected a return for each of the episodes"),
        (lambda f: (f / "models.json").write_text("{"), "models.json"),
        (lambda f: (f / "models.json").unlink(), "nothing about 'ring-6'"),
        (edit("models.json", edges=[[0, 77]]), "hold 77 for 6 variables"),
        (edit("models.json", elimination_order=[0, 0]), "a variable twice"),
        (edit("models.json", regret_bound={"episodes": [1]}), "no total for each"),
        (edit("runs/ring-6--ucrl--seed-0/run.json", seconds=None), "run.json: seconds"),
        (
            lambda f: (f / "runs/ring-6--ucrl--seed-0/episodes.parquet").write_bytes(b"PAR1"),
            "A Parquet file must contain",
        ),
    ],
)
def test_a_damaged_folder_is_one_clear_message(tmp_path, change, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        write_report(damaged(tmp_path / "runs", change), tmp_path / "out", figures=False)


def test_a_folder_without_results_is_refused_with_the_way_to_make_them(tmp_path):
    with pytest.raises(ModelError, match="holds no runs"):
        write_report(tmp_path / "nowhere")
    results = fabricate(seeds=1)
    empty = replace(results, runs=(), missing=tuple(run.id for run in results.runs))
    folder = write_folder(empty, tmp_path / "runs")
    with pytest.raises(ModelError, match="no run has finished, 4 runs missing"):
        write_report(folder)


def test_results_in_memory_need_a_place(tmp_path):
    with pytest.raises(ModelError, match="say where to write"):
        write_report(fabricate(seeds=1))
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="cannot make the folder"):
        write_report(fabricate(seeds=1), tmp_path / "file")


def test_the_command_prints_the_path_or_one_object(tmp_path):
    folder = write_folder(fabricate(seeds=1, failing=["ring-6--random--seed-0"]), tmp_path / "runs")
    done = CliRunner().invoke(entry.app, ["report", str(folder), "--no-figures"])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        str(folder / "report" / "report.html"),
        "failed: ring-6--random--seed-0",
    ]
    done = CliRunner().invoke(
        entry.app, ["report", str(folder), "--output", str(tmp_path / "out"), "--json"]
    )
    found = json.loads(done.stdout)
    assert found["models"]
    assert found["bytes"] == (tmp_path / "out" / "report.html").stat().st_size
    assert found["failed"] == ["ring-6--random--seed-0"]
    assert len(found["figures"]) == 14


def test_a_real_run_comes_out_as_a_report(tmp_path):
    """From the command that learns to the page, with nothing made by hand."""
    learn = "learn sysadmin:ring:3 --learner ucrl --option scale=0.5 --episodes 40 --quiet"
    runs = tmp_path / "runs"
    done = CliRunner().invoke(entry.app, [*learn.split(), "--output", str(runs)])
    assert done.exit_code == 0, done.output
    text = "".join(Reader(write_report(runs, figures=False).path.read_text()).text)
    (facts,) = read_results(runs).models.values()
    assert f"V* {facts.start_value_exact:.6g}" in text
    assert "heuristic" in text
    assert "ended with regret" in text
    assert "Cost network" in text
    assert "theorem" in text
