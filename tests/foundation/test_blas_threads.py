"""Linear algebra of ours runs with one thread, and that of the user with as many as before."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import numpy, scipy.linalg, threadpoolctl, fsmdp

def threads():
    found = threadpoolctl.threadpool_info()
    return {one["num_threads"] for one in found if one["user_api"] == "blas"}

before, during = threads(), []

def note(*_):
    during.append(threads())

model = fsmdp.domains.sysadmin(4)
fsmdp.plan(model, exact=False, rounds=0, callback=note)
learner = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.singles(model)))
fsmdp.learn(model, learner, 2, progress=note)
assert threads() == before, (before, threads())
print(max(map(max, during)), max(before), len(during))
"""


def run(**environment):
    kept = {name: value for name, value in os.environ.items() if "_THREADS" not in name}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env=kept | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    most, before, calls = map(int, done.stdout.split())
    assert calls > 3
    return most, before


def test_blas_has_one_thread_while_we_plan_and_learn_and_as_many_as_before_afterwards():
    pytest.importorskip("threadpoolctl")
    most, before = run()
    assert most == 1
    assert before == os.cpu_count()


def test_what_the_environment_says_is_kept():
    pytest.importorskip("threadpoolctl")
    assert run(OPENBLAS_NUM_THREADS="2") == (2, 2)
