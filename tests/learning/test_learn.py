"""The loop: models and environments give the same counts, runs resume, mismatches are errors."""

import gymnasium
import numpy as np
import pytest
from tests.learning.learning_models import coins

import fsmdp
from fsmdp import ModelError, domains

WITHOUT_SECONDS = [
    "returns",
    "optimistic_values",
    "slacks",
    "widths",
    "replans",
    "lifts",
    "w_norms",
]


def learners(structure, known=None):
    return {
        "practical": lambda: fsmdp.UCRLFactored(structure, known_rewards=known),
        "paper": lambda: fsmdp.UCRLFactored(structure, "paper", known_rewards=known),
        "psrl": lambda: fsmdp.PSRLFactored(structure, known_rewards=known),
        "psrl, by growth": lambda: fsmdp.PSRLFactored(structure, replan=0.5, known_rewards=known),
    }


NAMES = list(learners(None))


def assert_same_history(one, other, exact=True):
    for name in WITHOUT_SECONDS:
        if exact:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
        else:
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), 1e-12, 1e-12, name)


def assert_same_counts(one, other):
    for name, array in one.statistics.arrays().items():
        np.testing.assert_array_equal(array, other.statistics.arrays()[name], name)


@pytest.mark.parametrize("name", NAMES)
def test_the_environment_of_a_model_gives_the_counts_of_the_model(name):
    model = coins(sigma=0.2)
    make = learners(model.structure(fsmdp.Basis.pairs(model)))[name]
    compiled, stepped = make(), make()
    one = fsmdp.learn(model, compiled, episodes=30, seed=5)
    other = fsmdp.learn(fsmdp.make_env(model), stepped, episodes=30, seed=5)
    assert_same_counts(compiled, stepped)
    assert_same_history(one, other, exact=False)


def test_a_structure_written_by_hand_learns_what_the_model_s_own_does():
    model = domains.sysadmin(3, horizon=4)
    by_hand = fsmdp.Structure.from_parents(
        [fsmdp.Variable(f"machine-{i}", 2) for i in range(3)],
        ["wait", "reboot-0", "reboot-1", "reboot-2"],
        parents={
            f"machine-{i}": [
                fsmdp.Case(fsmdp.ANY, parents=[f"machine-{i}", f"machine-{(i - 1) % 3}"]),
                fsmdp.Case([f"reboot-{i}"], parents=[]),
            ]
            for i in range(3)
        },
        rewards=model.rewards,
        basis=fsmdp.Basis([fsmdp.Table([f"machine-{i}"], [0, 1]) for i in range(3)]),
        horizon=4,
    )
    told = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.singles(model)))
    written = fsmdp.UCRLFactored(by_hand)
    env = gymnasium.make("fsmdp/SysAdmin-v0", machines=3, horizon=4)
    fsmdp.learn(model, told, episodes=20, seed=2)
    fsmdp.learn(env, written, episodes=20, seed=2)
    assert_same_counts(told, written)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("use_env", [False, True], ids=["model", "environment"])
def test_a_run_that_was_cut_off_resumes_bit_for_bit(name, use_env, tmp_path):
    model = domains.sysadmin(4, horizon=5)
    make = learners(model.structure(fsmdp.Basis.pairs(model)), model.rewards)[name]
    world = fsmdp.make_env(model) if use_env else model
    whole_learner, path = make(), tmp_path / "run.npz"
    whole = fsmdp.learn(world, whole_learner, episodes=23, seed=4)

    class CutOffError(Exception):
        pass

    def cut_off(done, episodes):
        if done >= 13:
            raise CutOffError

    options = {"episodes": 23, "seed": 4, "checkpoint": path, "checkpoint_every": 5}
    with pytest.raises(CutOffError):
        fsmdp.learn(world, make(), **options, progress=cut_off)
    world = fsmdp.make_env(model) if use_env else model
    resumed_learner = make()
    resumed = fsmdp.learn(world, resumed_learner, **options)
    assert_same_history(whole, resumed)
    assert_same_counts(whole_learner, resumed_learner)
    again = fsmdp.learn(world, make(), **options)
    assert_same_history(whole, again)
    assert not list(tmp_path.glob(".*.part"))


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    model = domains.sysadmin(3, horizon=3)
    structure = model.structure(fsmdp.Basis.singles(model))
    path = tmp_path / "run.npz"
    fsmdp.learn(model, fsmdp.UCRLFactored(structure), episodes=4, checkpoint=path)
    with pytest.raises(ModelError, match="is of another run"):
        fsmdp.learn(model, fsmdp.UCRLFactored(structure), 4, seed=1, checkpoint=path)
    with pytest.raises(ModelError, match="is of another run"):
        fsmdp.learn(model, fsmdp.UCRLFactored(structure, delta=0.1), 4, checkpoint=path)
    with pytest.raises(ModelError, match="already holds 4 episodes"):
        fsmdp.learn(model, fsmdp.UCRLFactored(structure), 3, checkpoint=path)
    used = fsmdp.UCRLFactored(structure)
    fsmdp.learn(model, used, 1)
    with pytest.raises(ModelError, match="resume with a fresh one"):
        fsmdp.learn(model, used, 4, checkpoint=path)
    path.write_bytes(b"not arrays")
    with pytest.raises(ModelError, match="cannot be read"):
        fsmdp.learn(model, fsmdp.UCRLFactored(structure), 4, checkpoint=path)


def test_progress_is_reported():
    model, seen = domains.sysadmin(2, horizon=2), []
    learner = fsmdp.PSRLFactored(model.structure(fsmdp.Basis.singles(model)))
    fsmdp.learn(model, learner, episodes=3, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


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


class Broken(Walk):
    """A walk with something wrong."""

    def __init__(self, vector=None, value=None, reward=None, ends=None, **spaces):
        self.vector, self.value, self.reward, self.ends = vector, value, reward, ends
        for name, space in spaces.items():
            setattr(self, name, space)

    def step(self, action):
        place, reward, terminated, truncated, info = super().step(action)
        if self.vector is not None:
            info["rewards"] = self.vector
        place = place if self.value is None else self.value
        return place, self.reward or reward, terminated, truncated or self.ends == self.steps, info


def two_terms():
    case = fsmdp.Case(fsmdp.ANY, parents=["place"])
    return walk_structure(rewards=[fsmdp.Reward("a", [case]), fsmdp.Reward("b", [case])])


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
    "has shape .3,., the structure has 2 reward terms": (Broken(vector=[0, 0, 0]), two_terms()),
    "shows value 9 of 'place', the structure expects 0 to 3": (Broken(value=9), walk_structure()),
    "pays 2 for 'goal', which has no noise and bounds": (Broken(reward=2.0), walk_structure()),
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


def test_a_model_that_does_not_fit_the_structure_is_refused():
    model = domains.sysadmin(3, horizon=3)
    learner = fsmdp.PSRLFactored(model.structure(fsmdp.Basis.singles(model)))
    with pytest.raises(ModelError, match="4 variables, the structure 3"):
        fsmdp.learn(domains.sysadmin(4, horizon=3), learner, episodes=1)
    with pytest.raises(ModelError, match="horizon 5, the structure 3"):
        fsmdp.learn(domains.sysadmin(3, horizon=5), learner, episodes=1)
    with pytest.raises(ModelError, match="expected a FactoredMDP or a Gymnasium environment"):
        fsmdp.learn("sysadmin", learner, episodes=1)
    with pytest.raises(ModelError, match="episodes: expected at least 1"):
        fsmdp.learn(model, learner, episodes=0)
    with pytest.raises(ModelError, match="checkpoint_every: expected at least 1"):
        fsmdp.learn(model, learner, episodes=1, checkpoint_every=0)


def test_an_environment_that_pays_one_number_will_do_when_rewards_are_known():
    case = fsmdp.Case(fsmdp.ANY, parents=["place"], table=[0, 0, 0, 1])
    structure = two_terms()
    known = [fsmdp.Reward("a", [case]), fsmdp.Reward("b", [case])]
    learner = fsmdp.UCRLFactored(structure, known_rewards=known)
    history = fsmdp.learn(Walk(), learner, episodes=5)
    assert len(history) == 5
    assert not learner.statistics.reward_sums.any()
