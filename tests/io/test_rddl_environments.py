"""RDDL problems that Gymnasium knows by name."""

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import fsmdp
from fsmdp.io.rddl.sources import repository

pytest.importorskip("rddlrepository")


def test_every_domain_of_the_repository_is_registered():
    known = {name for name in gymnasium.registry if name.startswith("rddl/")}
    assert known == {f"rddl/{name}-v0" for name, one in repository().items() if one.instances}
    assert len(known) > 50


@pytest.mark.parametrize(
    "name",
    ["SysAdmin_MDP_ippc2011", "Navigation_MDP_ippc2011", "SkillTeaching_MDP_ippc2011"],
)
def test_a_problem_keeps_gymnasiums_rules_and_is_the_model(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fsmdp.FsmdpWarning)
        env = gymnasium.make(f"rddl/{name}-v0", instance=2)
        model = fsmdp.rddl.load(name, 2)
        check_env(env.unwrapped, skip_render_check=True)
    twin = fsmdp.make_env(model)
    for one in (env, twin):
        one.reset(seed=5)
    for action in (0, 1, 0):
        seen, expected = env.step(action), twin.step(action)
        np.testing.assert_array_equal(seen[0], expected[0])
        assert seen[1] == expected[1]


def test_files_of_ones_own_are_problems_too():
    listing = repository()["SysAdmin_MDP_ippc2011"]
    domain, instance = (listing.folder / name for name in ("domain.rddl", "instance1.rddl"))
    env = gymnasium.make("fsmdp/RDDL-v0", domain=str(domain), instance=str(instance))
    assert env.action_space == gymnasium.make("rddl/SysAdmin_MDP_ippc2011-v0").action_space


def test_registering_reads_no_problem_and_imports_no_parser():
    code = (
        "import sys, fsmdp, gymnasium\n"
        "assert 'rddl/SysAdmin_MDP_ippc2011-v0' in gymnasium.registry\n"
        "print([name for name in ('pyRDDLGym', 'rddlrepository', 'numba') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
