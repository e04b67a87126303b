"""`survey`: which problems of the repository can be imported, and how wide they are."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from fsmdp.errors import ModelError, SizeError
from fsmdp.foundation.checks import as_items, show, show_count
from fsmdp.foundation.numbers import count_of_states
from fsmdp.io.rddl.build import AUTO, Imported, Wanted
from fsmdp.io.rddl.compiling import MOST_ACTIONS, Folder, count_actions, joint_actions
from fsmdp.io.rddl.distributions import MOST_ENTRIES
from fsmdp.io.rddl.loading import guarded, load_source
from fsmdp.io.rddl.problem import Problem, read_problem
from fsmdp.io.rddl.sources import InvalidError, Listing, Source, find_source, repository
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.variables import table_size

if TYPE_CHECKING:
    import polars


IMPORTED, UNSUPPORTED, TOO_LARGE = "imported", "unsupported", "too large"
NOTHING: Mapping[str, int] = MappingProxyType({})
NO_ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What was found in a problem; None where it was refused before that was known.

    `status` is "imported", "unsupported" or "too large", with a `reason` unless imported.
    `largest_scope` counts the fluents that one formula looks at under one joint action: as
    written until the model is built, those that matter afterwards. `widths` gives the induced
    width of the planner's network with singles for each way to eliminate it: messages "shared" on
    one tree, or a network for each action ("separate", the widest of them).
    `aliases` are the joint actions that were merged; `seconds` is the time of the import.
    """

    name: str
    status: str
    reason: str = ""
    variables: int | None = None
    latents: int | None = None
    log10_states: float | None = None
    action_fluents: int | None = None
    joint_actions: int | None = None
    actions: int | None = None
    action_variables: int | None = None
    conditions: int | None = None
    endings: int | None = None
    reward_terms: int | None = None
    largest_scope: int | None = None
    widths: Mapping[str, int] = field(default_factory=lambda: NOTHING)
    horizon: int | None = None
    discount: float | None = None
    notes: tuple[str, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: NO_ALIASES)
    seconds: float = 0.0

    @property
    def width(self) -> int | None:
        """The smallest induced width of all ways to eliminate."""
        return min(self.widths.values(), default=None)

    def rows(self) -> list[tuple[str, str]]:
        """What to show: a name and a text for each fact that is known."""
        facts = [
            ("status", f"{self.status}: {self.reason}" if self.reason else self.status),
            ("variables", _counted(self.variables, self.latents, "latents")),
            ("states", "" if self.log10_states is None else count_of_states(self.log10_states)),
            ("action fluents", _text(self.action_fluents)),
            ("joint actions", _text(self.joint_actions)),
            ("distinct actions", _text(self.actions)),
            ("action variables", _text(self.action_variables)),
            ("conditions on actions", _text(self.conditions or None)),
            ("conditions that end an episode", _text(self.endings or None)),
            ("reward terms", _text(self.reward_terms)),
            ("largest scope", _text(self.largest_scope)),
            ("induced width", ", ".join(f"{way} {width}" for way, width in self.widths.items())),
            ("horizon", _text(self.horizon)),
            ("discount", "" if self.discount is None else f"{self.discount:g}"),
            *(("note", note) for note in self.notes),
            ("seconds", f"{self.seconds:.2f}"),
        ]
        return [(name, text) for name, text in facts if text]


def _text(count: int | None) -> str:
    return "" if count is None else show_count(count)


def _counted(count: int | None, others: int | None, noun: str) -> str:
    return f"{_text(count)} and {others} {noun}" if others else _text(count)


def report(
    domain: str | os.PathLike[str],
    instance: str | int | os.PathLike[str],
    *,
    most_actions: int = MOST_ACTIONS,
    most_entries: int = MOST_ENTRIES,
    cache: bool = True,
) -> Report:
    """What a problem holds and whether it can be imported, without an error if it cannot.

    Counts come first, from the folded formulas alone; a table is made only if it fits the limits.
    A problem that cannot be found raises, and so do files that are wrong: an InvalidError.
    """
    source = find_source(domain, instance)
    began = time.perf_counter()
    found = Report(source.name, IMPORTED)
    try:
        problem = guarded(source.name, lambda: read_problem(source))
        found = _counts(found, problem)
        counted = found
        found = guarded(source.name, lambda: _with_largest_scope(counted, problem, most_actions))
        imported = _imported(source, problem, Wanted(most_actions, most_entries), cache)
        taken = time.perf_counter() - began
        return replace(_of_model(found, imported), seconds=taken)
    except InvalidError:
        raise
    except SizeError as error:
        found = replace(found, status=TOO_LARGE, reason=_reason(error, source.name))
    except ModelError as error:
        found = replace(found, status=UNSUPPORTED, reason=_reason(error, source.name))
    return replace(found, seconds=time.perf_counter() - began)


def _reason(error: Exception, name: str) -> str:
    return str(error).removeprefix(f"{name}: ")


def _counts(found: Report, problem: Problem) -> Report:
    sizes = [len(values) for values in problem.values.values() if values is not None]
    known = len(sizes) == len(problem.values) and not problem.latents
    return replace(
        found,
        variables=len(problem.states),
        latents=len(problem.latents),
        log10_states=math.fsum(map(math.log10, sizes)) if known else None,
        action_fluents=len(problem.actions),
        joint_actions=count_actions(problem.actions, problem.most_nondefault),
        reward_terms=len(problem.rewards),
        horizon=problem.horizon,
        discount=problem.discount,
        notes=problem.notes,
    )


def _with_largest_scope(found: Report, problem: Problem, most_actions: int) -> Report:
    """Fluents of the largest formula: under each joint action, where these are listed."""
    formulas = (*problem.formulas.values(), *problem.rewards)
    if problem.conditions or (found.joint_actions or 0) > most_actions:
        return replace(found, largest_scope=max(len(one.fluents) for one in formulas))
    actions = joint_actions(
        problem.actions, problem.most_nondefault, problem.preconditions, most_actions
    )
    folder = Folder(problem.actions, tuple(actions.values()))
    largest = max(len(v.fluents) for formula in formulas for _, v in folder.variants(formula))
    return replace(found, largest_scope=largest, joint_actions=len(actions))


def _imported(source: Source, problem: Problem, wanted: Wanted, cache: bool) -> Imported:
    """The model with listed actions, which tell most about a problem, or else with variables."""
    if problem.conditions:
        return load_source(source, replace(wanted, actions=AUTO), cache)
    try:
        return load_source(source, wanted, cache)
    except SizeError:
        return load_source(source, replace(wanted, actions=AUTO), cache)


MOST_PARENTS = 2**17
"""Assignments of all that a next value depends on, up to which widths are computed."""


def _of_model(found: Report, imported: Imported) -> Report:
    model = imported.model
    scopes = [
        *(len(k.parents) + len(k.drawn) for m in model.dynamics.mechanisms for k in m.cases),
        *(len(table.scope) for means in model.reward_means for table in means),
    ]
    return replace(
        found,
        log10_states=model.log10_states,
        variables=len(model.variables),
        latents=len(model.latents),
        joint_actions=None if model.actions.variables else imported.joint_actions,
        actions=None if model.actions.variables else len(model.actions),
        action_variables=len(model.actions.variables) or None,
        conditions=len(model.allowed),
        endings=len(model.terminal),
        reward_terms=len(model.rewards),
        largest_scope=max(scopes),
        widths=MappingProxyType(network_widths(model)),
        notes=imported.notes,
        aliases=MappingProxyType({a: o for a, o in imported.aliases.items() if o}),
    )


def network_widths(model: FactoredMDP) -> dict[str, int]:
    """Induced widths of the planner's network with singles, by the way it is eliminated.

    None is refused for its size, since no table has more entries than there are states. Where a
    next value depends on very much, through auxiliary variables, none is computed.
    """
    from fsmdp.bounds.bellman import network_sizes

    sizes = model.input_sizes
    for position in range(len(model.variables)):
        for ancestry in model.dynamics.ancestry((position,)):
            if table_size(sizes[p] for p in ancestry.parent_scope) > MOST_PARENTS:
                return {}
    found = network_sizes(model, Basis.singles(model), limit=table_size(model.sizes))
    return {
        size.elimination: size.induced_width for size in found if size.induced_width is not None
    }


log = logging.getLogger("fsmdp")

COLUMNS = (
    "status",
    "reason",
    "variables",
    "latents",
    "log10_states",
    "action_fluents",
    "joint_actions",
    "actions",
    "action_variables",
    "conditions",
    "endings",
    "reward_terms",
    "largest_scope",
    "width",
    "horizon",
    "seconds",
)


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """A report for each problem looked at, without those whose text is that of an earlier one."""

    reports: tuple[Report, ...]
    contexts: tuple[str, ...]  # the competition each is from
    repeated: tuple[tuple[str, str], ...]  # a problem, and the earlier one with the same text

    @property
    def imported(self) -> tuple[Report, ...]:
        """The problems that became models."""
        return tuple(one for one in self.reports if one.status == IMPORTED)

    def frame(self) -> polars.DataFrame:
        """A row for each problem."""
        import polars

        rows = []
        for context, one in zip(self.contexts, self.reports, strict=True):
            domain, _, instance = one.name.rpartition(":")
            facts = {column: getattr(one, column) for column in COLUMNS}
            # Counts of joint actions can exceed any integer column.
            joint = facts["joint_actions"]
            facts["joint_actions"] = None if joint is None else float(joint)
            rows.append({"context": context, "domain": domain, "instance": instance, **facts})
        return polars.DataFrame(rows, infer_schema_length=None)


def survey(
    domains: Sequence[str] | None = None,
    *,
    context: str | None = None,
    cache: bool = True,
) -> Survey:
    """Reports on the repository's problems: those of some domains, of a competition, or all.

    Problems with continuous fluents or observations are listed as unsupported. Several domains
    of the repository repeat instances of earlier competitions; those are looked at once.
    Cost: importing each problem, minutes for all of them.
    """
    found: list[Report] = []
    contexts: list[str] = []
    repeated: list[tuple[str, str]] = []
    seen: dict[str, str] = {}
    for listing in _chosen(domains, context):
        for instance in listing.instances:
            source = find_source(listing.name, instance)
            first = seen.setdefault(source.digest, source.name)
            if first != source.name:
                repeated.append((source.name, first))
                continue
            log.info("survey: %s", source.name)
            found.append(_report(listing.name, instance, source.name, cache))
            contexts.append(listing.context)
    return Survey(tuple(found), tuple(contexts), tuple(repeated))


def _report(domain: str, instance: str, name: str, cache: bool) -> Report:
    try:
        return report(domain, instance, cache=cache)
    except ModelError as error:
        return Report(name, UNSUPPORTED, str(error).removeprefix(f"{name}: "))


def _chosen(domains: Sequence[str] | None, context: str | None) -> Iterator[Listing]:
    listings = repository()
    known = {listing.context for listing in listings.values()}
    if context is not None and context not in known:
        raise ModelError(
            f"survey: unknown context {show(context)}; expected one of {', '.join(sorted(known))}."
        )
    wanted = None
    if domains is not None:
        given = [domains] if isinstance(domains, str) else domains
        wanted = as_items(given, "survey, domains", "a list of names", "give them in order")
        for name in wanted:
            if name not in listings:
                raise ModelError(f"survey: unknown domain {show(name)}; see the repository's list.")
    for listing in listings.values():
        named = wanted is None or listing.name in wanted
        if named and (context is None or listing.context == context):
            yield listing
