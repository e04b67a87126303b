"""Pictures from Python: histories, comparisons, plans, models, trajectories, on Matplotlib axes."""

from fsmdp.plot.comparing import compare
from fsmdp.plot.histories import history
from fsmdp.plot.models import model
from fsmdp.plot.plans import plan
from fsmdp.plot.trajectories import trajectories

__all__ = ["compare", "history", "model", "plan", "trajectories"]
