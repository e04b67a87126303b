"""Greedy policies of weights: rewards and backups as tables that compiled code looks up."""

from __future__ import annotations

import numpy as np

from fsmdp.bounds.bellman import OPTIMISTIC, BellmanNetwork, Intervals
from fsmdp.foundation.checks import check_size
from fsmdp.model.lookup import Lookup, scope_lookup
from fsmdp.model.tables import Floats
from fsmdp.policies.greedy import Greedy

LARGEST_POLICY = 2**29
"""Numbers in the terms of Q of all steps: 4 GiB."""


def greedy_policy(
    network: BellmanNetwork, intervals: Intervals, weights: Floats, view: str = OPTIMISTIC
) -> Greedy:
    """The greedy policy of weights (n_steps, n_functions)."""
    return Greedy(
        network.variables,
        network.actions,
        network.horizon,
        greedy_lookup(network),
        q_entries_of(network, intervals, weights, view),
    )


def q_entries_of(
    network: BellmanNetwork, intervals: Intervals, weights: Floats, view: str = OPTIMISTIC
) -> Floats:
    """Reward and backup entries of every step, from weights (n_steps, n_functions).

    The entries of a step are made from the weights of the step after.
    """
    following = weights
    if network.horizon is not None:
        following = np.vstack([weights[1:], np.zeros((1, weights.shape[1]))])
    start = network.rewards_at.start
    n_entries = network.elimination.network.n_entries - start
    check_size(
        len(following) * n_entries,
        LARGEST_POLICY,
        f"a policy of {len(following)} steps x {n_entries} terms of Q =",
        "use a shorter horizon, None (an infinite one) with a discount, or a smaller basis",
        unit="numbers",
    )
    if not intervals.exact:
        return np.stack([network.right_side(w, intervals, view)[start:] for w in following])
    entries = np.empty((len(following), n_entries))
    entries[:, : network.n_rewards] = intervals.rewards
    backups = entries[:, network.n_rewards :]
    np.take(following, network.backup_columns, axis=1, out=backups, mode="clip")
    backups *= intervals.high
    backups *= network.discount
    return entries


def greedy_lookup(network: BellmanNetwork) -> Lookup:
    """Look-up of the reward and backup terms, in the order of their entries."""
    scopes = (*network.reward_scopes, *network.parent_scopes)
    sizes = tuple(variable.size for variable in network.inputs)
    return scope_lookup(scopes, sizes, network.actions.n_cases)
