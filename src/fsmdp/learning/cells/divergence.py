"""The extreme means within a divergence of an average, by bisection."""

from __future__ import annotations

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.model.tables import Floats

BISECTIONS = 50


@compiled()
def fill_divergence_ends(shares: Floats, allowed: Floats, low: Floats, high: Floats) -> None:
    """Outermost q on both sides of each share p with kl(p, q) at most what is allowed."""
    for cell in range(len(shares)):
        p = shares[cell]
        for side in range(2):
            end = float(side)
            inside, outside = p, end
            for _ in range(BISECTIONS):
                q = (inside + outside) / 2
                # Halving can reach an end: as far as numbers go, nothing is between it and p then.
                divergence = np.inf if (p > 0 and q <= 0) or (p < 1 and q >= 1) else 0.0
                if p > 0 and q > 0:
                    divergence += p * np.log(p / q)
                if p < 1 and q < 1:
                    divergence += (1 - p) * np.log((1 - p) / (1 - q))
                if divergence <= allowed[cell]:
                    inside = q
                else:
                    outside = q
            # The outer end of the last bracket, so that rounding keeps the truth inside.
            if side == 0:
                low[cell] = outside
            else:
                high[cell] = outside
