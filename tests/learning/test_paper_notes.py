"""Claims of docs/paper_notes.md that no other test shows."""

import math

import numpy as np
import pytest

import fsmdp
from fsmdp.bounds.bellman import network_of_structure


def test_note_1_a_function_may_look_at_variables_that_are_not_among_its_parents():
    swap = [
        fsmdp.Conditional(
            child, cases=[fsmdp.Case(fsmdp.ANY, parents=[parent], table=[[0.9, 0.1], [0.2, 0.8]])]
        )
        for child, parent in (("x", "y"), ("y", "x"))
    ]
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("x", 2), fsmdp.Variable("y", 2)], ["wait"], swap, [], 2, [0, 0]
    )
    structure = model.structure(fsmdp.Basis([fsmdp.Table(["x"], [0.0, 1.0])]))
    assert structure.parents[1].groups == ((1,),)
    network = network_of_structure(structure)
    rng = np.random.default_rng(0)
    entries = rng.normal(size=network.elimination.network.n_entries)
    # Entries: h_0; h_1 at x; backup of h_0; backup of h_1 at y.
    largest = entries[0] + max(entries[1:3]) + entries[3] + max(entries[4:6])
    assert network.elimination.maximise(entries).value == pytest.approx(largest)


def test_note_3_a_radius_for_one_number_of_visits_fails_when_the_number_is_random():
    chance, most, runs = 0.05, 10_000, 2000
    rng = np.random.default_rng(1)
    n = np.arange(1, most + 1)
    one_number = np.sqrt((4 * math.log(2) - 2 * math.log(chance)) / n) / 2  # of the mean
    any_number = np.sqrt(np.log(2 * math.pi**2 * n.astype(float) ** 2 / (6 * chance)) / (2 * n))
    at_the_end = at_some_time = at_some_time_by_visits = 0
    for _ in range(runs):
        deviation = np.abs(np.cumsum(rng.integers(2, size=most)) / n - 0.5)
        at_the_end += deviation[-1] > one_number[-1]
        at_some_time += (deviation > one_number).any()
        at_some_time_by_visits += (deviation > any_number).any()
    assert at_the_end / runs <= chance
    # Whoever stops visiting when the mean is off leaves a set that does not hold the truth.
    assert at_some_time / runs > 1.2 * chance
    assert at_some_time_by_visits / runs <= chance
