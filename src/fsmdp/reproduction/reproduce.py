"""Run claims, judge them, and write the page."""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import polars

from fsmdp.errors import ModelError
from fsmdp.experiments.store import DIGESTS, frame_bytes, now, read_frame, source_commit, versions
from fsmdp.foundation import disk
from fsmdp.foundation.checks import as_whole
from fsmdp.report.charts import Chart, asset, document, learner_styles
from fsmdp.report.print_figures import printed
from fsmdp.reproduction.claim import Claim, Evidence, Form, Judgement, Verdict, find_claims

MARKS = {Verdict.HOLDS: "✔", Verdict.CORRECTED: "✎", Verdict.FAILS: "✘"}

TITLE = "The paper, claim by claim"
OPENING = (
    "Deng, Devic and Juba prove what a learner in factored-state problems can do and measure "
    "nothing. Here every claim is run. A verdict is computed from the numbers of the run by the "
    "rule printed below it; nobody wrote it by hand."
)


class Figure(NamedTuple):
    """A chart as it is printed, and its file beside the page, without what kind it is of."""

    chart: Chart
    svg: str
    file: str


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """A claim with its judgement, figures, and the command that makes both."""

    claim: Claim
    judgement: Judgement
    figures: tuple[Figure, ...]
    command: str
    seconds: float
    tables: tuple[polars.DataFrame, ...] = ()


def markdown_page(findings: Sequence[Finding], form: Form) -> str:
    """The page as Markdown, beside the folders of the claims with their figures."""
    lines = [f"# {TITLE}", "", OPENING, "", "| claim | verdict |", "|---|---|"]
    for one in findings:
        verdict = one.judgement.verdict
        lines.append(f"| [{one.claim.title}](#{one.claim.name}) | {MARKS[verdict]} {verdict} |")
    for one in findings:
        claim = one.claim
        lines += [
            "",
            f'<a id="{claim.name}"></a>',
            "",
            f"## {claim.title}",
            "",
            _plain(claim.statement),
            "",
            *(line for figure in one.figures for line in _markdown_figure(figure)),
            *(line for table in one.tables for line in (*_markdown_table(table), "")),
            f"**{MARKS[one.judgement.verdict]} {str(one.judgement.verdict).capitalize()}:** "
            f"{_plain(one.judgement.reason)}.",
            "",
            f"*What was run.* {_plain(claim.what_was_run)}",
            "",
            f"*Rule.* {_plain(claim.rule)}",
            "",
            f"*Command.* `{one.command}` ({_duration(one.seconds)})",
        ]
    return "\n".join([*lines, "", f"*{_made(form)}*", ""])


def html_page(findings: Sequence[Finding], form: Form) -> str:
    """One file that needs no other."""
    body = Template(asset("fsmdp.reproduction", "body.html")).substitute(
        title=escape(TITLE),
        opening=escape(OPENING),
        rows="\n".join(map(_row, findings)),
        sections="\n".join(map(_section, findings)),
        made=escape(_made(form)),
    )
    return document(TITLE, body, asset("fsmdp.reproduction", "page.css"), "img-src data:")


def _row(one: Finding) -> str:
    return (
        f'<tr><td><a href="#{one.claim.name}">{escape(one.claim.title)}</a></td>'
        f"<td>{_badge(one.judgement.verdict)}</td></tr>"
    )


def _badge(verdict: Verdict) -> str:
    return f'<span class="{verdict.name.lower()}">{MARKS[verdict]} {escape(verdict)}</span>'


def _section(one: Finding) -> str:
    claim = one.claim
    return f"""<section id="{claim.name}">
<h2>{escape(claim.title)}</h2>
<p>{escape(claim.statement)}</p>
{"".join(map(_html_figure, one.figures))}
{"".join(map(_html_table, one.tables))}
<p>{_badge(one.judgement.verdict)} {escape(one.judgement.reason)}.</p>
<dl>
<dt>What was run</dt><dd>{escape(claim.what_was_run)}</dd>
<dt>Rule</dt><dd>{escape(claim.rule)}</dd>
<dt>Command</dt><dd><code>{escape(one.command)}</code> ({_duration(one.seconds)})</dd>
</dl>
</section>"""


def _plain(text: str) -> str:
    """Text whose V* and Q* stay what they are in Markdown."""
    return text.replace("*", "\\*")


def _markdown_figure(one: Figure) -> list[str]:
    return [f"![{one.chart.title}]({one.file}.svg)", "", f"*{_plain(one.chart.caption)}*", ""]


def _html_figure(one: Figure) -> str:
    caption = escape(one.chart.caption)
    return f"<figure>{_inline(one.svg)}<figcaption>{caption}</figcaption></figure>"


def _markdown_table(table: polars.DataFrame) -> list[str]:
    heads = [_words(name) for name in table.columns]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in table.iter_rows():
        cells = (_plain(_cell(value)).replace("|", "\\|") for value in row)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _html_table(table: polars.DataFrame) -> str:
    heads = "".join(f"<th>{escape(_words(name))}</th>" for name in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row) + "</tr>"
        for row in table.iter_rows()
    )
    return f'<div class="numbers"><table><tr>{heads}</tr>{rows}</table></div>'


def _words(name: str) -> str:
    return name.replace("_", " ")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _inline(svg: str) -> str:
    """The drawing itself, without what stands before it in a file of its own."""
    return svg[svg.index("<svg") :]


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _made(form: Form) -> str:
    commit = source_commit()
    source = f", commit {commit[:10]}" if commit else ""
    return f"The {form} form, made by fsmdp {versions()['fsmdp']}{source}, {now()[:10]}."


FACTS = "evidence.json"
LARGEST = 2**28


def write_evidence(folder: Path, evidence: Evidence, form: Form, seed: int, seconds: float) -> None:
    """Tables as Parquet (to read again) and CSV (for people); the list of them comes last."""
    disk.make_folder(folder)
    digests = {}
    for name, table in {**evidence.tables, **evidence.timed}.items():
        content = frame_bytes(table)
        digests[name] = disk.digest_bytes(content)
        disk.write_file(folder / f"{name}.parquet", content)
        disk.write_file(folder / f"{name}.csv", table.write_csv().encode())
    facts = _made_by(form, seed) | {
        "tables": sorted(evidence.tables),
        "timed": sorted(evidence.timed),
        "seconds": seconds,
        "versions": versions(),
        "commit": source_commit(),
        DIGESTS: digests,
    }
    disk.write_file(folder / FACTS, disk.seal(facts, indent=1))


def read_evidence(folder: Path, form: Form, seed: int) -> tuple[Evidence, float] | None:
    """What an earlier run of the same form, seed and version found, and its seconds."""
    try:
        content = disk.read_file(folder / FACTS, LARGEST)
        facts = json.loads(content)
        disk.check_seal(content, facts.get(disk.DIGEST), str(folder / FACTS), "run it again")
        if any(facts.get(name) != value for name, value in _made_by(form, seed).items()):
            return None
        digests = facts[DIGESTS]
        tables = {name: _read(folder, name, digests[name]) for name in facts["tables"]}
        timed = {name: _read(folder, name, digests[name]) for name in facts["timed"]}
        return Evidence(tables, timed), float(facts["seconds"])
    except (ModelError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # nothing there, or nothing that can be read: it is run again


def _made_by(form: Form, seed: int) -> dict[str, Any]:
    return {"form": str(form), "seed": seed, "fsmdp": versions()["fsmdp"]}


def _read(folder: Path, name: str, digest: str) -> polars.DataFrame:
    path = folder / f"{name}.parquet"
    content = disk.read_file(path, LARGEST)
    disk.check_digest(digest, disk.digest_bytes(content), str(path), "run it again")
    return read_frame(content)


PAGE, MARKDOWN = "index.html", "reproduction.md"

Progress = Callable[[int, int, str], None]
"""Called with the number of claims done, the number in all, and what is being run."""


@dataclass(frozen=True, slots=True, eq=False)
class Reproduction:
    """The findings, and where they were written."""

    page: Path
    findings: tuple[Finding, ...]


def reproduce(
    folder: str | os.PathLike[str] = "reproduction",
    *,
    form: Form = Form.SMALL,
    only: tuple[str, ...] = (),
    seed: int = 0,
    again: bool = False,
    progress: Progress | None = None,
) -> Reproduction:
    """Run claims in a form, judge them by their rules, and write a page with all of them.

    A claim whose evidence lies in the folder already, of the same form, seed and version, is not
    run again unless `again` is set: a run that was stopped goes on with the next claim.
    """
    as_whole(seed, "seed", 0)
    claims = find_claims(only)
    target = disk.make_folder(folder)
    findings = []
    for number, claim in enumerate(claims):

        def callback(text: str, number: int = number) -> None:
            if progress is not None:
                progress(number, len(claims), text)

        callback(claim.name)
        evidence, seconds = _evidence(claim, target / claim.name, form, seed, again, callback)
        findings.append(_finding(claim, evidence, seconds, form, target))
        _write_pages(target, tuple(findings), form)
    if progress is not None:
        progress(len(claims), len(claims), "done")
    return Reproduction(target / PAGE, tuple(findings))


def _evidence(
    claim: Claim, folder: Path, form: Form, seed: int, again: bool, callback: Callable[[str], None]
) -> tuple[Evidence, float]:
    found = None if again else read_evidence(folder, form, seed)
    if found is not None:
        return found
    began = time.perf_counter()
    evidence = claim.run(form, seed, callback)
    seconds = time.perf_counter() - began
    write_evidence(folder, evidence, form, seed, seconds)
    return evidence, seconds


def _finding(claim: Claim, evidence: Evidence, seconds: float, form: Form, folder: Path) -> Finding:
    judgement: Judgement = claim.judge(evidence)
    drawn = claim.draw(evidence)
    charts = drawn if isinstance(drawn, tuple) else (drawn,)
    figures = tuple(_figure(chart, claim, folder) for chart in charts)
    command = f"fsmdp reproduce --only {claim.name}" + (" --full" if form is Form.FULL else "")
    shown = tuple(evidence[name].select(columns) for name, columns in claim.tables.items())
    return Finding(claim, judgement, figures, command, seconds, shown)


def _figure(chart: Chart, claim: Claim, folder: Path) -> Figure:
    keys = list(dict.fromkeys(line.learner for line in chart.lines if line.learner is not None))
    figures, file = printed(chart, learner_styles(keys)), f"{claim.name}/{chart.name}"
    for kind, content in figures.items():
        disk.write_file(folder / f"{file}.{kind}", content)
    return Figure(chart, figures["svg"].decode(), file)


def _write_pages(folder: Path, findings: tuple[Finding, ...], form: Form) -> None:
    disk.write_file(folder / PAGE, html_page(findings, form).encode())
    disk.write_file(folder / MARKDOWN, markdown_page(findings, form).encode())
