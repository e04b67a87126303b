"""Learners by name: the only list of them.

An entry stands beside its learner; here are names, so that listing them imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show, suggest
from fsmdp.foundation.kinds import POSITIVE, PROBABILITY, Kind
from fsmdp.foundation.registry import Registry

if TYPE_CHECKING:
    from fsmdp.learning.learners.learner import Learner
    from fsmdp.model.rewards import Reward
    from fsmdp.model.structure import Structure
    from fsmdp.policies.resolve import Policy

Value = bool | int | float | str | None
Options = Mapping[str, Any]
"""Values of all options by name."""

OPTIMISM: Mapping[str, tuple[Kind, Value]] = MappingProxyType(
    {"delta": (PROBABILITY, 0.05), "scale": (POSITIVE, 1.0)}
)
"""Options of every learner that is optimistic."""


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What a learner is told of a model: never a probability.

    `policy` finds a policy of the true model by "exact" or a planning method, for those that learn
    nothing and follow it.
    """

    structure: Structure
    known_rewards: Sequence[Reward] | None
    seed: int
    policy: Callable[[str], Policy]


def _as_given(options: Options) -> Options:
    return options


@dataclass(frozen=True, slots=True, eq=False)
class LearnerEntry:
    """A learner: what it is called, the kind and default of each option, and how it is built.

    `build` takes what the learner is told, and all options. A default of None stands for something
    that only the model or another option can tell; `complete` fills in what options can. A learner
    that `uses_basis` has the option `basis`, one that `takes_rewards` the option `known_rewards`,
    besides `options`.
    """

    name: str
    title: str
    description: str
    build: Callable[[Told, Options], Learner] = field(repr=False)
    options: Mapping[str, tuple[Kind, Value]] = field(default_factory=dict, repr=False)
    uses_basis: bool = False
    takes_rewards: bool = False
    complete: Callable[[Options], Options] = field(default=_as_given, repr=False)


_HERE = "fsmdp.learning.learners"

_BUILT_IN = {
    "ucrl": f"{_HERE}.ucrl:ENTRY",
    "psrl": f"{_HERE}.psrl:ENTRY",
    "plan": f"{_HERE}.baselines.fixed:PLAN",
    "optimal": f"{_HERE}.baselines.fixed:OPTIMAL",
    "random": f"{_HERE}.baselines.fixed:RANDOM_ACTIONS",
    "ucbvi": f"{_HERE}.baselines.ucbvi:ENTRY",
    "tabular-psrl": f"{_HERE}.baselines.psrl:ENTRY",
    "ucrl2": f"{_HERE}.baselines.ucrl2:ENTRY",
    "ucrl-product": f"{_HERE}.baselines.product:ENTRY",
    "lsvi-ucb": f"{_HERE}.baselines.lsvi:ENTRY",
}
"""Where each entry is found: `module:name`."""


class _Learners(Registry["LearnerEntry"]):
    """Every entry by its learner's name; imported when it is first asked for."""

    def __getitem__(self, name: str) -> LearnerEntry:
        if name in _BUILT_IN and name not in self._entries:
            module, _, attribute = _BUILT_IN[name].partition(":")
            self._entries[name] = getattr(import_module(module), attribute)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        return name in _BUILT_IN or super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*_BUILT_IN, *super().__iter__())))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def register(self, name: str, entry: LearnerEntry, *, replace: bool = False) -> LearnerEntry:
        """Add an entry; a name that is taken is refused unless `replace` is set."""
        if name in _BUILT_IN:
            self[name]  # imported first, so that its name is seen to be taken
        return super().register(name, entry, replace=replace)


LEARNERS = _Learners("learner")


def register(entry: LearnerEntry) -> LearnerEntry:
    """Add a learner, so that specifications and the command line know its name."""
    if not isinstance(entry, LearnerEntry):
        raise ModelError(
            f"learner: expected a LearnerEntry to register, found {show(entry)}; give "
            "LearnerEntry(name, title, description, build)."
        )
    return LEARNERS.register(entry.name, entry)


def find_learner(name: object, where: str) -> LearnerEntry:
    """The learner of a name; a ModelError with the closest name otherwise."""
    if isinstance(name, str) and name in LEARNERS:
        return LEARNERS[name]
    raise ModelError(
        f"{where}: unknown learner {show(name)}; {suggest(str(name), LEARNERS)} "
        f"Learners are {', '.join(LEARNERS)}."
    )
