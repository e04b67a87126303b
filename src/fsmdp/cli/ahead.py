"""Compiling ahead, while the package is installed: what plans and learners use."""

import subprocess
import sys
import time
from collections.abc import Sequence

from fsmdp.compiled import is_ready, set_ready
from fsmdp.foundation.threads import cores
from fsmdp.learning.learners.psrl import PSRLFactored
from fsmdp.learning.learners.ucrl import UCRLFactored
from fsmdp.learning.run import learn
from fsmdp.model.basis import Basis
from fsmdp.solver.warmup import PARTS, SIMULATION, tiny, warm_up

LEARNERS = "learners"
QUICK = ("exact solver", "linear programs", "successors")
SHARES = {
    "all": (("simulator", "fits", LEARNERS), (*QUICK, "search")),
    "demo": (("simulator", "fits"), (*QUICK, LEARNERS)),
}
"""Parts for two processes, of about the same length: of all, and of what the demo uses. What comes
last in the second simulates."""

PATIENCE = 120.0
"""Seconds; then the second process compiles for itself what it waits for."""


def compile_ahead(what: str = "all") -> None:
    """Compile engines, and what learners count with; on two cores, if there are as many."""
    first, second = SHARES[what]
    if cores() == 1 or all(map(is_ready, (*first, *second))):
        _compile((*first, *second))
        return
    other = subprocess.Popen([sys.executable, "-m", "fsmdp.cli.ahead", what, "second"])
    try:
        _compile(first)
        failed = other.wait()
    finally:
        other.kill()
        other.wait()
    if failed:
        raise SystemExit(failed)


def _compile_second(what: str) -> None:
    *others, last = SHARES[what][1]
    _compile(others)
    given_up = time.monotonic() + PATIENCE
    while not is_ready(SIMULATION) and time.monotonic() < given_up:
        time.sleep(0.05)
    _compile([last])


def _compile(parts: Sequence[str]) -> None:
    for part in parts:
        if part in PARTS:
            warm_up(part)
        elif not is_ready(part):
            _learners()
            set_ready(part)


def _learners() -> None:
    model = tiny()
    known = model.rewards
    for basis in (Basis.singles(model), Basis.pairs(model)):
        structure = model.structure(basis)
        learn(model, UCRLFactored(structure, known_rewards=known), episodes=2)
    learn(model, UCRLFactored(structure), episodes=2)
    learn(model, PSRLFactored(structure, known_rewards=known), episodes=2)
    learn(model, UCRLFactored(structure, known_rewards=known, planner="solver"), episodes=1)


if __name__ == "__main__":
    asked, *whose = sys.argv[1:] or ["all"]
    if whose:
        _compile_second(asked)
    else:
        compile_ahead(asked)
