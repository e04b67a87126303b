"""Write a report: the page, the figures for papers, and the table of final figures."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fsmdp.errors import ModelError
from fsmdp.experiments.report.charts import AnyChart
from fsmdp.experiments.report.curves import model_charts
from fsmdp.experiments.report.finals import finals_chart, summary_frame
from fsmdp.experiments.report.network import network_chart
from fsmdp.experiments.report.page import Section, page
from fsmdp.experiments.report.print_figures import printed
from fsmdp.experiments.report.style import Style, learner_styles
from fsmdp.experiments.report.trials import check_facts, trials_of_model
from fsmdp.experiments.store import Results, read_results
from fsmdp.experiments.summary import rows_of_model
from fsmdp.foundation.checks import plural, show
from fsmdp.foundation.disk import make_folder, write_file

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
