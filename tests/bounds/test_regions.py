"""Bounds from regions with prices, against enumeration and against the checker of plan files."""

import numpy as np
import pytest
from tests.conditioned_models import conditioned
from tests.joint_models import joint_model

import fsmdp
from fsmdp.bounds.regions.choose import cover
from fsmdp.bounds.regions.layout import Parts
from fsmdp.bounds.regions.minimise import Minimisation, descend
from fsmdp.bounds.regions.prices import HUB, PricedRegions
from fsmdp.domains.random import random_model

SMALL, MIDDLE, WHOLE = (2, 2**6), (6, 2**9), (2**14, 2**22)

KINDS = {
    "plain": lambda seed: random_model(seed, 4),
    "discounted": lambda seed: random_model(seed, 4, discount=0.9),
    "conditions": lambda seed: conditioned(seed),
    "conditions, discounted": lambda seed: conditioned(seed, discount=0.8),
    "joint actions": lambda seed: joint_model(seed),
    "infinite": lambda seed: random_model(seed, 4, horizon=None, discount=0.8),
    "infinite, conditions": lambda seed: conditioned(seed, horizon=None, discount=0.8),
}


def nothing():
    pass


def priced(model, limits):
    parts = Parts(model)
    return PricedRegions(parts, cover(parts, *limits))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_every_set_of_prices_gives_a_bound(kind, seed):
    model = KINDS[kind](seed)
    optimal = fsmdp.solve_exactly(model).start_value
    rng = np.random.default_rng(seed)
    for limits in (SMALL, MIDDLE, WHOLE):
        regions = priced(model, limits)
        for size in (0.0, 0.1, 1.0):
            prices = regions.project(size * rng.normal(size=regions.theta.shape))
            bound, _, _ = regions.certified(prices)
            assert bound >= optimal - 1e-12 * max(1, abs(optimal))
        for _ in descend(regions, 0.1, 20, nothing):
            pass
        assert regions.certified(regions.theta)[0] >= optimal


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "infinite" not in kind])
@pytest.mark.parametrize("seed", range(3))
def test_what_policies_earn_of_prices_is_a_subgradient(kind, seed):
    model = KINDS[kind](seed)
    rng = np.random.default_rng(seed)
    for limits in (SMALL, MIDDLE):
        regions = priced(model, limits)
        here = regions.project(0.3 * rng.normal(size=regions.theta.shape))
        value, slope = regions.evaluate(here)
        for size in (1e-4, 1e-2, 1.0):
            way = size * regions.project(rng.normal(size=regions.theta.shape))
            there, _ = regions.evaluate(here + way)
            assert there >= value + (slope * way).sum() - 1e-9 * max(1, abs(value))


@pytest.mark.parametrize("seed", range(6))
def test_one_region_with_all_variables_is_exact(seed):
    model = random_model(seed, 4, latents=0, blocks=False)
    regions = priced(model, WHOLE)
    if len(regions.layouts) > 1:
        pytest.skip("the network of variables is not connected")
    optimal = fsmdp.solve_exactly(model).start_value
    for _ in descend(regions, 0.3, 60, nothing):
        pass
    # Rewards of actions alone are the hub's, until prices move them.
    left = max(1.0, model.span_of_return) if regions.left else 1e-9
    assert optimal <= regions.certified(regions.theta)[0] <= optimal + left


def test_one_region_solves_the_ring():
    model = fsmdp.domains.sysadmin(6)
    regions = priced(model, WHOLE)
    assert len(regions.layouts) == 1
    optimal = fsmdp.solve_exactly(model).start_value
    assert regions.certified(regions.theta)[0] == pytest.approx(optimal, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_larger_regions_with_the_same_prices_are_no_looser(kind, seed):
    model = KINDS[kind](seed)
    regions = priced(model, SMALL)
    for _ in descend(regions, 0.1, 20, nothing):
        pass
    before = regions.certified(regions.theta)[0]
    for limits in (MIDDLE, WHOLE):
        regions = regions.grown(*limits, np.inf)
        after = regions.certified(regions.theta)[0]
        assert after <= before + 1e-9 * max(1, abs(before))
        before = after


@pytest.mark.parametrize("seed", range(12))
def test_the_hub_maximises_over_joint_actions(seed):
    model = joint_model(seed)
    regions = priced(model, SMALL)
    hub = regions.hub
    rng = np.random.default_rng(seed)
    prices = rng.normal(size=(hub.n_columns + 1, 3))
    found, taken = hub.best(prices)
    rows = model.actions.rows()
    assert len(rows) == len(model.actions)
    own = hub.rewards[:, None] + prices[:-1]
    worth = np.zeros((len(rows), 3))
    for variable in range(rows.shape[1]):
        for value in range(1, model.actions.sizes[variable]):
            column = hub.offsets[variable] + value - 1
            worth += np.outer(rows[:, variable] == value, own[column])
    np.testing.assert_allclose(found - hub.constant, worth.max(axis=0), atol=1e-12)
    np.testing.assert_allclose((taken[:-1] * own).sum(axis=0), found - hub.constant, atol=1e-12)


def test_rounded_prices_add_up_to_zero_exactly():
    regions = priced(fsmdp.domains.sysadmin(9), MIDDLE)
    theta = regions.project(np.random.default_rng(0).normal(size=regions.theta.shape))
    whole, unit = regions.rounded(theta)
    for feature in range(len(regions.count)):
        assert not whole[regions.feature == feature].sum(axis=0).any()
    np.testing.assert_allclose(whole * unit, theta, atol=1e-9)
    assert any(entry.region == HUB for entry in regions.entries)


def test_bounds_fall_from_one_to_the_next():
    model = fsmdp.domains.sysadmin(12, horizon=8)
    found = [one.upper_bound for one in Minimisation(model, nothing, 1e6).run() if one is not None]
    assert len(found) > 1
    assert found == sorted(found, reverse=True)
    optimal = fsmdp.solve_exactly(model).start_value
    trivial = 12 / 12 * 8
    assert optimal <= found[-1] < trivial


def test_a_model_without_rewards_is_bounded_by_nothing():
    model = fsmdp.domains.sysadmin(4, horizon=3).replace(rewards=[])
    found = [one for one in Minimisation(model, nothing, 1e6, 5).run() if one is not None]
    assert found[-1].upper_bound == pytest.approx(0.0, abs=1e-9)
