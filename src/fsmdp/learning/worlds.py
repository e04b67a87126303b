"""Where episodes come from: a model simulated by compiled code, or any Gymnasium environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.errors import ModelError
from fsmdp.learning.acting import Acting, Learner, Logs, count_episode, counts_of, run_until_grown
from fsmdp.model.lookup import Integers
from fsmdp.model.structure import Structure
from fsmdp.simulation.compiled import compile_model
from fsmdp.simulation.policies import CompiledPolicy, choose
from fsmdp.simulation.simulate import Record, new_record

if TYPE_CHECKING:
    import gymnasium


class World(Protocol):
    """Runs episodes for a learner, which sees nothing but what is recorded."""

    def run(self, acting: Acting, logs: Logs, first: int, last: int) -> tuple[int, bool]:
        """Run episodes from `first` on; the one that comes next, and whether a plan is due."""
        ...

    def random_state(self) -> dict[str, Any]:
        """State of the random generator between two episodes."""
        ...

    def set_random_state(self, state: dict[str, Any]) -> None:
        """Go on from a random state."""
        ...


def open_world(source: Any, learner: Learner, rng: np.random.Generator) -> World:
    """The world of a FactoredMDP or of a Gymnasium environment, checked against the Structure."""
    if hasattr(source, "dynamics") and hasattr(source, "reward_means"):
        return ModelWorld(source, learner, rng)
    if hasattr(source, "reset") and hasattr(source, "observation_space"):
        return EnvironmentWorld(source, learner, rng)
    raise ModelError(
        f"learn: expected a FactoredMDP or a Gymnasium environment, found {type(source).__name__}."
    )


class ModelWorld:
    """Whole episodes by compiled code; the learner is handed what happened, not the model."""

    def __init__(self, model: Any, learner: Learner, rng: np.random.Generator) -> None:
        structure = learner.structure
        _check_sizes("the model", [v.size for v in model.variables], structure)
        _check_actions("the model", len(model.actions), structure)
        _check_terms("the model", len(model.rewards), structure)
        if model.horizon != structure.horizon:
            raise ModelError(
                f"the model has horizon {model.horizon}, the structure {structure.horizon}; give "
                "both the same."
            )
        assert structure.horizon is not None
        self._learner = learner
        self._rng = rng
        self._model = compile_model(model)
        self._slots = np.zeros(self._model.n_slots, dtype=np.int64)
        self._record = new_record(self._model, 1, structure.horizon)

    def run(self, acting: Acting, logs: Logs, first: int, last: int) -> tuple[int, bool]:
        """One call for all episodes up to the next plan."""
        learner = self._learner
        reached, due = run_until_grown(
            self._model,
            self._rng,
            learner.structure.discount,
            self._record.actions.shape[1],
            learner.cells.layout,
            acting.policy,
            acting.values,
            acting.q,
            acting.widths,
            acting.replan_at,
            counts_of(learner.statistics),
            learner.term_known,
            self._slots,
            self._record,
            logs,
            first,
            last,
        )
        learner.statistics.episodes += reached - first
        return reached, due

    def random_state(self) -> dict[str, Any]:
        """State of the simulator's generator."""
        return dict(self._rng.bit_generator.state)

    def set_random_state(self, state: dict[str, Any]) -> None:
        """Go on from a random state."""
        self._rng.bit_generator.state = state


class EnvironmentWorld:
    """Episodes of a Gymnasium environment, step by step in Python.

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
        self._read, sizes = _observation_reader(env, structure)
        _check_sizes("the environment", sizes, structure)
        first_action = getattr(env.action_space, "start", 0)
        n_actions = getattr(env.action_space, "n", None)
        if n_actions is None:
            raise ModelError(
                f"the environment's actions are {env.action_space}; expected Discrete, wrap it."
            )
        _check_actions("the environment", int(n_actions), structure)
        self._first_action, self._n_actions = int(first_action), int(n_actions)
        self._sizes = np.array([variable.size for variable in structure.variables])
        self._noiseless = np.array([term.sigma == 0 for term in structure.rewards], dtype=np.bool_)
        self._low = np.array([term.low for term in structure.rewards])
        self._high = np.array([term.high for term in structure.rewards])
        assert structure.horizon is not None
        self._horizon, self._n_terms = structure.horizon, len(structure.rewards)
        self._record = Record(
            np.zeros((1, self._horizon + 1, len(self._sizes)), dtype=np.int32),
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
        learner = self._learner
        counts, tables = counts_of(learner.statistics), learner.cells.layout.lookup.defaults.copy()
        episode, due = first, False
        while episode < last and not due:
            steps, logs.returns[episode] = self._run_episode(acting.policy)
            due = count_episode(
                learner.cells.layout,
                acting.values,
                acting.q,
                acting.widths,
                acting.replan_at,
                counts,
                learner.term_known,
                tables,
                self._record,
                steps,
                logs,
                episode,
            )
            learner.statistics.episodes += 1
            episode += 1
        return episode, due

    def random_state(self) -> dict[str, Any]:
        """State of the environment's generator, which must hold all its randomness."""
        return {"state": self._env.unwrapped.np_random.bit_generator.state, "seed": self._seed}

    def set_random_state(self, state: dict[str, Any]) -> None:
        """Go on from a random state."""
        self._seed = state["seed"]
        self._env.unwrapped.np_random.bit_generator.state = state["state"]

    def _run_episode(self, policy: CompiledPolicy) -> tuple[int, float]:
        record, discount = self._record, self._learner.structure.discount
        observation, _ = self._env.reset(seed=self._seed)
        self._seed = None
        state = self._checked_state(observation)
        record.states[0, 0] = state
        total, weight = 0.0, 1.0
        for step in range(self._horizon):
            rng = self._env.unwrapped.np_random
            action = choose_action(policy, state, step, self._n_actions, rng)
            found = self._env.step(action + self._first_action)
            observation, reward, terminated, truncated, info = found
            record.rewards[0, step] = rewards = self._checked_rewards(float(reward), info)
            for one in [reward] if self._learner.term_known.all() else rewards:
                total += weight * float(one)
            weight *= discount
            record.actions[0, step] = action
            state = self._checked_state(observation)
            record.states[0, step + 1] = state
            if terminated:
                return step + 1, total
            if truncated and step + 1 < self._horizon:
                raise ModelError(
                    f"the environment truncated the episode after {step + 1} steps, the structure "
                    f"has horizon {self._horizon}; give both the same (max_episode_steps=...)."
                )
        return self._horizon, total

    def _checked_state(self, observation: Any) -> Integers:
        state: Integers = self._read(observation)
        wrong = (state < 0) | (state >= self._sizes)
        if wrong.any():
            at = int(wrong.argmax())
            variable = self._learner.structure.variables[at]
            raise ModelError(
                f"the environment shows value {state[at]} of {variable.name!r}, the structure "
                f"expects 0 to {variable.size - 1}; enlarge the variable or shift the values."
            )
        return state

    def _checked_rewards(self, reward: float, info: dict[str, Any]) -> np.ndarray:
        known = self._learner.term_known
        if "rewards" in info:
            rewards = np.asarray(info["rewards"], dtype=np.float64)
            if rewards.shape != (self._n_terms,):
                raise ModelError(
                    f"info['rewards'] has shape {rewards.shape}, the structure has {self._n_terms} "
                    "reward terms; give one number for each, in the structure's order."
                )
        elif known.all():
            return np.zeros(self._n_terms)
        elif self._n_terms == 1:
            rewards = np.array([reward])
        else:
            raise ModelError(
                f"the environment gives no info['rewards'], but the structure has {self._n_terms} "
                "reward terms to learn; put a vector of the terms there, declare them "
                "(known_rewards=...), or use a structure with a single term."
            )
        outside = self._noiseless & ~known & ((rewards < self._low) | (rewards > self._high))
        if outside.any():
            at = int(outside.argmax())
            term = self._learner.structure.rewards[at]
            raise ModelError(
                f"the environment pays {rewards[at]:.6g} for {term.name!r}, which has no noise and "
                f"bounds [{term.low:.6g}, {term.high:.6g}]; widen the bounds or give a sigma."
            )
        return rewards


@compiled()
def choose_action(
    policy: CompiledPolicy, state: Integers, step: int, n_actions: int, rng: np.random.Generator
) -> int:
    """One action, as the compiled simulator would choose it; `step` counts from 0."""
    return choose(policy, state, step, n_actions, rng)


def _observation_reader(
    env: gymnasium.Env[Any, Any], structure: Structure
) -> tuple[Any, list[int]]:
    """How to read a state off an observation, and the sizes of its variables."""
    space = env.observation_space
    kind = type(space).__name__
    if kind == "MultiDiscrete" and len(space.shape or ()) == 1:
        start = np.asarray(space.start, dtype=np.int64)  # type: ignore[attr-defined]
        sizes = [int(size) for size in space.nvec]  # type: ignore[attr-defined]
        return lambda seen: np.asarray(seen, dtype=np.int64) - start, sizes
    if kind == "Discrete":
        first, n = int(space.start), int(space.n)  # type: ignore[attr-defined]
        sizes = [variable.size for variable in structure.variables]
        if int(np.prod(sizes)) != n:
            raise ModelError(
                f"the environment has {n} states in one number, the structure's variables have "
                f"{int(np.prod(sizes))} joint values; use one variable of size {n}, or several "
                "whose sizes multiply to it (the last one runs fastest)."
            )
        strides = np.cumprod([1, *reversed(sizes[1:])])[::-1]
        # The first digit is left whole, so that a number out of range shows there.
        wraps = np.array([np.iinfo(np.int64).max, *sizes[1:]])
        return lambda seen: (int(seen) - first) // strides % wraps, sizes
    raise ModelError(
        f"the environment's observations are {space}; expected MultiDiscrete (one number for each "
        "variable) or Discrete, wrap it (gymnasium.ObservationWrapper)."
    )


def _check_sizes(what: str, sizes: list[int], structure: Structure) -> None:
    expected = [variable.size for variable in structure.variables]
    if sizes == expected:
        return
    if len(sizes) != len(expected):
        raise ModelError(
            f"{what} has {len(sizes)} variables, the structure {len(expected)}; describe every "
            "variable in the structure, in the same order."
        )
    at = next(i for i, size in enumerate(sizes) if size != expected[i])
    raise ModelError(
        f"variable {structure.variables[at].name!r} (position {at}) has {sizes[at]} values in "
        f"{what} and {expected[at]} in the structure; give it size {sizes[at]}."
    )


def _check_actions(what: str, n_actions: int, structure: Structure) -> None:
    if n_actions != len(structure.actions):
        raise ModelError(
            f"{what} has {n_actions} actions, the structure {len(structure.actions)}; name every "
            "action in the structure, in the same order."
        )


def _check_terms(what: str, n_terms: int, structure: Structure) -> None:
    if n_terms != len(structure.rewards):
        raise ModelError(
            f"{what} has {n_terms} reward terms, the structure {len(structure.rewards)}; describe "
            "every term in the structure, in the same order."
        )
