"""A model as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import FsmdpError, ModelError
from fsmdp.foundation.checks import as_whole, clip, is_number, plural, show
from fsmdp.foundation.numbers import plain
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.policies.arrays import given_action
from fsmdp.policies.joint import AllowedValues, RandomActions, random_actions
from fsmdp.simulation.simulate import compile_model, new_record, simulate

MOST_STARTS = 1000
"""Starts that are drawn until one is not terminal."""

RESET = ("observation", "info")
STEP = ("observation", "reward", "terminated", "truncated", "info")


class Step(NamedTuple):
    """What a step of an environment shows."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[Any, Any]


def reset_environment(
    env: Any, seed: int | None = None, options: dict[str, Any] | None = None
) -> tuple[Any, Mapping[Any, Any]]:
    """Observation and info at the beginning of an episode."""
    placed: dict[str, Any] = {} if options is None else {"options": options}
    found = _call("reset", lambda: env.reset(seed=seed, **placed))
    observation, info = _parts(found, RESET, "reset")
    return observation, _as_info(info, "reset")


def step_environment(env: Any, action: Any) -> Step:
    """What comes of an action."""
    found = _parts(_call("step", lambda: env.step(action)), STEP, "step")
    observation, reward, terminated, truncated, info = found
    return Step(
        observation,
        read_number(reward, "reward"),
        _as_flag(terminated, "terminated"),
        _as_flag(truncated, "truncated"),
        _as_info(info, "step"),
    )


def read_number(value: Any, what: str) -> float:
    """A finite number, or a ModelError."""
    scalar = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    if is_number(scalar) and np.isfinite(scalar):
        return float(scalar)
    raise ModelError(
        f"the environment's {what} is {show(value)}, expected a finite number; fix it or wrap it."
    )


def _call(name: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (FsmdpError, KeyboardInterrupt, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(
            f"the environment's {name} failed ({type(error).__name__}: {clip(str(error))}); fix it "
            "or wrap it."
        ) from error


def _parts(found: Any, names: tuple[str, ...], call: str) -> tuple[Any, ...]:
    if not isinstance(found, tuple) or len(found) != len(names):
        raise ModelError(
            f"the environment's {call} returned {show(found)}, expected ({', '.join(names)}); wrap "
            "it if it was written for an older Gym."
        )
    return found


def _as_flag(value: Any, what: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ModelError(
            f"the environment's {what} is {show(value)}, expected True or False; return a bool."
        )
    return bool(value)


def _as_info(info: Any, call: str) -> Mapping[Any, Any]:
    if not isinstance(info, Mapping):
        raise ModelError(
            f"the environment's {call} returned {show(info)} as info, expected a dictionary; "
            "return {} if there is nothing to say."
        )
    return info


Observation = NDArray[np.int64]


class FactoredEnv(gymnasium.Env[Observation, Any]):
    """Episodes of a FactoredMDP, one step at a time.

    Observations are states in variable order, actions are positions (names work too), or, where
    actions are made of variables, their values (and whatever else says which). The reward
    is the sum of `info["rewards"]`, the vector of reward terms. Episodes terminate in terminal
    states, with the reward of the step that leads there, and are truncated at the horizon.
    `reset(options={"state": [...]})` starts from a given state.

    An action that is not allowed in the present state raises a PolicyError. `action_masks()` says
    which are, as `info["action_mask"]` does for listed actions; `action_space.sample()` draws one
    of them. Before an episode, and once after `action_space.seed(seed)`, it draws one for the
    start. Episodes begin in states that are not terminal: other starts are drawn again.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, model: FactoredMDP, render_mode: str | None = None) -> None:
        if render_mode is not None and not (isinstance(render_mode, str) and render_mode == "ansi"):
            raise ModelError(f"render_mode {show(render_mode)}: expected 'ansi' (text) or None.")
        self.model = check_model(model, "FactoredEnv")
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.MultiDiscrete(list(model.sizes))
        self.action_space: gymnasium.spaces.Space[Any] = _action_space(self)
        self._chance: RandomActions | None = None
        self._allowed: AllowedValues | None = None
        self._compiled = compile_model(model)
        self._given = given_action(self._compiled.n_variables, model.actions)
        self._record = new_record(self._compiled, 1, 1)
        self._values = np.zeros(self._compiled.n_slots, dtype=np.int64)
        self._return = np.zeros(1)
        self._step: int | None = None
        self._over, self._expects_start = False, True
        self._last = ""

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; step 1 comes next."""
        # Everything is checked before anything changes.
        state = self._given_state(options)
        super().reset(seed=None if seed is None else as_whole(seed, "seed", 0))
        self._simulate(restart=True, steps=0)
        for _ in range(MOST_STARTS if state is None else 0):
            if not self._is_over():
                break
            self._simulate(restart=True, steps=0)
        if state is not None:
            self._values[: len(state)] = state
        self._step = 1
        self._over, self._expects_start = self._is_over(), False
        self._last = "start"
        return self._observation(), self._info({"step": self._step})

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action, by position or name, or by the values of its variables."""
        horizon = self.model.horizon
        ended = self._over or (horizon is not None and (self._step or 0) > horizon)
        if self._step is None or ended:
            raise gymnasium.error.ResetNeeded("the episode is over or not begun: call reset().")
        actions = self.model.actions
        choice = actions.read(action)
        self.model.conditions.check(self._observation().tolist(), choice)
        self._expects_start = False
        self._given.give(choice)
        name = actions.name(choice)
        self._simulate(restart=False, steps=1)
        self._step += 1
        rewards = self._record.rewards[0, 0].copy()
        reward = float(rewards.sum())
        self._last = f"{name}, reward {plain(reward, 4)}"
        self._over = self._is_over()
        truncated = not self._over and horizon is not None and self._step > horizon
        info = self._info({"rewards": rewards, "step": self._step})
        return self._observation(), reward, self._over, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Which listed actions are allowed in the present state, (n_actions,).

        Where actions are made of variables, which values of each occur in some allowed joint
        action, one variable after another: (sum of their sizes,).
        """
        state, goes_on = self._present(self._step is None), np.bool_(not self._over)
        if not self.model.actions.variables:
            return np.asarray(self.model.conditions.mask(state[None])[0] & goes_on)
        if self._allowed is None:
            self._allowed = AllowedValues(self.model.conditions)
        return np.asarray(np.concatenate(self._allowed(state)) & goes_on)

    def draw_action(self, rng: np.random.Generator) -> Any:
        """An action that is allowed in the present state, all alike."""
        if self._chance is None:
            self._chance = random_actions(self.model.conditions)
        state, self._expects_start = self._present(self._expects_start), self._step is None
        cases, values = self._chance.draw(state[None], rng)
        return values[0] if self.model.actions.variables else np.int64(cases[0])

    def expect_start(self) -> None:
        """The next action that is drawn is one for the start of an episode."""
        self._expects_start = True

    def _present(self, start: bool) -> Observation:
        """The state, or one in which an episode may begin."""
        if not start:
            return self._observation()
        starts = self.model.initial_distributions()
        return np.array([int(start.argmax()) for start in starts], dtype=np.int64)

    def _is_over(self) -> bool:
        return bool(self.model.terminal) and self.model.is_terminal(self._observation().tolist())

    def _info(self, info: dict[str, Any]) -> dict[str, Any]:
        """With the mask of listed actions, where some are not always allowed."""
        if self.model.allowed and not self.model.actions.variables:
            info["action_mask"] = self.action_masks().astype(np.int8)
        return info

    def render(self) -> str | None:
        """The state as a line of text."""
        if self.render_mode is None:
            return None
        shown = " ".join(
            f"{variable.name}={variable.text(int(value))}"
            for variable, value in zip(self.model.variables, self._observation(), strict=True)
        )
        if self._step is None:
            return "not begun: call reset()"
        horizon = self.model.horizon
        if self._over:
            return f"end at step {self._step} ({self._last}): {shown}"
        if horizon is not None and self._step > horizon:
            return f"end after {plural(horizon, 'step')} ({self._last}): {shown}"
        of = f"/{horizon}" if horizon else ""
        return f"step {self._step}{of} ({self._last}): {shown}"

    def _given_state(self, options: Mapping[str, Any] | None) -> tuple[int, ...] | None:
        if options is None:
            return None
        if not isinstance(options, Mapping):
            raise ModelError(
                f"reset: expected options as a dictionary, found {show(options)}; give "
                '{"state": [...]} or nothing.'
            )
        for name in options:
            if name != "state":
                raise ModelError(f"reset: unknown option {show(name)}; expected 'state'.")
        return self.model.check_state(options["state"]) if options else None

    def _observation(self) -> Observation:
        return self._values[: len(self.model.sizes)].copy()

    def _simulate(self, restart: bool, steps: int) -> None:
        rng, values = self.np_random, self._values
        model, policy, record = self._compiled, self._given.policy, self._record
        simulate(model, policy, rng, 1.0, restart, 0, steps, values, self._return, record)


class _Allowed:
    """A space of which `sample` draws what is allowed in the present state of an environment."""

    _env: FactoredEnv

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """An action that is allowed at present, unless a mask or probabilities are given."""
        if mask is None and probability is None:
            return self._env.draw_action(self.np_random)  # type: ignore[attr-defined]
        return super().sample(mask, probability)  # type: ignore[misc]

    def seed(self, seed: Any = None) -> Any:
        """Seed what is drawn; with a seed, the next action is one for the start of an episode."""
        if seed is not None:  # Gymnasium seeds a space without one when it is first used
            self._env.expect_start()
        return super().seed(seed)  # type: ignore[misc]


class AllowedActions(_Allowed, gymnasium.spaces.Discrete):
    """Positions of listed actions."""

    def __init__(self, env: FactoredEnv) -> None:
        self._env = env
        super().__init__(len(env.model.actions))


class AllowedJointActions(_Allowed, gymnasium.spaces.MultiDiscrete):
    """Values of action variables."""

    def __init__(self, env: FactoredEnv) -> None:
        self._env = env
        super().__init__(list(env.model.actions.sizes))


def _action_space(env: FactoredEnv) -> gymnasium.spaces.Space[Any]:
    actions, allowed = env.model.actions, env.model.allowed
    if not actions.variables:
        return AllowedActions(env) if allowed else actions.gymnasium_space()
    tied = allowed or actions.forbidden or actions.at_most is not None
    return AllowedJointActions(env) if tied else actions.gymnasium_space()


def make_env(model: FactoredMDP, render_mode: str | None = None) -> FactoredEnv:
    """A Gymnasium environment that simulates the model."""
    return FactoredEnv(check_model(model, "make_env"), render_mode)


class Absorbing(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose last state absorbs: V = 0 after the end of an episode.

    A learner counts what it sees, and after an early end it sees nothing: an optimistic one would
    keep its optimistic values there. Here an episode that terminates goes on with the observation
    it ended with and rewards of 0, until it is truncated after `horizon` steps, so that learners
    find out. The state has to show that the episode is over (a goal that is left only by ending
    will do), and bounds of rewards have to include 0.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], horizon: int) -> None:
        super().__init__(env)
        self._horizon = as_whole(horizon, "horizon", 1)
        self._steps = 0
        self._last: tuple[Any, dict[str, Any]] | None = None

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._steps, self._last = 0, None
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """A step of the environment, or of the rest that follows its end."""
        self._steps += 1
        over = self._steps >= self._horizon
        if self._last is not None:
            observation, info = self._last
            return observation, 0.0, False, over, info
        seen = step_environment(self.env, action)
        if seen.terminated:
            has_terms = "rewards" in seen.info
            zeros = {"rewards": np.zeros(np.shape(seen.info["rewards"]))} if has_terms else {}
            self._last = seen.observation, zeros
        return seen.observation, seen.reward, False, over or seen.truncated, dict(seen.info)
