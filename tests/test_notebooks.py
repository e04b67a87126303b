"""What notebooks show of each object."""

import re
import tempfile
from functools import cache
from html.parser import HTMLParser

import pytest

import fsmdp
from fsmdp.report.curves import summarise
from tests.experiments.sweeps import Here

RING = fsmdp.domains.sysadmin(3)
BASIS = fsmdp.Basis.pairs(RING)
PLAN = fsmdp.plan(RING, BASIS, method="programs")


def _history():
    learner = fsmdp.UCRLFactored(RING.structure(BASIS), known_rewards=RING.rewards)
    return fsmdp.learn(RING, learner, episodes=3)


@cache
def _results():
    return fsmdp.compare(
        {"ring": RING},
        ["ucrl", "random"],
        seeds=2,
        episodes=3,
        output=tempfile.mkdtemp(),
        executor=Here(),
    )


SHOWN = {
    "model": (lambda: RING, "machine-2"),
    "structure": (lambda: RING.structure(BASIS), "cells to estimate"),
    "basis": (lambda: BASIS, "of 2 variables"),
    "plan": (lambda: PLAN, f"{PLAN.upper_bound:.6g}, by elimination"),
    "certificate": (lambda: PLAN.certificate, "largest violation"),
    "gap": (lambda: fsmdp.certified_gap(RING, PLAN, 50), "acting at random earns"),
    "runs": (lambda: fsmdp.rollout(RING, "wait", 20), "20 of 10 steps"),
    "history": (_history, "regret at most"),
    "results": (_results, "mean return, last tenth"),
    "relative gap": (lambda: fsmdp.plan(RING).gap, "the policy is optimal"),
}

SHORT = {
    "certificate": (
        lambda: PLAN.certificate,
        r"Certificate\(no policy earns more than \S+; largest violation before lifting \S+, "
        r"at step \d+\)",
    ),
    "results": (
        _results,
        r"Results\(1 model, 2 learners, 2 seeds, 3 episodes; 4 of 4 runs done\)",
    ),
    "run": (lambda: _results().runs[0], r"Run\(.+ on ring, seed 0: done, 3 episodes\)"),
}


class Balanced(HTMLParser):
    """Fails on tags that do not match."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.filterwarnings("ignore::fsmdp.PoorPolicyWarning")
@pytest.mark.parametrize("kind", SHOWN)
def test_a_notebook_shows_a_table_of_facts(kind):
    make, expected = SHOWN[kind]
    shown = make()._repr_html_()
    parser = Balanced()
    parser.feed(shown)
    assert not parser.open
    assert expected in re.sub("<[^>]*>", " ", shown)


@pytest.mark.parametrize("kind", SHORT)
def test_what_prints_long_arrays_has_a_line_instead(kind):
    make, expected = SHORT[kind]
    assert re.fullmatch(expected, repr(make()))


def test_results_list_figures_of_every_model_and_learner():
    shown = re.sub("<[^>]*>", " ", _results()._repr_html_())
    assert shown.count("2 done") == 2
    for row in summarise(_results()):
        assert row.trials.label in shown
        assert str(row.figures["return_last_tenth"]) in shown
        assert str(row.figures["regret"]) in shown


def test_names_are_no_markup():
    variable = fsmdp.Variable("<b>x</b>", 2)
    stays = fsmdp.Conditional(
        variable.name, [fsmdp.Case(fsmdp.ANY, [variable.name], [[1, 0], [0, 1]])]
    )
    model = fsmdp.FactoredMDP([variable], ["wait"], [stays], [], horizon=1)
    assert "&lt;b&gt;x&lt;/b&gt;" in model._repr_html_()
