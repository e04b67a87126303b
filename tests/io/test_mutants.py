"""Texts gone wrong in thousands of ways load, or are refused in words; nothing else happens."""

import time
import warnings
from collections import Counter

import pytest
from tests.io.mutations import mutants

import fsmdp

MOST_SECONDS = 20.0  # a thousand times what a mutant takes; a bomb takes far longer


def loaded(folder, domain, instance):
    """The model of two files and the files, or None and the error; anything else is a failure."""
    files = folder / "domain.rddl", folder / "instance.rddl"
    for file, text in zip(files, (domain, instance), strict=True):
        file.write_bytes(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fsmdp.rddl.RDDLWarning)
        try:
            return fsmdp.rddl.load(*files, cache=False), files
        except (fsmdp.ModelError, fsmdp.SizeError) as error:
            return None, error


def check(folder, count, seed):
    endings: Counter[str] = Counter()
    for name, domain, instance in mutants(folder, count, seed):
        began = time.process_time()
        try:
            model, rest = loaded(folder, domain, instance)
        except Exception as error:
            raise AssertionError(f"mutant {name}") from error
        assert time.process_time() - began < MOST_SECONDS, name
        if model is None:
            assert str(rest).startswith("domain:instance: "), (name, rest)
            assert len(str(rest)) < 1000, name
        endings["loads" if model else type(rest).__name__] += 1
    return endings


def test_a_mutated_problem_loads_or_is_refused_in_words(tmp_path):
    endings = check(tmp_path, 150, seed=0)
    assert endings["loads"] > 25
    assert endings["InvalidError"] > 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 7))
def test_thousands_of_mutated_problems_load_or_are_refused_in_words(seed, tmp_path):
    assert check(tmp_path, 1000, seed)["loads"] > 150


@pytest.mark.slow
def test_mutants_that_load_mean_what_the_simulator_thinks(tmp_path):
    """Where the simulator runs a mutant at all; it refuses some kinds that we can do without."""
    endings: Counter[str] = Counter()
    for name, domain, instance in mutants(tmp_path, 500, seed=7):
        model, files = loaded(tmp_path, domain, instance)
        if model is None:
            continue
        try:
            found = fsmdp.rddl.cross_check(*files, walks=2, cache=False)
        except fsmdp.rddl.InvalidError:
            endings["not simulated"] += 1
            continue
        assert found.passed, (name, found)
        endings["agrees"] += 1
    assert endings["agrees"] > endings["not simulated"]
