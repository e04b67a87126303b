"""Schedules in words that anyone can check: which tables are added up, which variables maxed out.

Whoever runs the steps gets a bound on the maximum of an action's sum if only its final step adds up
each of the action's tables once: each message is no less than what it stands for at every state.
Tables of other actions may be in it if they are taken out again.
"""

from __future__ import annotations

from dataclasses import dataclass

from fsmdp.elimination.network import Network
from fsmdp.elimination.schedule import Schedule, Term


@dataclass(frozen=True, slots=True)
class Hint:
    """Steps as (terms, variables maxed out), and the final step of every action.

    A term is (factor, action, sign), the table of a factor under an action, or (step,), the message
    of an earlier step.
    """

    steps: tuple[tuple[tuple[tuple[int, ...], ...], tuple[int, ...]], ...]
    finals: tuple[int, ...]


def hint_of(schedule: Schedule) -> Hint | None:
    """The hint of a schedule; None if a table in it is that of no action."""
    network = schedule.network
    tables = _tables(network)
    steps = []
    for step in schedule.steps:
        terms: list[tuple[int, ...]] = []
        for term in step.terms:
            if term.producer >= 0:
                terms.append((term.producer,))
                continue
            named = tables.get(_place(network, term))
            if named is None:
                return None
            terms.append((*named, term.sign))
        steps.append((tuple(terms), step.eliminated))
    finals = [schedule.finals[one] for one in network.class_of_action]
    return Hint(tuple(steps), tuple(finals))


def _place(network: Network, term: Term) -> tuple[int, int]:
    # Tables of no entries there are none, so that an offset is that of one table.
    return term.offset, network.table_size(term.scope)


def _tables(network: Network) -> dict[tuple[int, int], tuple[int, int]]:
    """For the place of each table a factor and an action that look at it."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for position, (factor, offsets) in enumerate(
        zip(network.factors, network.offsets, strict=True)
    ):
        for action in range(network.n_actions - 1, -1, -1):
            group = factor.group(action)
            size = network.table_size(factor.groups[group])
            found[offsets[group], size] = position, action
    return found
