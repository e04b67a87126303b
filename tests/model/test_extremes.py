"""The best distribution in a box, against a linear program."""

import numpy as np
from scipy.optimize import linprog

from fsmdp.model.extremes import best_laws


def test_best_laws_are_distributions_in_their_boxes_of_the_largest_mean():
    rng = np.random.default_rng(0)
    for n_values in (1, 2, 3, 6):
        laws = rng.dirichlet(np.ones(n_values), size=5)
        width = rng.choice([0.0, 0.1, 0.5, 1.0], size=laws.shape)
        low, high = np.maximum(0, laws - width), np.minimum(1, laws + width)
        values = rng.choice([-1.0, 0.0, 0.5, 2.0], size=n_values)  # with ties
        found = best_laws(low, high, values)
        assert np.allclose(found.sum(axis=1), 1)
        assert (found >= low).all()
        assert (found <= high + 1e-12).all()
        for row in range(len(laws)):
            ends = [*zip(low[row], high[row] + 1e-12, strict=True)]
            best = linprog(-values, A_eq=np.ones((1, n_values)), b_eq=[1], bounds=ends)
            assert np.isclose(found[row] @ values, -best.fun)
