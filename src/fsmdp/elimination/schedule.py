"""Schedules: elimination as a list of steps, run by max-sum and written out as LP rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from fsmdp.elimination.network import Network
from fsmdp.elimination.order import DEFAULT_LIMIT, LARGE, greedy_sequence
from fsmdp.model.variables import Scope

FOLDED = 8
"""A large table has terms added up beforehand that are so many times smaller."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """Something that is added up: a table of the network, or a message.

    `offset` counts from the first entry for a table, from the first message for a message;
    `producer` is the step that makes the message, -1 for a table.
    """

    scope: Scope
    offset: int
    producer: int = -1
    sign: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """message(kept) = max over eliminated of the sum of the terms.

    A final step keeps nothing: its message is the maximum of a whole class of actions.
    """

    kept: Scope
    eliminated: Scope
    terms: tuple[Term, ...]
    output: int
    n_entries: int
    is_final: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Steps in an order in which they can be run, one final step for each class of actions.

    All sizes are known here, exactly, before anything of that size is made. `n_splits` counts the
    mini-buckets beyond the first of each bucket.
    """

    network: Network
    steps: tuple[Step, ...] = field(repr=False)
    finals: tuple[int, ...] = field(repr=False)
    n_messages: int
    n_splits: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether messages are maxima; otherwise some are only bounds on them from above."""
        return self.n_splits == 0

    @property
    def n_rows(self) -> int:
        """Number of LP rows: one for each entry of each step's table."""
        return sum(step.n_entries for step in self.steps)

    @property
    def n_terms(self) -> int:
        """Number of additions of a run, and of non-zeros of the LP rows without their messages."""
        return sum(step.n_entries * len(step.terms) for step in self.steps)

    @property
    def widest(self) -> Step:
        """The step with the largest table."""
        return max(self.steps, key=lambda step: step.n_entries)

    @property
    def largest_table(self) -> int:
        """Entries of the largest table."""
        return self.widest.n_entries

    @property
    def induced_width(self) -> int:
        """Variables in the largest table, less one."""
        return max(0, max(len(step.kept) + len(step.eliminated) for step in self.steps) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """Entries that a mini-bucket may have: as many as `most`, or as some variables' own `more`."""

    most: int
    more: Mapping[int, int] = field(default_factory=dict)

    def of(self, variable: int) -> int:
        """Entries of a mini-bucket that maxes a variable out."""
        return self.more.get(variable, self.most)


@dataclass(frozen=True, slots=True)
class _Bucket:
    """One step of a plan: the terms put together (by number) and the variables eliminated."""

    members: tuple[int, ...]
    scope: Scope
    eliminated: Scope
    is_further_part: bool  # a mini-bucket of the bucket before it


class ScheduleBuilder:
    """Steps are added one after another; each returns its message as a term for later ones.

    With a `room` no step puts terms together whose table would have more entries: the terms of a
    variable are shared out among mini-buckets, each of which maxes it out by itself. The sum of
    such maxima is no less than the maximum of the sum, so that what comes out is a bound from
    above, whatever the width.
    Source: Dechter and Rish, Mini-buckets (2003).
    """

    def __init__(self, network: Network, room: Room | None = None) -> None:
        self.network = network
        self.room = room
        self.steps: list[Step] = []
        self.n_messages = 0
        self.n_splits = 0
        self._sums: dict[tuple[tuple[int, int, int], ...], Term] = {}

    def table(self, factor: int, group: int, sign: int = 1) -> Term:
        """The table of a factor's group."""
        scope = self.network.factors[factor].groups[group]
        return Term(scope, self.network.offsets[factor][group], sign=sign)

    def eliminate(self, terms: Sequence[Term], variables: Sequence[int]) -> list[Term]:
        """Max out the variables from a sum of terms; what is left is again a sum of terms.

        Only terms that hold a variable are put together, the others pass through untouched.
        Source: lazy propagation (Madsen and Jensen, 1999).
        """
        pool = list(terms)
        plan, left = self._plan(pool, variables)
        for bucket in plan:
            pool.append(self._add_bucket(bucket, pool))
        return [pool[number] for number in left]

    def add_up(self, terms: Sequence[Term], most: int) -> list[Term]:
        """The same sum in fewer terms, when there are more than `most` of them."""
        if len(terms) <= most:
            return list(terms)
        sums: dict[Scope, list[Term]] = {}
        longest_first = sorted(terms, key=lambda term: -len(term.scope))
        for _, alike in groupby(longest_first, key=lambda term: len(term.scope)):
            wider = [(set(scope), scope) for scope in sums]
            for term in alike:
                holding = (scope for members, scope in wider if members.issuperset(term.scope))
                home = term.scope if term.scope in sums else next(holding, term.scope)
                sums.setdefault(home, []).append(term)
        return [
            part[0] if len(part) == 1 else self._sum(part, scope) for scope, part in sums.items()
        ]

    def finish(self, terms: Sequence[Term], variables: Sequence[int]) -> int:
        """Max out all variables of a class of actions; returns its final step."""
        pool = list(terms)
        plan, left = self._plan(pool, variables)
        for bucket in plan[:-1]:
            pool.append(self._add_bucket(bucket, pool))
        if plan:
            # The last bucket takes in what no longer depends on any variable: no row of its own.
            last = len(pool)
            members = [*plan[-1].members, *(number for number in left if number != last)]
            self._add_step([pool[n] for n in members], (), plan[-1].scope, is_final=True)
        else:
            self._add_step([pool[number] for number in left], (), (), is_final=True)
        return len(self.steps) - 1

    def build(self, finals: Sequence[int]) -> Schedule:
        """The schedule, given the final step of each class."""
        steps, finals = tuple(self.steps), tuple(finals)
        return Schedule(self.network, steps, finals, self.n_messages, self.n_splits)

    def _plan(
        self, terms: Sequence[Term], variables: Sequence[int]
    ) -> tuple[list[_Bucket], list[int]]:
        """The cheaper of the order given and a fresh min-fill order of these terms alone.

        Of two that split buckets, the one that splits fewer.
        """
        scopes = [term.scope for term in terms]
        options = [_bucket_plan(scopes, variables, self._fit)]
        if len(variables) > 1:
            wanted = set(variables)
            kept = {variable for scope in scopes for variable in scope if variable not in wanted}
            fresh = greedy_sequence(scopes, self.network.sizes, kept)
            options.append(_bucket_plan(scopes, fresh, self._fit))
        splits, _, plan, left = min(
            ((_n_splits(plan), self._n_entries(plan), plan, left) for plan, left in options),
            key=lambda option: option[:2],
        )
        self.n_splits += splits
        return plan, left

    def _n_entries(self, plan: Iterable[_Bucket]) -> int:
        return sum(self.network.table_size(bucket.scope) for bucket in plan)

    def _fit(self, variable: int, scope: Iterable[int]) -> bool:
        if self.room is None:
            return True
        return self.network.table_size(tuple(scope)) <= self.room.of(variable)

    def _add_bucket(self, bucket: _Bucket, pool: Sequence[Term]) -> Term:
        kept = tuple(v for v in bucket.scope if v not in bucket.eliminated)
        return self._add_step([pool[n] for n in bucket.members], kept, bucket.eliminated)

    def _folded(self, terms: Sequence[Term], n_entries: int) -> list[Term]:
        """The terms of a large table, small ones added into others that hold their variables.

        An addition is then made for each entry of the other, and not for each of the table, which
        is left as it is where it is too large to be made.
        """
        if not LARGE <= n_entries <= DEFAULT_LIMIT:
            return list(terms)
        sizes = [self.network.table_size(term.scope) for term in terms]
        small = [at for at, size in enumerate(sizes) if size * FOLDED <= n_entries]
        small.sort(key=sizes.__getitem__)
        members = [set(term.scope) for term in terms]
        sums = [[term] for term in terms]
        for number, one in enumerate(small):
            home = next(
                (other for other in small[number + 1 :] if members[one] <= members[other]), None
            )
            if home is not None:
                sums[home] += sums[one]
                sums[one] = []
        return [
            part[0] if len(part) == 1 else self._sum(part, term.scope)
            for term, part in zip(terms, sums, strict=True)
            if part
        ]

    def _sum(self, terms: Sequence[Term], scope: Scope) -> Term:
        """Terms added up in a table of their own, once for all steps that use it."""
        key = tuple((term.producer, term.offset, term.sign) for term in terms)
        if key not in self._sums:
            self._sums[key] = self._add_step(terms, scope, ())
        return self._sums[key]

    def _add_step(
        self, terms: Sequence[Term], kept: Scope, eliminated: Scope, is_final: bool = False
    ) -> Term:
        size = self.network.table_size
        n_entries = size(kept) * size(eliminated)
        terms = self._folded(terms, n_entries)
        output = self.n_messages
        self.steps.append(Step(kept, eliminated, tuple(terms), output, n_entries, is_final))
        self.n_messages += size(kept)
        return Term(kept, output, producer=len(self.steps) - 1)


def _n_splits(plan: Iterable[_Bucket]) -> int:
    return sum(bucket.is_further_part for bucket in plan)


def _bucket_plan(
    scopes: Sequence[Scope], variables: Sequence[int], fit: Callable[[int, set[int]], bool]
) -> tuple[list[_Bucket], list[int]]:
    """Which terms meet in which step, and the terms left over at the end.

    Terms are numbered: those given first, then the message of each bucket. A bucket also
    eliminates every other variable whose terms all lie inside it: one table instead of two.
    """
    live: dict[int, set[int]] = {}
    pool = [set(scope) for scope in scopes]
    for number, given in enumerate(pool):
        for variable in given:
            live.setdefault(variable, set()).add(number)
    left = dict.fromkeys(range(len(scopes)))
    waiting = dict.fromkeys(variables)
    plan = []
    for variable in variables:
        if variable not in waiting or not live.get(variable):
            continue
        del waiting[variable]
        held = {number: pool[number] for number in sorted(live[variable])}
        parts = _parts(held, partial(fit, variable))
        for position, (members, scope) in enumerate(parts):
            eliminated = [variable]
            for other in sorted(scope):
                if other in waiting and all(
                    number in members or (len(parts) == 1 and pool[number] <= scope)
                    for number in live[other]
                ):
                    members |= live[other]
                    eliminated.append(other)
                    del waiting[other]
            message = scope.difference(eliminated)
            plan.append(
                _Bucket(
                    tuple(sorted(members)),
                    tuple(sorted(scope)),
                    tuple(sorted(eliminated)),
                    position > 0,
                )
            )
            for number in members:
                del left[number]
                for other in pool[number]:
                    live[other].discard(number)
            left[len(pool)] = None
            for other in message:
                live[other].add(len(pool))
            pool.append(message)
    return plan, list(left)


def _parts(
    terms: Mapping[int, set[int]], fit: Callable[[set[int]], bool]
) -> list[tuple[set[int], set[int]]]:
    """Terms in mini-buckets, each with the union of their scopes: one, if that fits.

    The widest terms first, each where it adds the fewest variables to what fits.
    """
    whole = set().union(*terms.values())
    if fit(whole):
        return [(set(terms), whole)]
    parts: list[tuple[set[int], set[int]]] = []
    for number in sorted(terms, key=lambda one: (-len(terms[one]), one)):
        homes = [
            (len(terms[number] - scope), at)
            for at, (_, scope) in enumerate(parts)
            if terms[number] <= scope or fit(scope | terms[number])
        ]
        if homes:
            members, scope = parts[min(homes)[1]]
            members.add(number)
            scope |= terms[number]
        else:
            parts.append(({number}, set(terms[number])))
    return parts


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
    """For the place of each table a factor and an action that use it."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for position, (factor, offsets) in enumerate(
        zip(network.factors, network.offsets, strict=True)
    ):
        for action in range(network.n_actions - 1, -1, -1):
            group = factor.group(action)
            size = network.table_size(factor.groups[group])
            found[offsets[group], size] = position, action
    return found
