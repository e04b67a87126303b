"""Evidence against independence that holds for any data, however they were collected.

The null says: a next value depends on its context alone. Let fit be the largest likelihood of the
data that any law of that kind gives them, and bet the likelihood of a law that predicts each value
from the ones before it. Then bet / fit is at most bet / (likelihood under the truth), which is a
martingale with mean 1 if the null is true, so
    P(bet / fit >= 1 / alpha) <= alpha,
without independence of the rows and without approximation: states may follow one another, and
actions may depend on all that went before.
Source: Wasserman, Ramdas, Balakrishnan (2020), Universal inference, PNAS 117; the bet is that of
Krichevsky and Trofimov (1981), half a count for each value in each context.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, xlogy

from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats


def counted(contexts: Integers, values: Integers, size: int) -> Floats:
    """How often each value was seen in each context: (contexts, values)."""
    seen = np.bincount(contexts * size + values, minlength=(int(contexts.max()) + 1) * size)
    return seen.reshape(-1, size).astype(np.float64)


def log_fit(counts: Floats) -> float:
    """Log-likelihood of the best law that depends on the context alone."""
    return float(xlogy(counts, counts).sum() - xlogy(totals := counts.sum(axis=1), totals).sum())


def log_bets(counts: Floats) -> Floats:
    """Log-likelihood, in each context, of the law that predicts each value from those before it."""
    size = counts.shape[-1]
    each = gammaln(counts + 0.5).sum(axis=-1) - gammaln(counts.sum(axis=-1) + size / 2)
    return np.asarray(each + gammaln(size / 2) - size * gammaln(0.5))


def log_bet(counts: Floats) -> float:
    """The same for all contexts together."""
    return float(log_bets(counts[counts.any(axis=1)]).sum())


def regret_of_bet(counts: Floats) -> float:
    """By how much the bet falls short of the best law that depends on the same context."""
    return log_fit(counts) - log_bet(counts)


def compact(contexts: Integers) -> Integers:
    """The same contexts, numbered without gaps."""
    return np.unique(contexts, return_inverse=True)[1].astype(np.int64)
