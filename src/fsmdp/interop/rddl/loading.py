"""`load`: an RDDL problem as a FactoredMDP."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_whole, show
from fsmdp.foundation.progress import stages
from fsmdp.interop.rddl.actions import MOST_ACTIONS
from fsmdp.interop.rddl.build import AUTO, FACTORED, FORMS, Imported, Wanted, import_source
from fsmdp.interop.rddl.cache import cache_path, recall, store
from fsmdp.interop.rddl.distributions import MOST_ENTRIES
from fsmdp.interop.rddl.errors import RDDLWarning
from fsmdp.interop.rddl.guarding import guarded
from fsmdp.interop.rddl.sources import Source, find_source
from fsmdp.model.mdp import FactoredMDP

log = logging.getLogger("fsmdp")

PathLike = str | os.PathLike[str]


def load(
    domain: PathLike,
    instance: PathLike | int,
    *,
    join: bool = False,
    most_actions: int = MOST_ACTIONS,
    most_entries: int = MOST_ENTRIES,
    actions: str = AUTO,
    cache: bool = True,
    progress: bool | Callable[[str], None] = False,
) -> FactoredMDP:
    """An RDDL problem as a model with the same probabilities and rewards.

    `domain` and `instance` are names in rddlrepository (`"SysAdmin_MDP_ippc2011"`, `1`), or the
    paths of two files. Variables are the ground state fluents (`running(c1)`), actions the joint
    actions (`reboot(c1)`, `noop`), actions that do the same being one. Booleans are 0 and 1;
    objects count from 0 in the order of their type.

    With `join`, booleans of which provably at most one is true at a time, such as `robot-at(x,y)`,
    become one variable, `robot-at`. The states that are then left out cannot be reached, and plans
    are far better without them.

    Where several action fluents may leave their defaults at once, `actions="factored"` imports them
    as action variables, with no list of joint actions; "listed" lists them; "auto" takes variables
    from the number of joint actions at which they are cheaper, unless `join` is asked for.
    Preconditions on actions alone rule joint values out.

    What is left out of a problem is told in a RDDLWarning; what cannot be expressed is refused,
    and so are more than `most_actions` joint actions or a table of more than `most_entries`
    numbers. Models are kept in the user's cache folder, by the text they came from, unless
    `cache` is false. `progress`: True shows what is being done once it takes longer than two
    seconds; a function is called with each such line.
    """
    if actions not in FORMS:
        raise ModelError(f"actions: expected one of {', '.join(FORMS)}, found {show(actions)}.")
    if join and actions == FACTORED:
        raise ModelError(
            "join: exclusive fluents are joined where actions are listed; leave out join or "
            "actions='factored'."
        )
    source = find_source(domain, instance)
    wanted = Wanted(most_actions, most_entries, join, actions)
    with stages(progress, "loading"):
        imported = load_source(source, wanted, cache)
    for note in imported.notes:
        warnings.warn(f"{imported.name}: {note}", RDDLWarning, stacklevel=2)
    return imported.model


def load_source(source: Source, wanted: Wanted | None = None, cache: bool = True) -> Imported:
    """A model with what was found on the way, from the cache if it is there."""
    wanted = wanted or Wanted()
    key = (
        as_whole(wanted.most_actions, "most_actions", 1),
        as_whole(wanted.most_entries, "most_entries", 1),
        int(wanted.join),
        FORMS.index(wanted.actions),
    )
    path = cache_path(source.digest, key) if cache else None
    found = recall(path, source.name) if path else None
    if found is None:
        found = guarded(source.name, lambda: import_source(source, wanted))
        if path:
            store(found, path)
    return found
