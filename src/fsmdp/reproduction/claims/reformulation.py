"""The reformulation: one linear program of polynomial size in place of a bilevel program."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars

from fsmdp.bounds.bellman import BellmanNetwork, Intervals, network_of_model, state_means
from fsmdp.bounds.enumerated import Enumerated, enumerate_known, joint_optimum
from fsmdp.bounds.inequalities import local_values
from fsmdp.bounds.joint import joint_program, solve_joint
from fsmdp.domains.random import random_model
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.report.charts import Chart, Line, Panel
from fsmdp.reproduction.claim import Callback, Claim, Evidence, Form, Judgement, Verdict, band_model

MOST_DIFFERENCE = 1e-5
HORIZON = 3
ENUMERATED, FACTORED = "enumerated", "factored"


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """How many random models are compared, and for how many variables rows are counted."""

    models: int
    variables: Sequence[int]


SIZES = {
    Form.TINY: Sizes(3, (2, 4)),
    Form.SMALL: Sizes(40, (2, 4, 6, 8, 10, 20, 40, 80)),
    Form.FULL: Sizes(300, (2, 4, 6, 8, 10, 12, 20, 40, 80, 160)),
}
MOST_ENUMERATED = 12


def run(form: Form, seed: int, callback: Callback) -> Evidence:
    """Solve both programs on random models with random intervals, and count rows of both."""
    sizes, values, rows = SIZES[form], [], []
    for number in range(sizes.models):
        callback(f"reformulation: random model {number + 1} of {sizes.models}")
        model = random_model(
            seed * 1000 + number, variables=3, actions=2, horizon=HORIZON, largest_size=2
        )
        rng = generator(seed, Purpose.REPRODUCTION, "reformulation", number)
        network, intervals = uncertain(model, rng)
        numbers = enumerate_uncertain(model, network, intervals)
        means = state_means("uniform", network.basis, model)
        exact = joint_optimum(numbers, means)
        assert exact is not None  # a large constant is always feasible
        found = solve_joint(network, intervals, means).objective
        scale = max(1.0, abs(exact))
        values.append(
            {
                "model": number,
                ENUMERATED: exact,
                FACTORED: found,
                "difference": abs(exact - found) / scale,
            }
        )
    for m in sizes.variables:
        model = band_model(m, actions=m + 1, horizon=HORIZON, seed=seed)
        network, intervals = uncertain(model, generator(seed, Purpose.REPRODUCTION, "intervals"))
        means = state_means("uniform", network.basis, model)
        factored = joint_program(network, intervals, means).matrix.shape[0]
        written = _rows_written_out(model, network) if m <= MOST_ENUMERATED else None
        rows.append({"variables": m, FACTORED: factored, ENUMERATED: written})
    return Evidence({"values": polars.DataFrame(values), "rows": polars.DataFrame(rows)})


def uncertain(model: FactoredMDP, rng: np.random.Generator) -> tuple[BellmanNetwork, Intervals]:
    """The model's numbers in intervals of random width around them; the constant is known."""
    network, known = network_of_model(model, Basis.singles(model))
    width = rng.uniform(0, 0.3, size=known.low.shape) * (network.backup_columns > 0)
    # Ends stay within what the function can be.
    lowest = np.array([table.values.min() for table in network.basis])[network.backup_columns]
    highest = np.array([table.values.max() for table in network.basis])[network.backup_columns]
    low, high = np.maximum(known.low - width, lowest), np.minimum(known.high + width, highest)
    return network, Intervals(known.rewards, low, high)


def enumerate_uncertain(
    model: FactoredMDP, network: BellmanNetwork, intervals: Intervals
) -> Enumerated:
    """The same intervals at every state and action, one by one."""
    known = enumerate_known(model, network.basis)
    n_actions, n_states = known.rewards.shape
    lows, highs = [], []
    for action in range(n_actions):
        actions = np.full(n_states, action)
        high, low, _ = local_values(network, intervals, known.states, actions)
        lows.append(low)
        highs.append(high)
    return replace(known, low=np.stack(lows), high=np.stack(highs))


def _rows_written_out(model: FactoredMDP, network: BellmanNetwork) -> int:
    """A row for each step, state, action and choice of ends of all functions but the constant."""
    ends = 1 << (len(network.basis) - 1)
    return HORIZON * len(model.actions) * model.n_states * ends


def judge(evidence: Evidence) -> Judgement:
    """Equal values, and far fewer rows."""
    difference = float(evidence["values"]["difference"].max())  # type: ignore[arg-type]
    both = evidence["rows"].drop_nulls()
    last = both.row(-1, named=True)
    equal = difference <= MOST_DIFFERENCE
    smaller = last[FACTORED] < last[ENUMERATED]
    reason = (
        f"largest relative difference over {len(evidence['values'])} random models "
        f"{difference:.0e}; with {last['variables']} variables {last[FACTORED]:,} rows in place "
        f"of {last[ENUMERATED]:.3g}"
    )
    return Judgement(Verdict.HOLDS if equal and smaller else Verdict.FAILS, reason)


def draw(evidence: Evidence) -> Chart:
    """Rows of both programs against the number of variables."""
    rows = evidence["rows"]
    written = rows.drop_nulls()
    lines = (
        Line(
            "every state, action and choice of ends written out",
            written["variables"].to_numpy().astype(float),
            written[ENUMERATED].to_numpy().astype(float),
            ENUMERATED,
        ),
        Line(
            "after elimination, both ends by w = w⁺ − w⁻",
            rows["variables"].to_numpy().astype(float),
            rows[FACTORED].to_numpy().astype(float),
            FACTORED,
        ),
    )
    return Chart(
        name="reformulation",
        title="Rows of the planning program",
        caption=f"A chain with m variables, m + 1 actions and horizon {HORIZON}, all transitions "
        "uncertain.",
        panels=(Panel("rows", lines, log=True),),
        x_label="number of variables m",
        log=True,
    )


CLAIM = Claim(
    name="reformulation",
    title="The optimistic planning problem is one linear program of polynomial size",
    statement="Planning over a confidence set looks like a bilevel program: weights are chosen "
    "outside, the most favourable transition of every state and action inside. Only the mean of "
    "each basis function enters, so the inner choice is one of two ends by the sign of a weight, "
    "and after elimination all of it is one linear program of polynomial size.",
    what_was_run="Random models with random intervals around their transitions, solved twice: by "
    "our program, and by one with every state, action and choice of ends written out. Then the "
    "rows of both programs while the number of variables grows.",
    rule=f"Holds if the two optimal values never differ by more than {MOST_DIFFERENCE:g} "
    "(relative) and ours has fewer rows at the largest size counted for both.",
    run=run,
    judge=judge,
    draw=draw,
)
