"""Registry: every domain builds from text, and what cannot be read is explained."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from fsmdp.domains import DOMAINS, build_domain
from fsmdp.errors import ModelError
from fsmdp.simulation.rollout import rollout


@pytest.mark.parametrize("name", DOMAINS)
def test_every_domain_builds_by_its_name_alone_and_can_be_simulated(name):
    model = build_domain(name)
    runs = rollout(model, "random", episodes=3, seed=0)
    again = rollout(build_domain(name), "random", episodes=3, seed=0)
    np.testing.assert_array_equal(runs.returns, again.returns)


@pytest.mark.parametrize("name", DOMAINS)
def test_every_option_is_an_argument_of_the_builder(name):
    domain = DOMAINS[name]
    assert domain.name == name
    assert domain.summary
    assert set(domain.options) <= set(inspect.signature(domain.build).parameters)


@pytest.mark.parametrize(
    ("text", "variables", "horizon"),
    [
        ("sysadmin:ring:8", 8, 10),
        ("sysadmin:8:ring", 8, 10),
        ("sysadmin:5", 5, 10),
        ("sysadmin:star", 8, 10),
        ("sysadmin:ring:8:horizon=20", 8, 20),
        ("sysadmin:horizon=20:ring:8", 8, 20),
        ("sysadmin:machines=6:topology=three-legs", 6, 10),
        ("sysadmin:4:horizon=none:discount=0.95", 4, None),
        ("gridworld:2:3", 8, 10),
        ("influence:20", 20, 10),
        ("influence:20:campaigns=4:listening=0.3:seed=2", 20, 10),
        ("exogenous-block:6:shock=0.5", 8, 10),
        ("maintenance:3:shock=0.1", 3, 10),
        ("proposition-1:4:seed=7", 4, 1),
        ("random:7:variables=3:blocks=no:largest_size=2", 3, 4),
    ],
)
def test_text_is_read_as_it_says(text, variables, horizon):
    model = build_domain(text)
    assert len(model.variables) == variables
    assert model.horizon == horizon


def test_both_orders_of_sysadmin_are_the_same_model():
    one, other = build_domain("sysadmin:star:5"), build_domain("sysadmin:5:star")
    assert one.variables == other.variables
    assert [one.parents(i) for i in range(5)] == [other.parents(i) for i in range(5)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sysadmn", r"^unknown domain 'sysadmn'; did you mean 'sysadmin'\?"),
        ("sysadmn:ring:8", r"^unknown domain 'sysadmn'; did you mean 'sysadmin'\?"),
        (
            "chess",
            "unknown domain 'chess'; expected one of .*exogenous-block, gridworld, influence",
        ),
        ("", "unknown domain ''; expected one of"),
        ("sysadmin:horizn=3", r"unknown option 'horizn'; did you mean 'horizon'\?"),
        ("sysadmin:colour=3", "unknown option 'colour'; expected one of machines, topology"),
        ("sysadmin:horizon=ten", "option 'horizon': expected a whole number, .* found 'ten'"),
        ("sysadmin:machines=2.5", "option 'machines': expected a whole number, found '2.5'"),
        ("sysadmin:discount=nan", "option 'discount': expected a number, found 'nan'"),
        ("sysadmin:discount=", "option 'discount': expected a number, found ''"),
        ("sysadmin:=3", "unknown option ''"),
        (
            "sysadmin:",
            r"expected machines \(a whole number\) or topology \(one of ring, .*\), found ''",
        ),
        ("sysadmin:8:9", r"expected topology \(one of ring, .*\), found '9'"),
        ("sysadmin:ring:star", r"expected machines \(a whole number\), found 'star'"),
        ("sysadmin:ring:8:20", "'20' is one value too many, expected at most 2 without a name"),
        ("sysadmin:8:machines=9", "option 'machines' is given twice, as 8 and as '9'"),
        ("sysadmin:torus:8", r"topology \(one of .*three-legs\), found 'torus'"),
        ("sysadmin:0", "machines is 0, expected"),
        ("influence:many", r"expected nodes \(a whole number\), found 'many'"),
        ("influence:1_000", r"expected nodes \(a whole number\), found '1_000'"),
        ("influence:" + "9" * 5000, "expected nodes"),
        ("random:blocks=maybe", "option 'blocks': expected yes or no, found 'maybe'"),
        ("random:variables=100000000", "variables is 100000000, expected .* from 1 to 1000"),
        ("random:largest_size=100000000", "largest_size is 100000000, expected"),
        ("influence:100000:campaigns=100000", "expected at most 4194304; use fewer"),
        ("gridworld:100000000:100000000", "rows is 100000000, expected .* from 1 to 1024"),
        ("sysadmin:horizon=10000000", "at most 1000000 steps"),
        ("x" * 10**6, "unknown domain 'xxx"),
        ("sysadmin:" + "x" * 10**6, r"topology \(one of .*\), found 'xxx"),
        ("sysadmin:8:" + "9" * 4000, "found '999"),
        ("proposition-1:40", "bits is 40, expected a whole number from 1 to 12"),
        ("sysadmin:machines=__import__('os')", "option 'machines': expected a whole number"),
    ],
)
def test_what_cannot_be_read_is_explained(text, message):
    with pytest.raises(ModelError, match=message) as caught:
        build_domain(text)
    assert len(str(caught.value)) < 400


def test_only_text_is_read():
    with pytest.raises(ModelError, match="expected text such as 'sysadmin:ring:8', found int"):
        build_domain(8)
