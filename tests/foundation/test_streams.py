"""Random streams are separate by purpose, and what is judged is judged on fresh draws."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import fsmdp
from fsmdp.foundation.streams import Purpose, derived_seed, generator
from fsmdp.policies.resolve import array_policy, resolve
from fsmdp.solver.judge import Judge, arena_of
from fsmdp.solver.parameters import COMPARING_EPISODES

SOURCES = Path(fsmdp.__file__).parent


def first(rng):
    return rng.bit_generator.state["state"]["state"], rng.bit_generator.state["state"]["inc"]


def test_no_two_purposes_or_seeds_share_a_stream():
    """In 0 to 1000 for every purpose, with and without further numbers, and derived seeds too."""
    seen = {}
    for purpose, seed in product(Purpose, range(1001)):
        streams = {(purpose, seed): generator(seed, purpose)}
        if purpose is not Purpose.EPISODES:
            streams[purpose, seed, 0] = generator(seed, purpose, 0)
            streams[purpose, seed, 1] = generator(seed, purpose, 1)
            derived = derived_seed(seed, purpose)
            streams[purpose, seed, "derived"] = np.random.default_rng(derived)
        for name, rng in streams.items():
            assert seen.setdefault(first(rng), name) == name
    assert len(seen) == 1001 * (1 + 4 * (len(Purpose) - 1))


def test_a_stream_is_the_same_every_time():
    for purpose in Purpose:
        assert generator(3, purpose).random() == generator(3, purpose).random()
    assert generator(5, Purpose.SCREENING, 1, 23).random() != (
        generator(5, Purpose.SCREENING, 12, 3).random()
    )


def test_episodes_are_those_that_gymnasium_seeds():
    assert generator(7, Purpose.EPISODES).random() == np.random.default_rng(7).random()


def test_a_gap_is_measured_on_episodes_that_nothing_was_chosen_by():
    """No start, and so no episode, is one that candidates were compared on, nor a fresh one."""
    model = random_starts()
    policy = resolve(model, "random").arrays
    arena, seeds = arena_of(model), range(4)
    met = {}
    for seed in seeds:
        met["rollout", seed] = fsmdp.record(model, "random", 300, seed).states[:, 0]
        for purpose in (Purpose.SCREENING, Purpose.FRESH, Purpose.VISITED):
            states = arena.states(policy, 300, derived_seed(seed, purpose))
            met[purpose, seed] = states[:, 0]
    for one, other in product(met, met):
        if one != other:
            shared = set(map(tuple, met[one].tolist())) & set(map(tuple, met[other].tolist()))
            assert not shared, f"{one} and {other} share {len(shared)} starts"


def random_starts():
    """Forty coins: two episodes that begin alike are one."""
    coin = [fsmdp.Case(fsmdp.ANY, table=[0.5, 0.5])]
    names = [f"coin-{i}" for i in range(40)]
    reward = fsmdp.Reward("up", [fsmdp.Case(fsmdp.ANY, ["coin-0"], [0, 1])], low=0, high=1)
    return fsmdp.FactoredMDP(
        [fsmdp.Variable(name, 2) for name in names],
        ["go"],
        [fsmdp.Conditional(name, coin) for name in names],
        [reward],
        2,
        {name: [0.5, 0.5] for name in names},
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_the_returns_that_a_judge_compares_are_not_those_of_a_rollout(seed):
    """Which certified_gap takes: with the same seed the first of them were the same."""
    model = random_starts()
    policy = array_policy("random", model, "random")
    judge = Judge(arena_of(model), seed)
    judged = judge.consider("random", policy, policy.compiled(), 0.0).returns
    rolled = fsmdp.rollout(model, "random", COMPARING_EPISODES, seed).returns
    assert (judged[:50] != rolled[:50]).any()


def test_generators_are_made_in_one_place():
    """But for those that are given none, models of a seed, and constants that are no draws."""
    allowed = {"foundation/streams.py", "io/rddl/agent.py", "online/continuations.py"}
    allowed |= {"verification/values.py"}
    allowed |= {
        f"domains/{name}.py" for name in ("exogenous", "influence", "proposition", "random")
    }
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if re.search(r"default_rng\(|SeedSequence\(", path.read_text())
    }
    assert found <= allowed


def test_every_purpose_is_used():
    texts = [path.read_text() for path in SOURCES.rglob("*.py") if path.name != "streams.py"]
    for purpose in Purpose:
        assert any(f"Purpose.{purpose.name}" in text for text in texts), purpose
