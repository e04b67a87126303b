"""What a learner is to the loop that runs it: everything that `learn` asks of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show
from fsmdp.learning.cells.layout import Cells
from fsmdp.learning.cells.statistics import Statistics
from fsmdp.learning.learners.acting import Acting, Planned
from fsmdp.learning.options import check_structure
from fsmdp.model.structure import Structure
from fsmdp.policies.arrays import check_policy


class Learner(Protocol):
    """The world counts, the learner plans from what was counted.

    `CountingLearner` has all of it but `replan` and `describe`.
    """

    structure: Structure
    """What it was told; the world is checked against it."""

    name: str
    """How results, messages and checkpoints call it."""

    cells: Cells
    """Where is counted."""

    statistics: Statistics
    """What was counted. A resumed run puts others in their place."""

    term_known: NDArray[np.bool_]
    """For each reward term whether it is known: if so its rewards are not looked at."""

    seed: int
    """What its draws depend on; a checkpoint is taken up with the same one only."""

    heuristic: bool
    """Whether its guarantee is void, or it never had one: shown wherever its results are."""

    optimistic: bool
    """Whether its values are meant to be upper bounds: if so regret can be bounded by them."""

    def describe(self) -> str:
        """Every option, in a few words: runs of other descriptions are other runs."""
        ...

    def given(self) -> list[np.ndarray]:
        """What it was given besides options and structure, as arrays: known rewards, features."""
        ...

    def replan(self) -> Planned:
        """How to act from now on, from the statistics as they are."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Everything besides the statistics on which the next plan depends, as plain arrays."""
        ...

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back; a KeyError or ValueError if it cannot be one."""
        ...


MEMBERS = (
    *Learner.__annotations__,
    *(name for name in vars(Learner) if not name.startswith("_")),
)
"""Names of all that a learner has."""


def check_learner(learner: object) -> None:
    """Refuse what is no learner, and one whose statistics are of other cells."""
    missing = [name for name in MEMBERS if not hasattr(learner, name)]
    if missing or isinstance(learner, type):
        what = f"{show(learner)}, which has no {missing[0]}" if missing else f"the class {learner}"
        raise ModelError(
            f"learn: expected a learner, such as UCRLFactored(structure), found {what}; make one."
        )
    known: Learner = learner  # type: ignore[assignment]
    if not isinstance(known.cells, Cells) or not isinstance(known.statistics, Statistics):
        raise ModelError(
            f"learn: expected a learner with Cells and Statistics, found {show(known.cells)} and "
            f"{show(known.statistics)}; make them with cells_of(...) and Statistics.empty(cells)."
        )
    check_structure(f"learn: {known.name}", known.structure)
    known.statistics.check_fit(known.cells)
    n_terms = known.cells.layout.n_terms
    if getattr(known.term_known, "shape", None) != (n_terms,) or known.term_known.dtype != bool:
        raise ModelError(
            f"learn: {known.name}.term_known is {show(known.term_known)}, expected {n_terms} truth "
            "values, one for each reward term; give an array."
        )


def check_planned(planned: object, learner: Learner) -> Planned:
    """Refuse a plan that would lead compiled code out of its arrays."""
    where = f"{learner.name}.replan"
    if not isinstance(planned, Planned) or not isinstance(planned.acting, Acting):
        raise ModelError(f"{where}: expected a Planned with an Acting, found {show(planned)}.")
    structure, layout = learner.structure, learner.cells.layout
    acting, policy = planned.acting, planned.acting.policy
    n_cells, horizon = len(learner.statistics.visits), structure.horizon
    for name, array, shape, kind in (
        ("values", acting.values, (horizon, int(layout.value_start[-1])), np.float64),
        ("q", acting.q, (horizon, len(layout.cell_of)), np.float64),
        ("widths", acting.widths, (horizon, len(layout.cell_of)), np.float64),
        ("replan_at", acting.replan_at, (n_cells,), np.int64),
    ):
        found = np.asarray(array)
        if found.shape != shape or found.dtype != kind:
            raise ModelError(
                f"{where}: {name} holds {found.dtype} numbers of shape {found.shape}, expected "
                f"{np.dtype(kind)} of shape {shape}; lay it out by cells.layout."
            )
    sizes = [variable.size for variable in structure.variables]
    _check_starts(acting, sizes, where)
    try:
        check_policy(policy, sizes, structure.actions)
    except ValueError as error:
        raise ModelError(f"{where}: {error}; make it with policy_arrays.") from None
    return planned


def _check_starts(acting: Acting, sizes: Sequence[int], where: str) -> None:
    values, strides = acting.start_values, acting.start_strides
    steps = [int(stride) for stride in np.ravel(strides)]  # Python's, since those of arrays wrap
    most = sum(stride * (size - 1) for stride, size in zip(steps, sizes, strict=False))
    right = (
        np.asarray(values).dtype == np.float64
        and np.asarray(strides).dtype == np.int64
        and values.ndim == strides.ndim == 1
        and len(steps) in (0, len(sizes))
        and min(steps, default=0) >= 0
        and most < len(values)
    )
    if not right:
        raise ModelError(
            f"{where}: start_values and start_strides do not hold a number for each state; give "
            "one for each, with a stride for each variable, or leave both out."
        )
