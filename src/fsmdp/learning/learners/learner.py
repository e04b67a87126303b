"""What a learner is to the loop that runs it: everything that `learn` asks of one."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_probability, as_scale, as_seed, plural, show
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.learning.cells.kernel import PlannedValues
from fsmdp.learning.cells.layout import Cells, cell_lookup, cells_of
from fsmdp.learning.cells.statistics import Statistics, known_reward_means
from fsmdp.model.cases import Cases
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Booleans, Floats, Integers
from fsmdp.model.variables import Scope
from fsmdp.policies.arrays import (
    FOLDED,
    GREEDILY,
    JOINTLY,
    CompiledPolicy,
    check_policy,
    policy_arrays,
)
from fsmdp.policies.folding import fold, fold_layout, lookup_cost
from fsmdp.policies.joint import Joint, joint_greedily

NEVER = 2**62
"""Visits that no cell will have."""


class Acting(NamedTuple):
    """A policy, and the numbers that are logged along the trajectory (see `PlannedValues`)."""

    policy: CompiledPolicy
    values: Floats
    q: Floats
    widths: Floats
    replan_at: Integers
    start_values: Floats = PlannedValues._field_defaults["start_values"]
    start_strides: Integers = PlannedValues._field_defaults["start_strides"]

    @property
    def said(self) -> PlannedValues:
        """The numbers without the policy."""
        # One layout for all learners: for another one the simulator would be compiled again.
        return PlannedValues(np.ascontiguousarray(self.values), *self[2:])


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """What a replan found: how to act, and how the plan came about."""

    acting: Acting
    lift: float  # added to V_1 so that it is feasible for certain
    w_norm: float  # largest sum_j |w_j| over the steps


class Learner(Protocol):
    """Episodes are counted, and the learner plans from the counts.

    `CountingLearner` has all of it but `replan` and `describe`.
    """

    structure: Structure
    """What it was given; the environment is checked against it."""

    name: str
    """How results, messages and checkpoints call it."""

    cells: Cells
    """Where is counted."""

    statistics: Statistics
    """What was counted. A resumed run puts others in their place."""

    term_known: Booleans
    """For each reward term whether it is known: if so its rewards are not read."""

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


@dataclass(frozen=True, slots=True)
class Optimism:
    """How an optimistic learner's sets are sized.

    `delta` bounds the chance that its values are ever too low. `scale` multiplies squared radii or
    bonuses; anything but 1 makes the learner heuristic.
    """

    delta: float
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", as_probability(self.delta))
        object.__setattr__(self, "scale", as_scale(self.scale))

    def describe(self, options: Sequence[str], heuristic: bool) -> str:
        """How a learner with these options describes itself."""
        label = heuristic_label(heuristic, self.scale)
        return f"{', '.join([*options, f'delta {self.delta:g}'])}{label}"


class CountingLearner:
    """A `Learner`; a subclass says how to plan, and perhaps what to count."""

    name = "CountingLearner"
    heuristic = False
    optimistic = False

    def __init__(
        self, structure: Structure, *, seed: int = 0, known_rewards: Sequence[Reward] | None = None
    ) -> None:
        self.structure = check_structure(self.name, structure)
        self.seed = as_seed(seed)
        self.rng = generator(self.seed, Purpose.LEARNER)
        counted = self.counted_structure()
        self.cells = cells_of(counted)
        self.statistics = Statistics.empty(self.cells)
        self.term_known, self.known_means = known_reward_means(counted, known_rewards)
        self.cell_known = self.term_known[self.cells.term]

    def counted_structure(self) -> Structure:
        """The structure whose cells are counted: the one that was given, unless overridden."""
        return self.structure

    def given(self) -> list[np.ndarray]:
        """Known rewards; what else a learner is given, a subclass adds."""
        return [self.term_known, self.known_means]

    @property
    def horizon(self) -> int:
        """Steps of an episode."""
        assert self.structure.horizon is not None
        return self.structure.horizon

    @property
    def episode(self) -> int:
        """k: the number of the episode that comes next, from 1."""
        return self.statistics.episodes + 1

    def unclaimed(self, policy: CompiledPolicy, replan_at: Integers) -> Planned:
        """A policy of whose values nothing is claimed: they are NaN."""
        layout = self.cells.layout
        n_entries, n_values = len(layout.cell_of), int(layout.value_start[-1])
        acting = Acting(
            policy,
            np.full((self.horizon, n_values), np.nan),
            np.zeros((self.horizon, n_entries)),
            np.full((self.horizon, n_entries), np.nan),
            replan_at,
        )
        return Planned(acting, 0.0, np.nan)

    def replan(self) -> Planned:
        """A new policy from the statistics as they are."""
        raise NotImplementedError

    def describe(self) -> str:
        """The options that matter."""
        raise NotImplementedError

    def state(self) -> dict[str, np.ndarray]:
        """The random state; what else the next plan depends on, a subclass adds."""
        return {"rng": np.array(json.dumps(self.rng.bit_generator.state))}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back."""
        generator: dict[str, Any] = json.loads(str(state["rng"]))
        self.rng.bit_generator.state = generator

    def __repr__(self) -> str:
        return f"{self.name}({self.describe()}; {plural(self.statistics.episodes, 'episode')} seen)"


TIE = 1e-9
"""Actions whose values differ by less than this fraction of the largest reward are equal."""


def tie_scale(largest: float) -> float:
    """The size of draws that decide ties and nothing else."""
    return TIE * max(1e-300, largest)


class TieBreaker:
    """The greedy policy with a term more, which is drawn anew for each plan and decides ties.

    Of actions that are made of variables, each variable has a term.
    """

    def __init__(self, structure: Structure) -> None:
        nothing: Scope = ()
        self._no_strides = np.zeros(len(structure.variables), dtype=np.int64)
        self._joint: Joint | None = None
        actions = structure.actions
        if actions.variables:
            first = len(structure.variables)
            alone: list[Cases[Scope]] = [
                Cases(((first + at,),)) for at in range(len(actions.variables))
            ]
            self._lookup = cell_lookup(structure, *structure.conditions.scopes, *alone)
            self._joint = joint_greedily(actions, first, self._lookup)
            self._n_drawn = sum(actions.sizes)
            return
        self._n_actions = self._n_drawn = len(actions)
        by_action = Cases((nothing,) * self._n_actions, {a: a for a in range(1, self._n_actions)})
        self._lookup = cell_lookup(structure, *structure.conditions.scopes, by_action)
        sizes = [variable.size for variable in structure.variables]
        self._layout = fold_layout(self._lookup, sizes, self._n_actions, structure.horizon or 1)
        self._plain_cost = lookup_cost(self._lookup)

    def policy(
        self, q: Floats, largest: float, rng: np.random.Generator, episodes: float
    ) -> CompiledPolicy:
        """Greedy in q (horizon, n_cells and what is allowed), for rewards up to `largest`.

        Folded if it pays for the number of episodes that the policy is expected to last.
        """
        drawn = tie_scale(largest) * rng.random(self._n_drawn)
        entries = np.hstack([q, np.broadcast_to(drawn, (len(q), self._n_drawn))])
        if self._joint is not None:
            nothing, lookup, joint = self._no_strides, self._lookup, self._joint
            return policy_arrays(JOINTLY, nothing, lookup=lookup, entries=entries, joint=joint)
        layout = self._layout
        if layout is None or not layout.pays(episodes, self._plain_cost):
            return policy_arrays(GREEDILY, self._no_strides, lookup=self._lookup, entries=entries)
        tables = fold(layout, entries)
        return policy_arrays(FOLDED, self._no_strides, entries=tables, folded=layout.folded)


def check_structure(name: str, structure: object) -> Structure:
    """Refuse anything but a Structure with a finite horizon."""
    if not isinstance(structure, Structure):
        raise ModelError(
            f"{name}: expected a Structure, found {type(structure).__name__} {show(structure)}; "
            "use model.structure(basis) or Structure.from_parents(...)."
        )
    if structure.horizon is None:
        raise ModelError(
            f"{name}: a learner works through episodes of a finite horizon and this structure's is "
            "None; give a horizon."
        )
    return structure


def check_stated(name: str, structure: object) -> Structure:
    """Refuse a structure that states no independence."""
    found = check_structure(name, structure)
    if not found.independent:
        raise ModelError(
            f"{name}: it counts groups of variables that are drawn independently, and the "
            "structure states none; state them (independent=...), or use another learner."
        )
    return found


def heuristic_label(heuristic: bool, scale: float) -> str:
    """How a description says that the theory does not cover a learner: nothing if it does."""
    if not heuristic:
        return ""
    return ", heuristic" if scale == 1.0 else f", heuristic: scale {scale:g}"
