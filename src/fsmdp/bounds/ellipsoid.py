"""The ellipsoid method on the joint program, as in the paper: the reference for small problems.

The weights of all steps, w in R^n with n = steps * functions, lie in an ellipsoid
E = {x + B u : |u| <= 1}, at first a ball around 0. Each iteration cuts E through its centre x:

    an inequality a . w >= r that x violates (the separation oracle):  keep a . w >= a . x
    otherwise, x being feasible, the objective:                        keep c . w <= c . x

and replaces what is kept by the smallest ellipsoid around it, whose volume is smaller by a factor
of at least exp(-1 / (2 (n + 1))). The gap falls by a factor e in about 2 n^2 iterations, whatever
the number of states.

Source: Groetschel, Lovasz and Schrijver, Geometric Algorithms and Combinatorial Optimization
(1988), chapters 3 and 4. Paper: Algorithm 2 and Theorem 2; the paper searches for the objective
by bisection, the cuts through the objective do the same without starting again.
"""

import math
import time
from dataclasses import dataclass, field

import numpy as np

from fsmdp.bounds.bellman import BellmanNetwork, Intervals, reward_scale, value_span
from fsmdp.bounds.certificate import certify, separate
from fsmdp.bounds.clock import NO_LIMIT, Clock, Status
from fsmdp.bounds.conditioning import conditioning_of
from fsmdp.bounds.finish import Solved, finish
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.planner import Count, Planner, Seconds, Size, Tolerance, require_optimism
from fsmdp.bounds.problem import Problem
from fsmdp.errors import PlanningError
from fsmdp.model.structure import sum_of_discounts
from fsmdp.model.tables import Floats

LARGEST_DIMENSION = 200
ITERATION_LIMIT = 1_000_000
SLACK_FOR_ROUNDING = 1e-10
"""Every ellipsoid is made larger by this much, so that rounding never cuts off what it holds."""


@dataclass(frozen=True, slots=True)
class Ellipsoid(Planner):
    """The paper's Algorithm 2, as a reference for small problems; `epsilon` in spans of values."""

    epsilon: Tolerance = 1e-3
    radius: Size = None
    deep_cuts: bool = False
    iteration_limit: Count = ITERATION_LIMIT
    time_limit: Seconds = None

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """The joint program to within epsilon spans of values."""
        clock = clock or self.own_clock
        require_optimism(problem, "ellipsoid")
        found = solve_ellipsoid(
            problem.network,
            problem.intervals,
            problem.means,
            epsilon=self.epsilon * value_span(problem.network, problem.intervals),
            radius=self.radius,
            deep_cuts=self.deep_cuts,
            iteration_limit=self.iteration_limit,
            clock=clock,
        )
        solved = Solved(
            "ellipsoid",
            found.status,
            found.weights,
            found.objective,
            found.lower_bound,
            rows=0,
            columns=found.weights.size,
            iterations=found.iterations,
            seconds={"solve": found.seconds},
            tolerance=self.epsilon,
        )
        return finish(problem, solved, clock)


@dataclass(frozen=True, slots=True, eq=False)
class EllipsoidSolution:
    """The best weights found, and how much better any others in the first ball can be.

    `objective` is that of `weights`, which are feasible for certain (lifted by their certificate).
    `lower_bound` holds for all feasible weights in the first ball. Those outside can be lower, but
    not by much: the program is convex, so with the first ball's radius R every feasible v has

        c . v >= objective - (objective - lower_bound) * max(1, |v - weights| / (R - |weights|)),

    distances being those of coordinates.
    """

    status: Status
    weights: Floats = field(repr=False)  # (n_steps, n_functions)
    objective: float
    lower_bound: float
    iterations: int
    seconds: float


def solve_ellipsoid(
    network: BellmanNetwork,
    intervals: Intervals,
    means: Floats,
    *,
    epsilon: float = 1e-3,
    radius: float | None = None,
    deep_cuts: bool = False,
    iteration_limit: int = ITERATION_LIMIT,
    clock: Clock = NO_LIMIT,
) -> EllipsoidSolution:
    """Solve the joint program to within `epsilon` by cuts through the centres of ellipsoids.

    `radius` is that of the first ball, in coordinates: weights of functions scaled to a largest
    absolute value of 1, or of remainders of functions that are nearly dependent. Weights with
    sum_j |w_j| <= W at every step lie in a ball of radius sqrt(steps) * W. By default W is four
    times the largest value that any state can have, and the ball grows until the weights found lie
    in its inner half. `deep_cuts` cut at the inequality itself instead of through the centre: the
    same answer in fewer iterations, not as in the paper.
    Cost: about 2 n^2 log(1 / epsilon) iterations of n^2 operations and a max-sum for each step.
    """
    n_steps, n_functions = network.n_weight_rows, len(network.basis)
    if n_steps * n_functions > LARGEST_DIMENSION:
        raise PlanningError(
            f"the ellipsoid method would search for {n_steps} x {n_functions} = "
            f"{n_steps * n_functions} weights, expected at most {LARGEST_DIMENSION}; use "
            "method='joint' or 'cutting-planes' (the same program), or 'stagewise'."
        )
    grows = radius is None
    radius = _default_radius(network, intervals) if radius is None else radius
    search = _Search(network, intervals, means, epsilon, deep_cuts)
    status = search.run(radius, iteration_limit, clock)
    while grows and status is Status.OPTIMAL and search.distance() > radius / 2:
        radius *= 4
        status = search.run(radius, iteration_limit, clock)
    return EllipsoidSolution(
        status,
        search.weights,
        search.scale * search.objective,
        search.scale * search.lower_bound,
        search.iterations,
        time.perf_counter() - search.began,
    )


@dataclass(slots=True, eq=False)
class _Ellipsoid:
    """{centre + factor u : |u| <= 1}; a factor, not its square, so that it stays one."""

    centre: Floats  # (n,)
    factor: Floats  # (n, n)

    def extent(self, direction: Floats) -> float:
        """How far the ellipsoid reaches from its centre: the maximum of direction . (w - x)."""
        return float(np.linalg.norm(direction @ self.factor))

    def cut(self, normal: Floats, depth: float = 0.0) -> None:
        """Keep normal . w <= normal . x - depth * extent, for 0 <= depth < 1.

        With u = B' a / |B' a| and g = B u:
        x <- x - (1 + n depth) / (n + 1) g
        B <- sqrt(n^2 (1 - depth^2) / (n^2 - 1)) (B + (q - 1) g u'),
        q^2 = (n - 1) (1 - depth) / ((n + 1) (1 + depth)).
        """
        n = len(self.centre)
        image = normal @ self.factor
        image /= np.linalg.norm(image)
        step = self.factor @ image
        self.centre = self.centre - (1 + n * depth) / (n + 1) * step
        if n == 1:
            self.factor = self.factor * ((1 - depth) / 2 * (1 + SLACK_FOR_ROUNDING))
            return
        q = math.sqrt((n - 1) * (1 - depth) / ((n + 1) * (1 + depth)))
        growth = math.sqrt(n * n * (1 - depth * depth) / (n * n - 1))
        self.factor += np.outer((q - 1) * step, image)
        self.factor *= growth * (1 + SLACK_FOR_ROUNDING)


class _Search:
    """The best weights so far, which one ball hands on to the next."""

    def __init__(
        self,
        network: BellmanNetwork,
        intervals: Intervals,
        means: Floats,
        epsilon: float,
        deep_cuts: bool,
    ) -> None:
        self.began = time.perf_counter()
        self.network, self.intervals, self.means = network, intervals, means
        # Everything below is in units of the largest reward.
        self.scale = reward_scale(intervals)
        self.epsilon, self.deep_cuts = epsilon / self.scale, deep_cuts
        self.conditioning = conditioning_of(network, intervals)
        self.shape = (network.n_weight_rows, self.conditioning.n_coordinates)
        self.units = self.conditioning.steps(self.shape[0])
        self.cost = np.zeros(self.units.shape[1])
        self.cost[: self.shape[1]] = means @ self.conditioning.matrix
        self.weights = np.zeros((self.shape[0], len(means)))
        self.best: Floats = np.zeros(len(self.cost))
        self.objective = math.inf
        self.lower_bound = -math.inf
        self.iterations = 0

    def distance(self) -> float:
        """Of the best coordinates from 0."""
        return self.scale * float(np.linalg.norm(self.best))

    def weights_of(self, coordinates: Floats) -> Floats:
        """Weights (n_steps, n_functions)."""
        return self.scale * self.conditioning.weights(coordinates.reshape(self.shape))

    def run(self, radius: float, iteration_limit: int, clock: Clock) -> Status:
        """Search a ball around 0; the lower bound is that of this ball."""
        n = len(self.cost)
        ellipsoid = _Ellipsoid(np.zeros(n), radius / self.scale * np.eye(n))
        self.lower_bound = -math.inf
        first = self.iterations
        while True:
            # The gap takes about n^2 iterations to halve: a certificate every n loses nothing.
            if (self.iterations - first) % n == 0:
                self._improve(ellipsoid.centre)
            reach = ellipsoid.extent(self.cost)
            lowest = float(self.cost @ ellipsoid.centre) - reach
            # Every cut keeps the weights that are better than the best.
            self.lower_bound = min(max(self.lower_bound, lowest), self.objective)
            if self.objective - self.lower_bound <= self.epsilon:
                return Status.OPTIMAL
            if clock.status is not None:
                return clock.status
            if self.iterations >= iteration_limit:
                return Status.ITERATION_LIMIT
            self.iterations += 1
            if not self._cut(ellipsoid, reach):
                self.lower_bound = self.objective
                return Status.OPTIMAL

    def _cut(self, ellipsoid: _Ellipsoid, reach: float) -> bool:
        """Cut once; False if nothing better than the best weights is left."""
        normal, excess = self.cost, float(self.cost @ ellipsoid.centre) - self.objective
        if excess < 0:
            weights = self.weights_of(ellipsoid.centre)
            found = separate(self.network, self.intervals, weights)
            if found.violation > 0:
                normal = np.ravel(-found.normal @ self.units)
                excess = found.violation / self.scale
                reach = ellipsoid.extent(normal)
            else:
                self._improve(ellipsoid.centre)
                normal, excess = self.cost, float(self.cost @ ellipsoid.centre) - self.objective
        if excess >= reach:
            return False
        ellipsoid.cut(normal, excess / reach if self.deep_cuts else 0.0)
        return True

    def _improve(self, centre: Floats) -> None:
        certificate, lifted = certify(
            self.network, self.intervals, self.weights_of(centre), self.means
        )
        if certificate.upper_bound / self.scale < self.objective:
            self.weights, self.objective = lifted, certificate.upper_bound / self.scale
            self.best = centre.copy()


def _default_radius(network: BellmanNetwork, intervals: Intervals) -> float:
    rewards = network.right_side(np.zeros(len(network.basis)), intervals)
    largest = max(network.elimination.maximise(sign * rewards).value for sign in (1.0, -1.0))
    steps = math.sqrt(network.n_weight_rows) * sum_of_discounts(network.horizon, network.discount)
    return 4 * max(largest, 1e-3 * reward_scale(intervals)) * steps
