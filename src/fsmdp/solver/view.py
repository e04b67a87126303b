"""Views of a model: as it was given, and with its exclusive variables joined."""

from __future__ import annotations

from dataclasses import dataclass, field

from fsmdp.model.joined import Joined
from fsmdp.model.joining import join
from fsmdp.model.lookup import Integers
from fsmdp.model.mdp import FactoredMDP
from fsmdp.planning.plan import PlannedPolicy


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A model with the same value and the same actions, perhaps in fewer variables."""

    name: str
    model: FactoredMDP
    joined: Joined | None = field(default=None, repr=False)

    def states(self, states: Integers) -> Integers:
        """States of the original, (..., n_variables), as this view's."""
        if self.joined is None:
            return states
        flat = states.reshape(-1, states.shape[-1])
        found: Integers = self.joined.to(flat)
        return found.reshape(*states.shape[:-1], found.shape[-1])

    def policy(self, policy: PlannedPolicy) -> PlannedPolicy:
        """A policy of this view as one of the original."""
        if self.joined is None:
            return policy
        found: PlannedPolicy = self.joined.policy(policy)
        return found


def views_of(model: FactoredMDP) -> tuple[View, ...]:
    """Joined, if some variables are proved to be exclusive, and the model as it is."""
    plain = View("", model)
    joined = join(model)
    if not joined.groups:
        return (plain,)
    return View("joined ", joined.model, joined), plain
