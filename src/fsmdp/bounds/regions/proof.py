"""The proof of a bound by regions, as plan files hold it and the checker proves it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from fsmdp.bounds.bound import Arrays, GivenProof
from fsmdp.bounds.regions.minimise import RegionBound
from fsmdp.bounds.regions.prices import Feature
from fsmdp.foundation.kinds import Document
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.variables import Variable
from fsmdp.reductions.reduction import Reduced

if TYPE_CHECKING:
    from fractions import Fraction

    from fsmdp.bounds.normalise import Normalised
    from fsmdp.verification import checker

REGIONS = "regions with prices"

Count = Annotated[int, Field(ge=0)]

LARGEST_PRICES = 2**22
"""Numbers that a file holds at most."""


class RegionFile(Document):
    """A region as a file has it: inputs by position, and its shares of reward terms."""

    interior: list[Count]
    boundary: list[Count]
    shares: list[tuple[Count, Annotated[int, Field(ge=1)]]]


class RegionsFile(Document):
    """Regions, sets of actions that have prices, terms that the hub has, and the unit of prices."""

    regions: list[RegionFile]
    sets: list[list[Count]]
    hub: list[Count]
    unit: Annotated[float, Field(gt=0)]


@dataclass(frozen=True, slots=True, eq=False)
class RegionProof:
    """Regions with their shares of rewards and their prices, which add up to 0.

    Arrays: `features` (n, 5), two inputs with a value each and a set of actions, -1 where there is
    none; `members` (n, 2), a feature and a region, -1 for the hub; `prices` (n_members, steps) in
    units. `fits`: whether a file and its checker can take it.
    """

    upper_bound: float
    model: FactoredMDP | None = field(default=None, repr=False)
    json: dict[str, Any] = field(default_factory=dict, repr=False)
    arrays: Arrays = field(default_factory=dict, repr=False)
    fits: bool = True

    @classmethod
    def of(cls, model: FactoredMDP, reduced: Reduced, found: RegionBound) -> RegionProof:
        """Of a bound on the value of a reduced model; a file can hold it if that is the model."""
        bound = reduced.bound(found.upper_bound)
        if reduced.rewritten or found.prices.size > LARGEST_PRICES:
            return cls(bound, model, fits=False)
        regions = found.regions
        features: dict[Feature, int] = {}
        sets: dict[frozenset[int], int] = {}
        rows: list[list[int]] = []
        members: list[tuple[int, int]] = []
        for entry in regions.entries:
            feature = entry.feature
            if feature not in features:
                features[feature] = len(rows)
                row = [-1] * 5
                for at, (position, value) in enumerate(feature.values):
                    row[2 * at : 2 * at + 2] = position, value
                if feature.actions:
                    row[4] = sets.setdefault(feature.actions, len(sets))
                rows.append(row)
            members.append((features[feature], entry.region))
        described = [
            {
                "interior": sorted(layout.region.interior),
                "boundary": [p for p in layout.axes if p not in layout.region.interior],
                "shares": [list(share) for share in layout.region.shares],
            }
            for layout in regions.layouts
        ]
        json = {
            "regions": described,
            "sets": [sorted(actions) for actions in sets],
            "hub": list(regions.left),
            "unit": found.unit,
        }
        arrays: dict[str, Any] = {
            "features": np.array(rows, dtype=np.int32).reshape(-1, 5),
            "members": np.array(members, dtype=np.int32).reshape(-1, 2),
            "prices": found.prices,
        }
        return cls(bound, model, json, arrays)

    @property
    def kind(self) -> str:
        """By regions."""
        return REGIONS

    @property
    def program(self) -> None:
        """Prices come from no linear program."""

    def moved(self, units: Normalised) -> RegionProof:
        """The same prices in the user's unit, which is a power of two times the other."""
        json = dict(self.json)
        if self.fits:
            json["unit"] = units.factor * json["unit"]
        upper_bound = units.upper(self.upper_bound)
        return replace(self, upper_bound=upper_bound, model=units.original, json=json)

    def written(self, variables: Sequence[Variable]) -> tuple[dict[str, Any], Arrays]:  # noqa: ARG002
        """Regions and sets, and the arrays of prices."""
        return self.json, self.arrays

    @classmethod
    def read(cls, given: GivenProof) -> RegionProof:
        """Regions and prices as a file has them; whether they prove anything is not asked here."""
        found = RegionsFile.model_validate(given.json)
        arrays = {name: given.arrays[name] for name in ("features", "members", "prices")}
        steps = 1 if given.horizon is None else given.horizon
        shapes = {"features": 5, "members": 2, "prices": steps}
        for name, width in shapes.items():
            kind = np.int64 if name == "prices" else np.int32
            if arrays[name].dtype != kind or arrays[name].shape[1:] != (width,):
                raise ValueError(f"{name}: expected whole numbers, {width} in a row")
        if len(arrays["members"]) != len(arrays["prices"]):
            raise ValueError("prices: expected as many as members")
        return cls(given.upper_bound, None, found.model_dump(), arrays)

    @staticmethod
    def proved(
        model: checker.Model, claim: checker.Claim, held: Sequence[bool]
    ) -> tuple[Fraction, Fraction]:
        """Values of the regions, computed again in whole numbers."""
        from fsmdp.verification.values import start_bounds

        _, found, rounding = start_bounds(model, claim, held)
        return found, rounding
