"""The plain construction: a network for each action and a new linear program for each step.

What the shared messages, the live model and the interior-point method are measured against.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fsmdp.bounds.bellman import bellman_rows, network_of_model, reward_scale, state_means
from fsmdp.bounds.highs import LiveProgram
from fsmdp.bounds.joint import joint_program
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats


def plan_stages_plainly(model: FactoredMDP, basis: Basis) -> tuple[Floats, float]:
    """Weights of every step and the value of the first, all states weighing alike.

    Cost: |actions| times the rows of one network, built and solved from nothing at each step.
    """
    assert model.horizon is not None
    network, intervals = network_of_model(model, basis, elimination="separate")
    means = state_means("uniform", network.basis, model)
    scale = reward_scale(intervals)
    weights = np.zeros((model.horizon, len(basis)))
    following, objective = np.zeros(len(basis)), 0.0
    for row in reversed(range(model.horizon)):
        step = bellman_rows(network)
        program = LiveProgram(
            np.concatenate([means, np.zeros(step.rows.n_messages)]),
            sparse.hstack([step.values, step.rows.messages], format="csr"),
            step.rows.gather @ network.right_side(following, intervals) / scale,
        )
        found = program.solve()
        weights[row] = following = scale * found.values[: len(basis)]
        objective = scale * found.objective
    return weights, objective


def plan_stationary_plainly(model: FactoredMDP, basis: Basis) -> float:
    """Value of the stationary program, all states weighing alike, by HiGHS's own choice.

    Cost: |actions| times the rows of one network.
    """
    network, intervals = network_of_model(model, basis, elimination="separate")
    means = state_means("uniform", network.basis, model)
    program = joint_program(network, intervals, means)
    found = LiveProgram(program.cost, program.matrix, program.lower).solve()
    return program.scale * found.objective
