"""Random models x methods x units, constants and rare events, against V* in exact arithmetic."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import fsmdp
from fsmdp.domains import random_model
from tests.conditioned_models import with_conditions
from tests.odd_models import odd_model
from tests.rational import RationalModel
from tests.scaled_models import discounted, scaled, shifted

METHODS = ("auto", "auto, no exact values", "stagewise", "joint", "cutting-planes", "bundled")
MODELS = 60


def attacked(seed):
    """A small model in an odd unit, moved by an odd constant, perhaps with odd probabilities.

    Every other one has conditions on actions, and terminal states.
    """
    rng = np.random.default_rng(seed)
    model = _without_conditions(seed, rng)
    return with_conditions(model, seed) if seed % 2 else model


def _without_conditions(seed, rng):
    horizon = None if rng.random() < 0.5 else int(rng.integers(1, 6))
    discount = float(rng.choice([0.5, 0.9, 0.99])) if horizon is None else 1.0
    if rng.random() < 0.3:
        return odd_model(seed, horizon, discount)
    model = random_model(
        seed, int(rng.integers(1, 4)), int(rng.integers(1, 4)), 3, largest_size=2, noise=False
    )
    if horizon is None:
        model = discounted(model, discount)
    model = scaled(model, float(rng.choice([2.0 ** int(rng.integers(-60, 61)), rng.random()])))
    return shifted(model, float(rng.choice([0.0, 1.0, rng.normal() * 1e3])) * _unit(model))


def _unit(model):
    return float(model.span_of_return)


@pytest.mark.slow
def test_no_bound_is_below_the_optimum_in_any_unit():
    counts = Counter()
    for seed in range(MODELS):
        model = attacked(seed)
        exact = RationalModel(model)
        stationary = model.horizon is None
        first = exact.stationary_values() if stationary else exact.optimal_values()[0]
        best = sum(p * first[state] for state, p in exact.initial().items())
        for reachable in (True, False):
            solution = fsmdp.Exact(reachable=reachable).plan(model)
            assert abs(Fraction(solution.start_value) - best) <= Fraction(solution.error)
            counts["exact values"] += 1
        for method in METHODS:
            name, _, rest = method.partition(",")
            if name == "stagewise" and stationary:
                continue
            options = {"rounds": 1, "exact": not rest} if name == "auto" else {}
            plan = fsmdp.plan(model, method=name, **options)
            assert Fraction(plan.upper_bound) >= best, (seed, method)
            for state in exact.states:
                value = plan.value(state)
                assert value == np.inf or Fraction(value) >= first[state], (seed, method)
            if plan.gap is not None and plan.gap.proved:
                assert Fraction(plan.gap.lower_limit) <= best, (seed, method)
                counts["lower limits proved"] += 1
            counts[method] += 1
    print(dict(counts))
