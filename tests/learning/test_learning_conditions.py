"""Learners on models with allowed actions and terminal states."""

import numpy as np
import pytest
from tests.conditioned_models import conditioned, shop
from tests.joint_models import conditioned_joint_model

import fsmdp
from fsmdp.experiments.learners import build_learner, find_learner, resolve_options
from fsmdp.learning.learners.registry import LEARNERS


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - {"olive"}))
def test_every_learner_takes_allowed_actions_only(name):
    # An action that is not allowed ends a run with an error.
    model = conditioned(2, horizon=4, variables=2, actions=3, latents=0, blocks=False)
    options = resolve_options(find_learner(name, "learner"), {}, "learner")
    learner = build_learner(name, model, fsmdp.Basis.singles(model), options, 0)
    history = fsmdp.learn(model, learner, episodes=25, seed=1)
    assert np.isfinite(history.returns).all()


def test_olive_which_takes_every_action_everywhere_is_refused():
    model = shop()
    structure = model.structure(fsmdp.Basis.singles(model))
    with pytest.raises(fsmdp.ModelError, match="not allowed everywhere"):
        fsmdp.OLIVE(structure, np.zeros((1, 12, 3, 16)), known_rewards=model.rewards)


OPTIMISTIC = [
    {},
    {"preset": "paper"},
    {"confidence": "mixture"},
    {"planner": "solver"},
]


@pytest.mark.parametrize("options", OPTIMISTIC, ids=lambda one: str(one) or "practical")
@pytest.mark.parametrize("seed", range(3))
def test_optimistic_values_are_upper_bounds(seed, options):
    model = conditioned(seed, horizon=4, noise=False, random_start=False, latents=0)
    best = fsmdp.solve_exactly(model).start_value
    structure = model.structure(fsmdp.Basis.pairs(model))
    learner = fsmdp.UCRLFactored(structure, known_rewards=model.rewards, **options)
    history = fsmdp.learn(model, learner, episodes=80, seed=1)
    assert (history.optimistic_values >= best - 1e-7).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda s, m: fsmdp.PSRLFactored(s, known_rewards=m.rewards, planner="solver"),
        lambda s, m: fsmdp.PSRLFactored(s, known_rewards=m.rewards),
        lambda s, m: fsmdp.UCRLFactored(s, known_rewards=m.rewards, planner="solver"),
    ],
    ids=["psrl-solver", "psrl", "ucrl-solver"],
)
def test_learners_come_close_to_the_optimum_of_an_episode_that_may_end(make):
    model = shop()
    best = fsmdp.solve_exactly(model).start_value
    learner = make(model.structure(fsmdp.Basis.pairs(model)), model)
    history = fsmdp.learn(model, learner, episodes=400, seed=0)
    assert history.returns[-100:].mean() >= 0.85 * best
    assert fsmdp.rollout(model, "random", 2000).mean < 0.6 * best


@pytest.mark.parametrize("seed", range(3))
def test_learners_of_joint_actions_keep_to_what_is_allowed(seed):
    model = conditioned_joint_model(seed)
    structure = model.structure(fsmdp.Basis.singles(model))
    for learner in (
        fsmdp.UCRLFactored(structure, known_rewards=model.rewards),
        fsmdp.PSRLFactored(structure, known_rewards=model.rewards),
        fsmdp.DORLFactored(structure, known_rewards=model.rewards),
        fsmdp.BonusFactored(structure, known_rewards=model.rewards),
    ):
        history = fsmdp.learn(model, learner, episodes=20, seed=1)
        assert np.isfinite(history.returns).all()


def test_an_environment_and_its_model_give_the_same_history():
    model = shop()
    structure = model.structure(fsmdp.Basis.singles(model))
    histories = [
        fsmdp.learn(source, fsmdp.PSRLFactored(structure, seed=3), episodes=30, seed=5)
        for source in (model, fsmdp.make_env(model))
    ]
    assert histories[0].returns.tolist() == histories[1].returns.tolist()


def test_an_environment_that_goes_on_in_a_terminal_state_is_refused():
    model = shop()
    structure = model.structure(fsmdp.Basis.singles(model))
    endless = fsmdp.make_env(model.replace(terminal=()))
    with pytest.raises(fsmdp.ModelError, match="which is terminal in the structure"):
        fsmdp.learn(endless, fsmdp.PSRLFactored(structure, seed=3), episodes=30, seed=5)


def test_a_structure_by_hand_has_conditions_too():
    model = shop()
    structure = fsmdp.Structure.from_parents(
        model.variables,
        model.actions,
        parents={
            "stock": [fsmdp.Case(fsmdp.ANY, ["stock"])],
            "cash": [fsmdp.Case(fsmdp.ANY, ["cash"])],
        },
        rewards=model.rewards,
        basis=fsmdp.Basis.singles(model),
        horizon=model.horizon,
        independent=True,
        allowed=model.allowed,
        terminal=model.terminal,
    )
    assert structure.conditions == model.conditions
    other = fsmdp.Structure.from_parents(
        model.variables,
        model.actions,
        parents={name: [fsmdp.Case(fsmdp.ANY, [name])] for name in ("stock", "cash")},
        rewards=model.rewards,
        basis=fsmdp.Basis.singles(model),
        horizon=model.horizon,
    )
    with pytest.raises(fsmdp.ModelError, match="differ in allowed actions or terminal states"):
        fsmdp.learn(model, fsmdp.PSRLFactored(other), episodes=2)


def test_discovery_plays_allowed_actions_and_counts_no_step_after_the_end():
    model = shop()
    for data in (model, fsmdp.make_env(model)):
        found = fsmdp.discover(
            data,
            None if data is model else model.variables,
            None if data is model else model.actions,
            episodes=300,
            anywhere=0,
            seed=0,
        )
        assert found is not None
