"""The page: one HTML file that holds everything it needs and asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from fsmdp.experiments.report.charts import AnyChart
from fsmdp.experiments.report.document import REPORT, asset, document
from fsmdp.experiments.report.finals import Column, columns_shown
from fsmdp.experiments.report.interactive import plotly_figure
from fsmdp.experiments.report.style import BAND_OPACITY, PATTERNS, Style, printable
from fsmdp.experiments.report.trials import shown_label
from fsmdp.experiments.report.words import certified, mean_and_half_width, opening, tally, verdict
from fsmdp.experiments.store import ModelFacts, Results, Run
from fsmdp.experiments.summary import Row
from fsmdp.foundation.checks import plural
from fsmdp.foundation.numbers import count_of_states, plain

MOST_IN_SUMMARY = 4
"""Models that are spoken of one by one at the top; of more, each is in its own section."""

BETTER_WHEN_LOW = frozenset(
    {"regret", "observable_regret_bound", "percent_below_best", "percent_below_bound"}
)


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """All that the page shows of one model."""

    model: str
    facts: ModelFacts
    finals: tuple[Row, ...]
    charts: tuple[AnyChart, ...]
    failed: tuple[Run, ...]
    missing: tuple[str, ...]


def page(results: Results, sections: Sequence[Section], styles: Mapping[str, Style]) -> str:
    """The whole page. Every name in it is escaped for the place where it stands."""
    plotly, behaviour = _plotly_source(), asset(REPORT, "report.js")
    figures = {
        f"figure-{position}-{chart.name}": plotly_figure(chart, styles)
        for position, section in enumerate(sections)
        for chart in section.charts
    }
    title = printable(results.specification.name)
    body = Template(asset(REPORT, "body.html")).substitute(
        title=escape(title),
        summary=_summary(results, sections),
        chips=_chips(results, styles),
        navigation=_navigation(sections),
        models="\n".join(
            _section(n, section, with_verdict=len(sections) > MOST_IN_SUMMARY)
            for n, section in enumerate(sections)
        ),
        provenance=_provenance(results),
        figures=_json(
            {
                "learners": {
                    "dashes": [style.dash for style in styles.values()],
                    "patterns": PATTERNS,
                    "opacity": BAND_OPACITY,
                },
                "figures": figures,
            }
        ),
        plotly=plotly,
        behaviour=behaviour,
    )
    look = asset(REPORT, "report.css") + _learner_colors(styles)
    hashes = " ".join(_hash(script) for script in (plotly, behaviour))
    return document(title, body, look, f"script-src {hashes}; img-src data: blob:")


def _plotly_source() -> str:
    return (files("plotly") / "package_data" / "plotly.min.js").read_text("utf-8")


def _hash(script: str) -> str:
    """The only scripts a browser may run are those whose hashes the page lists."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _json(data: Any) -> str:
    """JSON that cannot end the element it stands in, whatever names it holds."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _learner_colors(styles: Mapping[str, Style]) -> str:
    declared = "".join(
        f"--learner-{style.index}:light-dark({style.color},{style.dark_color});"
        for style in styles.values()
    )
    return f":root{{{declared}}}"


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>" if text else ""


def _summary(results: Results, sections: Sequence[Section]) -> str:
    words = [opening(results)]
    if len(sections) > 1:
        words.append(tally(section.finals for section in sections))
    if len(sections) <= MOST_IN_SUMMARY:
        words += [verdict(section.model, section.finals) for section in sections]
    return "".join(map(_paragraph, words))


def _chips(results: Results, styles: Mapping[str, Style]) -> str:
    heuristic = _heuristic_learners(results)
    return "".join(
        f'<button type="button" class="chip" data-learner="{styles[one.id].index}" '
        f'aria-pressed="true" title="Show or hide in all figures">'
        f"<span>{escape(shown_label(one.label, one.id in heuristic))}</span></button>"
        for one in results.specification.learners
    )


def _heuristic_learners(results: Results) -> set[str]:
    return {run.learner for run in results.runs if run.heuristic}


def _navigation(sections: Sequence[Section]) -> str:
    if len(sections) < 2:
        return ""
    links = [
        f'<a href="#model-{n}">{escape(printable(section.model))}</a>'
        for n, section in enumerate(sections)
    ]
    links.append('<a href="#provenance">Provenance</a>')
    return f'<nav aria-label="Models">{"".join(links)}</nav>'


def _section(position: int, section: Section, with_verdict: bool) -> str:
    figures = "".join(
        f"<figure><h3>{escape(chart.title)}</h3>"
        '<div class="legend"></div>'
        f'<div class="plot" id="figure-{position}-{escape(chart.name)}" role="img" '
        f'aria-label="{escape(chart.title)}"></div>'
        f"<figcaption>{escape(chart.caption)}</figcaption></figure>"
        for chart in section.charts
    )
    words = _paragraph(verdict(section.model, section.finals)) if with_verdict else ""
    return (
        f'<section id="model-{position}"><h2>{escape(printable(section.model))}</h2>'
        f'<p class="facts">{escape(_facts(section.facts))}</p>{words}'
        f"{_table(section)}{_absent(section)}"
        f'<div class="grid">{figures}</div></section>'
    )


def _facts(facts: ModelFacts) -> str:
    horizon = "infinite horizon" if facts.horizon is None else f"horizon {facts.horizon}"
    parts = [
        printable(facts.text),
        plural(facts.variables, "variable"),
        plural(facts.actions, "action"),
        f"{count_of_states(facts.log10_states)} states",
        horizon,
        f"basis {printable(facts.basis)}",
    ]
    if facts.discount != 1:
        parts.append(f"discount {facts.discount:g}")
    if facts.induced_width is not None:
        parts.append(f"induced width {facts.induced_width}")
    if facts.start_value_exact is not None:
        parts.append(f"V* {plain(facts.start_value_exact, 6, facts.scale)}")
    return " · ".join(parts)


def _table(section: Section) -> str:
    if not section.finals:
        return '<p class="notice">No run on this model has finished.</p>'
    columns = columns_shown(section.finals, section.facts)
    head = "".join(f"<th scope=col>{escape(column.heading)}</th>" for column in columns)
    rows = "".join(_row(final, columns, section.finals) for final in section.finals)
    seeds = sorted({final.done for final in section.finals})
    count = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    text = f"Means over {count} seeds ± half of a 95 % t interval."
    if seeds[-1] < 2:
        text = "One seed."
    if any(final.trials.told for final in section.finals):
        text += " Rows marked “given the model” do not learn; they are what learning could come to."
    if any(final.trials.heuristic for final in section.finals):
        text += " Heuristic: confidence sets are scaled, so no guarantee holds."
    gap = certified(section.facts)
    return (
        f'<div class="card"><table><thead><tr><th scope=col>learner</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        f'<p class="caption">{escape(text)}</p>'
        + (f'<p class="caption">{escape(gap)}</p>' if gap else "")
        + "</div>"
    )


def _row(final: Row, columns: Sequence[Column], finals: Sequence[Row]) -> str:
    trials = final.trials
    badges = ""
    if trials.heuristic:
        badges += ' <span class="badge">heuristic</span>'
    if trials.told:
        badges += ' <span class="badge told">given the model</span>'
    name = escape(trials.label.removesuffix(" (heuristic)"))
    cells = "".join(
        f'<td data-heading="{escape(column.heading)}">'
        f"{_cell(final, column, _is_best(final, column, finals))}</td>"
        for column in columns
    )
    return f"<tr><th scope=row>{name}{badges}</th>{cells}</tr>"


def _cell(final: Row, column: Column, best: bool) -> str:
    found = final.figures.get(column.figure)
    if found is None:
        return '<span class="interval" title="this learner has none">–</span>'
    if abs(found.mean) < column.least:
        return f'<span class="interval">&lt; {column.least:g}</span>'
    mean, half_width = map(escape, mean_and_half_width(found))
    shown = f'<span class="best">{mean}</span>' if best else mean
    spread = f'<span class="interval"> ± {half_width}</span>' if half_width else ""
    return f"<span>{shown}{spread}</span>"


def _is_best(final: Row, column: Column, finals: Sequence[Row]) -> bool:
    rivals = [one for one in finals if not one.trials.told and column.figure in one.figures]
    if final not in rivals or len(rivals) < 2:
        return False
    means = [one.figures[column.figure].mean for one in rivals]
    if column.figure in BETTER_WHEN_LOW:
        return final.figures[column.figure].mean == min(means)
    return column.figure == "return_last_tenth" and (
        final.figures[column.figure].mean == max(means)
    )


def _absent(section: Section) -> str:
    """What the figures lack, and why; seeds that failed alike share an entry."""
    reasons: dict[tuple[str, str], list[int]] = {}
    for run in section.failed:
        reasons.setdefault((run.label, run.message or "no reason was given"), []).append(run.seed)
    items = [
        f"<li>{escape(printable(label))}, {escape(_seeds(seeds))}, failed: "
        f"{escape(printable(message, 400))}</li>"
        for (label, message), seeds in reasons.items()
    ]
    items += [
        f"<li><code>{escape(printable(run_id, 120))}</code> has not finished; the same "
        "<code>fsmdp compare</code> resumes it</li>"
        for run_id in section.missing
    ]
    return (
        f'<div class="notice">Not in the figures:<ul>{"".join(items)}</ul></div>' if items else ""
    )


def _seeds(seeds: Sequence[int]) -> str:
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"


def _provenance(results: Results) -> str:
    given = results.provenance
    versions = given.get("versions")
    versions = versions if isinstance(versions, Mapping) else {}
    rows: list[tuple[str, str]] = [
        (label, str(given[key]))
        for key, label in (
            ("command", "command"),
            ("created", "started"),
            ("finished", "finished"),
            ("commit", "commit"),
            ("python", "Python"),
            ("platform", "platform"),
            ("executor", "executor"),
            ("workers", "workers"),
        )
        if given.get(key) is not None
    ]
    rows.append(("versions", ", ".join(f"{name} {text}" for name, text in versions.items())))
    rows.append(("seeds", ", ".join(map(str, results.specification.seeds))))
    heuristic = _heuristic_learners(results)
    rows += [
        (
            shown_label(one.label, one.id in heuristic),
            ", ".join([one.learner, *(f"{k} = {v}" for k, v in one.options.items())]),
        )
        for one in results.specification.learners
    ]
    rows.append(("beside this file", "figures/ (PNG and SVG) and summary.csv"))
    entries = "".join(
        f"<dt>{escape(printable(term, 80))}</dt><dd>{escape(printable(text, 2000))}</dd>"
        for term, text in rows
        if text
    )
    return f'<div class="card"><dl>{entries}</dl></div>'
