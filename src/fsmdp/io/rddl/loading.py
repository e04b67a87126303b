"""`load`: an RDDL problem as a FactoredMDP."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import tempfile
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_whole, show
from fsmdp.foundation.disk import pack_json, read_arrays, write_arrays
from fsmdp.foundation.progress import stages
from fsmdp.io.models import actions_from_json
from fsmdp.io.rddl.build import AUTO, FACTORED, FORMS, Imported, Wanted, import_source
from fsmdp.io.rddl.compiling import MOST_ACTIONS
from fsmdp.io.rddl.distributions import MOST_ENTRIES
from fsmdp.io.rddl.sources import (
    RDDLWarning,
    Source,
    TooLargeError,
    find_source,
    located,
    repository,
)
from fsmdp.model.basis import Basis
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.rewards import Reward
from fsmdp.model.tables import Floats, Table
from fsmdp.model.variables import Scope, Variable

if TYPE_CHECKING:
    from types import ModuleType

    from fsmdp.simulation.environment import FactoredEnv


Result = TypeVar("Result")

MOST_FRAMES = 50_000
STACK_BYTES = 2**28  # reserved, not used, until formulas are nested that deeply

# The parser, the size of new stacks and the limit of recursion belong to the whole process.
_alone = threading.Lock()


def guarded(name: str, work: Callable[[], Result]) -> Result:
    """What a function returns or raises that recurs along the formulas of a problem.

    It runs in a thread of its own with a stack for MOST_FRAMES nested calls; its errors name the
    problem, and formulas nested deeper still are a TooLargeError.
    """
    done: Future[Result] = Future()

    def run() -> None:
        try:
            with located(name):
                done.set_result(work())
        except RecursionError:
            done.set_exception(
                TooLargeError(
                    f"{name}: its formulas are nested too deeply (more than {MOST_FRAMES} calls); "
                    "split them by intermediate fluents."
                )
            )
        except BaseException as error:
            done.set_exception(error)

    with _alone:
        frames, stack = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
        sys.setrecursionlimit(max(frames, MOST_FRAMES))
        try:
            thread = threading.Thread(target=run, name="fsmdp-rddl", daemon=True)
            thread.start()
            threading.stack_size(stack)
            return done.result()
        finally:
            threading.stack_size(stack)
            sys.setrecursionlimit(frames)


VERSION = 8
"""Raised whenever the importer would build another model from the same text."""

LARGEST_FILE = 2**28


def cache_folder() -> Path:
    """Where imported models are kept: $XDG_CACHE_HOME/fsmdp/rddl, or ~/.cache/fsmdp/rddl."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:  # no home is known, as in some containers
        folder = Path(tempfile.gettempdir())
    return folder / "fsmdp" / "rddl"


def cache_path(digest: str, limits: Sequence[int]) -> Path:
    """The file of a text imported under given limits."""
    key = sha256(json.dumps([VERSION, digest, *limits]).encode()).hexdigest()
    return cache_folder() / f"{key[:40]}.model"


def store(imported: Imported, path: Path) -> None:
    """Keep an imported model; a folder that cannot be written to is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(path, _encode(imported))
    except (OSError, ModelError) as error:
        log.info("%s: not kept for next time (%s)", imported.name, error)


def recall(path: Path, name: str) -> Imported | None:
    """A model kept earlier, or None if there is none that can be read."""
    if not path.is_file():
        return None
    try:
        return _decode(read_arrays(path, LARGEST_FILE, "model", "it is made again"), name)
    except (ModelError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        log.info("%s: the kept model cannot be read (%s); importing again", name, error)
        return None


class _Tables:
    """Distinct tables one after another, and where each one begins."""

    def __init__(self) -> None:
        self.parts: list[Floats] = []
        self._known: dict[bytes, int] = {}
        self._end = 0

    def place(self, table: Floats) -> int:
        content = np.ascontiguousarray(table).tobytes()
        if content not in self._known:
            self._known[content] = self._end
            self.parts.append(np.ravel(table))
            self._end += table.size
        return self._known[content]


def _encode(imported: Imported) -> dict[str, np.ndarray]:
    model, tables = imported.model, _Tables()

    def cases(listed: Sequence[Case]) -> list[Any]:
        return [
            [
                list(case.actions) if isinstance(case.actions, tuple) else None,
                case.parents,
                case.drawn,
                case.table.shape,
                tables.place(case.table),
            ]
            for case in listed
        ]

    header = {
        "variables": [[v.name, v.size, v.labels] for v in model.variables],
        "latents": [[v.name, v.size] for v in model.latents],
        "actions": model.actions.as_json(),
        "conditionals": [[c.children, cases(c.cases)] for c in model.conditionals],
        "rewards": [[r.name, cases(r.cases), r.low, r.high] for r in model.rewards],
        "allowed": cases(model.allowed),
        "terminal": cases([Case(ANY, table.scope, table.values) for table in model.terminal]),
        "horizon": model.horizon,
        "discount": model.discount,
        "initial": model.initial,
        "values": imported.values,
        "aliases": imported.aliases,
        "joint_actions": imported.joint_actions,
        "notes": imported.notes,
    }
    numbers = np.concatenate([np.zeros(0), *tables.parts])
    return {"about": pack_json(header), "numbers": numbers}


def _decode(arrays: Mapping[str, np.ndarray], name: str) -> Imported:
    header: Mapping[str, Any] = json.loads(arrays["about"].tobytes())
    numbers = arrays["numbers"]

    def cases(listed: Sequence[Any]) -> list[Case]:
        found = []
        for actions, parents, drawn, shape, start in listed:
            table = numbers[start : start + math.prod(shape)].reshape(shape)
            found.append(Case(ANY if actions is None else actions, parents, table, drawn))
        return found

    model = FactoredMDP(
        variables=[Variable(*pair) for pair in header["variables"]],
        latents=[Variable(*pair) for pair in header["latents"]],
        actions=actions_from_json(header["actions"]),
        conditionals=[Conditional(names, cases(part)) for names, part in header["conditionals"]],
        rewards=[
            Reward(label, cases(part), low, high) for label, part, low, high in header["rewards"]
        ],
        allowed=cases(header["allowed"]),
        terminal=[Table(case.parents, case.table) for case in cases(header["terminal"])],
        horizon=header["horizon"],
        discount=header["discount"],
        initial=header["initial"],
    )
    return Imported(
        name,
        model,
        {label: tuple(values) for label, values in header["values"].items()},
        {action: tuple(others) for action, others in header["aliases"].items()},
        header["joint_actions"],
        tuple(header["notes"]),
    )


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


ENTRY = "fsmdp.io.rddl.loading:make_problem_env"


def register_problems(gymnasium: ModuleType) -> None:
    """Tell Gymnasium of every domain of rddlrepository, if it is installed, and of files.

    Names are read from the repository's folders; a problem is read when it is made.
    """
    names: dict[str, dict[str, str]] = {"fsmdp/RDDL-v0": {}}
    if find_spec("rddlrepository") is not None:
        names |= {
            f"rddl/{name}-v0": {"domain": name, "instance": listing.instances[0]}
            for name, listing in repository().items()
            if listing.instances
        }
    for name, options in names.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=ENTRY, kwargs=options)


def make_problem_env(
    domain: str, instance: str | int, render_mode: str | None = None, **options: Any
) -> FactoredEnv:
    """The environment of a problem, by names or paths of files; options are those of `load`."""
    from fsmdp.simulation.environment import make_env

    return make_env(load(domain, instance, **options), render_mode)


MOST_ASSIGNMENTS = 128


def object_basis(model: FactoredMDP, most_assignments: int = MOST_ASSIGNMENTS) -> Basis:
    """Every function of the variables with the same arguments, of an imported model.

    `passed(c1)` and `taken(c1)` make a block. Variables without arguments (`hasspare`, joined
    ones) are added to every block that then has at most `most_assignments` assignments; those
    that fit nowhere, and blocks that are larger alone, are taken one variable at a time.
    """
    check_model(model, "object_basis")
    as_whole(most_assignments, "most_assignments", 2)
    by_arguments: dict[str, list[int]] = defaultdict(list)
    for position, variable in enumerate(model.variables):
        by_arguments[variable.name.partition("(")[2]].append(position)
    common = by_arguments.pop("", [])
    scopes: list[Scope] = [(position,) for position in range(len(model.variables))]
    for members in [*by_arguments.values(), []]:
        block = list(members)
        for position in common:
            if _assignments(model, [*block, position]) <= most_assignments:
                block.append(position)
        if len(block) > 1 and _assignments(model, block) <= most_assignments:
            scopes.append(tuple(sorted(block)))
    covered = {position for scope in scopes if len(scope) > 1 for position in scope}
    kept = [scope for scope in dict.fromkeys(scopes) if len(scope) > 1 or scope[0] not in covered]
    return Basis.blocks(model, kept)


def _assignments(model: FactoredMDP, scope: list[int]) -> int:
    return math.prod(model.sizes[position] for position in scope)
