"""Pictures from Python, on Matplotlib axes: histories, plans, models, discoveries, and more."""

from fsmdp.report.plot.discoveries import discovery
from fsmdp.report.plot.episodes import compare, history
from fsmdp.report.plot.models import model
from fsmdp.report.plot.plans import plan, trajectories

__all__ = ["compare", "discovery", "history", "model", "plan", "trajectories"]
