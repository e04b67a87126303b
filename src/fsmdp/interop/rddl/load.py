"""`load`: an RDDL problem as a FactoredMDP."""

from __future__ import annotations

import os

from fsmdp.interop.rddl.build import import_source
from fsmdp.interop.rddl.sources import find_source
from fsmdp.model.mdp import FactoredMDP


def load(domain: str | os.PathLike[str], instance: str | int | os.PathLike[str]) -> FactoredMDP:
    return import_source(find_source(domain, instance)).model
