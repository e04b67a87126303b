"""Maximising sums of local functions, and writing that down as linear inequalities."""

from fsmdp.elimination.choose import Elimination, build, separate_schedule
from fsmdp.elimination.junction_tree import JunctionTree
from fsmdp.elimination.max_sum import Maximum, MaxSum
from fsmdp.elimination.mini_buckets import build_within, widened, with_room
from fsmdp.elimination.network import Constraint, Network
from fsmdp.elimination.order import (
    Order,
    best_order,
    check_width,
    given_order,
    min_degree,
    min_fill,
)
from fsmdp.elimination.rows import Rows, lp_rows
from fsmdp.elimination.schedule import Room, Schedule
from fsmdp.elimination.shared import shared_schedule

__all__ = [
    "Constraint",
    "Elimination",
    "JunctionTree",
    "MaxSum",
    "Maximum",
    "Network",
    "Order",
    "Room",
    "Rows",
    "Schedule",
    "best_order",
    "build",
    "build_within",
    "check_width",
    "given_order",
    "lp_rows",
    "min_degree",
    "min_fill",
    "separate_schedule",
    "shared_schedule",
    "widened",
    "with_room",
]
