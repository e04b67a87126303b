"""`plan`: a policy and a certified bound, by the solver or by the method asked for."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any
from warnings import warn

from fsmdp.bounds.bellman import Weights
from fsmdp.bounds.bundle import Bundled
from fsmdp.bounds.cutting_planes import CuttingPlanes
from fsmdp.bounds.ellipsoid import Ellipsoid
from fsmdp.bounds.gap import Line
from fsmdp.bounds.joint import Joint, Programs
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.planner import Callback, Planner, check_callback
from fsmdp.bounds.stagewise import Stagewise
from fsmdp.errors import FsmdpWarning, ModelError
from fsmdp.foundation.checks import suggest
from fsmdp.foundation.numbers import bound_text, percent, plain
from fsmdp.foundation.progress import bar, check_progress, stages
from fsmdp.foundation.registry import Registry
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.policies.arrays import by_chance
from fsmdp.policies.joint import decision_work
from fsmdp.policies.resolve import Policy
from fsmdp.simulation.rollout import rollout
from fsmdp.solver import parameters as tuned
from fsmdp.solver.engines.fits import Fitted
from fsmdp.solver.engines.given import as_policies
from fsmdp.solver.scheduler import Auto

METHODS: Registry[type[Planner]] = Registry("method")
"""Planners by name; `METHODS.register(name, planner)` adds one of your own."""

for _name, _planner_type in (
    ("auto", Auto),
    ("fitted", Fitted),
    ("programs", Programs),
    ("stagewise", Stagewise),
    ("joint", Joint),
    ("cutting-planes", CuttingPlanes),
    ("bundled", Bundled),
    ("ellipsoid", Ellipsoid),
):
    METHODS.register(_name, _planner_type)

OF_ELIMINATION = ("limit", "elimination_order", "elimination", "mini_bucket", "invariants")


def plan(
    model: FactoredMDP,
    basis: Basis | None = None,
    method: str | Planner = "auto",
    weights: Weights = "initial",
    *,
    policies: Sequence[Policy] = (),
    callback: Callback | None = None,
    progress: bool | Callback = False,
    **options: object,
) -> Plan:
    """A policy for the model and a certified upper bound on what any policy can earn.

    By default the solver looks for the best policy it can find and for the tightest bound, until
    the relative `gap` or the `time_limit` is reached, or nothing is left to try; with a basis it
    stays within it. `callback` is called with each `Line` of its log. `progress=True` shows gap,
    policy and bound in a bar once planning takes longer than two seconds, and of other methods
    what they log; a function is called like `callback`. `policies` that you have (names of
    actions, functions of state and step, tables, plans) are judged like the solver's own: each may
    become the plan's policy, and values are fitted to the states that it visits.

    `method` is another planner, such as `Stagewise(solver="simplex")`, or the name of one:
    "fitted", "programs", "stagewise", "joint", "cutting-planes", "bundled" or "ellipsoid".
    `weights`: which states the bound should be tight at, "initial", "uniform", or a distribution
    for each variable. Further options are those of the method, if it is given by name (`gap`,
    `time_limit`, `rounds`, `seed`, `tolerance`, `w_norm`, `solver`, `epsilon`, ...), and of
    elimination (`limit`, `elimination_order`, `elimination`, `mini_bucket`, `invariants`).
    """
    of_elimination: dict[str, Any] = {
        name: options.pop(name) for name in OF_ELIMINATION if name in options
    }
    planner = find_planner(method, options)
    check_callback(callback)
    _look_for_stuck_states(check_model(model, "plan"))
    with _shown(progress, planner, model) as show_line:

        def hear(line: Line) -> None:
            for one in (callback, show_line):
                if one is not None:
                    one(line)

        heard = callback if show_line is None else hear
        given = as_policies(policies)
        return planner.plan(model, basis, weights, callback=heard, policies=given, **of_elimination)


def _look_for_stuck_states(model: FactoredMDP) -> None:
    """Refuse a model in which some episodes at random meet a state that allows no action.

    Of a model of which that is not ruled out, and in which drawing an action takes little. A
    warning says that it was not.
    """
    if model.conditions.never_stuck:
        return
    chance = by_chance(model.conditions)
    if decision_work(chance.joint) <= tuned.STUCK_WORK:
        steps = min(model.horizon or tuned.STUCK_STEPS, tuned.STUCK_STEPS)
        rollout(model, "random", tuned.STUCK_EPISODES, steps=steps)
    warn(
        "plan: it was not proved that each state allows an action (model.conditions.never_stuck); "
        "if one that can be reached does not, bounds say nothing of policies that go there.",
        FsmdpWarning,
        stacklevel=3,
    )


@contextmanager
def _shown(
    progress: bool | Callback, planner: Planner, model: FactoredMDP
) -> Iterator[Callback | None]:
    """What to call with each line of the log: the caller's function, a bar, or nothing.

    Of a planner that keeps no log, what the library says meanwhile is shown.
    """
    check_progress(progress, "of a line of the log")
    if progress and progress is not True and not planner.keeps_log:
        raise ModelError(
            f"progress: {type(planner).__name__} keeps no log to call a function with; use "
            "progress=True, or method='auto'."
        )
    if progress is not True:
        yield progress or None
        return
    time_limit = getattr(planner, "time_limit", None)
    text = "planning" if time_limit is None else f"planning, at most {plain(time_limit, 6)} s"
    if not planner.keeps_log:
        with stages(True, text):
            yield None
        return
    scale = check_model(model, "plan").largest_size_of_return
    with bar(text, None) as update:

        def show_line(line: Line) -> None:
            policy = "" if line.incumbent is None else f"policy {plain(line.incumbent, 6, scale)}, "
            # What matters most comes first, since a narrow screen cuts the end.
            bound = bound_text(line.upper_bound, line.attained, scale)
            note = f"gap {percent(line.gap)}, {policy}bound {bound}; {line.what}"
            update(line.seconds, note)

        yield show_line


def find_planner(method: str | Planner, options: Mapping[str, object]) -> Planner:
    """The planner asked for, with its options, which are checked."""
    if isinstance(method, Planner):
        if options:
            raise ModelError(
                f"plan: {method!r} has its options already, found {next(iter(options))!r} beside "
                "it; give it to the planner."
            )
        return method
    kind = METHODS.find(method)
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in options:
        if name not in known:
            raise ModelError(
                f"plan: method {method!r} has no option {name!r}; "
                f"{suggest(name, sorted((*known, *OF_ELIMINATION)))}"
            )
    return kind(**dict(options))
