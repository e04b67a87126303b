"""Play many problems, one file each: what is there already is not played again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fsmdp.errors import ExperimentError, ModelError
from fsmdp.experiments.executors.choose import choose_executor
from fsmdp.experiments.ippc.published import DOMAINS, INSTANCES, Problem, published
from fsmdp.experiments.ippc.task import Settings, Task, play
from fsmdp.foundation.checks import show, show_names
from fsmdp.foundation.disk import DIGEST, check_seal, make_folder, read_file, seal, write_file

LARGEST_RESULT = 2**20

Result = Mapping[str, Any]


def read_problems(texts: Sequence[str]) -> list[Problem]:
    """Problems as people write them: "Traffic:1", "Traffic", "published", "all"."""
    found: dict[Problem, None] = {}
    for text in texts:
        name, _, number = text.partition(":")
        if text == "published":
            found |= dict.fromkeys(published())
        elif text == "all":
            found |= dict.fromkeys(Problem(d, i) for d in DOMAINS for i in INSTANCES)
        elif name not in DOMAINS:
            raise ModelError(
                f"unknown problem {show(text)}; expected published, all, or one of "
                f"{show_names(DOMAINS)}, perhaps with an instance from 1 to 10 (Traffic:1)."
            )
        elif not number:
            found |= dict.fromkeys(Problem(name, instance) for instance in INSTANCES)
        elif number.isdecimal() and int(number) in INSTANCES:
            found[Problem(name, int(number))] = None
        else:
            raise ModelError(f"{show(text)}: expected an instance from 1 to 10 (Traffic:1).")
    return sorted(found)


def run_problems(
    problems: Sequence[Problem],
    settings: Settings,
    folder: str | Path,
    executor: str = "local",
    workers: int = 1,
    address: str | None = None,
    tell: Callable[[Problem, Result], None] | None = None,
) -> dict[Problem, Result]:
    """Play the problems that a folder has no result of with these settings; all results."""
    target = make_folder(folder)
    found: dict[Problem, Result] = {}
    for problem in problems:
        result = read_result(target, problem)
        if result is not None and result["settings"] == asdict(settings):
            found[problem] = result
    todo = [problem for problem in problems if problem not in found]

    def keep(problem: Problem, result: Result | ExperimentError) -> None:
        if isinstance(result, ExperimentError):
            result = {"error": str(result)}
        entry = {"problem": asdict(problem), "settings": asdict(settings)} | dict(result)
        if "error" not in entry:
            write_file(_path(target, problem), seal(entry, indent=1))
        found[problem] = entry
        if tell is not None:
            tell(problem, entry)

    tasks = [Task(problem, settings) for problem in todo]
    if executor == "local" and workers == 1:  # one after another, each on all cores
        for task in tasks:
            keep(task.problem, play(task))
    elif tasks:
        with choose_executor(executor, workers, address) as engine:
            for position, played in engine.run(play, tasks):
                keep(todo[position], played)
    return {problem: found[problem] for problem in problems}


def read_result(folder: Path, problem: Problem) -> Result | None:
    """The result of a problem, if there is one."""
    path = _path(folder, problem)
    if not path.exists():
        return None
    content = read_file(path, LARGEST_RESULT)
    remedy = "remove it to play the problem again"
    try:
        read = json.loads(content)
        check_seal(content, read.get(DIGEST), show(str(path)), remedy)
        if not isinstance(read["settings"], dict):
            raise ValueError("no settings")
    except (ValueError, KeyError, AttributeError) as error:
        raise ModelError(f"{show(str(path))} is not a result ({error}); {remedy}.") from None
    return dict(read)


def read_results(folder: str | Path) -> dict[Problem, Result]:
    """All results of a folder."""
    every = [Problem(domain, instance) for domain in DOMAINS for instance in INSTANCES]
    found = {problem: read_result(Path(folder), problem) for problem in every}
    return {problem: result for problem, result in found.items() if result is not None}


def _path(folder: Path, problem: Problem) -> Path:
    return folder / f"{problem.domain}-{problem.instance}.json"
