"""Pictures from Python, on Matplotlib axes: histories, plans, models, discoveries, and more."""

from fsmdp.plot.comparing import compare
from fsmdp.plot.discoveries import discovery
from fsmdp.plot.histories import history
from fsmdp.plot.models import model
from fsmdp.plot.plans import plan
from fsmdp.plot.trajectories import trajectories

__all__ = ["compare", "discovery", "history", "model", "plan", "trajectories"]
