"""The page: one HTML file that holds everything it needs and asks no network for anything."""

import base64
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from fsmdp.errors import ModelError
from fsmdp.experiments.store import ModelFacts, Results, Run, RunStatus, read_results
from fsmdp.foundation.checks import plural, show
from fsmdp.foundation.disk import make_folder, write_file
from fsmdp.foundation.numbers import (
    count_of_states,
    mean_and_error,
    percent,
    plain,
    upper,
    with_error,
)
from fsmdp.report.charts import (
    BAND_OPACITY,
    PATTERNS,
    REPORT,
    AnyChart,
    Style,
    asset,
    document,
    learner_styles,
    network_chart,
    printable,
)
from fsmdp.report.curves import (
    Column,
    Interval,
    Row,
    check_facts,
    columns_shown,
    finals_chart,
    model_charts,
    rows_of_model,
    shown_label,
    summary_frame,
    trials_of_model,
)
from fsmdp.report.interactive import plotly_figure
from fsmdp.report.print_figures import printed


def opening(results: Results) -> str:
    """What was run, and what of it is not there."""
    specification = results.specification
    failed = sum(run.status == RunStatus.FAILED for run in results.runs)
    text = (
        f"{plural(len(specification.learners), 'learner')} on "
        f"{plural(len(specification.models), 'model')}, "
        f"{plural(len(specification.seeds), 'seed')} each, "
        f"{plural(specification.episodes, 'episode')} a run: "
        f"{plural(len(specification.runs), 'run')} in all"
    )
    absent = [f"{failed} refused or failed (listed below)"] if failed else []
    if results.missing:
        absent.append(f"{len(results.missing)} not finished")
    return text + (f", of which {' and '.join(absent)}." if absent else ".")


def tally(finals_by_model: Iterable[Sequence[Row]]) -> str:
    """On how many models each learner did best, by intervals that do not overlap."""
    ranked = [_ranked(finals) for finals in finals_by_model]
    wins = Counter(
        learners[0].trials.label
        for learners in ranked
        if len(learners) > 1 and _is_clear(learners[0], learners[1])
    )
    counts = [f"{label} on {count}" for label, count in wins.most_common()]
    return f"Clearly best: {', '.join(counts)} of {len(ranked)} models." if counts else ""


def verdict(model: str, finals: Sequence[Row]) -> str:
    """Which learner did best on a model: least regret, or the highest return at the end."""
    learners = _ranked(finals)
    if not learners:
        return ""
    best, name = learners[0], printable(model)
    if len(learners) == 1:
        return f"On {name}, {best.trials.label} ended with {_ended(best)}."
    second = learners[1]
    if 1 in (best.done, second.done):
        return (
            f"On {name}, {best.trials.label} ended first, {_ended(best)}, before "
            f"{second.trials.label}, {_ended(second)}: one seed, so no clear winner."
        )
    if not _is_clear(best, second):
        return (
            f"On {name}, {best.trials.label} ended first by its mean, {_ended(best)}, but its "
            f"interval overlaps that of {second.trials.label}, {_ended(second)}: no clear winner."
        )
    return (
        f"On {name}, {best.trials.label} did best: {_ended(best)}. Next came "
        f"{second.trials.label}: {_ended(second)}."
    )


def certified(facts: ModelFacts) -> str:
    """The certified gap of the plan of the known model."""
    bound, mean, gap = facts.plan_upper_bound, facts.plan_policy_mean, facts.plan_gap
    if bound is None or mean is None or gap is None:
        return ""
    error = facts.plan_policy_standard_error or 0.0
    text = (
        f"No policy earns more than {upper(bound, 6, facts.scale)}, by a certificate over all "
        f"states; the plan of the known model earns {with_error(mean, error, facts.scale)} "
        "(standard error)"
    )
    return text + ("." if percent(gap) == "-" else f": a gap of {percent(gap)}.")


def mean_and_half_width(found: Interval) -> tuple[str, str]:
    """A mean to as many places as its interval warrants, and half of that, set for a page."""
    mean, half = map(_typeset, mean_and_error(found.mean, found.half_width))
    return mean, half


def _typeset(text: str) -> str:
    """A number with thousands apart, and a minus sign for a hyphen."""
    return f"{Decimal(text):,}".replace("-", "−") if text else ""


def with_interval(found: Interval) -> str:
    """A mean and half the width of its interval, where there is one."""
    mean, half = mean_and_half_width(found)
    return f"{mean} ± {half}" if half else mean


def _ranked(finals: Sequence[Row]) -> list[Row]:
    """Learners from best to worst, without those that were given the model."""
    return sorted(
        (one for one in finals if not one.trials.knows_model), key=lambda one: _loss(one).mean
    )


def _loss(final: Row) -> Interval:
    """Lower is better: the regret, or the return of the end where regret is not known."""
    if "regret" in final.figures:
        return final.figures["regret"]
    found = final.figures["return_last_tenth"]
    return Interval(-found.mean, found.half_width)


def _ended(final: Row) -> str:
    regret = final.figures.get("regret")
    if regret is None:
        late = with_interval(final.figures["return_last_tenth"])
        return f"return {late} in the last tenth of episodes"
    text = f"regret {with_interval(regret)}"
    below = final.figures.get("percent_below_best")
    if below is None:
        return text
    if below.mean <= (below.half_width or 0.0):
        how = "not below V* in the last tenth of episodes"
        if below.half_width is not None:
            how = "at V* in the last tenth of episodes, up to the interval"
        return f"{text}, {how}"
    return text + f", in the last tenth of episodes {plain(below.mean, 2)} % below V*"


def _is_clear(best: Row, second: Row) -> bool:
    """Whether the intervals of two learners lie apart; one seed has none."""
    first, other = _loss(best), _loss(second)
    if first.half_width is None or other.half_width is None:
        return False
    return first.mean + first.half_width < other.mean - other.half_width


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
    if any(final.trials.knows_model for final in section.finals):
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
    if trials.knows_model:
        badges += ' <span class="badge given">given the model</span>'
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
    rivals = [one for one in finals if not one.trials.knows_model and column.figure in one.figures]
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


PAGE, FIGURES, SUMMARY = "report.html", "figures", "summary.csv"

Progress = Callable[[int, int], None]
"""Called with the number of figures drawn and the number in all."""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What was written, on which models. `failed` and `missing`: runs that the figures lack."""

    path: Path
    figures: tuple[Path, ...]
    summary: Path
    failed: tuple[str, ...]
    missing: tuple[str, ...]
    models: tuple[str, ...]


def write_report(
    results_or_folder: Results | str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    figures: bool = True,
    progress: Progress | None = None,
) -> Report:
    """Write `report.html`, `figures/*.png`, `figures/*.svg` and `summary.csv` into a folder.

    The folder is `report` in that of the runs unless `output` names another. The page needs no
    network and no other file. What a folder lacks is left out and listed. Without `figures` those
    for papers are not drawn, which takes most of the time.
    """
    results, folder = _results_and_folder(results_or_folder, output)
    sections = tuple(_sections(results))
    styles = learner_styles([learner.id for learner in results.specification.learners])
    make_folder(folder)
    drawn = _draw(folder / FIGURES, sections, styles, progress) if figures else ()
    finals = [final for section in sections for final in section.finals]
    write_file(folder / SUMMARY, summary_frame(finals).write_csv().encode())
    write_file(folder / PAGE, page(results, sections, styles).encode())
    return Report(
        folder / PAGE,
        drawn,
        folder / SUMMARY,
        tuple(run.id for run in results.runs if run.status == "failed"),
        results.missing,
        tuple(model.model for model in results.specification.models),
    )


def _draw(
    folder: Path,
    sections: Sequence[Section],
    styles: Mapping[str, Style],
    progress: Progress | None,
) -> tuple[Path, ...]:
    """The figures for papers, two files each."""
    charts = [
        (f"{stem}-{chart.name}", chart)
        for stem, section in zip(file_stems([one.model for one in sections]), sections, strict=True)
        for chart in section.charts
    ]
    make_folder(folder)
    paths = []
    for done, (name, chart) in enumerate(charts, start=1):
        for kind, content in printed(chart, styles).items():
            paths.append(folder / f"{name}.{kind}")
            write_file(paths[-1], content)
        if progress is not None:
            progress(done, len(charts))
    return tuple(paths)


def _results_and_folder(
    given: Results | str | os.PathLike[str], output: str | os.PathLike[str] | None
) -> tuple[Results, Path]:
    if isinstance(given, Results):
        if output is None:
            raise ModelError("output: results in memory have no folder; say where to write.")
        results, name = given, "the results"
    else:
        results, name = read_results(given), show(str(given))
        output = Path(given) / "report" if output is None else output
    if not results.runs:
        raise ModelError(
            f"{name}: no run has finished, {plural(len(results.missing), 'run')} missing; "
            "finish them with the same `fsmdp compare` command."
        )
    return results, Path(output)


def _sections(results: Results) -> Iterator[Section]:
    absent = set(results.missing)
    for setting in results.specification.models:
        facts = results.models.get(setting.id)
        if facts is None:
            raise ModelError(
                f"models.json: nothing about {show(setting.id)}, expected its facts; run "
                "`fsmdp compare` again, which writes them."
            )
        check_facts(setting.id, facts)
        trials = trials_of_model(results, setting.id)
        finals = rows_of_model(setting.id, trials, facts)
        charts: list[AnyChart] = list(model_charts(trials, facts))
        if finals or facts.plan_policy_mean is not None:
            charts.append(finals_chart(finals, facts))
        if facts.variable_names and facts.induced_width is not None:
            charts.append(
                network_chart(
                    facts.variable_names, facts.edges, facts.elimination_order, facts.induced_width
                )
            )
        yield Section(
            setting.id,
            facts,
            finals,
            tuple(charts),
            tuple(r for r in results.runs if r.model == setting.id and r.status == "failed"),
            tuple(
                run.id
                for run in results.specification.runs
                if run.model.id == setting.id and run.id in absent
            ),
        )


def file_stems(models: Sequence[str]) -> list[str]:
    """Names for the files of models, all different and none that leads out of its folder."""
    stems = [re.sub(r"[^\w-]+", "-", model) for model in models]
    if len(set(stems)) == len(stems):
        return stems
    return [f"{position}-{stem}" for position, stem in enumerate(stems)]
