"""Importing fsmdp is light, and every public name is there."""

import subprocess
import sys

import fsmdp

HEAVY = ["gymnasium", "matplotlib", "numba", "pyRDDLGym", "rddlrepository", "scipy", "highspy"]


def test_heavy_packages_are_not_imported_until_needed():
    code = (
        "import sys, fsmdp; fsmdp.domains.sysadmin(3); "
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_can_be_imported():
    assert "FactoredMDP" in dir(fsmdp)
    for name in fsmdp.__all__:
        assert getattr(fsmdp, name) is not None
