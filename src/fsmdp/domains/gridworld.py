"""Gridworld: an agent among randomly moving objects; occupancies exclude one another, V* is 0."""

import numpy as np

from fsmdp.domains.registry import Domain, check_probability, check_whole, register
from fsmdp.errors import ModelError
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Variable

MOVES = {"north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1)}
SHIFTS = (-1, 0, 1)  # what an object does by the value of its lane's latent: left, stay, right
LARGEST_GRID = 1024


def gridworld(
    rows: int = 3,
    columns: int = 4,
    horizon: int | None = 10,
    drift: float = 0.5,
    discount: float = 1.0,
) -> FactoredMDP:
    """An agent in a grid whose every row is a lane with one randomly moving object.

    State: the agent's `row` and `column`, and the occupancy `cell-r-c` in {0, 1} of each cell.
    Each step draws a latent `move-r` for each lane: left or right with probability drift / 2
    each, else stay; the object moves so, around the lane:
        cell-r-c' = cell-r-(c + 1) if left, cell-r-c if stay, cell-r-(c - 1) if right.
    So the occupancies of a lane are correlated given (state, action): they exclude one another.
    Actions: `north`, `south`, `west`, `east` move the agent by one (at the edge it stays where it
    is), `hide` keeps it in place. Reward: -1 for a move into a cell that is occupied now (its
    own, at the edge), one term for each cell; hiding never collides, hence V* = 0 everywhere.
    The agent starts in cell (0, 0), the object of lane r in column r + 1 (around the lane).
    Paper: the gridworld remark of section 2.
    """
    check_whole("gridworld", "rows", rows, 1, LARGEST_GRID)
    check_whole("gridworld", "columns", columns, 2, LARGEST_GRID)
    check_probability("gridworld", "drift", drift)
    if rows * columns > LARGEST_GRID:
        raise ModelError(
            f"gridworld: {rows} rows and {columns} columns make {rows * columns} cells, expected "
            f"at most {LARGEST_GRID}; use a smaller grid."
        )
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    starts = {_cell(row, (row + 1) % columns): 1 for row in range(rows)}
    return FactoredMDP(
        variables=[
            Variable("row", rows),
            Variable("column", columns),
            *(Variable(_cell(*cell), 2) for cell in cells),
        ],
        actions=[*MOVES, "hide"],
        latents=[Variable(f"move-{row}", len(SHIFTS)) for row in range(rows)],
        conditionals=[
            _coordinate("row", rows, backward="north", forward="south"),
            _coordinate("column", columns, backward="west", forward="east"),
            *(
                Conditional(f"move-{row}", [Case(ANY, [], [drift / 2, 1 - drift, drift / 2])])
                for row in range(rows)
            ),
            *(_occupancy(row, column, columns) for row, column in cells),
        ],
        rewards=[_collision(row, column, rows, columns) for row, column in cells],
        horizon=horizon,
        discount=discount,
        initial=starts,
    )


def _cell(row: int, column: int) -> str:
    return f"cell-{row}-{column}"


def _coordinate(name: str, size: int, backward: str, forward: str) -> Conditional:
    def moved(by: int) -> Floats:
        return np.eye(size)[np.clip(np.arange(size) + by, 0, size - 1)]

    return Conditional(
        name,
        [
            Case([backward], [name], moved(-1)),
            Case([forward], [name], moved(1)),
            Case(ANY, [name], moved(0)),
        ],
    )


def _occupancy(row: int, column: int, columns: int) -> Conditional:
    """Next occupancy of a cell: that of the lane neighbour (or itself) the move brings here."""
    origins = [(column - shift) % columns for shift in SHIFTS]
    parents = sorted(set(origins))
    # occupied[values of the parents, move]
    occupied = np.indices((2,) * len(parents))[[parents.index(origin) for origin in origins]]
    occupied = np.moveaxis(occupied, 0, -1).astype(float)
    return Conditional(
        _cell(row, column),
        [
            Case(
                ANY,
                parents=[_cell(row, parent) for parent in parents],
                drawn=[f"move-{row}"],
                table=np.stack([1 - occupied, occupied], axis=-1),
            )
        ],
    )


def _collision(row: int, column: int, rows: int, columns: int) -> Reward:
    """-1 where a move brings the agent into this cell while it is occupied.

    Moves that enter it from the same places are one group; those that never do need no parents.
    """
    groups: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for action, (down, right) in MOVES.items():
        origins = tuple(
            (i, j)
            for i in range(rows)
            for j in range(columns)
            if min(max(i + down, 0), rows - 1) == row
            and min(max(j + right, 0), columns - 1) == column
        )
        groups.setdefault(origins, []).append(action)
    cases = [Case(ANY, [], 0.0)]
    for origins, actions in groups.items():
        if origins:
            table = np.zeros((rows, columns, 2))
            for i, j in origins:
                table[i, j, 1] = -1.0
            cases.append(Case(actions, ["row", "column", _cell(row, column)], table))
    return Reward(f"collision-{row}-{column}", cases, low=-1.0, high=0.0)


register(
    Domain(
        "gridworld",
        gridworld,
        "an agent among moving objects; hiding is safe, so V* is 0",
        positional=2,
        start_value=lambda **_: 0.0,
        environment="fsmdp/Gridworld-v0",
    )
)
