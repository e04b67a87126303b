"""Environments: any with discrete observations can be learnt; a mismatch says what to change."""

import gymnasium
import numpy as np
import pytest

import fsmdp
from fsmdp import ModelError


class Walk(gymnasium.Env):
    """A walk over four places in one number; the reward has a single term."""

    observation_space = gymnasium.spaces.Discrete(4)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = 0, 0
        return self.place, {}

    def step(self, action):
        moved = self.np_random.random() < 0.8
        self.place = min(3, self.place + 1) if action and moved else max(0, self.place - 1)
        self.steps += 1
        return self.place, float(self.place == 3), False, self.steps >= 6, {}


def walk_structure(**changes):
    options = {
        "parents": {"place": [fsmdp.Case([a], parents=["place"]) for a in ("back", "forth")]},
        "rewards": [
            fsmdp.Reward("goal", [fsmdp.Case([a], parents=["place"]) for a in ("back", "forth")])
        ],
        "horizon": 6,
        "basis": fsmdp.Basis([fsmdp.Table(["place"], row) for row in np.eye(4)[1:]]),
    }
    return fsmdp.Structure.from_parents(
        [fsmdp.Variable("place", 4)], ["back", "forth"], **(options | changes)
    )


def test_any_environment_with_discrete_observations_can_be_learnt():
    learner = fsmdp.PSRLFactored(walk_structure())
    history = fsmdp.learn(Walk(), learner, episodes=150, seed=0)
    assert history.returns[-50:].mean() > history.returns[:20].mean()
    assert history.returns[-50:].mean() > 1.5
    again = fsmdp.learn(Walk(), fsmdp.PSRLFactored(walk_structure()), episodes=150, seed=0)
    np.testing.assert_array_equal(history.returns, again.returns)


def test_one_number_may_stand_for_several_variables():
    structure = fsmdp.Structure.from_parents(
        [fsmdp.Variable("high", 2), fsmdp.Variable("low", 2)],
        ["back", "forth"],
        parents={n: [fsmdp.Case(fsmdp.ANY, parents=["high", "low"])] for n in ("high", "low")},
        rewards=[fsmdp.Reward("goal", [fsmdp.Case(fsmdp.ANY, parents=["high", "low"])])],
        basis=fsmdp.Basis([fsmdp.Table(["high"], [0, 1]), fsmdp.Table(["low"], [0, 1])]),
        horizon=6,
    )
    learner = fsmdp.UCRLFactored(structure)
    fsmdp.learn(Walk(), learner, episodes=3)
    assert learner.statistics.episodes == 3


PARTS = ("observation", "reward", "terminated", "truncated", "info")


class Broken(Walk):
    """A walk with something wrong."""

    def __init__(self, ends=None, start=None, stepped=None, **changes):
        self.ends, self.start, self.stepped = ends, start, stepped
        self.changes = {name: changes.pop(name) for name in PARTS if name in changes}
        for name, space in changes.items():
            setattr(self, name, space)

    def reset(self, *, seed=None, options=None):
        found = super().reset(seed=seed)
        return found if self.start is None else self.start

    def step(self, action):
        found = dict(zip(PARTS, super().step(action), strict=True)) | self.changes
        found["truncated"] |= self.ends == self.steps
        return tuple(found.values()) if self.stepped is None else self.stepped


class Dice(Walk):
    """A walk that keeps its generator elsewhere."""

    np_random = "dice"

    def reset(self, *, seed=None, options=None):
        self.place, self.steps = 0, 0
        return self.place, {}


def two_terms():
    case = fsmdp.Case(fsmdp.ANY, parents=["place"])
    return walk_structure(rewards=[fsmdp.Reward("a", [case]), fsmdp.Reward("b", [case])])


def noisy_goal():
    case = fsmdp.Case(fsmdp.ANY, parents=["place"])
    return walk_structure(rewards=[fsmdp.Reward("goal", [case], sigma=0.1)])


MISMATCHES = {
    "2 variables, the structure 1; describe every variable": (
        Broken(observation_space=gymnasium.spaces.MultiDiscrete([4, 2])),
        walk_structure(),
    ),
    "'place' .position 0. has 5 values in the environment and 4 in the structure": (
        Broken(observation_space=gymnasium.spaces.MultiDiscrete([5])),
        walk_structure(),
    ),
    "5 states in one number, the structure's variables have 4": (
        Broken(observation_space=gymnasium.spaces.Discrete(5)),
        walk_structure(),
    ),
    "expected MultiDiscrete .*ObservationWrapper": (
        Broken(observation_space=gymnasium.spaces.Box(0, 1)),
        walk_structure(),
    ),
    "3 actions, the structure 2; name every action": (
        Broken(action_space=gymnasium.spaces.Discrete(3)),
        walk_structure(),
    ),
    "expected Discrete, wrap it": (
        Broken(action_space=gymnasium.spaces.Box(0, 1)),
        walk_structure(),
    ),
    "no info..rewards.., but the structure has 2 reward terms": (Walk(), two_terms()),
    "is .0, 0, 0., the structure has 2 reward terms": (
        Broken(info={"rewards": [0, 0, 0]}),
        two_terms(),
    ),
    "shows value 9 of 'place', the structure expects 0 to 3": (
        Broken(observation=9),
        walk_structure(),
    ),
    "pays 2 for 'goal', which has no noise and bounds": (Broken(reward=2.0), walk_structure()),
    "pays -7 for 'goal', which has noise of 0.1 and bounds .0, 1.; widen": (
        Broken(reward=-7.0),
        noisy_goal(),
    ),
    "reward is nan, expected a finite number": (Broken(reward=np.nan), noisy_goal()),
    "reward is None, expected a finite number": (Broken(reward=None), walk_structure()),
    "info..rewards.. is .nan., the structure has 1 reward terms; give one finite": (
        Broken(info={"rewards": [np.nan]}),
        noisy_goal(),
    ),
    "info..rewards.. is 'gold', the structure has 1": (
        Broken(info={"rewards": "gold"}),
        walk_structure(),
    ),
    "shows 1.5, expected one whole number as its observation space says": (
        Broken(observation=1.5),
        walk_structure(),
    ),
    "shows nan, expected one whole number": (Broken(observation=np.nan), walk_structure()),
    "shows None, expected one whole number": (Broken(observation=None), walk_structure()),
    "shows .1, 2., expected one whole number": (Broken(observation=[1, 2]), walk_structure()),
    "shows value -1 of 'place'": (Broken(observation=-1), walk_structure()),
    "shows 3, expected 1 whole numbers": (
        Broken(start=(3, {}), observation_space=gymnasium.spaces.MultiDiscrete([4])),
        walk_structure(),
    ),
    "reset returned 0, expected .observation, info.; wrap it": (
        Broken(start=0),
        walk_structure(),
    ),
    "step returned .0, 0.0, False, {}., expected .observation, reward, terminated": (
        Broken(stepped=(0, 0.0, False, {})),
        walk_structure(),
    ),
    "np_random is 'dice', expected a numpy Generator; call super": (Dice(), walk_structure()),
    "truncated the episode after 4 steps, the structure has horizon 6": (
        Broken(ends=4),
        walk_structure(),
    ),
}


@pytest.mark.parametrize("message", MISMATCHES)
def test_a_mismatch_is_an_error_that_says_what_to_change(message):
    env, structure = MISMATCHES[message]
    with pytest.raises(ModelError, match=message):
        fsmdp.learn(env, fsmdp.PSRLFactored(structure), episodes=1)


def test_an_environment_that_pays_one_number_will_do_when_rewards_are_known():
    case = fsmdp.Case(fsmdp.ANY, parents=["place"], table=[0, 0, 0, 1])
    structure = two_terms()
    known = [fsmdp.Reward("a", [case]), fsmdp.Reward("b", [case])]
    learner = fsmdp.UCRLFactored(structure, known_rewards=known)
    history = fsmdp.learn(Walk(), learner, episodes=5)
    assert len(history) == 5
    assert not learner.statistics.reward_sums.any()


def test_an_environment_that_terminates_early_is_counted_as_far_as_it_went():
    learner = fsmdp.PSRLFactored(walk_structure())
    history = fsmdp.learn(Broken(terminated=True), learner, episodes=5)
    assert learner.statistics.visits[-4 * 2 :].sum() == 5
    assert len(history) == 5


def test_an_environment_that_never_ends_is_left_at_the_horizon():
    learner = fsmdp.PSRLFactored(walk_structure(horizon=3))
    fsmdp.learn(Walk(), learner, episodes=5)
    assert learner.statistics.reward_visits.sum() == 5 * 3


def test_whole_numbers_of_other_types_will_do():
    exact = Broken(observation=np.float32(1), reward=np.array([0.5]))
    history = fsmdp.learn(exact, fsmdp.PSRLFactored(walk_structure()), episodes=2)
    assert history.returns.tolist() == [3.0, 3.0]


WRAPPED = {
    "TimeLimit": lambda env: gymnasium.wrappers.TimeLimit(env, 6),
    "OrderEnforcing": gymnasium.wrappers.OrderEnforcing,
    "PassiveEnvChecker": gymnasium.wrappers.PassiveEnvChecker,
    "RecordEpisodeStatistics": gymnasium.wrappers.RecordEpisodeStatistics,
}


@pytest.mark.parametrize("name", WRAPPED)
def test_wrapped_environments_give_the_counts_of_bare_ones(name):
    bare, wrapped = (fsmdp.PSRLFactored(walk_structure()) for _ in range(2))
    fsmdp.learn(Walk(), bare, episodes=20, seed=1)
    fsmdp.learn(WRAPPED[name](Walk()), wrapped, episodes=20, seed=1)
    np.testing.assert_array_equal(bare.statistics.outcomes, wrapped.statistics.outcomes)


def test_a_time_limit_below_the_horizon_is_refused():
    short = gymnasium.wrappers.TimeLimit(Walk(), 2)
    with pytest.raises(ModelError, match=r"truncated the episode after 2 steps.*max_episode_steps"):
        fsmdp.learn(short, fsmdp.PSRLFactored(walk_structure()), episodes=1)


def test_observations_and_actions_may_start_above_zero():
    class Shifted(Walk):
        observation_space = gymnasium.spaces.Discrete(4, start=10)
        action_space = gymnasium.spaces.Discrete(2, start=5)

        def reset(self, *, seed=None, options=None):
            place, info = super().reset(seed=seed)
            return place + 10, info

        def step(self, action):
            assert action in (5, 6)
            place, *rest = super().step(action - 5)
            return place + 10, *rest

    one, other = (fsmdp.PSRLFactored(walk_structure()) for _ in range(2))
    fsmdp.learn(Walk(), one, episodes=10, seed=1)
    fsmdp.learn(Shifted(), other, episodes=10, seed=1)
    np.testing.assert_array_equal(one.statistics.outcomes, other.statistics.outcomes)


class Paying(Walk):
    """Pays what it likes: in one number, or by term."""

    def __init__(self, reward, by_term=None):
        self.reward, self.by_term = reward, by_term

    def step(self, action):
        observation, _, *ends, info = super().step(action)
        return observation, self.reward, *ends, info if self.by_term is None else self.by_term


LEARNERS = {
    "psrl": fsmdp.PSRLFactored,
    "ucrl": fsmdp.UCRLFactored,
    "bonus": fsmdp.BonusFactored,
}
KNOWN = fsmdp.Reward("goal", [fsmdp.Case(fsmdp.ANY, ["place"], [0.0, 0.0, 0.0, 1.0])])


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    "pays", [(1e9, None), (-1e9, None), (1.01, None), (0.0, {"rewards": [1e9]})]
)
def test_no_learner_takes_a_reward_outside_of_its_bounds(name, known, pays):
    options = {"known_rewards": [KNOWN]} if known else {}
    learner = LEARNERS[name](walk_structure(), **options)
    with pytest.raises(ModelError, match=r"the environment pays .*; widen"):
        fsmdp.learn(Paying(*pays), learner, episodes=2, seed=0)
