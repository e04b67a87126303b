"""Maintenance: one shock takes every unit, and that changes what is best."""

from __future__ import annotations

import numpy as np
import pytest

from fsmdp.domains import maintenance
from fsmdp.errors import ModelError
from fsmdp.exact.flat import enumerate_states
from fsmdp.exact.solve import solve_exactly


def test_both_units_fail_as_often_as_the_shock_and_two_failures_alone_say():
    flat = enumerate_states(maintenance(shock=0.2, alone=0.1))
    run = flat.transitions[0, flat.index((0, 0))]
    assert run[flat.index((1, 1))] == pytest.approx(0.2 + 0.8 * 0.1**2)
    assert run[flat.index((0, 0))] == pytest.approx(0.8 * 0.9**2)


def test_a_failed_unit_stays_failed_until_it_is_serviced():
    flat = enumerate_states(maintenance(3))
    failed = flat.states == 1
    kept = (failed[:, None, :] <= failed[None, :, :]).all(axis=2)
    assert not flat.transitions[0][~kept].any()
    np.testing.assert_allclose(flat.transitions[1][:, 0], 1.0)


def test_service_is_best_until_the_last_step_whatever_has_failed():
    exact = solve_exactly(maintenance())
    actions = np.array(exact.model.actions)[exact.actions]
    assert (actions[:-1] == "service").all()
    assert (actions[-1] == "run").all()
    assert exact.start_value == pytest.approx(10 - 9 * 0.09)


def test_the_system_works_while_one_unit_does():
    flat = enumerate_states(maintenance(3, cost=0.5))
    np.testing.assert_allclose(flat.rewards[0], ~flat.states.all(axis=1))
    np.testing.assert_allclose(flat.rewards[1], flat.rewards[0] - 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"units": 0}, "units is 0, expected a whole number from 1 to 16"),
        ({"shock": 1.5}, "shock is 1.5, expected a probability from 0 to 1"),
        ({"alone": -1}, "alone is -1, expected a probability from 0 to 1"),
        ({"cost": -1}, "cost is -1, expected at least 0"),
        ({"cost": float("nan")}, "maintenance, cost"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ModelError, match=message):
        maintenance(**options)
