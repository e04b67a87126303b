"""Checkpoints that are whole but wrong: refused with our errors, or learnt on without a crash."""

from pathlib import Path

import numpy as np
import pytest
from tests.io.test_plan_files import run_apart
from tests.mutations import mutated_arrays

import fsmdp
from fsmdp import FsmdpError, domains
from fsmdp.foundation.disk import read_arrays, write_arrays

LEARNERS = {
    "UCRLFactored": lambda s, model: fsmdp.UCRLFactored(s, replan=0.5),
    "PSRLFactored": lambda s, model: fsmdp.PSRLFactored(s),
    "UCBVI": lambda s, model: fsmdp.UCBVI(s),
    "FixedPolicy": lambda s, model: fsmdp.FixedPolicy(s, fsmdp.plan(model, method="programs")),
}


def go_on(name, path, episodes):
    model = domains.sysadmin(2, horizon=3)
    learner = LEARNERS[name](model.structure(fsmdp.Basis.singles(model)), model)
    return fsmdp.learn(model, learner, episodes, checkpoint=path)


def wrong_checkpoints(arrays, seed):
    """Pairs of a label and the arrays of a checkpoint with one of them changed."""
    rng = np.random.default_rng(seed)
    for name, array in arrays.items():
        yield f"without {name}", {n: a for n, a in arrays.items() if n != name}
        for label, changed in mutated_arrays(array, rng):
            yield f"{name}: {label}", arrays | {name: changed}


def try_all(name, folder, every, offset):
    """Write wrong checkpoints and learn on; print each first, so that a crash tells which."""
    path = Path(folder) / "run.npz"
    go_on(name, path, 6)
    arrays = read_arrays(path, 2**20, "checkpoint", "none")
    taken = refused = 0
    for position, (label, wrong) in enumerate(wrong_checkpoints(arrays, 0)):
        if position % every != offset:
            continue
        print(label, flush=True)
        write_arrays(path, wrong)
        try:
            history = go_on(name, path, 9)
        except FsmdpError:
            refused += 1
        else:
            taken += 1
            assert np.isfinite(history.returns).all()
    print(f"{taken} taken up, {refused} refused")


CODE = """
import sys
from tests.learning.test_checkpoint_files import try_all
try_all(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
"""


@pytest.mark.parametrize("name", LEARNERS)
def test_wrong_checkpoints_with_valid_digests_are_refused_or_harmless(name, tmp_path):
    assert len(run_apart(CODE, name, tmp_path, 18, 4)) > 25


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("offset", range(3))
def test_all_wrong_checkpoints_with_valid_digests_are_refused_or_harmless(name, offset, tmp_path):
    run_apart(CODE, name, tmp_path, 3, offset)


MUST_BE_FINITE = {
    "UCRLFactored": ["planned/policy/entries", "planned/acting/values", "planned/acting/q"],
    "UCBVI": ["planned/acting/widths", "learner/last_q", "series/optimistic_values"],
    "PSRLFactored": ["statistics/reward_sums", "series/returns", "series/seconds_acting"],
    "FixedPolicy": ["series/returns", "series/lifts"],
}


@pytest.mark.parametrize("name", LEARNERS)
def test_nan_where_numbers_must_be_finite_is_refused_in_spite_of_the_digest(name, tmp_path):
    path = tmp_path / "run.npz"
    go_on(name, path, 4)
    arrays = read_arrays(path, 2**20, "checkpoint", "none")
    for part in MUST_BE_FINITE[name]:
        for value in (np.nan, np.inf) if part != "learner/last_q" else (np.nan,):
            wrong = arrays[part].copy()
            wrong.flat[0] = value
            write_arrays(path, arrays | {part: wrong})
            with pytest.raises(fsmdp.ModelError, match="missing or wrong"):
                go_on(name, path, 6)


def test_strides_of_a_policy_that_add_up_beyond_integers_are_refused(tmp_path):
    path = tmp_path / "run.npz"
    go_on("UCBVI", path, 4)
    arrays = read_arrays(path, 2**20, "checkpoint", "none")
    strides = arrays["planned/policy/strides"]
    for value in (2**62 + 2**40, 2**62, 2**63 - 1):
        write_arrays(path, arrays | {"planned/policy/strides": np.full_like(strides, value)})
        with pytest.raises(fsmdp.ModelError, match="missing or wrong"):
            go_on("UCBVI", path, 6)


def test_counts_that_do_not_add_up_are_refused(tmp_path):
    path = tmp_path / "run.npz"
    go_on("PSRLFactored", path, 4)
    arrays = read_arrays(path, 2**20, "checkpoint", "none")
    for name in ("visits", "outcomes", "starts", "episodes"):
        for value in (2**53, 2**62, 2**63 - 1):
            wrong = arrays[f"statistics/{name}"].copy()
            wrong[() if wrong.ndim == 0 else -1] = value
            write_arrays(path, arrays | {f"statistics/{name}": wrong})
            with pytest.raises(fsmdp.ModelError, match="missing or wrong"):
                go_on("PSRLFactored", path, 6)
