"""Regions of a model: grown from single variables, and the reward terms shared out among them."""

from collections.abc import Sequence

from fsmdp.bounds.regions.layout import Parts, Region, region_cases

LARGEST_REWARD = 2**16
"""Entries of a reward term that gets a region of its own; a larger one counts with its maximum."""


def cover(parts: Parts, most_inner: float, most_all: float) -> list[Region]:
    """Overlapping regions: grown from the variable that is least covered, until all are.

    `most_inner` and `most_all` limit the assignments of an interior, and of all axes times cases.
    A variable that depends on too many others is in no interior: its value is chosen at every step.
    """
    count = dict.fromkeys(parts.narrow, 0)
    found: dict[frozenset[int], None] = {}
    while count and min(count.values()) == 0:
        seed = min(count, key=lambda v: (count[v], len(parts.neighbours[v]), v))
        interior = grow(parts, frozenset((seed,)), most_inner, most_all)
        found[interior] = None
        for variable in interior:
            count[variable] += 1
    kept = [one for one in found if not any(one < other for other in found)]
    return [Region(interior) for interior in kept]


def grow(
    parts: Parts, interior: frozenset[int], most_inner: float, most_all: float
) -> frozenset[int]:
    """Add the variable that adds least to what a region sees, of those connected most."""
    while True:
        near = set().union(*(parts.neighbours[variable] for variable in interior)) - interior
        options = []
        for variable in near:
            tried = interior | {variable}
            if parts.size(tried) > most_inner:
                continue
            size = parts.extent(tried)
            if size <= most_all:
                own = parts.parents((variable,))
                links = len(own & interior) + sum(
                    variable in parts.parents((one,)) for one in interior
                )
                options.append((size, -links, variable))
        for _, _, variable in sorted(options):
            tried = interior | {variable}
            region = Region(tried)
            if parts.size(parts.scope(tried)) * len(region_cases(parts, region)) <= most_all:
                interior = tried
                break
        else:
            return interior


def share_rewards(parts: Parts, regions: Sequence[Region]) -> tuple[list[Region], list[int]]:
    """Regions with shares of the rewards, and the terms that are left to the hub.

    A term goes to the regions whose interior has its variables and that tell its actions apart
    already; otherwise to those that see its variables; otherwise it gets a region of its own.
    """
    scopes = [parts.scope(region.interior) | region.extra for region in regions]
    shares: list[list[tuple[int, int]]] = [[] for _ in regions]
    counts = [len(region_cases(parts, region)) for region in regions]
    more: list[Region] = []
    left = []
    for term, means in enumerate(parts.model.reward_means):
        scope = {position for table in means for position in table.scope}
        if not scope or (len(scope) == 1 and min(scope) >= parts.n_variables):
            left.append(term)
            continue
        seen = [at for at, own in enumerate(scopes) if scope <= own]
        if not seen:
            if parts.size(scope) > LARGEST_REWARD:
                left.append(term)
            else:
                more.append(Region(frozenset(), frozenset(scope), ((term, 1),)))
            continue
        inner = [
            at for at in seen if {p for p in scope if p < parts.n_variables} <= regions[at].interior
        ]
        if len(means) > 1:

            def same(at: int, term: int = term) -> bool:
                region = regions[at]
                tried = Region(region.interior, region.extra, ((term, 1),))
                return len(region_cases(parts, tried)) == counts[at]

            inner = [at for at in inner if same(at)] or [at for at in seen if same(at)] or inner
        chosen = inner or seen
        for at in chosen:
            shares[at].append((term, len(chosen)))
    found = [
        Region(region.interior, region.extra, tuple(own))
        for region, own in zip(regions, shares, strict=True)
    ]
    return found + more, left
