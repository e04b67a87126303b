"""Joint actions: which action fluents leave their defaults, and how many may at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from itertools import product as tuples

from fsmdp.foundation.checks import show_count
from fsmdp.interop.rddl.errors import TooLargeError, UnsupportedError
from fsmdp.interop.rddl.expressions import Expression, conjunction, constant, substitute

MOST_ACTIONS = 20_000
NOOP = "noop"

Assignment = tuple[tuple[str, int], ...]
"""Action fluents that are not at their defaults, with their values."""


@dataclass(frozen=True, slots=True)
class ActionFluent:
    """A ground action fluent: its default, and the names of its values if it is not boolean."""

    name: str
    default: int
    objects: tuple[str, ...] = ()

    @property
    def others(self) -> tuple[int, ...]:
        """The values that are not the default."""
        size = len(self.objects) or 2
        return tuple(value for value in range(size) if value != self.default)

    def text(self, value: int) -> str:
        """How an action with this value is called."""
        if self.objects:
            return f"{self.name}={self.objects[value]}"
        return self.name if value else f"~{self.name}"


def count_actions(fluents: Sequence[ActionFluent], most_nondefault: int) -> int:
    """Number of joint actions, before preconditions. Cost: fluents times those allowed."""
    ways = [1] + [0] * min(most_nondefault, len(fluents))  # by number of non-default fluents
    for fluent in fluents:
        for used in range(len(ways) - 1, 0, -1):
            ways[used] += ways[used - 1] * len(fluent.others)
    return sum(ways)


def joint_actions(
    fluents: Sequence[ActionFluent],
    most_nondefault: int,
    preconditions: Sequence[Expression],
    limit: int = MOST_ACTIONS,
) -> dict[str, Assignment]:
    """Every joint action that the preconditions allow, by name; the one that does nothing first.

    A precondition that holds in some states only is refused: which actions a model has does not
    depend on the state.
    """
    for assignment in assignments(fluents, min(1, most_nondefault)):
        allows(preconditions, fluents, assignment)  # a reason that no limit would mend, first
    count = count_actions(fluents, most_nondefault)
    if count > limit:
        raise TooLargeError(
            f"{len(fluents)} action fluents, up to {most_nondefault} at once, make "
            f"{show_count(count)} joint actions (limit {limit}); lower max-nondef-actions or pass "
            "most_actions=..."
        )
    by_name = {fluent.name: fluent for fluent in fluents}
    nothing = f"~{NOOP}" if NOOP in by_name else NOOP
    allowed = {}
    for assignment in assignments(fluents, most_nondefault):
        if allows(preconditions, fluents, assignment):
            texts = [by_name[name].text(value) for name, value in assignment]
            allowed["+".join(texts) or nothing] = assignment
    if not allowed:
        raise UnsupportedError("its preconditions allow no joint action at all; correct them.")
    return allowed


def assignments(fluents: Sequence[ActionFluent], most_nondefault: int) -> Iterator[Assignment]:
    """All values of some fluents with at most so many not at their defaults; fewest first."""
    for used in range(min(most_nondefault, len(fluents)) + 1):
        for chosen in combinations(fluents, used):
            for values in tuples(*(fluent.others for fluent in chosen)):
                yield tuple((f.name, value) for f, value in zip(chosen, values, strict=True))


def allows(
    preconditions: Sequence[Expression], fluents: Sequence[ActionFluent], assignment: Assignment
) -> bool:
    """Whether preconditions allow an assignment; one that holds in some states only is refused."""
    if not preconditions:
        return True
    chosen = {fluent.name: fluent.default for fluent in fluents} | dict(assignment)
    values = {name: constant(value) for name, value in chosen.items()}
    left = conjunction(substitute(condition, values) for condition in preconditions)
    if left.is_constant:
        return bool(left.value)
    texts = ", ".join(sorted(left.fluents)[:3])
    raise UnsupportedError(
        f"its preconditions allow some actions in some states only (looking at {texts}); expected "
        "every action in every state, give forbidden actions no effect and a cost instead."
    )
