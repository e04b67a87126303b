"""Several learners in one picture: histories, or a folder of runs, with bands over seeds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from fsmdp.errors import ModelError
from fsmdp.experiments.report.trials import trials_of_model
from fsmdp.experiments.store import read_results
from fsmdp.foundation.checks import show, show_names
from fsmdp.learning.run.history import History
from fsmdp.plot.axes import axes_for, handed_back
from fsmdp.plot.episodes import Curves, check_panels, curves_of, draw_panel, short_names

Compared = Sequence[History] | Mapping[str, History | Sequence[History]] | str | os.PathLike[str]
"""Histories (those of one learner are its seeds), histories by label, or a folder of runs."""


def compare(
    histories: Compared,
    ax: Any = None,
    *,
    what: str | Sequence[str] = "returns",
    start_value: float | None = None,
    model: str | None = None,
) -> Any:
    """Draw learners over episodes, means with 95 % t intervals over seeds, and return the axes.

    `histories` is a list, in which those of the same learner are its seeds; a dictionary from
    labels to histories or lists of them; or a folder that `fsmdp compare` wrote (`model` says of
    which model if it has several, and V* is taken from there). `what` is "returns", "regret" or
    both; regret needs `start_value`, else its observable bound is drawn.
    """
    wanted = check_panels(what)
    if isinstance(histories, str | os.PathLike):
        curves, start_value = _of_folder(histories, model, start_value)
    else:
        curves = [curves_of(label, group) for label, group in _grouped(histories).items()]
    with axes_for(ax, len(wanted)) as axes:
        for each, name in zip(axes, wanted, strict=True):
            draw_panel(each, name, curves, start_value)
    return handed_back(axes)


def _grouped(histories: Any) -> dict[str, list[History]]:
    groups: dict[str, list[History]] = {}
    if isinstance(histories, Mapping):
        for label, given in histories.items():
            groups[str(label)] = [given] if isinstance(given, History) else list(given)
    elif isinstance(histories, Sequence):
        names = short_names(str(getattr(one, "learner", "?")) for one in histories)
        for one in histories:
            groups.setdefault(names[str(getattr(one, "learner", "?"))], []).append(one)
    found = [one for group in groups.values() for one in group]
    if not found or not all(groups.values()) or not all(isinstance(one, History) for one in found):
        raise ModelError(
            "histories: expected a list of histories, a dictionary of them by label, or a folder "
            f"of runs, found {show(histories)}; learn() returns a history."
        )
    return groups


def _of_folder(
    folder: str | os.PathLike[str], model: str | None, start_value: float | None
) -> tuple[list[Curves], float | None]:
    results = read_results(folder)
    models = [setting.id for setting in results.specification.models]
    chosen = models[0] if model is None and len(models) == 1 else model
    if chosen not in models:
        raise ModelError(
            f"model: expected one of {show_names(models)}, found {show(model)}; say which to draw."
        )
    trials = trials_of_model(results, chosen)
    if not trials:
        raise ModelError(f"{show(str(folder))}: no run of {show(chosen)} has finished yet.")
    facts = results.models.get(chosen)
    if start_value is None and facts is not None:
        start_value = facts.start_value_exact
    curves = []
    for one in trials:
        bound = one.series("observable_regret_bound")
        optimistic = None if bound is None else one.series("optimistic_value")
        curves.append(Curves(one.label, one.required("return"), optimistic, bound))
    return curves, start_value
