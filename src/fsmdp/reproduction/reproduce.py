"""Run claims, judge them, and write the page."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fsmdp.experiments.report.charts import Chart, learner_styles
from fsmdp.experiments.report.print_figures import printed
from fsmdp.foundation.checks import as_whole
from fsmdp.foundation.disk import make_folder, write_file
from fsmdp.reproduction.catalogue import find_claims
from fsmdp.reproduction.claim import Claim, Evidence, Form, Judgement
from fsmdp.reproduction.evidence import read_evidence, write_evidence
from fsmdp.reproduction.page import Figure, Finding, html_page, markdown_page

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
    target = make_folder(folder)
    findings = []
    for number, claim in enumerate(claims):

        def tell(text: str, number: int = number) -> None:
            if progress is not None:
                progress(number, len(claims), text)

        tell(claim.name)
        evidence, seconds = _evidence(claim, target / claim.name, form, seed, again, tell)
        findings.append(_finding(claim, evidence, seconds, form, target))
        _write_pages(target, tuple(findings), form)
    if progress is not None:
        progress(len(claims), len(claims), "done")
    return Reproduction(target / PAGE, tuple(findings))


def _evidence(
    claim: Claim, folder: Path, form: Form, seed: int, again: bool, tell: Callable[[str], None]
) -> tuple[Evidence, float]:
    found = None if again else read_evidence(folder, form, seed)
    if found is not None:
        return found
    began = time.perf_counter()
    evidence = claim.run(form, seed, tell)
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
        write_file(folder / f"{file}.{kind}", content)
    return Figure(chart, figures["svg"].decode(), file)


def _write_pages(folder: Path, findings: tuple[Finding, ...], form: Form) -> None:
    write_file(folder / PAGE, html_page(findings, form).encode())
    write_file(folder / MARKDOWN, markdown_page(findings, form).encode())
