"""`fsmdp discover`."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from fsmdp.cli.app import AsJson, Model, Quiet, Seed, command
from fsmdp.cli.screen import print_json, print_lines, print_table
from fsmdp.foundation.checks import plural

if TYPE_CHECKING:
    from fsmdp.discovery.discover import Discovery, Edge

MOST_EPISODES = 100_000
"""Episodes that are recorded; written here too, since help imports no simulator."""

MOST_UNDECIDED = 10
"""Edges that are not decided and are shown; of more, it is said how many."""


@command(
    "discover",
    "fsmdp discover sysadmin:ring:8",
    "fsmdp discover pump.json --episodes 10000 --delta 0.01",
    "fsmdp discover my_module:make --max-parents 3 --json",
)
def discover_command(
    model_text: Model,
    episodes: Annotated[
        int, typer.Option(help="Episodes to play at random.", min=1, max=MOST_EPISODES)
    ] = 2000,
    max_parents: Annotated[
        int, typer.Option(help="Parents to look for, of each variable.", min=1)
    ] = 10,
    delta: Annotated[
        float, typer.Option(help="Probability with which any edge that is claimed may be wrong.")
    ] = 0.05,
    anywhere: Annotated[
        float, typer.Option(help="Share of the episodes that begins in any state.", min=0, max=1)
    ] = 0.5,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Find who depends on whom in episodes of random actions, without reading the model itself.

    Nothing is claimed about edges that are missing; those that there may be are undecided.
    """
    from fsmdp.discovery.discover import discover
    from fsmdp.io.readers import read_model

    began = time.perf_counter()
    found = discover(
        read_model(model_text),
        max_parents=max_parents,
        delta=delta,
        episodes=episodes,
        anywhere=anywhere,
        seed=seed,
        progress=not (quiet or as_json),
    )
    seconds = time.perf_counter() - began
    if as_json:
        print_json(
            {
                "model": model_text,
                "seed": seed,
                "episodes": episodes,
                "anywhere": anywhere,
                "transitions": found.n_transitions,
                "delta": delta,
                "parents": found.parents,
                "apart": found.apart,
                "evidence": [asdict(one) for one in found.evidence],
                "together": [asdict(one) for one in found.together],
                "undecided": [asdict(one) for one in found.undecided],
                "seconds": seconds,
            }
        )
    else:
        _show(found, seconds)


def _parent(edge: Edge) -> str:
    return edge.parent + (f" (or {' and '.join(edge.instead)})" if edge.instead else "")


def _show(found: Discovery, seconds: float) -> None:
    from fsmdp.discovery.discover import STATE

    rows = []
    for name in found.parents:
        parents = [_parent(edge) for edge in found.evidence if edge.child == name]
        rows.append((name, ", ".join(parents) or "none", ", ".join(found.apart[name])))
    print_table(
        f"{plural(len(found.evidence), 'edge')} in {found.n_transitions:,} transitions",
        ("variable", "parents", "moves otherwise under"),
        rows,
        caption=f"none of them wrong with probability {1 - found.delta:g}, if each variable's true "
        "parents are among those found or seem to matter",
    )
    lines = []
    for pair in found.together:
        provided = "" if pair.given == STATE else ", if the parents found of one of them are all"
        lines.append(f"drawn together: {pair.one}, {pair.other}{provided}")
    for edge in found.undecided[:MOST_UNDECIDED]:
        lines.append(f"undecided: {edge.parent} -> {edge.child}: {edge.reason}")
    if len(found.undecided) > MOST_UNDECIDED:
        more = len(found.undecided) - MOST_UNDECIDED
        lines.append(f"and {more} more that are undecided (--json lists all)")
    print_lines(*lines, f"{seconds:.1f} s")
