"""The page of all claims, as one HTML file and as Markdown for the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from string import Template
from typing import Any, NamedTuple

import polars

from fsmdp.experiments.report.charts import Chart, asset, document
from fsmdp.experiments.store import now, source_commit, versions
from fsmdp.reproduction.claim import Claim, Form, Judgement, Verdict

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
