"""Exponents: how one quantity grows with another."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def fitted_exponent(x: ArrayLike, y: ArrayLike) -> float:
    """The b of y = a x^b, by least squares on logarithms."""
    slope, _ = np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)
    return float(slope)
