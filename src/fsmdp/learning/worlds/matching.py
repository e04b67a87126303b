"""Whether a model or an environment is the one that a structure describes."""

from __future__ import annotations

from collections.abc import Sequence

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import plural, show
from fsmdp.foundation.numbers import plain
from fsmdp.model.actions import Actions
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import RewardTerm, Structure
from fsmdp.model.variables import Variable


def check_sizes(what: str, sizes: Sequence[int], variables: Sequence[Variable]) -> None:
    """Refuse other variables: another number of them, or of values."""
    expected = [variable.size for variable in variables]
    if list(sizes) == expected:
        return
    if len(sizes) != len(expected):
        raise ModelError(
            f"{what} has {plural(len(sizes), 'variable')}, the structure {len(expected)}; describe "
            "every variable in the structure, in the same order."
        )
    at = next(i for i, size in enumerate(sizes) if size != expected[i])
    raise ModelError(
        f"variable {show(variables[at].name)} (position {at}) has {sizes[at]} values in "
        f"{what} and {expected[at]} in the structure; give it size {sizes[at]}."
    )


def check_joint_actions(what: str, actions: Sequence[str], structure: Structure) -> None:
    """Refuse other actions where either side's are made of variables."""
    if isinstance(actions, Actions) and actions == structure.actions:
        return
    raise ModelError(
        f"{what} has {show(actions)}, the structure {show(structure.actions)}; give both the same "
        "action variables, limits and forbidden values."
    )


def check_actions(what: str, n_actions: int, actions: Sequence[str]) -> None:
    """Refuse another number of actions."""
    if n_actions != len(actions):
        raise ModelError(
            f"{what} has {plural(n_actions, 'action')}, the structure {len(actions)}; "
            "name every action in the structure, in the same order."
        )


def check_model_fits(model: FactoredMDP, structure: Structure) -> None:
    """Refuse a model that is not the one that the structure describes."""
    what = "the model"
    check_sizes(what, model.sizes, structure.variables)
    joint = isinstance(model.actions, Actions) or isinstance(structure.actions, Actions)
    if joint:
        check_joint_actions(what, model.actions, structure)
    else:
        check_actions(what, len(model.actions), structure.actions)
    if len(model.rewards) != len(structure.rewards):
        raise ModelError(
            f"{what} has {plural(len(model.rewards), 'reward term')}, the structure "
            f"{len(structure.rewards)}; describe every term in the structure, in the same order."
        )
    for noun, names, expected in (
        ("variable", [v.name for v in model.variables], [v.name for v in structure.variables]),
        ("action", () if joint else model.actions, () if joint else structure.actions),
        ("reward term", [r.name for r in model.rewards], [r.name for r in structure.rewards]),
    ):
        for position, (name, told) in enumerate(zip(names, expected, strict=True)):
            if name != told:
                raise ModelError(
                    f"{noun} number {position} is {show(name)} in {what} and {show(told)} in the "
                    "structure; use the same names in the same order."
                )
    for name in ("horizon", "discount"):
        found, told = getattr(model, name), getattr(structure, name)
        if found != told:
            raise ModelError(
                f"{what} has {name} {found}, the structure {told}; give both the same."
            )
    for reward, term in zip(model.rewards, structure.rewards, strict=True):
        if reward.low < term.low or reward.high > term.high or reward.sigma > term.sigma:
            raise ModelError(
                f"reward {show(term.name)} has bounds {_bounds(reward)} and sigma "
                f"{plain(reward.sigma, 6)} in {what}, {_bounds(term)} and {plain(term.sigma, 6)} "
                "in the structure; the structure's must not be narrower."
            )


def _bounds(reward: Reward | RewardTerm) -> str:
    return f"[{plain(reward.low, 6)}, {plain(reward.high, 6)}]"
