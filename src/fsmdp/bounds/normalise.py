"""Rewards in a unit of their own, so that every planner sees the same numbers.

A planner compares, scales and stops by numbers of a fixed size. Before it plans, each reward term
is moved so that its least mean is 0, and all are divided by a power of two so that their spans add
up to a number from 1 to 2:

    R(s, a) = factor * R'(s, a) + offset,    V_l(s) = factor * V'_l(s) + offset * (steps left)

Neither the unit of rewards nor a constant that is added to a term changes R', so that neither
changes the policy, the status or the bound in units of rewards. Dividing by a power of two is
exact; what subtracting rounds off, and what rounds when values are translated back, is added to
bounds, so that they hold for the model as it was given.
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from fsmdp.bounds.bound import LinearProof
from fsmdp.bounds.gap import Candidate, Incumbent, Line
from fsmdp.bounds.plan import Plan, PlannedPolicy
from fsmdp.bounds.problem import trivial_problem
from fsmdp.model.cases import Case
from fsmdp.model.marginals import EPSILON, UNDERFLOW
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.tables import Floats
from fsmdp.policies.greedy import Greedy

LARGEST_EXPONENT = 600
"""Of the power of two: beyond, numbers would leave the range in which scaling is exact."""


@dataclass(frozen=True, slots=True, eq=False)
class Normalised:
    """A model with normalised rewards, and the way back for all that is found of it.

    `middle` is what the offset adds to values at each step, as near as floats come; `above` and
    `below` are no less and no more than that, with what rounding the rewards can change.
    """

    original: FactoredMDP
    model: FactoredMDP
    factor: float  # a power of two
    middle: Floats = field(repr=False)  # (horizon + 1,), last 0; (1,) if infinite
    above: Floats = field(repr=False)
    below: Floats = field(repr=False)

    def value(self, number: float) -> float:
        """An expected return from the start, in the user's unit."""
        return float(self.factor * number + self.middle[0])

    def upper(self, number: float, excess: float = 0.0) -> float:
        """An upper bound at the start, in the user's unit, and perhaps more; never below it."""
        return self._moved(number, self.above, 1.0, excess)

    def lower(self, number: float) -> float:
        """A lower bound at the start, in the user's unit; never above the truth."""
        return self._moved(number, self.below, -1.0)

    def line(self, line: Line) -> Line:
        """A line of the log; its gap is in the user's unit already."""
        return replace(
            line,
            incumbent=None if line.incumbent is None else self.value(line.incumbent),
            standard_error=None
            if line.standard_error is None
            else self.factor * line.standard_error,
            upper_bound=self.upper(line.upper_bound),
        )

    def plan(self, found: Plan) -> Plan:
        """A plan of the normalised model as one of the original.

        The trivial bound is that of the original, which is not rounded by moving rewards.
        """
        if self.model is self.original:
            return found
        moved = self._moved_plan(found)
        trivial = trivial_problem(self.original).trivial
        assert trivial is not None
        bound = moved.bound
        values = bound.values
        if trivial.upper_bound <= values.upper_bound:
            weights = np.zeros_like(values.weights)
            weights[: len(trivial.constants), 0] = trivial.constants
            values = LinearProof(values.basis, weights, trivial.certificate, values.program)
        return replace(moved, bound=replace(bound, values=values, trivial=trivial.upper_bound))

    def _moved_plan(self, found: Plan) -> Plan:
        bound, record = found.bound, found.record
        return replace(
            found,
            policy=self._policy(found.policy),
            bound=replace(
                bound,
                values=bound.values.moved(self),
                at_start=tuple(proof.moved(self) for proof in bound.at_start),
            ),
            record=replace(
                record,
                candidates=tuple(map(self._candidate, record.candidates)),
                lines=tuple(map(self.line, record.lines)),
            ),
            incumbent=None if found.incumbent is None else self._incumbent(found.incumbent),
        )

    def weights(self, weights: Floats) -> tuple[Floats, float]:
        """Weights that satisfy the original's Bellman inequalities if these satisfy the model's.

        The constant of step l takes up the offset; rounding it up at step l + 1 asks for as much
        more at step l. Returned with the most that V_1 was rounded up by.
        """
        found = self.factor * weights
        if not self.above.any():
            return found, 0.0
        horizon, discount, excess = self.original.horizon, self.original.discount, 0.0
        for row in reversed(range(1 if horizon is None else horizon)):
            constant, added = float(found[row, 0]), float(self.above[row])
            total = constant + added
            rounding = _rounding(total, constant, added)
            margin = rounding + discount * excess
            found[row, 0] = total + margin
            excess = margin + rounding
        return found, excess

    def _moved(self, number: float, added: Floats, direction: float, excess: float = 0.0) -> float:
        if not math.isfinite(number):
            return number
        scaled = self.factor * number
        if not added.any():
            return scaled
        total = scaled + float(added[0]) + excess
        return total + direction * _rounding(total, scaled, float(added[0]))

    def _policy(self, policy: PlannedPolicy) -> PlannedPolicy:
        if not isinstance(policy, Greedy):
            return policy
        steps = policy.entries.shape[0]
        return policy.moved(self.factor, self.middle[:steps])

    def _incumbent(self, known: Incumbent) -> Incumbent:
        model, limit = self.original, known.lower_limit
        return replace(
            known,
            mean=self.value(known.mean),
            standard_error=self.factor * known.standard_error,
            lower_limit=None if limit is None else self.lower(limit),
            scale=model.largest_size_of_return,
            span=model.span_of_return,
        )

    def _candidate(self, one: Candidate) -> Candidate:
        error = one.standard_error
        return replace(
            one,
            mean=self.value(one.mean),
            standard_error=None if error is None else self.factor * error,
        )


def unchanged(model: FactoredMDP) -> Normalised:
    """The model as it is."""
    nothing = np.zeros(1 if model.horizon is None else model.horizon + 1)
    return Normalised(model, model, 1.0, nothing, nothing, nothing)


def normalise(model: FactoredMDP) -> Normalised:
    """Move and scale the rewards of a model. Cost: the size of their tables.

    Where episodes end early rewards are only scaled: a constant would be earned for fewer steps.
    """
    least = [min(float(table.values.min()) for table in means) for means in model.reward_means]
    span = sum(
        max(float(table.values.max()) for table in means) - low
        for means, low in zip(model.reward_means, least, strict=True)
    )
    if model.terminal:
        least = [0.0] * len(least)
    exponent = math.frexp(span)[1] - 1 if span > 0 else 0
    exponent = max(-LARGEST_EXPONENT, min(exponent, LARGEST_EXPONENT))
    if exponent == 0 and not any(least):
        return unchanged(model)
    unit, error, rewards = 2.0**-exponent, Fraction(0), []
    for reward, low in zip(model.rewards, least, strict=True):
        moved, lost = _moved_reward(reward, low, unit)
        rewards.append(moved)
        error += Fraction(lost)
    offset = sum(map(Fraction, least), Fraction(0))
    return Normalised(
        model,
        model.with_rewards(rewards),
        2.0**exponent,
        _added(model, offset, 0.0),
        _added(model, offset + error, 1.0),
        _added(model, offset - error, -1.0),
    )


def _moved_reward(reward: Reward, low: float, unit: float) -> tuple[Reward, float]:
    """A term less a constant, in a unit, and the most that a difference was rounded by."""
    cases, lost = [], 0.0
    for case in reward.cases:
        difference = case.table - low
        # The error of a difference is a float itself (Knuth's TwoSum).
        back = difference - case.table
        error = (case.table - (difference - back)) + (-low - back)
        lost = max(lost, float(np.abs(error).max(initial=0.0)))
        cases.append(Case(case.actions, case.parents, unit * difference, case.drawn))
    tables = [case.table for case in cases if case.table.size]
    lowest = min((float(table.min()) for table in tables), default=0.0)
    highest = max((float(table.max()) for table in tables), default=0.0)
    bounds = unit * (reward.low - low), unit * (reward.high - low)
    bounded = min(lowest, bounds[0]), max(highest, bounds[1])
    return Reward(reward.name, cases, *bounded, unit * reward.sigma), lost


def _added(model: FactoredMDP, offset: Fraction, direction: float) -> Floats:
    """What the offset is worth from each step on, rounded up, down, or to the nearest (0)."""
    discount = model.discount
    one = float(offset)
    if one != offset and direction:
        one = math.nextafter(one, direction * math.inf)
    if model.horizon is None:
        value = one / (1 - discount)
        return np.array([value + direction * 8 * EPSILON * abs(value)])
    found = np.zeros(model.horizon + 1)
    for row in reversed(range(model.horizon)):
        later = discount * found[row + 1]
        value = one + later
        found[row] = value + direction * 4 * EPSILON * (abs(one) + abs(later))
    return found


def _rounding(total: float, *parts: float) -> float:
    return 8 * EPSILON * (abs(total) + sum(map(abs, parts))) + UNDERFLOW
