"""Views of a model: as it was given, and with its exclusive variables joined."""

from __future__ import annotations

from dataclasses import dataclass, field

from fsmdp.model.actions import Actions
from fsmdp.model.joined import Joined
from fsmdp.model.joining import join
from fsmdp.model.lookup import Integers
from fsmdp.model.mdp import FactoredMDP
from fsmdp.planning.plan import PlannedPolicy
from fsmdp.policies.resolve import array_policy

FEW_JOINT = 1024
"""Joint actions that are listed for engines that look at each."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A model with the same value and the same actions, perhaps in fewer variables.

    Its actions may be the list of those that `original` has variables for.
    """

    name: str
    model: FactoredMDP
    joined: Joined | None = field(default=None, repr=False)
    original: FactoredMDP | None = field(default=None, repr=False)

    def states(self, states: Integers) -> Integers:
        """States of the original, (..., n_variables), as this view's."""
        if self.joined is None:
            return states
        flat = states.reshape(-1, states.shape[-1])
        found: Integers = self.joined.to(flat)
        return found.reshape(*states.shape[:-1], found.shape[-1])

    def policy(self, policy: PlannedPolicy) -> PlannedPolicy:
        """A policy of this view as one of the original."""
        found: PlannedPolicy = policy if self.joined is None else self.joined.policy(policy)
        if self.original is None:
            return found
        return array_policy(getattr(policy, "name", "greedy"), self.original, found)


def views_of(model: FactoredMDP) -> tuple[View, ...]:
    """Joined, if some variables are proved to be exclusive, and the model as it is."""
    plain = View("", model)
    listed = listed_view(plain)
    if listed is None:
        return (plain,)
    joined = join(listed.model)
    if not joined.groups:
        return (plain,)
    return View("joined ", joined.model, joined, listed.original), plain


def listed_view(view: View) -> View | None:
    """The same view with a list of actions; None if there are too many to list for engines."""
    model = view.model
    if not isinstance(model.actions, Actions):
        return view
    count = model.actions.n_joint
    if count is None or count > FEW_JOINT:
        return None
    return View(view.name, model.listed(), original=model)
