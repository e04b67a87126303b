"""What is said of a policy and a bound: levels that hold, and no more than was established."""

import warnings

import numpy as np
import pytest
from scipy.stats import binomtest

import fsmdp
from fsmdp.errors import ModelError, PoorPolicyWarning
from fsmdp.simulation.gap import lower_limit

DISTRIBUTIONS = {
    "rare": lambda rng, n: (rng.random(n) < 0.02).astype(float),
    "common": lambda rng, n: (rng.random(n) < 0.98).astype(float),
    "uniform": lambda rng, n: rng.random(n),
    "narrow": lambda rng, n: 0.5 + 0.01 * rng.standard_normal(n).clip(-3, 3),
    "skewed": lambda rng, n: rng.beta(0.05, 0.5, n),
}
MEANS = {"rare": 0.02, "common": 0.98, "uniform": 0.5, "narrow": 0.5, "skewed": 1 / 11}


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_the_lower_limit_misses_no_more_often_than_it_says(kind):
    rng = np.random.default_rng(0)
    tries, level = 400, 0.9
    missed = sum(
        lower_limit(DISTRIBUTIONS[kind](rng, 100), 0.0, 1.0, level) > MEANS[kind]
        for _ in range(tries)
    )
    assert binomtest(missed, tries, 1 - level, alternative="greater").pvalue > 1e-4


def test_a_limit_without_the_margin_would_be_caught():
    rng = np.random.default_rng(0)
    missed = sum(DISTRIBUTIONS["uniform"](rng, 100).mean() > 0.5 for _ in range(400))
    assert binomtest(missed, 400, 0.1, alternative="greater").pvalue < 1e-4


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_the_lower_limit_comes_close_with_more_samples(kind):
    rng = np.random.default_rng(1)
    samples = DISTRIBUTIONS[kind](rng, 20_000)
    limit = lower_limit(samples, 0.0, 1.0, 0.99)
    error = samples.std() / np.sqrt(len(samples))
    assert samples.mean() - 6 * error - 1e-3 < limit < samples.mean()


def test_the_limit_moves_with_the_scale_of_the_samples():
    samples = np.random.default_rng(2).random(200)
    plain = lower_limit(samples, 0.0, 1.0, 0.99)
    assert lower_limit(1e6 * samples - 7, -7, 1e6 - 7, 0.99) == pytest.approx(1e6 * plain - 7)
    assert lower_limit(np.full(5, 3.0), 3.0, 3.0, 0.99) == 3.0


def test_a_gap_states_its_level_and_holds_it():
    model = fsmdp.domains.sysadmin(6)
    plan = fsmdp.plan(model, method="programs")
    solution = fsmdp.solve_exactly(model)
    exact = solution.flat.initial() @ fsmdp.evaluate_exactly(model, plan)
    gap = fsmdp.certified_gap(model, plan, episodes=2000, level=0.95)
    assert gap.lower_limit <= exact <= gap.upper_bound
    assert "with probability at least 95 % the policy is within" in repr(gap)
    best = solution.start_value
    assert best - exact <= gap.relative_limit * best


def test_costs_have_a_gap_relative_to_the_least_cost():
    gap = fsmdp.Gap(-40.0, fsmdp.Runs(np.array([-44.0, -46.0]), 3), lower_limit=-50.0)
    assert gap.relative_limit == pytest.approx(0.25)
    mixed = fsmdp.Gap(4.0, fsmdp.Runs(np.array([1.0, 2.0]), 3), lower_limit=-1.0)
    assert mixed.relative_limit is None
    assert "% of the best" not in mixed.statement()


def test_noise_without_bounds_promises_nothing():
    ring = fsmdp.domains.sysadmin(3)
    noisy = [fsmdp.Reward(r.name, r.cases, r.low, r.high, sigma=1.0) for r in ring.rewards]
    model = fsmdp.FactoredMDP(
        ring.variables, ring.actions, ring.conditionals, noisy, ring.horizon, ring.initial
    )
    gap = fsmdp.certified_gap(model, fsmdp.plan(model, method="programs"), 5000, baselines=False)
    assert gap.lower_limit is None
    assert "nothing is promised" in repr(gap)


def test_a_policy_no_better_than_doing_nothing_is_said_to_be():
    model = fsmdp.domains.sysadmin(3)
    plan = fsmdp.plan(model, method="programs")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fsmdp.certified_gap(model, plan, 2000).no_better_than == ()
    idle = fsmdp.rollout(model, "wait", 500, seed=1)
    gap = fsmdp.Gap(10.0, idle, None, 0.99, {"doing nothing": fsmdp.rollout(model, "wait", 500)})
    assert gap.no_better_than == ("doing nothing",)
    hopeless = fsmdp.FactoredMDP(
        model.variables, model.actions, model.conditionals, [], model.horizon, model.initial
    )
    with pytest.warns(PoorPolicyWarning, match=r"doing nothing 0 ± 0; acting at random"):
        fsmdp.certified_gap(hopeless, fsmdp.plan(hopeless, method="programs"), 100)


def test_the_idle_action_is_known_by_name_or_by_what_it_changes():
    assert fsmdp.domains.sysadmin(3).idle_action() == "wait"
    ring = fsmdp.domains.sysadmin(3)
    renamed = {"wait": "z", "reboot-0": "a", "reboot-1": "b", "reboot-2": "c"}
    cases = [
        fsmdp.Conditional(
            one.children,
            [
                case
                if not isinstance(case.actions, tuple)
                else fsmdp.Case(
                    [renamed[a] for a in case.actions], case.parents, case.table, case.drawn
                )
                for case in one.cases
            ],
        )
        for one in ring.conditionals
    ]
    model = fsmdp.FactoredMDP(
        ring.variables, list(renamed.values()), cases, ring.rewards, ring.horizon, ring.initial
    )
    assert model.idle_action() == "z"


@pytest.mark.parametrize("level", [0.0, 1.0, "high", float("nan")])
def test_a_level_that_is_no_probability_is_refused(level):
    model = fsmdp.domains.sysadmin(2)
    with pytest.raises(ModelError, match="level"):
        fsmdp.certified_gap(model, fsmdp.plan(model, method="programs"), level=level)
