"""`survey`: which problems of the repository can be imported, and how wide they are."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_items, show
from fsmdp.interop.rddl.inspection import IMPORTED, UNSUPPORTED, Report, report
from fsmdp.interop.rddl.sources import Listing, find_source, repository

if TYPE_CHECKING:
    import polars

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
