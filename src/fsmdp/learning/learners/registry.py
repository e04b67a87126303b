"""Learners by name: the only list of them.

An entry stands beside its learner; here are names, so that listing them imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fsmdp.foundation.kinds import Kind, declared_options
from fsmdp.foundation.registry import Registry

if TYPE_CHECKING:
    from fsmdp.learning.learners.learner import Learner
    from fsmdp.model.rewards import Reward
    from fsmdp.model.structure import Structure
    from fsmdp.policies.resolve import Policy

Value = bool | int | float | str | None
Options = Mapping[str, Any]
"""Values of all options by name."""


@dataclass(frozen=True, slots=True, eq=False)
class LearnerContext:
    """What a learner knows of a model: never a probability.

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

    `build` takes what the learner is given, and all options. A default of None stands for something
    that only the model or another option can tell; `complete` fills in what options can. A learner
    that `uses_basis` has the option `basis`, one that `takes_rewards` the option `known_rewards`,
    besides `options`. `before` has what the learner did before it had an option, where that is not
    the option's default.
    """

    name: str
    title: str
    description: str
    build: Callable[[LearnerContext, Options], Learner] = field(repr=False)
    options: Mapping[str, tuple[Kind, Value]] = field(default_factory=dict, repr=False)
    uses_basis: bool = False
    takes_rewards: bool = False
    complete: Callable[[Options], Options] = field(default=_as_given, repr=False)
    before: Options = field(default_factory=dict, repr=False)

    def label(self, options: Options) -> str:
        """What reports call the learner with these options."""
        words = options_in_words(options, " ")
        return f"{self.title} ({', '.join(words)})" if words else self.title


def options_in_words(options: Options, joint: str) -> list[str]:
    """How options read: a word stands for itself, a number comes with its name."""
    found = []
    for name, value in options.items():
        readable = name.replace("_", joint)
        if isinstance(value, bool):
            found.append(readable if value else f"no{joint}{readable}")
        elif isinstance(value, str) and name != "replan":
            found.append(value)
        else:
            shown = f"{value:.12g}" if isinstance(value, float) else str(value)
            found.append(f"{readable}{joint}{shown}")
    return found


def builder(learner: Callable[..., Learner]) -> Callable[[LearnerContext, Options], Learner]:
    """How a learner is built whose arguments are what it is given, and its options by name."""

    def build(context: LearnerContext, options: Options) -> Learner:
        return learner(
            context.structure, seed=context.seed, known_rewards=context.known_rewards, **options
        )

    return build


def entry_of(
    learner: Callable[..., Learner],
    name: str,
    title: str,
    description: str,
    *,
    uses_basis: bool = True,
    complete: Callable[[Options], Options] = _as_given,
    before: Options = MappingProxyType({}),
) -> LearnerEntry:
    """An entry whose options are those that the learner's signature declares."""
    return LearnerEntry(
        name,
        title,
        description,
        builder(learner),
        declared_options(learner),
        uses_basis=uses_basis,
        takes_rewards=True,
        complete=complete,
        before=before,
    )


_HERE = "fsmdp.learning.learners"

LEARNERS: Registry[LearnerEntry] = Registry(
    "learner",
    entries=LearnerEntry,
    import_paths={
        "ucrl": f"{_HERE}.ucrl:ENTRY",
        "psrl": f"{_HERE}.psrl:ENTRY",
        "rmax": f"{_HERE}.baselines.rmax:ENTRY",
        "bonus": f"{_HERE}.bonus:ENTRY",
        "dorl": f"{_HERE}.dorl:ENTRY",
        "unknown": "fsmdp.discovery.learner:ENTRY",
        "plan": f"{_HERE}.baselines.fixed:PLAN",
        "optimal": f"{_HERE}.baselines.fixed:OPTIMAL",
        "random": f"{_HERE}.baselines.fixed:RANDOM_ACTIONS",
        "ucbvi": f"{_HERE}.baselines.ucbvi:UCBVI_ENTRY",
        "tabular-psrl": f"{_HERE}.baselines.psrl:ENTRY",
        "ucrl2": f"{_HERE}.baselines.ucrl2:UCRL2_ENTRY",
        "ucrl-product": f"{_HERE}.baselines.ucrl2:UCRL_PRODUCT_ENTRY",
        "mbie": f"{_HERE}.baselines.ucrl2:MBIE_ENTRY",
        "rlsvi": f"{_HERE}.baselines.lsvi:RLSVI_ENTRY",
        "fmdp-bf": f"{_HERE}.baselines.ucbvi:FMDP_BF_ENTRY",
        "lsvi-ucb": f"{_HERE}.baselines.lsvi:LSVI_ENTRY",
        "matrix-rl": f"{_HERE}.baselines.lsvi:MATRIX_ENTRY",
        "olive": f"{_HERE}.baselines.olive:ENTRY",
    },
)


def register(entry: LearnerEntry) -> LearnerEntry:
    """Add a learner, so that specifications and the command line know its name."""
    return LEARNERS.add(entry)
