"""Confidence sets and learners of a user's own package: registered once, known everywhere."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.learning.learning_models import own_registrations
from typer.testing import CliRunner

import fsmdp
from fsmdp import ModelError, domains
from fsmdp.bounds.bellman import Intervals
from fsmdp.cli import entry as cli
from fsmdp.experiments.learners import build_learner, resolve_options
from fsmdp.foundation.kinds import POSITIVE
from fsmdp.learning.cells import confidence
from fsmdp.learning.cells.confidence import CONFIDENCE, ConfidenceSet, empirical_moments
from fsmdp.learning.learners import registry
from fsmdp.learning.learners.factored import FactoredLearner
from fsmdp.learning.learners.learner import MEMBERS, Planned
from fsmdp.learning.learners.registry import LEARNERS, LearnerEntry

RING = domains.sysadmin(3, horizon=4)
BASIS = fsmdp.Basis.singles(RING)
STRUCTURE = RING.structure(BASIS)
UCRL = LEARNERS["ucrl"]  # made before anything of a user's own is registered


def chebyshev(cells, statistics, episode, delta, scale):
    """A user's own confidence set: mean +- range / (2 sqrt(n delta))."""
    n = np.maximum(statistics.transition_visits, 1)
    means, _ = empirical_moments(cells, statistics)
    radius = np.sqrt(scale / (4 * n * delta)) * (cells.highest - cells.lowest)
    seen = statistics.transition_visits > 0
    low = np.where(seen, np.maximum(means - radius, cells.lowest), cells.lowest)
    high = np.where(seen, np.minimum(means + radius, cells.highest), cells.highest)
    return low, high


class Averages(FactoredLearner):
    """A user's own learner: it believes its averages, and the best of what it has never seen."""

    name = "Averages"
    heuristic = True

    def __init__(self, structure, seed=0, *, growth=0.5, known_rewards=None):
        super().__init__(
            structure, seed=seed, method="stagewise", replan=growth, known_rewards=known_rewards
        )

    def replan(self) -> Planned:
        means, _ = empirical_moments(self.cells, self.statistics)
        unseen = self.statistics.transition_visits == 0
        means = np.where(unseen, self.cells.highest, means)
        return self.follow(Intervals(self.cells.reward_high, means, means))

    def describe(self) -> str:
        return self.when_to_plan()


AVERAGES = LearnerEntry(
    "averages",
    "averages",
    "believes what it has seen",
    lambda context, options: Averages(context.structure, context.seed, **options),
    {"growth": (POSITIVE, 0.5)},
    uses_basis=True,
)


@pytest.fixture
def registered():
    """Both registered, and gone again after the test."""
    with own_registrations():
        confidence.register(ConfidenceSet("chebyshev", chebyshev, heuristic=True))
        registry.register(AVERAGES)
        yield


def test_a_confidence_set_of_ones_own_is_known_everywhere_once_registered(registered):
    learner = fsmdp.UCRLFactored(STRUCTURE, confidence="chebyshev", seed=1)
    history = fsmdp.learn(RING, learner, episodes=20)
    assert history.heuristic
    assert history.learner.startswith("UCRLFactored(chebyshev, empirical weight 4, stagewise")
    low, high = chebyshev(learner.cells, learner.statistics, 21, 0.05, 1.0)
    np.testing.assert_array_equal(learner.bounds().low, low)
    np.testing.assert_array_equal(learner.bounds().high, high)
    options = resolve_options(UCRL, {"confidence": "chebyshev"}, "here")
    built = build_learner("ucrl", RING, BASIS, options, seed=1)
    assert built.describe() == learner.describe()
    for refuse in (
        lambda: fsmdp.UCRLFactored(STRUCTURE, confidence="normal"),
        lambda: resolve_options(UCRL, {"confidence": "normal"}, "here"),
    ):
        with pytest.raises(
            ModelError, match="weissman, hoeffding, bernstein, chernoff, osband, mixture, chebyshev"
        ):
            refuse()


def test_a_learner_of_ones_own_is_known_everywhere_once_registered(registered):
    options = resolve_options(LEARNERS["averages"], {"growth": "1.5", "basis": "pairs"}, "here")
    assert options == {"growth": 1.5, "basis": "pairs"}
    learner = build_learner("averages", RING, BASIS, options, seed=2)
    assert len(learner.structure.basis) == len(fsmdp.Basis.pairs(RING))
    assert learner.growth == 1.5
    assert fsmdp.learn(RING, learner, episodes=20).heuristic
    with pytest.raises(ModelError, match=r"unknown learner .average.; did you mean .averages."):
        LEARNERS.find("average", "here")
    with pytest.raises(ModelError, match=r"expected one of ucrl, .*, averages"):
        LEARNERS.find("???", "here")


def test_the_command_line_learns_with_what_was_registered(registered):
    asked = ["learn", "sysadmin:ring:3", "--episodes", "5", "--json", "--learner"]
    for name, option in (("averages", "growth=2"), ("ucrl", "confidence=chebyshev")):
        done = CliRunner().invoke(cli.app, [*asked, name, "--option", option])
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert found["episodes"] == 5
        assert found["heuristic"]


@pytest.mark.parametrize("name", CONFIDENCE)
def test_names_of_confidence_sets_are_taken_once(name):
    with pytest.raises(ModelError, match=f"'{name}' is registered already; choose another name"):
        confidence.register(ConfidenceSet(name, chebyshev))


@pytest.mark.parametrize("name", LEARNERS)
def test_names_of_learners_are_taken_once_and_entries_know_theirs(name):
    assert LEARNERS[name].name == name
    with pytest.raises(ModelError, match=f"'{name}' is registered already; choose another name"):
        registry.register(replace(AVERAGES, name=name))


def test_what_is_no_entry_is_not_registered():
    before = list(LEARNERS)
    for junk in (None, chebyshev, Averages, "averages", 3):
        with pytest.raises(ModelError, match="expected a ConfidenceSet to register"):
            confidence.register(junk)
        with pytest.raises(ModelError, match="expected a LearnerEntry to register"):
            registry.register(junk)
    for junk in ("", None, 3):
        with pytest.raises(ModelError, match="expected a name of letters"):
            confidence.register(ConfidenceSet(junk, chebyshev))
        with pytest.raises(ModelError, match="expected a name of letters"):
            registry.register(replace(AVERAGES, name=junk))
    known = ["weissman", "hoeffding", "bernstein", "chernoff", "osband", "mixture"]
    assert list(CONFIDENCE) == known
    assert "averages" not in LEARNERS
    assert list(LEARNERS) == before


@pytest.mark.parametrize(
    "ends",
    [
        lambda low, high: low,
        lambda low, high: (low, high[1:]),
        lambda low, high: (low, high * np.nan),
        lambda low, high: (low, high, high),
        lambda low, high: ("low", "high"),
        lambda low, high: None,
    ],
)
def test_a_set_that_gives_something_else_is_refused_by_name(ends):
    learner = fsmdp.UCRLFactored(STRUCTURE)
    wrong = ConfidenceSet("wrong", lambda *given: ends(*chebyshev(*given)))
    with pytest.raises(ModelError, match="confidence set 'wrong': expected two arrays of"):
        wrong.intervals(learner.cells, learner.statistics, 1, 0.05, 0.05)


class Masked:
    """A learner that lacks one of its members."""

    def __init__(self, learner, missing):
        self._learner, self._missing = learner, missing

    def __getattr__(self, name):
        if name == self._missing:
            raise AttributeError(name)
        return getattr(self._learner, name)


def test_the_protocol_names_all_that_a_run_asks_for():
    assert set(MEMBERS) == {
        *("structure", "name", "cells", "statistics", "term_known", "seed", "heuristic"),
        *("optimistic", "describe", "given", "replan", "state", "restore"),
    }


@pytest.mark.parametrize("member", MEMBERS)
def test_whatever_a_learner_lacks_is_named(member):
    with pytest.raises(ModelError, match=f"which has no {member}; make one"):
        fsmdp.learn(RING, Masked(fsmdp.UCRLFactored(STRUCTURE), member), episodes=1)


def built(name):
    """A learner by its name; one that writes its hypotheses out is given few enough of them."""
    model, options = RING, {}
    if name == "olive":
        model, options = fsmdp.domains.sysadmin(2, horizon=2), {"known_rewards": True, "levels": 2}
    resolved = resolve_options(LEARNERS[name], options, "here")
    return build_learner(name, model, fsmdp.Basis.singles(model), resolved, seed=3)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_has_every_member(name):
    learner = built(name)
    assert [member for member in MEMBERS if not hasattr(learner, member)] == []
    learner.restore(learner.state())
    assert all(isinstance(array, np.ndarray) for array in learner.given())
    assert learner.optimistic in (True, False)
    assert isinstance(learner.seed, int)


def test_baselines_do_not_choose_how_to_eliminate(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("an elimination was built")

    monkeypatch.setattr("fsmdp.bounds.bellman.build", refuse)
    for name in set(LEARNERS) - {"plan"}:  # which plans in the known model
        if name in ("ucrl", "psrl", "bonus", "dorl", "rmax"):
            with pytest.raises(AssertionError, match="an elimination was built"):
                built(name)
        else:
            built(name)
