"""Rollouts: a policy that tries every action in the state it is in before its incumbent goes on."""

import math
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from fsmdp.errors import ModelError, PolicyError
from fsmdp.foundation.checks import as_number, as_step, as_whole
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.foundation.threads import cores
from fsmdp.model.conditions import Conditions
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import State
from fsmdp.online.continuations import (
    ControlVariate,
    Keys,
    Scenario,
    Setting,
    VisitedStates,
    continue_each,
    fit_control_variate,
    hash_multipliers,
    new_scenario,
    new_visited_states,
)
from fsmdp.policies.arrays import CompiledPolicy, act
from fsmdp.policies.resolve import Policy, resolve
from fsmdp.simulation.simulate import CompiledModel, compile_model

MILLISECONDS = 100.0
"""Time for a decision unless it is given."""

SIGNIFICANT = 2.0
"""Standard errors by which an action must be ahead of the incumbent's to be taken instead.

The largest of several means is flattered: with 1, good incumbents are left for worse actions.
"""

CLEARLY_BEHIND = 3.0
"""Standard errors by which an action must be behind the best to be given up at once."""

RECENT = 0.5
"""Fraction of the scenarios, the last, that decide: policies of visited states improve."""

PUNCTUAL = 0.92
"""Of a decision's time: what is being simulated at its end still has to come back."""

TAIL = 1e-3
"""Without a horizon, what comes after the last simulated step counts for less than this."""

TABLE_SIZE = 2**13

TOGETHER = 2
"""Visited states are kept by so many threads, each for itself, if simulations are counted."""

FIRST_LOOK = 0.25
"""Fraction of the time that the first scenarios of all actions may take; some are left out else."""

CALL_SECONDS = 1e-3
"""Compiled code is called for about so long, so that the clock is checked in between."""


MOST_CHANGES = 8
"""Times that a joint action is changed in one decision."""

MOST_ARMS = 256
"""Changes of a joint action that are examined; of more, so many are drawn."""

ENOUGH_FOR_A_CHANGE = 0.5
"""Fraction of a decision's time after which a joint action is not changed once more."""


@dataclass(slots=True, eq=False)
class _Thread:
    """What a thread keeps during a decision."""

    rng: np.random.Generator
    scenario: Scenario
    visited: VisitedStates
    seconds: float = 0.0  # of the last pair of scenarios and arm


class Rollouts:
    """The incumbent policy, improved in each state by simulation.

    Every action is followed by the incumbent to the end of the horizon, all in the same scenarios,
    with a control variate for the draws; the better half of the actions goes on to the
    next round. The incumbent's own action is left only for one that is ahead of it by two standard
    errors of the paired difference, so the policy is no worse than its incumbent beyond error.

    Joint actions are not tried all: those are that change a single variable of the incumbent's, or,
    where no more may be nonzero, exchange two; from the one that wins, this is repeated.

    Give `simulations`, the scenarios for each action on average, and a seed fixes the action in
    each state and step; or `milliseconds` for a decision (100 unless given), on all cores.
    """

    def __init__(
        self,
        model: FactoredMDP,
        incumbent: Policy,
        *,
        simulations: int | None = None,
        milliseconds: float | None = None,
        seed: int = 0,
    ) -> None:
        self.model = check_model(model, "Rollouts")
        self.simulations, self.milliseconds = _budget(simulations, milliseconds)
        self.seed = as_whole(seed, "seed", 0)
        arrays = resolve(model, incumbent).arrays
        if arrays is None:
            raise PolicyError(
                "Rollouts: expected a policy that compiled code can follow, found one that only "
                "Python can; give a plan, a table, the name of an action, or 'random'."
            )
        self._policy: CompiledPolicy = arrays
        self._compiled: CompiledModel = compile_model(model)
        self._multipliers: Keys = hash_multipliers(len(model.variables))
        self._longest = _longest(model)
        self._variate: ControlVariate = fit_control_variate(
            self._compiled, arrays, model.discount, self._longest, self.seed
        )
        k = len(model.inputs) - len(model.variables)
        self.no_joint: Integers = np.zeros((0, k), dtype=np.int64)
        self._warm_up()

    def action(self, state: State, step: int = 1) -> str:
        """The action to take. Cost: the simulations or the time given, less if all is clear."""
        began = time.perf_counter()
        values = np.array(self.model.check_state(state), dtype=np.int64)
        row = as_step(step, self.model.horizon) - 1
        rng = generator(self.seed, Purpose.ONLINE, row, *values.tolist())
        if self.model.actions.variables:
            return self._joint_action(values, row, rng, began)
        n_actions = len(self.model.actions)
        own = act(self._policy, values, row, n_actions, rng)
        allowed = np.flatnonzero(self.model.conditions.mask(values[None])[0]).tolist()
        others = [action for action in allowed if action != own]
        if not others:
            return self.model.actions[own]
        if self.model.horizon is None:
            row = 0  # one policy for all steps, and the variate counts from the decision
        decision = _Decision(self, values, row, np.array([own, *others]), rng, began)
        return self.model.actions[decision.take()]

    def _joint_action(
        self, state: Integers, row: int, rng: np.random.Generator, began: float
    ) -> str:
        """Single changes of the incumbent's joint action, repeated from what wins."""
        n_variables, actions = len(state), self.model.actions
        values = np.append(state, np.zeros(len(actions.variables), dtype=np.int64))
        act(self._policy, values, row, 1, rng)
        chosen = values[n_variables:]
        if self.model.horizon is None:
            row = 0
        deadline = None if self.milliseconds is None else began + self.milliseconds / 1000.0
        for _ in range(MOST_CHANGES):
            rows = single_changes(self.model.conditions, state, chosen, rng)
            if len(rows) < 2:
                break
            decision = _Decision(self, state, row, np.arange(len(rows)), rng, began, rows)
            best = decision.take()
            if best == 0:
                break
            chosen = rows[best]
            if deadline is not None and time.perf_counter() >= began + ENOUGH_FOR_A_CHANGE * (
                deadline - began
            ):
                break
        return actions.name(chosen)

    def _warm_up(self) -> None:
        """Compile now, not within the first decision's time."""
        rng, nothing = generator(self.seed, Purpose.ONLINE), np.zeros(0, dtype=np.int64)
        values = np.zeros(len(self.model.inputs), dtype=np.int64)
        act(self._policy, values, 0, self.model.actions.n_cases, rng)
        thread = self.new_thread(rng, 1, 1)
        self.run(thread, values, 0, nothing, self.no_joint, np.zeros((0, 0)))

    def new_thread(self, rng: np.random.Generator, steps: int, n_arms: int) -> _Thread:
        """Room for a thread's scenarios and visited states."""
        scenario = new_scenario(self._compiled, steps, n_arms)
        return _Thread(rng, scenario, new_visited_states(TABLE_SIZE, self.model.actions.n_cases))

    def run(
        self,
        thread: _Thread,
        values: Integers,
        row: int,
        arms: Integers,
        joint: Integers,
        returns: Floats,
    ) -> None:
        """Further scenarios of one thread."""
        setting = Setting(
            self._compiled,
            self._policy,
            self._variate,
            self.model.discount,
            row,
            self._multipliers,
            thread.scenario,
            thread.visited,
        )
        continue_each(setting, thread.rng, values, arms, joint, returns)

    def steps_from(self, row: int) -> int:
        """Steps that are simulated from a step on, counted from 0."""
        return self._longest - (0 if self.model.horizon is None else row)

    def __repr__(self) -> str:
        if self.simulations is not None:
            return f"Rollouts(simulations={self.simulations}, seed={self.seed})"
        return f"Rollouts(milliseconds={self.milliseconds:g}, seed={self.seed})"


class _Decision:
    """Rounds of scenarios in one state; the first arm is the incumbent's action."""

    def __init__(
        self,
        rollouts: Rollouts,
        values: Integers,
        row: int,
        arms: Integers,
        rng: np.random.Generator,
        began: float,
        joint: Integers | None = None,
    ) -> None:
        self.joint = rollouts.no_joint if joint is None else joint
        self.rollouts, self.values, self.row, self.arms = rollouts, values, row, arms
        milliseconds = rollouts.milliseconds
        self.deadline = (
            math.inf if milliseconds is None else began + PUNCTUAL * milliseconds / 1000.0
        )
        n_threads = TOGETHER if milliseconds is None else cores()
        steps = rollouts.steps_from(row)
        self.threads = [rollouts.new_thread(own, steps, len(arms)) for own in rng.spawn(n_threads)]
        if milliseconds is not None:
            self._leave_out(rng)
        # (pairs of scenarios, arms): the means of a scenario and its mirror image
        self.returns = np.zeros((0, len(self.arms)))
        self.pairs_left = (rollouts.simulations or 0) * len(arms) / 2

    def take(self) -> int:
        """Position of the action that wins."""
        rounds = _halvings(len(self.arms))
        with ThreadPoolExecutor(len(self.threads)) as pool:
            while len(self.arms) > 1:
                self._go_on(pool, rounds)
                rounds -= 1
                if rounds <= 0 or time.perf_counter() >= self.deadline:
                    break
                self._halve()
                rounds = min(rounds, _halvings(len(self.arms)))
        return int(self.arms[winner(_recent(self.returns))])

    def _leave_out(self, rng: np.random.Generator) -> None:
        """Keep as many actions, by chance, as can be examined within a part of the time."""
        thread = self.threads[0]
        self._pairs(thread, 1, self.arms[:1])
        left = FIRST_LOOK * (self.deadline - time.perf_counter())
        most = max(1, int(left / max(1e-9, thread.seconds)))
        if most < len(self.arms):
            kept = rng.permutation(np.arange(1, len(self.arms)))[: most - 1]
            self.arms = self.arms[np.append(0, np.sort(kept))]

    def _go_on(self, pool: Executor, rounds: int) -> None:
        """A round: an equal share of what is left of the budget, on all threads."""
        if self.deadline < math.inf:
            now = time.perf_counter()
            until = now + (self.deadline - now) / rounds

            def run(thread: _Thread) -> list[Floats]:
                return self._until(thread, until)
        else:
            share = self.pairs_left / rounds / len(self.arms) / len(self.threads)
            count = max(1, round(share))
            self.pairs_left -= count * len(self.arms) * len(self.threads)

            def run(thread: _Thread) -> list[Floats]:
                return [self._pairs(thread, count, self.arms)]

        parts = list(pool.map(run, self.threads))
        # In the order of time, as far as there is one among threads.
        ordered = [part for turn in zip_longest(*parts) for part in turn if part is not None]
        self.returns = np.concatenate([self.returns, *ordered])

    def _until(self, thread: _Thread, until: float) -> list[Floats]:
        """Pairs of scenarios until the time is up, at least one."""
        found: list[Floats] = []
        while True:
            a_pair = thread.seconds * len(self.arms)
            left = until - time.perf_counter()
            if found and left < a_pair:
                return found
            count = max(1, int(min(CALL_SECONDS, left) / a_pair)) if a_pair > 0.0 else 1
            found.append(self._pairs(thread, count, self.arms))

    def _pairs(self, thread: _Thread, count: int, arms: Integers) -> Floats:
        began = time.perf_counter()
        returns = np.zeros((2 * count, len(arms)))
        self.rollouts.run(thread, self.values, self.row, arms, self.joint, returns)
        thread.seconds = (time.perf_counter() - began) / (count * len(arms))
        return 0.5 * (returns[0::2] + returns[1::2])

    def _halve(self) -> None:
        kept = survivors(self.returns, _recent(self.returns))
        self.arms, self.returns = self.arms[kept], self.returns[:, kept]


def single_changes(
    conditions: Conditions, state: Integers, chosen: Integers, rng: np.random.Generator
) -> Integers:
    """A joint action, first, and those allowed in a state that differ from it in one variable.

    Where one more nonzero would be too many, another goes back to 0 for it.
    """
    rows, actions = [chosen], conditions.actions
    for position, size in enumerate(actions.sizes):
        for value in range(size):
            if value == chosen[position]:
                continue
            changed = chosen.copy()
            changed[position] = value
            rows.append(changed)
            full = actions.at_most is not None and (changed > 0).sum() > actions.at_most
            for other in np.flatnonzero(chosen) if full else ():
                exchanged = changed.copy()
                exchanged[other] = 0
                rows.append(exchanged)
    found = np.array(rows)
    fine = actions.allowed_rows(found)
    if conditions.allowed:
        cases = np.zeros(len(found), dtype=np.int64)
        fine &= conditions.allows_each(np.tile(state, (len(found), 1)), cases, found)
    fine[0] = True
    kept = np.flatnonzero(fine)
    if len(kept) > MOST_ARMS:
        kept = np.append(0, np.sort(rng.permutation(kept[1:])[: MOST_ARMS - 1]))
    return found[kept]


def survivors(returns: Floats, recent: Floats) -> list[int]:
    """The incumbent's arm, 0, and the better half of the others that are not known to be worse.

    Of arms that did the same in every scenario the first stays.
    """
    means = recent.mean(axis=0)
    order = 1 + np.argsort(-means[1:], kind="stable")
    best = int(means.argmax())
    kept = [0]
    for arm in order[: max(1, len(means) // 2)]:
        same = (returns[:, kept] == returns[:, [arm]]).all(axis=0).any()
        behind, error = paired(recent[:, best] - recent[:, arm])
        if not same and not behind > CLEARLY_BEHIND * error:
            kept.append(int(arm))
    return kept


def winner(returns: Floats) -> int:
    """The arm of largest mean if it is clearly ahead of the first; otherwise that."""
    if len(returns) < 2:
        return 0
    best = int(returns.mean(axis=0).argmax())
    ahead, error = paired(returns[:, best] - returns[:, 0])
    rounding = 1e-12 * float(np.abs(returns).max())
    return best if ahead > SIGNIFICANT * error + rounding else 0


def paired(differences: Floats) -> tuple[float, float]:
    """Mean of differences and its standard error, infinite for fewer than two."""
    if len(differences) < 2:
        return float(differences.mean()), math.inf
    error = differences.std(ddof=1) / math.sqrt(len(differences))
    return float(differences.mean()), float(error)


def _recent(returns: Floats) -> Floats:
    return returns[math.floor(len(returns) * (1.0 - RECENT)) :]


def _halvings(n_arms: int) -> int:
    return max(1, math.ceil(math.log2(n_arms)))


def _budget(simulations: int | None, milliseconds: float | None) -> tuple[int | None, float | None]:
    if simulations is not None and milliseconds is not None:
        raise ModelError(
            "Rollouts: expected simulations= or milliseconds=, found both; give one of them."
        )
    if simulations is not None:
        return as_whole(simulations, "simulations", 1), None
    if milliseconds is None:
        return None, MILLISECONDS
    number = as_number(milliseconds, "milliseconds", "give the time for a decision, such as 100")
    if number <= 0.0:
        raise ModelError(
            f"milliseconds: expected more than 0, found {number:g}; give the time for a decision."
        )
    return None, number


def _longest(model: FactoredMDP) -> int:
    if model.horizon is not None:
        return model.horizon
    return max(1, math.ceil(math.log(TAIL) / math.log(model.discount)))
