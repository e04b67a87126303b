"""Axes to draw on: the caller's, or new ones in the style of the reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show
from fsmdp.report.print_figures import SETTINGS, WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def checked(given: object, kind: type) -> None:
    """Refuse what cannot be drawn."""
    if not isinstance(given, kind):
        raise ModelError(f"plot: expected a {kind.__name__}, found {show(given)}.")


@contextmanager
def axes_for(given: Any, panels: int, height: float = 2.6) -> Iterator[list[Axes]]:
    """One axes for each panel, within the style: those given, or those of a new figure.

    A new figure is pyplot's, so that notebooks and `pyplot.show` find it.
    """
    import matplotlib
    from matplotlib.axes import Axes

    with matplotlib.rc_context({name: SETTINGS[name] for name in SETTINGS if name != SALT}):
        if given is None:
            from matplotlib import pyplot

            size = (WIDTH, 0.8 + height * panels)
            grid = pyplot.subplots(panels, 1, squeeze=False, figsize=size, layout="constrained")[1]
            given = grid[:, 0]
        found = [given] if isinstance(given, Axes) else list(np.ravel(np.asarray(given, object)))
        if len(found) != panels or not all(isinstance(one, Axes) for one in found):
            wanted = "a Matplotlib axes" if panels == 1 else f"{panels} Matplotlib axes"
            raise ModelError(
                f"ax: expected {wanted}, found {show(given)}; leave it out for a new one."
            )
        yield found


@contextmanager
def square_for(given: Any) -> Iterator[Axes]:
    """One axes for a network: no axis, and room for names around the unit square."""
    with axes_for(given, 1, 4.8) as (axes,):
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_xlim(-0.15, 1.15)
        axes.set_ylim(-0.15, 1.15)
        yield axes


SALT = "svg.hashsalt"
"""Concerns files, which are the caller's to write."""


def handed_back(axes: Sequence[Axes]) -> Any:
    """A single axes as itself, several as an array, as pyplot does."""
    return axes[0] if len(axes) == 1 else np.array(axes, dtype=object)
