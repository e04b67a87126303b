"""Episodes of a Gymnasium environment, step by step, everything checked that it shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import plural, show
from fsmdp.foundation.numbers import plain
from fsmdp.learning.cells.kernel import Logs, count_episode, counts_of
from fsmdp.learning.learners.acting import Acting
from fsmdp.learning.learners.learner import Learner
from fsmdp.learning.learners.memory import memory_of
from fsmdp.learning.worlds.observing import first_action, reader_of
from fsmdp.model.actions import n_listed
from fsmdp.model.tables import Floats
from fsmdp.policies.arrays import CompiledPolicy, act
from fsmdp.simulation.environment import reset_environment, step_environment
from fsmdp.simulation.simulate import Record

if TYPE_CHECKING:
    import gymnasium

BEYOND_NOISE = 10.0
"""Deviations of its noise by which a reward may leave its bounds: more has chance 10^-21."""


class EnvironmentWorld:
    """Episodes of a Gymnasium environment.

    An environment of ours draws from the generator that a simulated model would; any other is
    seeded from it once. Rewards by term come from `info["rewards"]`; without it the reward must
    have a single term, or all terms must be known.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], learner: Learner, rng: np.random.Generator
    ) -> None:
        from fsmdp.simulation.environment import FactoredEnv

        structure = learner.structure
        self._env, self._learner = env, learner
        self._read = reader_of(env.observation_space, structure.variables)
        self._first_action = first_action(env.action_space, structure.actions)
        self._n_variables, self._n_inputs = len(structure.variables), len(structure.inputs)
        terms = structure.rewards
        noise = np.array([BEYOND_NOISE * term.sigma for term in terms])
        self._low = np.array([term.low for term in terms]) - noise
        self._high = np.array([term.high for term in terms]) + noise
        self._rounding = 1e-9 * np.maximum(abs(self._low), abs(self._high))
        assert structure.horizon is not None
        self._horizon, self._n_terms = structure.horizon, len(terms)
        self._record = Record(
            np.zeros((1, self._horizon + 1, self._n_inputs), dtype=np.int32),
            np.zeros((1, self._horizon), dtype=np.int64),
            np.zeros((1, self._horizon, self._n_terms)),
        )
        self._seed: int | None = None
        if isinstance(env.unwrapped, FactoredEnv):
            env.unwrapped.np_random = rng
        else:
            self._seed = int(rng.integers(2**31))

    def run(self, acting: Acting, logs: Logs, first: int, last: int) -> tuple[int, bool]:
        """Episode after episode until a plan is due."""
        learner, remember = self._learner, memory_of(self._learner)
        counts, tables = counts_of(learner.statistics), learner.cells.layout.lookup.defaults.copy()
        episode, due = first, False
        while episode < last and not due:
            steps, logs.returns[episode] = self._run_episode(acting.policy)
            due = count_episode(
                learner.cells.layout,
                acting.said,
                counts,
                learner.term_known,
                tables,
                self._record,
                steps,
                logs,
                episode,
            )
            if remember is not None:
                remember(self._record, steps)
            learner.statistics.episodes += 1
            episode += 1
        return episode, due

    def identity(self) -> str:
        """The environment's name and spaces; what is inside it cannot be seen."""
        env = self._env
        return f"{type(env.unwrapped).__name__}, {env.observation_space}, {env.action_space}"

    def random_state(self) -> dict[str, Any]:
        """State of the environment's generator, which must hold all its randomness."""
        return {"state": self._generator().bit_generator.state, "seed": self._seed}

    def set_random_state(self, state: dict[str, Any]) -> None:
        """Go on from a random state."""
        self._seed = state["seed"]
        self._generator().bit_generator.state = state["state"]

    def _generator(self) -> np.random.Generator:
        generator = self._env.unwrapped.np_random
        if not isinstance(generator, np.random.Generator):
            raise ModelError(
                f"the environment's np_random is {show(generator)}, expected a numpy Generator; "
                "call super().reset(seed=seed) in its reset, and draw from self.np_random."
            )
        return generator

    def _run_episode(self, policy: CompiledPolicy) -> tuple[int, float]:
        record, discount = self._record, self._learner.structure.discount
        observation, _ = reset_environment(self._env, self._seed)
        self._seed = None
        values = np.zeros(self._n_inputs, dtype=np.int64)
        n, n_actions = self._n_variables, n_listed(self._learner.structure.actions)
        values[:n] = record.states[0, 0, :n] = self._read(observation)
        total, weight = 0.0, 1.0
        for step in range(self._horizon):
            action: Any = act(policy, values, step, n_actions, self._generator())
            record.actions[0, step] = action
            if n < self._n_inputs:
                record.states[0, step, n:] = action = values[n:]
            seen = step_environment(self._env, action + self._first_action)
            record.rewards[0, step] = rewards = self._rewards(seen.reward, seen.info)
            for one in [seen.reward] if self._learner.term_known.all() else rewards:
                total += weight * float(one)
            weight *= discount
            values[:n] = record.states[0, step + 1, :n] = self._read(seen.observation)
            if seen.terminated:
                return step + 1, total
            if seen.truncated and step + 1 < self._horizon:
                raise ModelError(
                    f"the environment truncated the episode after {step + 1} steps, the structure "
                    f"has horizon {self._horizon}; give both the same (max_episode_steps=...)."
                )
        return self._horizon, total

    def _rewards(self, reward: float, info: Mapping[Any, Any]) -> Floats:
        """Rewards by term, all within their bounds, known terms' as well.

        Where all terms are known, episodes are worth what the environment pays in one number, which
        is then held against the sums of the bounds.
        """
        known, n_terms = self._learner.term_known, self._n_terms
        if known.all():
            self._check_sum(reward)
        if "rewards" in info:
            rewards = self._vector(info["rewards"])
        elif known.all():
            return np.zeros(n_terms)
        elif n_terms == 1:
            rewards = np.array([reward])
        else:
            raise ModelError(
                f"the environment gives no info['rewards'], but the structure has {n_terms} reward "
                "terms to learn; put a vector of the terms there, declare them "
                "(known_rewards=...), or use a structure with a single term."
            )
        below, above = rewards < self._low - self._rounding, rewards > self._high + self._rounding
        outside = below | above
        if outside.any():
            at = int(outside.argmax())
            term = self._learner.structure.rewards[at]
            noise = f"noise of {plain(term.sigma, 6)}" if term.sigma else "no noise"
            raise ModelError(
                f"the environment pays {plain(rewards[at], 6)} for {show(term.name)}, which has "
                f"{noise} and bounds [{plain(term.low, 6)}, {plain(term.high, 6)}]; widen the "
                "bounds or give a larger sigma."
            )
        return rewards

    def _check_sum(self, reward: float) -> None:
        """Refuse a reward that the terms together cannot have."""
        low, high, rounding = (
            float(part.sum()) for part in (self._low, self._high, self._rounding)
        )
        if not low - rounding <= reward <= high + rounding:
            terms = plural(self._n_terms, "known reward term")
            raise ModelError(
                f"the environment pays {plain(reward, 6)}, but {terms} of the structure can pay "
                f"{plain(low, 6)} to {plain(high, 6)} in all; widen the bounds, or correct "
                "what is declared to be known (known_rewards=...)."
            )

    def _vector(self, given: Any) -> Floats:
        try:
            rewards = np.asarray(given, dtype=np.float64)
        except Exception:  # an object that is no array may raise anything when it is made one
            rewards = np.full(0, np.nan)
        if rewards.shape != (self._n_terms,) or not np.isfinite(rewards).all():
            raise ModelError(
                f"info['rewards'] is {show(given)}, the structure has {self._n_terms} reward "
                "terms; give one finite number for each, in the structure's order."
            )
        return rewards
