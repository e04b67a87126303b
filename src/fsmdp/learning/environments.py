"""Running episodes of a model or of any Gymnasium environment, and counting what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import is_whole, plural, show
from fsmdp.foundation.disk import digest_of
from fsmdp.foundation.numbers import plain
from fsmdp.learning.cells.kernel import (
    Counts,
    Logs,
    PlannedValues,
    count_episode,
    counts_of,
    episode_of,
)
from fsmdp.learning.cells.layout import CellLayout
from fsmdp.learning.learners.learner import Acting, Learner
from fsmdp.learning.learners.memory import memory_of
from fsmdp.model.actions import ActionSpace
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import RewardTerm, Structure
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import Variable, table_size
from fsmdp.policies.arrays import CompiledPolicy, act
from fsmdp.simulation.environment import reset_environment, step_environment
from fsmdp.simulation.simulate import (
    FOLLOWED,
    CompiledModel,
    Record,
    check_followed,
    compile_model,
    new_record,
    simulate,
)

if TYPE_CHECKING:
    import gymnasium


BEYOND_NOISE = 10.0
"""Deviations of its noise by which a reward may leave its bounds: more has chance 10^-21."""


class EnvironmentRunner:
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
            np.zeros(1, dtype=np.int64),
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
        n, n_actions = self._n_variables, self._learner.structure.actions.n_cases
        values[:n] = record.states[0, 0, :n] = self._read(observation)
        total, weight = 0.0, 1.0
        for step in range(self._horizon):
            self._check_goes_on(values[:n], step)
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

    def _check_goes_on(self, state: Integers, step: int) -> None:
        """Refuse an environment that goes on where the structure says that an episode is over."""
        conditions = self._learner.structure.conditions
        if conditions.terminal and conditions.is_terminal(state[None])[0]:
            when = "began" if step == 0 else f"did not terminate after step {step}"
            raise ModelError(
                f"the environment {when} in state {show(tuple(state.tolist()))}, which is terminal "
                "in the structure; return terminated=True there, or correct `terminal`."
            )

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


MOST_AT_ONCE, ROOM = 256, 2**20
"""Episodes, and numbers of their states, that are written down before they are remembered."""


class ModelRunner:
    """Whole episodes by compiled code; the learner is handed what happened, not the model."""

    def __init__(self, model: FactoredMDP, learner: Learner, rng: np.random.Generator) -> None:
        check_model_fits(model, learner.structure)
        self._learner, self._of = learner, model
        self._rng = rng
        self._model = compile_model(model)
        self._slots = np.zeros(self._model.n_slots, dtype=np.int64)
        assert model.horizon is not None  # the structure's is not, and they agree
        numbers = (model.horizon + 1) * self._model.n_inputs
        room = max(1, min(MOST_AT_ONCE, ROOM // numbers))
        self._record = new_record(self._model, room if memory_of(learner) else 1, model.horizon)

    def run(self, acting: Acting, logs: Logs, first: int, last: int) -> tuple[int, bool]:
        """One call for all episodes up to the next plan, or to when they have to be remembered."""
        learner, remember = self._learner, memory_of(self._learner)
        if remember is not None:
            last = min(last, first + len(self._record.actions))
        reached, due = run_until_grown(
            self._model,
            self._rng,
            learner.structure.discount,
            self._record.actions.shape[1],
            learner.cells.layout,
            acting.policy,
            acting.said,
            counts_of(learner.statistics),
            learner.term_known,
            self._slots,
            self._record,
            logs,
            first,
            last,
        )
        if reached < 0:
            check_followed(self._of, -1 - reached, self._slots)
        learner.statistics.episodes += reached - first
        if remember is not None:
            for at in range(reached - first):
                remember(episode_of(self._record, at), int(self._record.lengths[at]))
        return reached, due

    def identity(self) -> str:
        """Everything that the simulator draws from."""
        return f"FactoredMDP {digest_of(_flattened(self._model))}"

    def random_state(self) -> dict[str, Any]:
        """State of the simulator's generator."""
        return dict(self._rng.bit_generator.state)

    def set_random_state(self, state: dict[str, Any]) -> None:
        """Go on from a random state."""
        self._rng.bit_generator.state = state


def _flattened(parts: tuple[Any, ...]) -> Iterator[Any]:
    """The arrays and numbers of nested tuples."""
    for part in parts:
        if isinstance(part, tuple):
            yield from _flattened(part)
        else:
            yield part


@compiled()
def run_until_grown(
    model: CompiledModel,
    rng: np.random.Generator,
    discount: float,
    steps: int,
    layout: CellLayout,
    policy: CompiledPolicy,
    said: PlannedValues,
    counts: Counts,
    term_known: NDArray[np.bool_],
    slots: Integers,
    record: Record,
    logs: Logs,
    first: int,
    last: int,
) -> tuple[int, bool]:
    """Simulate, count and log episodes first, first + 1, ... until a plan is due or `last` comes.

    They are written down one after another, and over the first ones when there is no more room.
    Returns the number of the episode that comes next, and whether a plan is due before it; of an
    action that is not allowed, -1 less its case.
    """
    tables = layout.lookup.defaults.copy()
    episode = first
    grown = False
    while episode < last and not grown:
        returns = logs.returns[episode : episode + 1]
        at = (episode - first) % len(record.actions)
        one = episode_of(record, at)
        found = simulate(model, policy, rng, discount, True, 0, steps, slots, returns, one)
        if found != FOLLOWED:
            return -1 - found, False
        length = one.lengths[0]
        grown = count_episode(layout, said, counts, term_known, tables, one, length, logs, episode)
        episode += 1
    return episode, grown


Source: TypeAlias = "FactoredMDP | gymnasium.Env[Any, Any]"


class EpisodeRunner(Protocol):
    """Runs episodes for a learner, which sees nothing but what is recorded."""

    def run(self, acting: Acting, logs: Logs, first: int, last: int) -> tuple[int, bool]:
        """Run episodes from `first` on; the one that comes next, and whether a plan is due."""
        ...

    def identity(self) -> str:
        """What tells this environment from others, as far as can be seen."""
        ...

    def random_state(self) -> dict[str, Any]:
        """State of the random generator between two episodes."""
        ...

    def set_random_state(self, state: dict[str, Any]) -> None:
        """Go on from a random state."""
        ...


def open_runner(source: Source, learner: Learner, rng: np.random.Generator) -> EpisodeRunner:
    """What runs episodes of a FactoredMDP or an environment, checked against the Structure."""
    if isinstance(source, type):
        raise ModelError(
            f"learn: expected a FactoredMDP or a Gymnasium environment, found the class "
            f"{source.__name__}; make one."
        )
    if isinstance(source, FactoredMDP):
        return ModelRunner(source, learner, rng)
    if hasattr(source, "reset") and hasattr(source, "observation_space"):
        return EnvironmentRunner(source, learner, rng)
    raise ModelError(
        f"learn: expected a FactoredMDP or a Gymnasium environment, found {show(source)}; load, "
        "build or make one."
    )


def check_sizes(what: str, sizes: Sequence[int], variables: Sequence[Variable]) -> None:
    """Refuse other variables: another number of them, or of values."""
    expected = [variable.size for variable in variables]
    if list(sizes) == expected:
        return
    if len(sizes) != len(expected):
        raise ModelError(
            f"{what} has {plural(len(sizes), 'variable')}, the structure {len(expected)}; describe "
            "every variable in the structure, in the same order."
        )
    at = next(i for i, size in enumerate(sizes) if size != expected[i])
    raise ModelError(
        f"variable {show(variables[at].name)} (position {at}) has {sizes[at]} values in "
        f"{what} and {expected[at]} in the structure; give it size {sizes[at]}."
    )


def check_joint_actions(what: str, actions: ActionSpace, structure: Structure) -> None:
    """Refuse other actions where either side's are made of variables."""
    if actions == structure.actions:
        return
    raise ModelError(
        f"{what} has {show(actions)}, the structure {show(structure.actions)}; give both the same "
        "action variables, limits and forbidden values."
    )


def check_actions(what: str, n_actions: int, actions: ActionSpace) -> None:
    """Refuse another number of actions."""
    if n_actions != len(actions):
        raise ModelError(
            f"{what} has {plural(n_actions, 'action')}, the structure {len(actions)}; "
            "name every action in the structure, in the same order."
        )


def check_model_fits(model: FactoredMDP, structure: Structure) -> None:
    """Refuse a model that is not the one that the structure describes."""
    what = "the model"
    check_sizes(what, model.sizes, structure.variables)
    joint = bool(model.actions.variables or structure.actions.variables)
    if joint:
        check_joint_actions(what, model.actions, structure)
    else:
        check_actions(what, len(model.actions), structure.actions)
    if len(model.rewards) != len(structure.rewards):
        raise ModelError(
            f"{what} has {plural(len(model.rewards), 'reward term')}, the structure "
            f"{len(structure.rewards)}; describe every term in the structure, in the same order."
        )
    for noun, names, expected in (
        ("variable", [v.name for v in model.variables], [v.name for v in structure.variables]),
        ("action", () if joint else model.actions, () if joint else structure.actions),
        ("reward term", [r.name for r in model.rewards], [r.name for r in structure.rewards]),
    ):
        for position, (name, stated) in enumerate(zip(names, expected, strict=True)):
            if name != stated:
                raise ModelError(
                    f"{noun} number {position} is {show(name)} in {what} and {show(stated)} in the "
                    "structure; use the same names in the same order."
                )
    if model.conditions != structure.conditions:
        raise ModelError(
            f"{what} and the structure differ in allowed actions or terminal states; give both the "
            "same."
        )
    for name in ("horizon", "discount"):
        found, stated = getattr(model, name), getattr(structure, name)
        if found != stated:
            raise ModelError(
                f"{what} has {name} {found}, the structure {stated}; give both the same."
            )
    for reward, term in zip(model.rewards, structure.rewards, strict=True):
        if reward.low < term.low or reward.high > term.high or reward.sigma > term.sigma:
            raise ModelError(
                f"reward {show(term.name)} has bounds {_bounds(reward)} and sigma "
                f"{plain(reward.sigma, 6)} in {what}, {_bounds(term)} and {plain(term.sigma, 6)} "
                "in the structure; the structure's must not be narrower."
            )


def _bounds(reward: Reward | RewardTerm) -> str:
    return f"[{plain(reward.low, 6)}, {plain(reward.high, 6)}]"


LARGEST = 2**53
"""Whole numbers below are the same as floats; values and states of environments are far below."""

Reader = Callable[[Any], Integers]
"""From an observation to a state, or a ModelError."""


def reader_of(space: Any, variables: Sequence[Variable]) -> Reader:
    """How to read a state off an observation of a space; a ModelError if they do not fit."""
    kind = type(space).__name__
    if kind == "MultiDiscrete" and len(space.shape or ()) == 1:
        check_sizes("the environment", [int(size) for size in space.nvec], variables)
        first = np.asarray(space.start, dtype=np.int64)
        return _Reader(variables, first.shape, lambda seen: seen - first)
    if kind == "Discrete":
        return _Reader(variables, (), _digits(int(space.start), int(space.n), variables))
    raise ModelError(
        f"the environment's observations are {show(space)}; expected MultiDiscrete (one number for "
        "each variable) or Discrete, wrap it (gymnasium.ObservationWrapper)."
    )


def first_action(space: Any, actions: ActionSpace) -> Any:
    """What to add to positions of actions, or to the values of action variables, in a space.

    A ModelError if the space has others.
    """
    if actions.variables:
        sizes = getattr(space, "nvec", None)
        if sizes is None or np.asarray(sizes).tolist() != list(actions.sizes):
            raise ModelError(
                f"the environment's actions are {show(space)}; expected MultiDiscrete with the "
                f"{len(actions.sizes)} sizes of the action variables, wrap it "
                "(gymnasium.ActionWrapper)."
            )
        return np.asarray(getattr(space, "start", 0))
    n_actions = getattr(space, "n", None)
    if not is_whole(n_actions):
        raise ModelError(
            f"the environment's actions are {show(space)}; expected Discrete, wrap it "
            "(gymnasium.ActionWrapper)."
        )
    check_actions("the environment", int(n_actions), actions)
    return int(getattr(space, "start", 0))


def _digits(first: int, n: int, variables: Sequence[Variable]) -> Callable[[Integers], Integers]:
    """From one number to the values of several variables, the last one fastest."""
    sizes = [variable.size for variable in variables]
    if table_size(sizes) != n:
        raise ModelError(
            f"the environment has {n} states in one number, the structure's variables have "
            f"{show(table_size(sizes))} joint values; use one variable of size {n}, or several "
            "whose sizes multiply to it (the last one runs fastest)."
        )
    strides = np.cumprod([1, *reversed(sizes[1:])])[::-1]
    inner = np.array(sizes[1:], dtype=np.int64)

    def split(seen: Integers) -> Integers:
        digits: Integers = (seen - first) // strides
        digits[1:] %= inner  # the first is left whole, so that what is out of range shows there
        return digits

    return split


class _Reader:
    """Reads whole numbers of one shape, and checks them against the variables."""

    def __init__(
        self,
        variables: Sequence[Variable],
        shape: tuple[int, ...],
        to_state: Callable[[Integers], Integers],
    ) -> None:
        self._variables = variables
        self._sizes = np.array([variable.size for variable in variables])
        self._shape, self._to_state = shape, to_state

    def __call__(self, observation: Any) -> Integers:
        state = self._to_state(self._whole_numbers(observation))
        wrong = (state < 0) | (state >= self._sizes)
        if wrong.any():
            at = int(wrong.argmax())
            variable = self._variables[at]
            raise ModelError(
                f"the environment shows value {state[at]} of {show(variable.name)}, the structure "
                f"expects 0 to {variable.size - 1}; enlarge the variable or shift the values."
            )
        return state

    def _whole_numbers(self, observation: Any) -> Integers:
        try:
            seen = np.asarray(observation)
            whole = seen if seen.dtype.kind in "iu" else np.asarray(seen, dtype=np.float64)
            small = (abs(whole) < LARGEST).all()  # and no NaN
            if whole.shape == self._shape and small and (np.rint(whole) == whole).all():
                return whole.astype(np.int64)
        except Exception:  # an object that is no array may raise anything when it is made one
            whole = None
        expected = f"{self._shape[0]} whole numbers" if self._shape else "one whole number"
        raise ModelError(
            f"the environment shows {show(observation)}, expected {expected} as its observation "
            "space says; round or wrap it (gymnasium.ObservationWrapper)."
        )
