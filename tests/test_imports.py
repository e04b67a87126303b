"""Importing fsmdp is light, and every public name is there."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

import fsmdp

HEAVY = ["gymnasium", "matplotlib", "numba", "pyRDDLGym", "rddlrepository", "scipy", "highspy"]


def test_heavy_packages_are_not_imported_until_needed():
    code = (
        "import sys, fsmdp; fsmdp.domains.sysadmin(3); "
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_that_of_the_package():
    assert fsmdp.__version__ == version("fsmdp")


def test_sources_that_were_never_installed_have_no_version(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    assert fsmdp.__version__ == "0+unknown"


def test_the_package_can_be_run_as_a_module():
    command = [sys.executable, "-m", "fsmdp", "--help"]
    assert "demo" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_every_public_name_can_be_imported():
    assert "FactoredMDP" in dir(fsmdp)
    for name in fsmdp.__all__:
        assert getattr(fsmdp, name) is not None
