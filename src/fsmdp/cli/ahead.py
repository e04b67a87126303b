"""Compiling ahead, while the package is installed: what plans and learners use."""

from __future__ import annotations

from fsmdp.compiled import is_ready, set_ready
from fsmdp.learning.learners.psrl import PSRLFactored
from fsmdp.learning.learners.ucrl import UCRLFactored
from fsmdp.learning.run.learn import learn
from fsmdp.model.basis import Basis
from fsmdp.solver.warm import ENGINES, tiny, warm

LEARNERS = "learners"


def compile_ahead() -> None:
    """Compile all engines, and what learners count with."""
    for engine in ENGINES:
        warm(engine)
    if is_ready(LEARNERS):
        return
    model = tiny()
    known = model.rewards
    for basis in (Basis.singles(model), Basis.pairs(model)):
        structure = model.structure(basis)
        learn(model, UCRLFactored(structure, known_rewards=known), episodes=2)
    learn(model, UCRLFactored(structure), episodes=2)
    learn(model, PSRLFactored(structure, known_rewards=known), episodes=2)
    set_ready(LEARNERS)


if __name__ == "__main__":
    compile_ahead()
