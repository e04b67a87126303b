"""From a solver's weights to a plan: certify, lift, and take the best bound there is."""

import time
from dataclasses import dataclass, field, replace

import numpy as np

from fsmdp.bounds.bellman import OPTIMISTIC, BellmanNetwork, Intervals, value_span
from fsmdp.bounds.bound import Bound, Program, linear_proof
from fsmdp.bounds.certificate import Certificate, certify, seconds_of_excesses
from fsmdp.bounds.clock import CONFIRMED, NO_LIMIT, Clock, Status, Stopped
from fsmdp.bounds.plan import Plan, Record
from fsmdp.bounds.problem import Problem
from fsmdp.errors import PlanningError
from fsmdp.foundation.checks import check_size
from fsmdp.model.lookup import Lookup, scope_lookup
from fsmdp.model.tables import Floats
from fsmdp.policies.greedy import Greedy

OPEN = 5
"""So many tolerances may lie between a certified value and its dual bound."""


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """What a method returns: weights for all steps, bounds on the program's value, effort."""

    method: str
    status: Status
    weights: Floats = field(repr=False)  # (n_steps, n_functions)
    objective: float
    dual_bound: float
    rows: int
    columns: int
    iterations: int
    seconds: dict[str, float]
    policy_weights: Floats | None = field(default=None, repr=False)  # if they are others
    choices: tuple[str, ...] = ()
    tolerance: float = CONFIRMED


def finish(problem: Problem, solved: Solved, clock: Clock) -> Plan:
    """A plan with the best bound there is, which may be the trivial one.

    Weights that time does not suffice to certify make a policy all the same.
    """
    began = time.perf_counter()
    network = problem.network
    if solved.status is Status.UNBOUNDED:
        known = problem.start, problem.uniform
        if not any(np.array_equal(problem.means, means) for means in known):
            raise PlanningError(
                "the objective has no minimum: no distribution over states has the means that the "
                "weights ask for; use weights='initial', 'uniform', or a distribution by variable."
            )
        # The mean of a bound under a distribution has a minimum: the solver has lost its way among
        # numbers of very different sizes.
        solved = replace(solved, status=Status.INACCURATE)
    bounds = [] if problem.trivial is None else [_trivial_bound(problem)]
    found = _certified(problem, solved.weights, clock)
    if found is not None:
        bounds.append(found)
    weights, policy = solved.weights, found
    if solved.policy_weights is not None:
        weights = solved.policy_weights
        policy = _certified(problem, weights, clock)
    if not bounds:
        raise PlanningError(
            "time was too short to certify a bound; give more of it (time_limit=...)."
        )
    certificate, lifted = min(bounds, key=lambda bound: bound[0].upper_bound)
    certified = float(problem.means @ (lifted if found is None else found[1])[0])
    enough = OPEN * max(solved.tolerance, CONFIRMED) * value_span(network, problem.intervals)
    status = clock.status or _confirmed(solved.status, certified - solved.dual_bound, enough)
    weights = np.nan_to_num(weights) if policy is None else policy[1]
    acting = greedy_policy(network, problem.intervals, weights, problem.view)
    policy_weights = _with_last_step(weights, network.horizon)
    program = Program(
        len(network.basis),
        network.elimination.induced_width,
        solved.rows,
        solved.columns,
        solved.iterations,
        solved.objective,
        certified,
        solved.dual_bound,
        policy_weights,
        policy is not None,
        problem.view,
    )
    values = linear_proof(network, _with_last_step(lifted, network.horizon), certificate, program)
    seconds = {"network": problem.seconds} | solved.seconds
    seconds["certificate"] = time.perf_counter() - began
    return Plan(
        acting,
        Bound(
            network.variables,
            network.horizon,
            network.discount,
            values,
            trivial=np.inf if problem.trivial is None else problem.trivial.upper_bound,
        ),
        Record(solved.method, status, seconds, (network.elimination.why, *solved.choices)),
    )


def plan_of_constant(problem: Problem, status: Status = Status.OPTIMAL) -> Plan:
    """What can be said at once of any model: the trivial bound, and the greedy policy for now."""
    assert problem.trivial is not None
    bound = problem.trivial.upper_bound
    weights = np.zeros((problem.network.n_weight_rows, 1))  # lifted, they are the trivial ones
    solved = Solved("none", Status.OPTIMAL, weights, bound, bound, 0, 0, 0, {})
    found = finish(problem, solved, NO_LIMIT)
    values = replace(found.bound.values, program=None)
    return replace(
        found,
        bound=replace(found.bound, values=values),
        record=replace(found.record, status=status),
    )


def _confirmed(status: Status, left_open: float, enough: float) -> Status:
    """A solver's word that it found the optimum counts if a dual bound leaves little open."""
    if status is Status.INFEASIBLE:
        return Status.FAILED  # the constant always is feasible: the solver lost its way
    if status is Status.OPTIMAL and not left_open <= enough:
        return Status.INACCURATE
    return status


def _certified(
    problem: Problem, weights: Floats, clock: Clock
) -> tuple[Certificate, Floats] | None:
    """Weights lifted to be feasible, or nothing if there are none or time is up."""
    if not np.isfinite(weights).all() or not clock.has(seconds_of_excesses(problem.network) / 2):
        return None
    parts = problem.network, problem.intervals, weights, problem.start, problem.view
    try:
        return certify(*parts, clock)
    except Stopped:
        return None


def _trivial_bound(problem: Problem) -> tuple[Certificate, Floats]:
    assert problem.trivial is not None
    return problem.trivial.certificate, problem.trivial.weights(len(problem.network.basis))


def _with_last_step(weights: Floats, horizon: int | None) -> Floats:
    """Values are 0 after the last step."""
    return weights if horizon is None else np.vstack([weights, np.zeros((1, weights.shape[1]))])


LARGEST_POLICY = 2**29
"""Numbers in the terms of Q of all steps: 4 GiB."""


def greedy_policy(
    network: BellmanNetwork, intervals: Intervals, weights: Floats, view: str = OPTIMISTIC
) -> Greedy:
    """The greedy policy of weights (n_steps, n_functions)."""
    return Greedy(
        network.variables,
        network.actions,
        network.horizon,
        greedy_lookup(network),
        q_entries_of(network, intervals, weights, view),
    )


def q_entries_of(
    network: BellmanNetwork, intervals: Intervals, weights: Floats, view: str = OPTIMISTIC
) -> Floats:
    """Entries of the terms of Q at every step, from weights (n_steps, n_functions).

    The entries of a step are made from the weights of the step after.
    """
    following = weights
    if network.horizon is not None:
        following = np.vstack([weights[1:], np.zeros((1, weights.shape[1]))])
    n_entries = network.elimination.network.n_entries - network.rewards_at.start
    check_size(
        len(following) * n_entries,
        LARGEST_POLICY,
        f"a policy of {len(following)} steps x {n_entries} terms of Q =",
        "use a shorter horizon, None (an infinite one) with a discount, or a smaller basis",
        unit="numbers",
    )
    if network.conditions or not intervals.exact:
        sides = (network.right_side(w, intervals, view) for w in following)
        return np.stack([network.q_entries(side) for side in sides])
    entries = np.empty((len(following), n_entries))
    entries[:, : network.n_rewards] = intervals.rewards
    backups = entries[:, network.n_rewards :]
    np.take(following, network.backup_columns, axis=1, out=backups, mode="clip")
    backups *= intervals.high
    backups *= network.discount
    return entries


def greedy_lookup(network: BellmanNetwork) -> Lookup:
    """Look-up of the terms of Q, in the order of their entries."""
    sizes = tuple(variable.size for variable in network.inputs)
    return scope_lookup(network.q_scopes, sizes, network.actions.n_cases)
