"""Pictures from Python, on Matplotlib axes: histories, plans, models, discoveries, and more."""

from fsmdp.plot.discoveries import discovery
from fsmdp.plot.episodes import compare, history
from fsmdp.plot.models import model
from fsmdp.plot.plans import plan, trajectories

__all__ = ["compare", "discovery", "history", "model", "plan", "trajectories"]
