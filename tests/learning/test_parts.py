"""Learners are composed of parts: no class of theirs derives from a long row of others."""

import importlib
import pkgutil

import fsmdp.learning.learners
from fsmdp.discovery.learner import UCRLDiscovering
from fsmdp.learning.learners.learner import CountingLearner

DEEPEST = 2


def depth(kind):
    """Classes of ours that a class derives from, in a row."""
    ours = [base for base in kind.__bases__ if base.__module__.startswith("fsmdp.")]
    return max((1 + depth(base) for base in ours), default=0)


def learners(kind=CountingLearner):
    for one in kind.__subclasses__():
        if one.__module__.startswith("fsmdp."):
            yield one
            yield from learners(one)


def test_no_learner_derives_from_more_than_two_classes_in_a_row():
    package = fsmdp.learning.learners
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
    found = {one.__name__: depth(one) for one in learners()}
    assert UCRLDiscovering.__name__ in found
    assert {name for name, deep in found.items() if deep > DEEPEST} == set()
