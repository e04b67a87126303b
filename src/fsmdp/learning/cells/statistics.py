"""Sufficient statistics of a learner: counts per cell, kept flat; they add up and can be saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_tuple, clip, show, show_names
from fsmdp.foundation.disk import read_arrays, write_arrays
from fsmdp.learning.cells.layout import Cells
from fsmdp.model.cases import Cases, common_groups
from fsmdp.model.rewards import Reward, check_reward_names, resolve_rewards
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Booleans, Floats, Integers, Table
from fsmdp.model.variables import Scope

LARGEST_FILE = 2**33
"""Bytes of the largest file of counts that is read."""

MOST_COUNTED = 2**52
"""More than any run counts, and far from where integers wrap."""


@dataclass(slots=True, eq=False)
class Statistics:
    """Everything a learner remembers of its episodes.

    Compiled code counts into the arrays. `a + b` is what one learner would have counted had it
    seen both runs.
    """

    visits: Integers  # (n_reward_cells + n_transition_cells,)
    outcomes: Integers  # next values of transition cells; cells of one scope and parents share
    reward_sums: Floats  # (n_reward_cells,)
    starts: Integers  # first values of each function's scope, function after function
    episodes: int = 0

    @classmethod
    def empty(cls, cells: Cells) -> Statistics:
        """Nothing seen yet."""
        layout = cells.layout
        return cls(
            np.zeros(cells.n_reward_cells + cells.n_transition_cells, dtype=np.int64),
            np.zeros(layout.n_outcomes, dtype=np.int64),
            np.zeros(cells.n_reward_cells),
            np.zeros(layout.value_start[-1], dtype=np.int64),
        )

    @property
    def reward_visits(self) -> Integers:
        """Visits of the reward cells; a view."""
        return self.visits[: len(self.reward_sums)]

    @property
    def transition_visits(self) -> Integers:
        """Visits of the transition cells; a view."""
        return self.visits[len(self.reward_sums) :]

    def __add__(self, other: Statistics) -> Statistics:
        if not isinstance(other, Statistics):
            raise ModelError(
                f"statistics: expected statistics to add, found {show(other)}; give those of a "
                "learner of the same structure."
            )
        mine, theirs = self.arrays(), other.arrays()
        if any(mine[name].shape != theirs[name].shape for name in mine):
            raise ModelError(
                f"statistics of {len(self.visits)} and {len(other.visits)} cells do not add up; "
                "expected both to come from the same structure."
            )
        return Statistics.from_arrays({name: mine[name] + theirs[name] for name in mine})

    def arrays(self) -> dict[str, np.ndarray]:
        """Every field as an array, by name."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Statistics:
        """The inverse of `arrays`; a ValueError if they cannot be counts."""
        kept: dict[str, Any] = {field.name: arrays[field.name] for field in fields(cls)}
        for name, array in kept.items():
            is_sum = name == "reward_sums"
            if array.dtype != (np.float64 if is_sum else np.int64) or array.ndim != (
                name != "episodes"
            ):
                raise ValueError(f"{name}: expected {'sums' if is_sum else 'counts'}")
            if not (np.isfinite(array) if is_sum else array >= 0).all():
                raise ValueError(f"{name}: expected finite numbers, and no negative counts")
        kept["episodes"] = int(kept["episodes"])
        return cls(**kept)

    def check_fit(self, cells: Cells) -> None:
        """Refuse statistics of other cells: compiled code would count beyond their ends."""
        expected = Statistics.empty(cells).arrays()
        for name, array in self.arrays().items():
            if array.shape != expected[name].shape or array.dtype != expected[name].dtype:
                raise ModelError(
                    f"statistics: {name} has {array.dtype} numbers of shape {array.shape}, this "
                    f"learner counts {expected[name].dtype} of shape {expected[name].shape}; use "
                    "statistics of a learner of the same kind and structure."
                )

    def check_counts(self, cells: Cells, episodes: int) -> None:
        """Refuse, with a ValueError, counts that no episodes give, or those of too few episodes.

        A function is counted once at the start of an episode; a visit of a cell has one outcome.
        """
        layout = cells.layout
        if not episodes <= self.episodes <= MOST_COUNTED:
            raise ValueError(f"episodes: expected at least {episodes}, found {self.episodes}")
        starts, set_of_cell = np.unique(layout.outcome_start, return_inverse=True)
        for name, counts, firsts, at, expected in (
            ("outcomes", self.outcomes, starts, set_of_cell, self.transition_visits),
            ("starts", self.starts, layout.value_start[:-1], slice(None), self.episodes),
        ):
            # Sums of floats do not wrap, and are exact as long as they matter.
            if (np.add.reduceat(counts.astype(float), firsts)[at] != expected).any():
                raise ValueError(f"{name}: expected as many as there were visits and episodes")
        if self.visits.max(initial=0) > MOST_COUNTED:
            raise ValueError(f"visits: expected at most {MOST_COUNTED}")
        if self.reward_sums[self.reward_visits == 0].any():
            raise ValueError("reward_sums: expected sums over visits")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file of plain arrays that `load` reads; it appears whole or not at all."""
        write_arrays(path, self.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Statistics:
        """Read what `save` wrote; anything else is a ModelError."""
        remedy = "expected a file that Statistics.save wrote"
        arrays = read_arrays(path, LARGEST_FILE, "file of statistics", remedy)
        try:
            return cls.from_arrays(arrays)
        except (KeyError, ValueError) as error:
            raise ModelError(
                f"{show(str(path))}: a part is missing or wrong ({clip(str(error))}); {remedy}."
            ) from None


def known_reward_means(
    structure: Structure, known: Sequence[Reward] | None
) -> tuple[Booleans, Floats]:
    """Which terms are known, and the mean at every reward cell (0 in those of unknown terms).

    Terms are matched by name; a structure may have terms that are not known.
    """
    sizes = [variable.size for variable in structure.inputs]
    names = {term.name: position for position, term in enumerate(structure.rewards)}
    rewards = as_tuple(
        () if known is None else known, Reward, "known_rewards", "give model.rewards, or leave out"
    )
    check_reward_names(rewards)
    for reward in rewards:
        if reward.name not in names:
            raise ModelError(
                f"known_rewards: {show(reward.name)} is not a term of the structure; expected "
                f"one of {show_names(names)}."
            )
    resolved = resolve_rewards(rewards, structure.inputs, structure.actions.cases)
    by_name = {reward.name: means for reward, means in zip(rewards, resolved, strict=True)}
    is_known = np.array([term.name in by_name for term in structure.rewards], dtype=np.bool_)
    parts = [np.zeros(0)]
    for term in structure.rewards:
        shapes = [tuple(sizes[position] for position in scope) for scope in term.parents]
        if term.name in by_name:
            tables = _on_groups(
                term.name, term.parents, by_name[term.name], structure.actions.n_cases
            )
            parts += [
                np.broadcast_to(table, shape).ravel()
                for table, shape in zip(tables, shapes, strict=True)
            ]
        else:
            parts += [np.zeros(int(np.prod(shape))) for shape in shapes]
    return is_known, np.concatenate(parts)


def _on_groups(
    name: str, parents: Cases[Scope], means: Cases[Table], n_actions: int
) -> list[Floats]:
    """The known table of each action group, with one axis for each of the group's parents."""
    found: dict[int, Floats] = {}
    pairs: Cases[tuple[Any, ...]] = common_groups(
        [parents.map_with_group(), means.map_with_group()], n_actions
    )
    for (group, scope), (_, table) in pairs:
        if not set(table.scope) <= set(scope):
            raise ModelError(
                f"known reward {show(name)} depends on variables {list(table.scope)}, by position; "
                f"in the structure only on {list(scope)}; declare the same parents in both."
            )
        shape = [1] * len(scope)
        for axis, position in enumerate(table.scope):
            shape[scope.index(position)] = table.values.shape[axis]
        values = table.values.reshape(shape)
        if group in found and (found[group] != values).any():
            raise ModelError(
                f"known reward {show(name)} differs between actions that the structure puts into "
                "one group; split the group in the structure."
            )
        found[group] = values
    return [found[group] for group in range(len(parents))]
