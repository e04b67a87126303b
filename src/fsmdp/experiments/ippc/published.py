"""What was published about the problems of the competitions of 2011 and 2014.

`published.csv`, means over 40 steps: columns `prost_1s` to `jaxplan_5s` are Gimelfarb, Taitler and
Sanner, "JaxPlan and GurobiPlan", ICAPS 2024, 20 runs each, read off their figures; those that end
in `all_runs` are recomputed from the logs of the competition of 2014, 30 or more runs each; doing
nothing and acting at random from both.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

DOMAINS: Mapping[str, str] = {
    "AcademicAdvising": "AcademicAdvising_MDP_ippc2014",
    "CooperativeRecon": "CooperativeRecon_MDP_ippc2011",
    "CrossingTraffic": "CrossingTraffic_MDP_ippc2011",
    "Elevators": "Elevators_MDP_ippc2011",
    "GameOfLife": "GameOfLife_MDP_ippc2011",
    "Navigation": "Navigation_MDP_ippc2011",
    "SkillTeaching": "SkillTeaching_MDP_ippc2011",
    "SysAdmin": "SysAdmin_MDP_ippc2011",
    "Tamarisk": "Tamarisk_MDP_ippc2014",
    "Traffic": "Traffic_CTM_MDP_ippc2011",
    "TriangleTireworld": "TriangleTireworld_MDP_ippc2014",
    "Wildfire": "Wildfire_MDP_ippc2014",
}
"""Names of the domains, and of the problems in rddlrepository."""

INSTANCES = range(1, 11)

BASELINES = ("noop", "random", "noop_ippc2014", "random_ippc2014")

PLANNERS: Mapping[str, str] = {
    "prost_1s": "PROST, 1 s a step",
    "prost_3s": "PROST, 3 s a step",
    "prost_5s": "PROST, 5 s a step",
    "gurobiplan_5s": "GurobiPlan, 5 s a step",
    "jaxplan_5s": "JaxPlan, 5 s a step",
    "prost2014_all_runs": "PROST 2014",
    "prost2011_all_runs": "PROST 2011",
    "gpack_all_runs": "Gourmand 2014",
}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """An instance of a domain."""

    domain: str
    instance: int

    def __str__(self) -> str:
        return f"{self.domain} {self.instance}"


@dataclass(frozen=True, slots=True)
class Published:
    """Means of others on one problem."""

    means: Mapping[str, float]

    @property
    def base(self) -> float:
        """The better of doing nothing and acting at random: score 0."""
        return max(self.means[name] for name in BASELINES if name in self.means)

    @property
    def best(self) -> float:
        """The best mean that anyone published: score 1."""
        return max(self.means[name] for name in PLANNERS if name in self.means)

    @property
    def best_planner(self) -> str:
        """Whose that is."""
        present = [name for name in PLANNERS if name in self.means]
        return PLANNERS[max(present, key=lambda name: self.means[name])]

    def score(self, mean: float) -> float:
        """(mean - base) / (best - base), cut to [0, 1]."""
        return min(1.0, max(0.0, (mean - self.base) / (self.best - self.base)))


@cache
def published() -> Mapping[Problem, Published]:
    """All problems of which results were published."""
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    found = {}
    for row in csv.DictReader(text.splitlines()):
        problem = Problem(row.pop("domain"), int(row.pop("instance")))
        found[problem] = Published({name: float(mean) for name, mean in row.items() if mean})
    return found
