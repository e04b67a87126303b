"""JIT warm-up: parts are compiled before their time is counted, once for their sources."""

import logging
import time
from collections.abc import Callable, Mapping

import numpy as np

from fsmdp.bounds.clock import NO_LIMIT, Clock
from fsmdp.bounds.finish import plan_of_constant
from fsmdp.bounds.joint import Programs
from fsmdp.bounds.problem import problem_of_model, trivial_problem
from fsmdp.bounds.regions.minimise import Minimisation
from fsmdp.compiled import is_ready, set_ready
from fsmdp.exact.flat import ENTRY_LIMIT
from fsmdp.exact.row_classes import plan_classes
from fsmdp.exact.solve import Exact, fit, sweep_back, sweep_classes
from fsmdp.foundation.threads import cores
from fsmdp.model.basis import Basis
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.variables import Variable
from fsmdp.policies.resolve import resolve
from fsmdp.reductions.actions import factored
from fsmdp.solver import parameters as tuned
from fsmdp.solver.fitting import Choices, Fitting, first_basis
from fsmdp.solver.judge import arena_of
from fsmdp.solver.search.graph import branching
from fsmdp.solver.search.search import search

log = logging.getLogger("fsmdp")

SIMULATION = "simulation"
"""What of the simulator other parts use."""

_ready: set[str] = set()


def warm_up(part: str) -> float:
    """Run a part of the solver on a tiny model, unless that was done since the sources changed.

    Returns the seconds that it took: a time limit is about planning, and would say little if the
    first call spent it on compiling.
    """
    if part in _ready:
        return 0.0
    began = time.perf_counter()
    if not is_ready(part):
        log.info("compiling the %s, once after installation", part)
        PARTS[part]()
        set_ready(part)
    _ready.add(part)
    return time.perf_counter() - began


def _simulator() -> None:
    for model in (tiny(), factored(tiny())):
        plan_of_constant(trivial_problem(model))
        arrays = resolve(model, "random").arrays
        assert arrays is not None
        arena = arena_of(model)
        arena.states(arrays, 1, 0)
        set_ready(SIMULATION)
        arena.returns(arrays, tuned.CHUNKS_TOGETHER * tuned.CHUNK_EPISODES * (cores() + 1), 0)


def _exact() -> None:
    Exact(reachable=True).plan(tiny())
    # By each way to sweep over all states.
    many = [Variable(f"x{number}", 2) for number in range(11)]
    stays = np.array([[0.9, 0.1], [0.2, 0.8]])
    model = FactoredMDP(
        many,
        ["wait", "go"],
        [Conditional(one.name, [Case(ANY, [one.name], stays)]) for one in many],
        [Reward("r", [Case("wait", ["x0"], [0.0, 1.0]), Case("go", ["x0"], [0.5, 0.0])])],
        2,
        {one.name: 0 for one in many},
    )
    sweep_back(model, *fit(model, ENTRY_LIMIT), NO_LIMIT.check)
    plan = plan_classes(model, ENTRY_LIMIT)
    assert plan is not None
    sweep_classes(plan, True, NO_LIMIT.check)


def _programs() -> None:
    for model in (tiny(), tiny(None, 0.5)):
        for basis in (Basis.singles(model), Basis.pairs(model)):
            Programs().solve(problem_of_model(model, basis), Clock())


def _fits() -> None:
    for model in (tiny(), factored(tiny())):
        _fit(model)


def _fit(model: FactoredMDP) -> None:
    arena = arena_of(model)
    fitting = Fitting(model, first_basis(model, pairs=False), Choices(), NO_LIMIT.check)
    arrays = resolve(model, "random").arrays
    assert arrays is not None
    fitting.add_states(arena.states(arrays, 50, 0))
    for _ in range(2):
        fitting.fit(NO_LIMIT.check).compiled()
        fitting.grow(4, NO_LIMIT.check)


def _successors() -> None:
    branching(tiny())


def _search() -> None:
    for model in (tiny(), tiny(None, 0.5)):
        problem = problem_of_model(model, Basis.singles(model))
        bound = Programs().solve(problem, Clock()).bound
        search(model, bound.basis, bound.weights, trials=20, fallback="wait")


def _regions() -> None:
    for model in (tiny(), tiny(None, 0.5)):
        next(Minimisation(model, NO_LIMIT.check, tuned.UNTIMED_REGION_ADDITIONS, 5).run())


PARTS: Mapping[str, Callable[[], None]] = {
    "simulator": _simulator,
    "exact solver": _exact,
    "linear programs": _programs,
    "regions": _regions,
    "fits": _fits,
    "successors": _successors,
    "search": _search,
}


def tiny(horizon: int | None = 3, discount: float = 1.0) -> FactoredMDP:
    """Two exclusive variables, a third that goes its own way, and two actions."""
    stays = np.array([[0.9, 0.1], [0.2, 0.8]])
    first = np.zeros((2, 2, 2))
    first[..., 1] = [[0.5, 0.0], [1.0, 0.0]]
    first[..., 0] = 1 - first[..., 1]
    return FactoredMDP(
        [Variable("a", 2), Variable("b", 2), Variable("c", 2)],
        ["wait", "go"],
        [
            Conditional("a", [Case(["wait"], ["a", "b"], first), Case(["go"], [], [1.0, 0.0])]),
            Conditional("b", [Case(["wait"], [], [1.0, 0.0]), Case(["go"], ["a"], stays)]),
            Conditional("c", [Case(ANY, ["c"], stays)]),
        ],
        [Reward("r", Case(ANY, ["b", "c"], [[0.0, 0.2], [0.5, 1.0]]))],
        horizon,
        {"a": 0, "b": 0, "c": 0},
        discount,
    )
