"""Whatever is given to whatever learns, it says what is wrong, and says it briefly."""

import gymnasium
import numpy as np
import pytest
from tests.junk import (
    AT_LEAST_0,
    EMPTY,
    LIMIT,
    MODEL,
    NAME,
    NONE,
    NUMBER,
    POLICY,
    POSITIVE,
    RING,
    ZERO,
    assert_junk_is_refused_briefly,
)

import fsmdp
from fsmdp.learning.cells.statistics import Statistics

STRUCTURE = RING.structure(fsmdp.Basis.singles(RING))
SMALL = fsmdp.domains.sysadmin(2, horizon=2)
LEARNT = fsmdp.PSRLFactored(STRUCTURE)
HISTORY = fsmdp.learn(RING, LEARNT, episodes=3)
OPTIMISTIC = {
    "structure": STRUCTURE,
    "delta": 0.05,
    "seed": 0,
    "scale": 1.0,
    "known_rewards": None,
    "limit": 2**20,
}
BOUND = {"structure": STRUCTURE, "episodes": 3, "delta": 0.05, "w_norm": 1.0, "h_max": 1.0}
MORE = {
    **{"structure": STRUCTURE, "small": SMALL, "learner": LEARNT, "history": HISTORY},
    **{"PSRLFactored": fsmdp.PSRLFactored, "FactoredMDP": fsmdp.FactoredMDP, "Env": gymnasium.Env},
}

CALLS = {
    "learn": (
        fsmdp.learn,
        {
            "environment": RING,
            "learner": LEARNT,
            "episodes": 1,
            "seed": 0,
            "checkpoint": None,
            "checkpoint_every": 1,
            "progress": None,
        },
    ),
    "UCRLFactored": (
        fsmdp.UCRLFactored,
        {
            "structure": STRUCTURE,
            "preset": "paper",
            "delta": 0.05,
            "seed": 0,
            "confidence": None,
            "replan": None,
            "method": None,
            "scale": 1.0,
            "known_rewards": RING.rewards,
        },
    ),
    "PSRLFactored": (
        fsmdp.PSRLFactored,
        {"structure": STRUCTURE, "seed": 0, "prior": 1.0, "replan": 0.5, "known_rewards": None},
    ),
    "TabularPSRL": (
        fsmdp.TabularPSRL,
        {"structure": STRUCTURE, "seed": 0, "prior": 1.0, "known_rewards": None, "limit": 2**20},
    ),
    "UCBVI": (fsmdp.UCBVI, OPTIMISTIC | {"bonus": "hoeffding", "episodes": 3}),
    "UCRL2": (fsmdp.UCRL2, OPTIMISTIC),
    "UCRLProduct": (fsmdp.UCRLProduct, OPTIMISTIC),
    "MBIE": (fsmdp.MBIE, OPTIMISTIC),
    "RMaxFactored": (
        fsmdp.RMaxFactored,
        {"structure": STRUCTURE, "known_after": 5, "seed": 0, "known_rewards": None},
    ),
    "OLIVE": (
        fsmdp.OLIVE,
        {
            "structure": STRUCTURE,
            "functions": np.zeros((1, 10, 4, 8)),
            "seed": 0,
            "accuracy": 0.1,
            "rank": 1.0,
            "batch": 10,
            "known_rewards": None,
            "limit": 2**20,
        },
    ),
    "RLSVI": (
        fsmdp.RLSVI,
        {
            "structure": STRUCTURE,
            "seed": 0,
            "noise": 0.1,
            "prior": 0.3,
            "replan": "episode",
            "known_rewards": None,
        },
    ),
    "MatrixRL": (
        fsmdp.MatrixRL,
        OPTIMISTIC | {"features": np.ones((8, 4, 1)), "following": np.eye(8)},
    ),
    "LSVIUCB": (fsmdp.LSVIUCB, OPTIMISTIC | {"features": np.ones((8, 4, 1))}),
    "RandomLearner": (fsmdp.RandomLearner, {"structure": STRUCTURE}),
    "FixedPolicy": (
        fsmdp.FixedPolicy,
        {"structure": STRUCTURE, "policy": "wait", "label": "", "limit": 2**20},
    ),
    "regret_bound": (fsmdp.regret_bound, BOUND | {"slack": 0.0}),
    "symmetric_regret_bound": (fsmdp.symmetric_regret_bound, BOUND),
    "hoeffding_regret_bound": (fsmdp.hoeffding_regret_bound, BOUND | {"growth": 0.5, "slack": 0.0}),
    "History.regret": (HISTORY.regret, {"start_value": 1.0}),
    "History.martingale_allowance": (HISTORY.martingale_allowance, {"delta": 0.1}),
    "History.observable_regret_bound": (HISTORY.observable_regret_bound, {"delta": 0.1}),
    "Statistics.save": (LEARNT.statistics.save, {"path": "counts"}),
    "Statistics.load": (Statistics.load, {"path": "there-is-no-such-file"}),
    "Statistics.__add__": (LEARNT.statistics.__add__, {"other": LEARNT.statistics}),
}


STRUCTURES = ("structure",)  # the very thing that was asked for
ACCEPTED = {
    "learn": {
        "environment": MODEL,
        "learner": ("learner",),
        "seed": ZERO,
        "checkpoint": (*NAME, *NONE),
        "checkpoint_every": LIMIT,
        "progress": (*NONE, "True", "function"),
    },
    "UCRLFactored": {
        "structure": STRUCTURES,
        "seed": ZERO,
        "confidence": NONE,
        "replan": (*AT_LEAST_0, *NONE),
        "method": NONE,
        "scale": POSITIVE,
        "known_rewards": (*EMPTY, *NONE),
    },
    "PSRLFactored": {
        "structure": STRUCTURES,
        "seed": ZERO,
        "prior": (*POSITIVE, *NONE),
        "replan": (*AT_LEAST_0, *NONE),
        "known_rewards": (*EMPTY, *NONE),
    },
    "TabularPSRL": {
        "structure": STRUCTURES,
        "seed": ZERO,
        "prior": (*POSITIVE, *NONE),
        "known_rewards": (*EMPTY, *NONE),
        "limit": LIMIT,
    },
    "UCBVI": {
        "structure": STRUCTURES,
        "seed": ZERO,
        "scale": POSITIVE,
        "known_rewards": (*EMPTY, *NONE),
        "limit": LIMIT,
        "episodes": NONE,
    },
    "UCRL2": {
        "structure": STRUCTURES,
        "seed": ZERO,
        "scale": POSITIVE,
        "known_rewards": (*EMPTY, *NONE),
        "limit": LIMIT,
    },
    "UCRLProduct": {
        "structure": STRUCTURES,
        "seed": ZERO,
        "scale": POSITIVE,
        "known_rewards": (*EMPTY, *NONE),
        "limit": LIMIT,
    },
    "MBIE": {
        "structure": STRUCTURES,
        "seed": ZERO,
        "scale": POSITIVE,
        "known_rewards": (*EMPTY, *NONE),
        "limit": LIMIT,
    },
    "RMaxFactored": {
        "structure": STRUCTURES,
        "seed": ZERO,
        "known_rewards": (*EMPTY, *NONE),
    },
    "OLIVE": {
        "structure": STRUCTURES,
        "seed": ZERO,
        "accuracy": POSITIVE,
        "rank": POSITIVE,
        "known_rewards": (*EMPTY, *NONE),
        "limit": LIMIT,
    },
    "RLSVI": {
        "structure": STRUCTURES,
        "seed": ZERO,
        "noise": POSITIVE,
        "prior": POSITIVE,
        "replan": AT_LEAST_0,
        "known_rewards": (*EMPTY, *NONE),
    },
    "MatrixRL": {
        "structure": STRUCTURES,
        "following": NONE,
        "seed": ZERO,
        "scale": POSITIVE,
        "known_rewards": (*EMPTY, *NONE),
        "limit": LIMIT,
    },
    "LSVIUCB": {
        "structure": STRUCTURES,
        "seed": ZERO,
        "scale": POSITIVE,
        "known_rewards": (*EMPTY, *NONE),
        "limit": LIMIT,
    },
    "RandomLearner": {"structure": STRUCTURES},
    "FixedPolicy": {
        "structure": STRUCTURES,
        "policy": POLICY,
        "label": (*NAME, "''", "'\\ud800'"),
        "limit": LIMIT,
    },
    "regret_bound": {
        "structure": STRUCTURES,
        "w_norm": (*AT_LEAST_0, *NONE),
        "h_max": (*AT_LEAST_0, *NONE),
        "slack": AT_LEAST_0,
    },
    "symmetric_regret_bound": {
        "structure": STRUCTURES,
        "w_norm": (*AT_LEAST_0, *NONE),
        "h_max": (*AT_LEAST_0, *NONE),
    },
    "hoeffding_regret_bound": {
        "structure": STRUCTURES,
        "w_norm": (*AT_LEAST_0, *NONE),
        "h_max": (*AT_LEAST_0, *NONE),
        "growth": AT_LEAST_0,
        "slack": AT_LEAST_0,
    },
    "History.regret": {"start_value": NUMBER},
    "Statistics.save": {"path": NAME},
}


@pytest.mark.parametrize("name", CALLS)
def test_junk_is_refused_with_a_short_message(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_junk_is_refused_briefly(*CALLS[name], ACCEPTED.get(name, {}), MORE)
