"""Features of (state, action) for learners that are linear in them."""

from __future__ import annotations

import numpy as np

from fsmdp.learning.learners.baselines.states import ENTRY_LIMIT, all_states, count_states
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats


def action_features(structure: Structure, limit: int = ENTRY_LIMIT) -> Floats:
    """The basis once for each action: phi(s, a) = e_a x h(s) / max_s |h(s)|.

    Shape (n_states, n_actions, n_actions * n_functions). Q linear in these features means that
    every action has weights of its own in the basis.
    """
    basis = state_features(structure, limit)
    basis /= np.sqrt((basis**2).sum(axis=1)).max()
    n_actions = len(structure.actions)
    each = np.einsum("sj,ab->sabj", basis, np.eye(n_actions))
    return np.asarray(each.reshape(len(basis), n_actions, -1))


def state_features(structure: Structure, limit: int = ENTRY_LIMIT) -> Floats:
    """The basis at every state."""  # (n_states, n_functions)
    count_states("state_features", structure, limit)
    return np.array([structure.basis.evaluate(state) for state in all_states(structure)])


def one_hot_features(structure: Structure, limit: int = ENTRY_LIMIT) -> Floats:
    """One feature for each (state, action), in which everything is linear."""
    n_actions = len(structure.actions)
    n_states = count_states("one_hot_features", structure, limit // n_actions)
    return np.eye(n_states * n_actions).reshape(n_states, n_actions, -1)
