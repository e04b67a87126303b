"""Note 7: the two regret bounds, their constants, and how they compare with what is measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars

from fsmdp.learning.theory import regret_bound, symmetric_regret_bound
from fsmdp.model.basis import Basis
from fsmdp.model.cases import ANY, Case
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Table
from fsmdp.model.variables import Variable
from fsmdp.reproduction.claim import Finding
from fsmdp.reproduction.notes.programs import JOINT, REALIZABLE, build

DELTA = 0.05
HORIZON = 5
VARIABLES = 6


def alike(n_parents: int) -> Structure:
    """Everything alike: binary variables, as many parents each, noisy rewards in [0, 1]."""
    variables = [Variable(f"x{i}", 2) for i in range(VARIABLES)]

    def cases(i: int) -> list[Case]:
        return [Case(ANY, [f"x{(i + step) % VARIABLES}" for step in range(n_parents)])]

    return Structure.from_parents(
        variables,
        ["left", "right"],
        parents={variable.name: cases(i) for i, variable in enumerate(variables)},
        rewards=[Reward(f"r{i}", cases(i), 0, 1, 1.0) for i in range(VARIABLES - 1)],
        basis=Basis([Table([variable.name], [0.0, 1.0]) for variable in variables]),
        horizon=HORIZON,
    )


def corrected_constants(structure: Structure) -> tuple[float, float]:
    """First-order part of the transition term, as printed and by the corollary that it uses.

    5 tau |Val(Z_j)| against 4 (2 tau |X[Pa(Z_j)]| + 1), summed over the basis functions: cells
    stand in place of values, and an L1 ball is 2 wide.
    """
    assert structure.horizon is not None
    sizes = [variable.size for variable in structure.variables]
    printed, corrected = 0.0, 0.0
    for table, cases in list(zip(structure.basis, structure.parents, strict=True))[1:]:
        cells = sum(int(np.prod([sizes[p] for p in scope], dtype=int)) for scope in cases)
        printed += 5 * structure.horizon * table.values.size
        corrected += 4 * (2 * structure.horizon * cells + 1)
    return printed, corrected


def bounds(
    learning: polars.DataFrame, parents: Sequence[int], episodes: Sequence[int]
) -> tuple[Finding, polars.DataFrame]:
    """Note 7: both theorems where the symmetric one applies, and against a measured regret."""
    rows = []
    for n_parents in parents:
        for number in episodes:
            structure = alike(n_parents)
            symmetric = symmetric_regret_bound(
                structure, episodes=number, delta=DELTA, w_norm=HORIZON, h_max=1.0
            )
            general = regret_bound(
                structure, episodes=number, delta=DELTA, w_norm=HORIZON, h_max=1.0
            )
            rows.append(
                {
                    "parents": n_parents,
                    "episodes": number,
                    "general": general.total,
                    "symmetric": symmetric.total,
                    "applies": not symmetric.unmet,
                }
            )
    table = polars.DataFrame(rows)
    applies = table.filter("applies")
    share = float((applies["general"] / applies["symmetric"]).max())  # type: ignore[arg-type]
    measured = _measured_share(learning)
    model = build(REALIZABLE)
    structure = model.structure(Basis.singles(model))
    printed, corrected = corrected_constants(structure)
    grouped = symmetric_regret_bound(structure, episodes=100, delta=DELTA)
    finding = Finding(
        note=7,
        says="the general bound holds with probability 1 − δ; 5 τ |Val(Z_j)| bounds the first "
        "visits of transitions; the symmetric bound follows since |A| ≥ 2/ζ",
        truth="two families of sets and a martingale may each fail, so 1 − 3 δ; cells "
        "|X[Pa(Z_j)]| take the place of values, with width 2; with action groups the last step "
        "has to be checked",
        measured=f"first-order transition term of influence: {printed:,.0f} printed, "
        f"{corrected:,.0f} by the corollary; 4 (τ C |X| + 1) is 8 where 5 τ C |X| is 5, and "
        f"they cross at τ C |X| = 4; the general bound is at most {share:.2f} of the symmetric one "
        f"in {len(applies)} of {len(table)} cases where the latter applies, which on influence "
        f"lacks: {', '.join(grouped.unmet) or 'nothing'}; measured regret is at most "
        f"{measured:.1e} of the general bound",
        wrong=corrected / printed,
        wrong_above=1.0,
        remaining=max(share, measured),
        remaining_up_to=1.0,
    )
    return finding, table


def _measured_share(learning: polars.DataFrame) -> float:
    """Regret of the paper's learner as a part of its bound, with the norms that it used."""
    part = learning.filter((polars.col("model") == REALIZABLE) & (polars.col("preset") == JOINT))
    model = build(REALIZABLE)
    structure = model.structure(Basis.singles(model))
    last = int(part["episode"].max())  # type: ignore[arg-type]
    bound = regret_bound(
        structure,
        episodes=last,
        delta=DELTA,
        w_norm=float(part["w_norm"].max()),  # type: ignore[arg-type]
    )
    final = part.filter(polars.col("episode") == last)["regret"].max()
    return float(final) / bound.total  # type: ignore[arg-type]
