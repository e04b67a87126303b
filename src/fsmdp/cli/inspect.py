"""`fsmdp inspect`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsmdp.cli.app import AsJson, Quiet, Seed, command, complete_model
from fsmdp.cli.screen import print_facts, print_json, print_table, working
from fsmdp.foundation.checks import clip, plural, show_count
from fsmdp.foundation.numbers import count_of_states

if TYPE_CHECKING:
    from fsmdp.domains.registry import Domain


@command(
    "inspect",
    "fsmdp inspect --list",
    "fsmdp inspect sysadmin:ring:40",
    "fsmdp inspect rddl:Traffic_CTM_MDP_ippc2011:1",
    "fsmdp inspect rddl:Traffic_CTM_MDP_ippc2011 (all its instances)",
    "fsmdp inspect rddl: (all of rddlrepository, minutes)",
    "fsmdp inspect pump.json --json",
)
def inspect_command(
    model_text: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="A domain with options (sysadmin:[bold]ring[/bold]:8), "
            "rddl:[bold]DOMAIN[/bold]:INSTANCE, a JSON model file, or "
            "my_module:make, which is imported: its code runs.",
            autocompletion=complete_model,
        ),
    ] = None,
    list_domains: Annotated[
        bool, typer.Option("--list", help="List domains, their options, and readers.")
    ] = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Show what a model holds and how large planning would be, before any work is done."""
    from fsmdp.errors import ModelError
    from fsmdp.io.readers import read_model

    if list_domains:
        _show_domains(as_json)
        return
    if model_text is None:
        raise ModelError("inspect: expected a MODEL, or --list for the domains and their options.")
    if model_text.startswith("rddl:"):
        if ":" not in model_text.removeprefix("rddl:"):
            _survey(model_text, seed, quiet, as_json)
            return
        if not _show_problem(model_text, seed, quiet, as_json):
            return
    with working("inspecting", quiet or as_json) as update:
        model = read_model(model_text)
        update("laying out cost networks")
        facts = {"model": model_text, "seed": seed} | model_facts(model)
    if as_json:
        print_json(facts)
    else:
        _show_facts(model, facts)


def _survey(text: str, seed: int, quiet: bool, as_json: bool) -> None:
    """A line for each problem of a domain, or of the whole repository."""
    from fsmdp.io.rddl import survey

    domain = text.removeprefix("rddl:")
    with working("surveying", quiet or as_json):
        found = survey([domain] if domain else None)
    if as_json:
        print_json({"model": text, "seed": seed, "problems": found.frame().to_dicts()})
        return
    rows = []
    for one in found.reports:
        numbers = ("" if n is None else f"{n}" for n in (one.variables, one.actions, one.width))
        rows.append((one.name, one.status, *numbers, one.reason))
    sizes = ("variables", "actions", "width")
    print_table(
        f"RDDL problems: {len(found.imported)} of {len(found.reports)} imported",
        ("problem", "status", *sizes, "reason"),
        rows,
        right=sizes,
    )


def _show_problem(text: str, seed: int, quiet: bool, as_json: bool) -> bool:
    """What is in an RDDL problem, and whether it can be imported, before it is."""
    from fsmdp.io.rddl import report
    from fsmdp.io.readers import read_rddl_name

    domain, instance, _ = read_rddl_name(text)
    with working("grounding", quiet or as_json):
        found = report(domain, instance)
    imported = found.status == "imported"
    if as_json:
        if not imported:
            facts = {"status": found.status, "reason": found.reason}
            print_json({"model": text, "seed": seed} | facts)
        return imported
    print_facts(found.name, found.rows())
    return imported


def model_facts(model: Any) -> dict[str, Any]:
    """Sizes of a model, and of the cost networks of the ready-made bases."""
    from fsmdp.bounds.bellman import network_sizes
    from fsmdp.io.readers import BASES

    bases = {}
    for name, make in BASES.items():
        basis = make(model)
        bases[name] = {
            "functions": len(basis),
            "cells": model.structure(basis).cells,
            "networks": [
                {
                    "elimination": size.elimination,
                    "induced_width": size.induced_width,
                    "largest_table": size.largest_table,
                    "rows": size.rows,
                    "refused": size.refused,
                }
                for size in network_sizes(model, basis)
            ],
        }
    parents = [len(model.parents(i)) for i in range(len(model.variables))]
    scopes = [len(table.scope) for cases in model.reward_means for table in cases]
    return {
        "variables": len(model.variables),
        "sizes": sorted({variable.size for variable in model.variables}),
        "labels": {v.name: list(v.labels) for v in model.inputs if v.labels},
        "latents": len(model.latents),
        "log10_states": model.log10_states,
        "actions": model.n_actions,
        "action_variables": len(model.inputs) - len(model.variables),
        "horizon": model.horizon,
        "discount": model.discount,
        "conditions_on_actions": len(model.allowed),
        "some_action_always_allowed": model.conditions.never_stuck,
        "terminal_tables": len(model.terminal),
        "reward_terms": len(model.rewards),
        "largest_reward_scope": max(scopes, default=0),
        "largest_parents": max(parents, default=0),
        "bases": bases,
    }


def _show_facts(model: Any, facts: Mapping[str, Any]) -> None:
    count = facts["variables"]
    each = " each" if count > 1 else ""
    sizes = ", ".join(map(str, facts["sizes"]))
    rows = [
        ("states", count_of_states(facts["log10_states"])),
        ("variables", f"{count} with {sizes} values{each}"),
        ("actions", _actions_text(facts)),
        ("horizon", f"{facts['horizon'] or 'infinite'}, discount {facts['discount']:g}"),
        (
            "reward terms",
            f"{facts['reward_terms']}, of at most "
            + plural(facts["largest_reward_scope"], "variable"),
        ),
        ("parents", f"at most {facts['largest_parents']}"),
    ]
    if facts["terminal_tables"]:
        rows.insert(4, ("ends early", f"by {plural(facts['terminal_tables'], 'table')}"))
    if facts["conditions_on_actions"]:
        proved = "" if facts["some_action_always_allowed"] else "not "
        text = (
            f"by {plural(facts['conditions_on_actions'], 'condition')}; it is {proved}proved that"
        )
        rows.insert(3, ("allowed", f"{text} every state allows an action"))
    if facts["latents"]:
        rows.insert(2, ("latents", f"{facts['latents']}"))
    if facts["labels"]:
        rows.insert(2, ("labels", _labels_text(facts["labels"])))
    print_facts(str(model), rows)
    networks = []
    for name, basis in facts["bases"].items():
        for size in basis["networks"]:
            numbers = (
                ["too wide", "", ""]
                if size["refused"]
                else [str(size["induced_width"]), f"{size['largest_table']:,}", f"{size['rows']:,}"]
            )
            sizes_of_basis = (f"{basis['functions']}", f"{basis['cells']:,}", size["elimination"])
            networks.append((name, *sizes_of_basis, *numbers))
    columns = ("functions", "cells", "elimination", "width", "largest table", "rows")
    title = "Cost networks, by basis and elimination"
    print_table(title, ("basis", *columns), networks, right=columns, min_width=60)


MOST_LABELLED = 12
"""Variables whose labels are shown; JSON has all of them."""


def _labels_text(labels: Mapping[str, Sequence[str]]) -> str:
    lines = [clip(f"{name}: {', '.join(own)}") for name, own in labels.items()]
    more = len(lines) - MOST_LABELLED
    return "\n".join(lines[:MOST_LABELLED] + ([f"and {more} more"] if more > 0 else []))


def _actions_text(facts: Mapping[str, Any]) -> str:
    count = show_count(facts["actions"])
    made_of = facts["action_variables"]
    return f"{count} joint ones, of {plural(made_of, 'variable')}" if made_of else count


def defaults_of(domain: Domain) -> dict[str, Any]:
    """What options are unless they are given; those without a default are left out."""
    from inspect import Parameter, signature

    known = signature(domain.build).parameters
    found = {name: known[name].default for name in domain.options if name in known}
    return {
        name: value
        for name, value in found.items()
        if value is not Parameter.empty and (value is not None or _may_be_none(domain, name))
    }


def _may_be_none(domain: Domain, option: str) -> bool:
    """Whether none can be written for an option."""
    try:
        return domain.options[option].read("none") is None
    except ValueError:
        return False


def shown_default(value: object) -> str:
    """A default as it would be written."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def _show_domains(as_json: bool) -> None:
    from fsmdp.domains.registry import DOMAINS
    from fsmdp.io.readers import READERS

    if as_json:
        print_json(
            {
                domain.name: {
                    "summary": domain.summary,
                    "options": {name: kind.description for name, kind in domain.options.items()},
                    "defaults": defaults_of(domain),
                    "positional": list(domain.options)[: domain.positional],
                }
                for domain in DOMAINS.values()
            }
        )
        return
    rows = []
    for domain in DOMAINS.values():
        defaults = defaults_of(domain)
        options = "\n".join(
            f"{name}{'*' if place < domain.positional else ''}: {kind.description}"
            + (f" ({shown_default(defaults[name])})" if name in defaults else "")
            for place, (name, kind) in enumerate(domain.options.items())
        )
        rows.append((domain.name, domain.summary, options))
    print_table(
        "Domains: write name:value:… or name:option=value:…",
        (
            "domain",
            "what it is",
            "options (those marked * also without their names), with their defaults",
        ),
        rows,
        bold=("domain",),
        show_lines=True,
    )
    print_table(
        "Readers: what a model may be written as",
        ("reader", "text"),
        [(one.name, one.usage) for one in READERS.values() if one.usage is not None],
        bold=("reader",),
    )
