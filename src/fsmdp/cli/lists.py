"""What is registered, for help and for shell completion; imported only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping


def bases() -> Iterable[str]:
    """Ready-made bases."""
    from fsmdp.io.readers import BASES

    return BASES


def claims() -> Iterable[str]:
    """Claims of the paper."""
    from fsmdp.reproduction.claim import NAMES

    return NAMES


def executors() -> Iterable[str]:
    """What carries runs out."""
    from fsmdp.experiments.executors.protocol import EXECUTORS

    return EXECUTORS


def learners() -> Iterable[str]:
    """Learners and baselines."""
    from fsmdp.learning.learners.registry import LEARNERS

    return LEARNERS


def methods() -> Iterable[str]:
    """Planners."""
    from fsmdp.solver.plan import METHODS

    return METHODS


LISTS: Mapping[str, Callable[[], Iterable[str]]] = {
    "BASES": bases,
    "CLAIMS": claims,
    "EXECUTORS": executors,
    "LEARNERS": learners,
    "METHODS": methods,
}

OF_LEARNERS = "OPTIONS OF LEARNERS"
"""Stands for a paragraph about each learner."""


def written_out(text: str) -> str:
    """Text with names in place of such words as METHODS."""
    if OF_LEARNERS in text:
        text = text.replace(OF_LEARNERS, options_of_learners())
    for word, names in LISTS.items():
        if word in text:
            text = text.replace(word, listed(names()))
    return text


def listed(names: Iterable[str]) -> str:
    """Names as a sentence lists them: local, ray or dask."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def options_of_learners() -> str:
    """A paragraph for each learner: what it is, and each option with its kind and default."""
    from fsmdp.experiments.learners import options_of
    from fsmdp.learning.learners.registry import LEARNERS

    found = []
    for entry in LEARNERS.values():
        options = "; ".join(
            f"[bold]{name}[/bold]: {kind.description} ({default_text(default)})"
            for name, (kind, default) in options_of(entry).items()
        )
        found.append(f"[bold]{entry.name}[/bold]: {entry.description}. {options or 'No options'}.")
    return "\n\n".join(found)


def default_text(default: object) -> str:
    """How a default is written: as it would be given."""
    if default is None:
        return "chosen to fit unless given"
    if isinstance(default, bool):
        return "true unless given" if default else "false unless given"
    return f"{default} unless given"


def complete(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Shell completion by names."""

    def complete_name(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete_name


def complete_model(incomplete: str) -> list[str]:
    """Shell completion of models, by the readers."""
    from fsmdp.io.readers import complete_model as by_readers

    return by_readers(incomplete)


def complete_problem(incomplete: str) -> list[str]:
    """Shell completion of problems of the competitions: domains, and then their instances."""
    from fsmdp.reproduction.ippc import DOMAINS, INSTANCES

    domain = incomplete.partition(":")[0]
    instances = [f"{domain}:{one}" for one in INSTANCES] if domain in DOMAINS else []
    names = ["published", "all", *DOMAINS, *instances]
    return [name for name in names if name.startswith(incomplete)]


def policies() -> Iterable[str]:
    """Policies of any model, and plans of this folder."""
    return ["random", "plan", "optimal", *files("*.npz")]


def files(pattern: str) -> Iterable[str]:
    """Names of files of this folder."""
    from pathlib import Path

    return [path.name for path in Path().glob(pattern)]
