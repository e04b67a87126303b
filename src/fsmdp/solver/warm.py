"""Compiling ahead: what the solver runs is compiled before a clock starts, once for its sources."""

from __future__ import annotations

import logging
from contextlib import suppress

import numpy as np

from fsmdp.compiled import cache_folder
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.variables import Variable
from fsmdp.planning.clock import Clock
from fsmdp.planning.planner import Request
from fsmdp.solver.loop import Loop, Wishes

MARK = "solver"
"""A file beside what was compiled, which says that all of it was."""

log = logging.getLogger("fsmdp")

_ready: list[bool] = []


def is_compiled() -> bool:
    """Whether nothing is left to compile."""
    return bool(_ready) or (cache_folder() / MARK).exists()


def compile_ahead() -> None:
    """Run every engine on a tiny model, unless that was done since the sources changed.

    A time limit is about planning: it would say little if the first call spent it on compiling.
    """
    if _ready:
        return
    if not is_compiled():
        log.info("compiling, once after installation")
        for horizon, discount in ((3, 1.0), (None, 0.5)):
            _run(_tiny(horizon, discount), Wishes(rounds=1, exact=False))
        _run(_tiny(3, 1.0), Wishes())
        with suppress(OSError):
            (cache_folder() / MARK).touch()
    _ready.append(True)


def _run(model: FactoredMDP, wishes: Wishes) -> None:
    Loop(Request(model, None, "initial", {}), Clock(), wishes, None).run()


def _tiny(horizon: int | None, discount: float) -> FactoredMDP:
    """Two exclusive variables, a third that follows them, and two actions."""
    stays = np.array([[0.9, 0.1], [0.2, 0.8]])
    first = np.zeros((2, 2, 2))
    first[..., 1] = [[0.5, 0.0], [1.0, 0.0]]
    first[..., 0] = 1 - first[..., 1]
    return FactoredMDP(
        [Variable("a", 2), Variable("b", 2), Variable("c", 2)],
        ["wait", "go"],
        [
            Conditional("a", [Case(["wait"], ["a", "b"], first), Case(["go"], [], [1.0, 0.0])]),
            Conditional("b", [Case(["wait"], [], [1.0, 0.0]), Case(["go"], ["a"], stays)]),
            Conditional("c", [Case(ANY, ["c"], stays)]),
        ],
        [Reward("r", Case(ANY, ["b", "c"], [[0.0, 0.2], [0.5, 1.0]]))],
        horizon,
        {"a": 0, "b": 0, "c": 0},
        discount,
    )
