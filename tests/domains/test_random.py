"""Random: reproducible, always valid, and every feature occurs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsmdp.domains import random_model
from fsmdp.errors import ModelError
from fsmdp.exact.flat import enumerate_states
from fsmdp.simulation.rollout import rollout

SEEDS = range(30)


def kernels(model):
    return [kernel for mechanism in model.dynamics.mechanisms for kernel in mechanism.cases]


def reads_a_latent(model):
    return any(max(k.drawn, default=-1) >= len(model.variables) for k in kernels(model))


def reads_a_drawn_variable(model):
    return any(min(k.drawn, default=99) < len(model.variables) for k in kernels(model))


def has_a_block(model):
    return any(len(mechanism.children) > 1 for mechanism in model.dynamics.mechanisms)


def has_a_group_with_parents_of_its_own(model):
    mechanisms = model.dynamics.mechanisms
    return any(len({kernel.parents for kernel in m.cases}) > 1 for m in mechanisms)


def has_a_reward_with_scopes_of_its_own(model):
    return any(len({table.scope for table in means}) > 1 for means in model.reward_means)


def has_a_deterministic_table(model):
    return any(set(np.unique(kernel.table)) <= {0.0, 1.0} for kernel in kernels(model))


def has_noise(model):
    return any(reward.sigma > 0 for reward in model.rewards)


def starts_at_random(model):
    return any(not isinstance(start, int) for start in model.initial)


def is_not_binary(model):
    return max(model.sizes) > 2


FEATURES = [
    (reads_a_latent, {"latents": 0}),
    (reads_a_drawn_variable, {"drawn": False}),
    (has_a_block, {"blocks": False}),
    (has_a_group_with_parents_of_its_own, {"groups": False}),
    (has_a_reward_with_scopes_of_its_own, {"groups": False}),
    (has_a_deterministic_table, {"deterministic": False}),
    (has_noise, {"noise": False}),
    (starts_at_random, {"random_start": False}),
    (is_not_binary, {"largest_size": 2}),
]


def contents(model):
    """Everything that defines a model, as plain values."""

    def written(cases):
        return [(str(c.actions), c.parents, c.drawn, c.table.tolist()) for c in cases]

    return (
        model.variables,
        model.latents,
        model.actions,
        [(c.children, written(c.cases)) for c in model.conditionals],
        [(r.name, r.low, r.high, r.sigma, written(r.cases)) for r in model.rewards],
        [start if isinstance(start, int) else start.tolist() for start in model.initial],
        model.horizon,
        model.discount,
    )


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_the_same_seed_gives_the_same_model(seed):
    assert contents(random_model(seed)) == contents(random_model(seed))


def test_different_seeds_give_different_models():
    assert len({str(contents(random_model(seed))) for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize(("feature", "without"), FEATURES)
def test_every_feature_occurs_and_can_be_switched_off(feature, without):
    assert sum(feature(random_model(seed)) for seed in SEEDS) >= 5
    assert not any(feature(random_model(seed, **without)) for seed in SEEDS)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    variables=st.integers(1, 4),
    actions=st.integers(1, 4),
    horizon=st.sampled_from([None, 1, 3]),
    largest_size=st.integers(2, 3),
    largest_parents=st.integers(0, 3),
    latents=st.integers(0, 3),
    rewards=st.integers(0, 3),
    blocks=st.booleans(),
    drawn=st.booleans(),
    groups=st.booleans(),
)
def test_every_model_validates_and_its_transitions_are_distributions(**options):
    discount = 0.9 if options["horizon"] is None else 1.0
    model = random_model(**options, discount=discount)
    assert len(model.variables) == options["variables"]
    assert len(model.rewards) == options["rewards"]
    assert max(model.sizes) <= options["largest_size"]
    assert all(len(kernel.parents) <= options["largest_parents"] for kernel in kernels(model))
    flat = enumerate_states(model)
    assert flat.transitions.min() >= 0
    np.testing.assert_allclose(flat.transitions.sum(axis=-1), 1.0, atol=1e-9)


def test_without_shared_draws_next_values_are_independent():
    model = random_model(5, blocks=False, drawn=False, latents=0)
    flat = enumerate_states(model)
    for one in range(4):
        for other in range(one):
            first, second = flat.states[:, one] == 1, flat.states[:, other] == 1
            joint = flat.transitions @ (first & second)
            apart = (flat.transitions @ first) * (flat.transitions @ second)
            np.testing.assert_allclose(joint, apart, atol=1e-12)


def test_an_infinite_horizon_can_be_simulated():
    model = random_model(3, horizon=None, discount=0.8)
    assert np.isfinite(rollout(model, "random", episodes=5, seed=0).returns).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed is -1, expected a whole number of at least 0"),
        ({"variables": 0}, "variables is 0, expected a whole number from 1 to 1000"),
        ({"largest_size": 1}, "largest_size is 1, expected a whole number from 2 to 65536"),
        ({"blocks": "no"}, "blocks is 'no', expected True or False"),
        ({"largest_size": 50}, r"tables could have 50\^6 entries, .* use a smaller largest_size"),
        ({"horizon": None}, "give a horizon, or a discount below 1"),
    ],
)
def test_bad_arguments_are_refused_with_a_remedy(options, message):
    with pytest.raises(ModelError, match=message):
        random_model(**options)
