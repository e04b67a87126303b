"""Not subsumed: what other lines of work would have to assume of the problems here.

Five measurements, each followed by the `Contrast` that judges and draws it, then the claim.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars

from fsmdp.bounds.joint import Joint
from fsmdp.bounds.problem import problem_of_model
from fsmdp.bounds.stagewise import Stagewise
from fsmdp.domains.gridworld import gridworld
from fsmdp.domains.influence import influence
from fsmdp.domains.proposition import RISKY_REWARDS, proposition_one
from fsmdp.domains.random import random_model
from fsmdp.domains.sysadmin import sysadmin
from fsmdp.exact.flat import FlatMDP, enumerate_states
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.learning.cells.layout import cell_lookup
from fsmdp.learning.learners.baselines.enumerated import fill_cells
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.model.variables import table_size
from fsmdp.report.charts import Chart, Line, Panel, Role
from fsmdp.reproduction.claim import (
    GROWS,
    Callback,
    Claim,
    Contrast,
    Evidence,
    Form,
    Judged,
    Judgement,
    Verdict,
    fitted_exponent,
    growth,
    judge_growth,
    seconds_of,
)
from fsmdp.reproduction.claims.planner import EPSILON, paper_operations

INDEPENDENCE = 0.25
"""Of the independence; two members differ by 0.5 at a state where they differ."""


def independent_length(n_points: int, difference: Callable[[int], Floats], epsilon: float) -> int:
    """How many of the first points are each epsilon-independent of those before it.

    Point k is, if two functions of the class differ by more than epsilon there while the root of
    the sum of their squared differences at the points before it is at most epsilon.
    `difference(k)` is that of two functions at points 0 .. k. The sequence ends with the first
    point for which its two functions do not show this: the count is a bound from below.
    Source: Russo and Van Roy (2013), Eluder dimension and the sample complexity of optimistic
    exploration.
    """
    for k in range(n_points):
        values = difference(k)
        if np.sqrt((values[:k] ** 2).sum()) > epsilon or abs(values[k]) <= epsilon:
            return k
    return n_points


def member_rewards(bits: int, seed: int) -> Floats:
    """Q*(s, risky) of a member: its reward, since V* = 0 wherever it leads."""
    model = proposition_one(bits, seed=seed)
    return np.asarray(model.reward_means[0].at(1).values.ravel())


def lower_bound(bits: int, seed: int) -> int:
    """Length of the sequence of all (state, risky), each with a member and its neighbour.

    The neighbour has the other reward at that state and the same everywhere else: it is a member
    too, for the family holds every choice of rewards.
    """
    rewards = member_rewards(bits, seed)
    other = sum(RISKY_REWARDS) - rewards

    def difference(k: int) -> Floats:
        neighbour = rewards.copy()
        neighbour[k] = other[k]
        return rewards[: k + 1] - neighbour[: k + 1]

    return independent_length(len(rewards), difference, INDEPENDENCE)


def measure_eluder(sizes: Sequence[int], seed: int) -> polars.DataFrame:
    """The bound, beside the cells that our own learner counts in."""
    return polars.DataFrame([_eluder_row(bits, seed) for bits in sizes])


def _eluder_row(bits: int, seed: int) -> dict[str, Any]:
    structure = proposition_one(bits, seed=seed).structure(Basis([]))
    scopes = [scope for term in structure.rewards for scope in term.parents]
    sizes = [variable.size for variable in structure.variables]
    return {
        "variables": bits,
        "eluder_at_least": lower_bound(bits, seed),
        "our_transition_cells": sum(
            structure.cells_of(number) for number in range(1, len(structure.basis))
        ),
        "our_reward_cells": sum(table_size(sizes[i] for i in scope) for scope in scopes),
    }


def judge_eluder(table: polars.DataFrame) -> Judged:
    """Holds if the dimension grows and our cells do not; with a correction if they do as well."""
    found, ours = growth(table, "eluder_at_least"), growth(table, "our_reward_cells")
    last = table.sort("variables").row(-1, named=True)
    measured = (
        f"at least {last['eluder_at_least']} with {last['variables']} bits, {found:.2f} times as "
        f"many with each; our learner has {last['our_reward_cells']} reward cells there, "
        f"{ours:.2f} times as many with each, and {last['our_transition_cells']} of transitions"
    )
    if found < GROWS:
        return Judged(Verdict.FAILS, measured)
    return Judged(Verdict.CORRECTED if ours >= GROWS else Verdict.HOLDS, measured)


def eluder_panel(table: polars.DataFrame) -> Panel:
    """Both, against the number of bits."""
    x = table["variables"].to_numpy().astype(float)
    dimension, cells = (
        table[name].to_numpy().astype(float) for name in ("eluder_at_least", "our_reward_cells")
    )
    return Panel(
        "Eluder dimension",
        (
            Line("Proposition 1, at least", x, dimension, "proposition"),
            Line("reward cells of our learner", x, cells, None, Role.REFERENCE),
        ),
        log=True,
    )


ELUDER = Contrast(
    "Eluder dimension",
    "general Q-functions, with regret that grows with their Eluder dimension",
    "eluder",
    judge_eluder,
    eluder_panel,
    "Eluder dimension of Proposition 1's Q-functions, from below, by the number of bits, and the "
    "number of reward cells of our own learner.",
)


RELATIVE = 1e-9
"""Singular values below this fraction of the largest count as zero."""


def bellman_errors(flat: FlatMDP, functions: Floats) -> list[Floats]:
    """For each step the matrix of average Bellman errors.

    E_l(pi, f) = E[ f_l(s, a) - r(s, a) - f_{l+1}(s', a') ],  a and a' greedy in f, where s is the
    state of step l under pi; each f is a value function, and its greedy policy one of the pi.
    `functions` has shape (n, horizon, n_actions, n_states).
    Cost: n horizon |states|^2, and n^2 |states| for each step.
    Source: Jiang, Krishnamurthy, Agarwal, Langford and Schapire (2017), Contextual decision
    processes with low Bellman rank are PAC-learnable, Definitions 3 and 4.
    """
    n, horizon, _, n_states = functions.shape
    every = np.arange(n_states)
    occupancies = np.zeros((horizon, n, n_states))
    errors = np.zeros((horizon, n, n_states))
    for number, f in enumerate(functions):
        actions, values = f.argmax(axis=1), f.max(axis=1)  # (horizon, n_states)
        reached = flat.initial()
        for step in range(horizon):
            rows = flat.transitions[actions[step], every]
            following = values[step + 1] if step + 1 < horizon else np.zeros(n_states)
            occupancies[step, number] = reached
            errors[step, number] = (
                values[step] - flat.rewards[actions[step], every] - rows @ following
            )
            reached = reached @ rows
    return [occupancies[step] @ errors[step].T for step in range(horizon)]


def rank(matrix: Floats) -> int:
    """Numerical rank."""
    singular = np.linalg.svd(matrix, compute_uv=False)
    return int((singular > RELATIVE * max(singular[0], 1e-300)).sum())


def random_functions(model: FactoredMDP, flat: FlatMDP, n: int, seed: int) -> Floats:
    """Value functions that are sums over the cells of singles, each number drawn at random.

    All values that our learners back up are of this form.
    """
    lookup = cell_lookup(model.structure(Basis.singles(model)))
    n_actions, n_states = flat.rewards.shape
    cells = np.zeros((n_actions, n_states, len(lookup.defaults)), dtype=np.int64)
    fill_cells(lookup, np.ascontiguousarray(flat.states, dtype=np.int64), cells)
    assert model.horizon is not None
    rng = generator(seed, Purpose.REPRODUCTION, "Bellman rank", n_states)
    weights = rng.normal(size=(n, model.horizon, int(lookup.offset[-1])))
    found = np.zeros((n, model.horizon, n_actions, n_states))
    for item in range(cells.shape[2]):
        found += weights[:, :, cells[:, :, item]]
    return found


def reachable(flat: FlatMDP) -> np.ndarray:
    """For each state whether some policy meets it, at whatever step."""
    step = flat.transitions.max(axis=0) > 0
    met = flat.initial() > 0
    while True:
        more = met | step[met].any(axis=0)
        if (more == met).all():
            return np.asarray(met)
        met = more


def measure_bellman(models: Mapping[str, Sequence[FactoredMDP]], seed: int) -> polars.DataFrame:
    """The largest rank over the steps, with twice as many functions as states can be reached."""
    return polars.DataFrame(
        [_bellman_row(name, model, seed) for name, several in models.items() for model in several]
    )


def _bellman_row(name: str, model: FactoredMDP, seed: int) -> dict[str, Any]:
    flat = enumerate_states(model)
    n_met = int(reachable(flat).sum())
    functions = random_functions(model, flat, 2 * n_met, seed)
    return {
        "model": name,
        "variables": len(model.variables),
        "states_met": n_met,
        "rank": max(map(rank, bellman_errors(flat, functions))),
        "our_cells": model.structure(Basis.singles(model)).cells,
    }


def judge_bellman(table: polars.DataFrame) -> Judged:
    """Whether the rank grows exponentially."""
    return judge_growth(table, "rank", "Bellman ranks")


def bellman_panel(table: polars.DataFrame) -> Panel:
    """Rank of each model."""
    return panel_by_model("Bellman rank", table, "rank")


def panel_by_model(label: str, table: polars.DataFrame, column: str) -> Panel:
    """A line for each model."""
    return Panel(
        label,
        tuple(
            Line(
                str(name),
                part["variables"].to_numpy().astype(float),
                part[column].to_numpy().astype(float),
                str(name),
            )
            for (name,), part in table.group_by(["model"], maintain_order=True)
        ),
        log=True,
    )


BELLMAN = Contrast(
    "Bellman rank",
    "low Bellman rank (OLIVE), and classes around it",
    "bellman",
    judge_bellman,
    bellman_panel,
    "Rank of the matrix of average Bellman errors, by roll-in policies and value functions: "
    "what methods of low Bellman rank pay for.",
)


DIGITS = 9


def block_numbers(flat: FlatMDP) -> np.ndarray:
    """The block of each state that can be reached, of the fewest blocks that describe the model.

    In a Block MDP each state is shown by one block, P(s' | s, a) = P(b' | b, a) q(s' | b'), and
    rewards depend on the block. So two states may share a block if and only if what follows them is
    the same under every action, and the chances of coming to the one and to the other are in the
    same proportion from everywhere and at the start. Both relations are equivalences, so the
    classes of both together are the fewest blocks.
    Source: Du, Krishnamurthy, Jiang, Agarwal, Dudik and Langford (2019), Provably efficient RL with
    rich observations via latent state decoding.
    """
    met = reachable(flat)
    transitions = flat.transitions[:, met][:, :, met]
    n = int(met.sum())
    leaving = np.hstack([transitions.transpose(1, 0, 2).reshape(n, -1), flat.rewards[:, met].T])
    coming = np.hstack([transitions.transpose(2, 0, 1).reshape(n, -1), flat.initial()[met, None]])
    coming = coming / coming.max(axis=1, keepdims=True)
    return _classes(np.hstack([leaving, coming]))


def _classes(rows: Floats) -> np.ndarray:
    _, numbers = np.unique(np.round(rows, DIGITS), axis=0, return_inverse=True)
    return np.asarray(numbers).ravel()


def measure_blocks(models: Mapping[str, Sequence[FactoredMDP]]) -> polars.DataFrame:
    """Blocks of each model."""
    rows = []
    for name, several in models.items():
        for model in several:
            numbers = block_numbers(enumerate_states(model))
            rows.append(
                {
                    "model": name,
                    "variables": len(model.variables),
                    "states_met": len(numbers),
                    "blocks": int(numbers.max()) + 1,
                }
            )
    return polars.DataFrame(rows)


def judge_blocks(table: polars.DataFrame) -> Judged:
    """Whether the number of blocks grows exponentially."""
    return judge_growth(table, "blocks", "numbers of blocks")


def blocks_panel(table: polars.DataFrame) -> Panel:
    """Blocks of each model."""
    return panel_by_model("blocks", table, "blocks")


BLOCKS = Contrast(
    "block structure",
    "few latent states (Block MDPs)",
    "blocks",
    judge_blocks,
    blocks_panel,
    "Fewest blocks by which a Block MDP describes each model without loss.",
)


OVERLAP = 0.25
"""Largest inner product of two of the directions that the construction has an action for each."""


def directions(dimension: int) -> float:
    """Unit vectors with inner products of at most 1/4 that are sure to exist: exp(d / 128).

    Source: Johnson and Lindenstrauss' argument as used by Weisz, Amortila and Szepesvari (2021),
    Exponential lower bounds for planning in MDPs with linearly-realizable optimal action-value
    functions.
    """
    return math.exp(dimension * OVERLAP**2 / 8)


def few_actions(dimension: int) -> float:
    """Actions from which a later construction is hard, constants left out: d^(1/4).

    Source: Weisz, Szepesvari and Gyorgy (2022), TensorPlan and the few actions lower bound for
    planning in MDPs under linear realizability of optimal value functions.
    """
    return math.sqrt(math.sqrt(dimension))


def measure_actions(machines: Sequence[int]) -> polars.DataFrame:
    """Rings of machines, whose Q is linear in indicators of cells where V is in singles."""
    rows = []
    for m in machines:
        model = sysadmin(m, horizon=2)
        dimension = 1 + model.structure(Basis.singles(model)).cells
        rows.append(
            {
                "variables": m,
                "dimension": dimension,
                "our_actions": len(model.actions),
                "exponential": directions(dimension),
                "few": few_actions(dimension),
            }
        )
    return polars.DataFrame(rows)


def judge_actions(table: polars.DataFrame) -> Judged:
    """Fails unless ours are fewer at the largest size; with a correction if few are enough."""
    ordered = table.sort("variables")
    last = ordered.row(-1, named=True)
    fewer = ordered.filter(polars.col("our_actions") < polars.col("exponential"))
    measured = (
        f"with {last['variables']} machines {last['our_actions']} actions, where the construction "
        f"in {last['dimension']} dimensions has {last['exponential']:,.0f}"
    )
    if last["our_actions"] >= last["exponential"]:
        return Judged(Verdict.FAILS, measured)
    measured += (
        f" (ours are fewer from {fewer['variables'][0]} machines on); a later one has "
        f"d^(1/4) = {last['few']:.1f}"
    )
    enough = last["our_actions"] >= last["few"]
    return Judged(Verdict.CORRECTED if enough else Verdict.HOLDS, measured)


def actions_panel(table: polars.DataFrame) -> Panel:
    """All three, against the number of machines."""
    x = table["variables"].to_numpy().astype(float)
    ours, many, few = (
        table[name].to_numpy().astype(float) for name in ("our_actions", "exponential", "few")
    )
    return Panel(
        "actions",
        (
            Line("rings of machines", x, ours, "ring"),
            Line("lower bound's, exp(d / 128)", x, many, "lower bound"),
            Line("a later one's, d^(1/4)", x, few, "later lower bound"),
        ),
        log=True,
    )


ACTIONS = Contrast(
    "linear-Q lower bound",
    "hardness of planning with linear Q-functions",
    "actions",
    judge_actions,
    actions_panel,
    "Actions of rings, beside those of two constructions in which problems with linear "
    "Q-functions are hard.",
)


HORIZON = 3
SECONDS = ("joint_seconds", "stagewise_seconds")


def one_program(variables: int, horizon: int, size: int, width: int) -> float:
    """n^2.5 log(n / epsilon) for the n = tau m kappa^width variables of the eliminated program.

    What Cohen, Lee and Song's method takes if it solves the whole program at once: the sign split
    makes it linear, so that no cutting-plane method has to stand around it.
    """
    n = horizon * variables * size**width
    return float(n**2.5 * math.log(n / EPSILON))


def measure_times(machines: Sequence[int], repeats: int, callback: Callback) -> polars.DataFrame:
    """Rings planned by the joint program and by stages, with both counts."""
    rows = []
    small = sysadmin(2, horizon=HORIZON)
    for planner in (Joint(), Stagewise()):  # compiled before it is timed
        planner.solve(problem_of_model(small, Basis.singles(small), "uniform"))
    for m in machines:
        callback(f"running times: {m} machines")
        model = sysadmin(m, horizon=HORIZON)
        problem = problem_of_model(model, Basis.singles(model), "uniform")
        joint, _ = seconds_of(partial(Joint().solve, problem), repeats)
        stagewise, _ = seconds_of(partial(Stagewise().solve, problem), repeats)
        width = problem.network.elimination.induced_width
        rows.append(
            {
                "variables": m,
                "cutting_planes": paper_operations(model, len(problem.network.basis), width),
                "one_program": one_program(m, HORIZON, max(model.sizes), width),
                "joint_seconds": joint,
                "stagewise_seconds": stagewise,
            }
        )
    return polars.DataFrame(rows)


def exponents(table: polars.DataFrame) -> dict[str, float]:
    """By column: how it grows with the number of machines."""
    return {
        name: fitted_exponent(table["variables"], table[name])
        for name in ("cutting_planes", "one_program", *SECONDS)
    }


def judge_times(table: polars.DataFrame) -> Judged:
    """Fails if seconds grow faster than the paper's count; corrected if one program is cheaper."""
    found = exponents(table)
    slowest = max(found[name] for name in SECONDS)
    measured = (
        f"counts grow like m^{found['cutting_planes']:.1f} (linear programs inside cutting planes) "
        f"and m^{found['one_program']:.1f} (one linear program), seconds like "
        f"m^{found['joint_seconds']:.1f} (joint program) and m^{found['stagewise_seconds']:.1f} "
        "(stagewise)"
    )
    if slowest > found["cutting_planes"]:
        return Judged(Verdict.FAILS, measured)
    cheaper = found["one_program"] < found["cutting_planes"] and slowest <= found["one_program"]
    return Judged(Verdict.CORRECTED if cheaper else Verdict.HOLDS, measured)


def times_panel(table: polars.DataFrame) -> Panel:
    """All relative to the smallest size."""
    x = table["variables"].to_numpy().astype(float)
    lines = []
    for name, label, learner in (
        ("cutting_planes", "count, cutting planes", "count"),
        ("one_program", "count, one program", "one program"),
        ("joint_seconds", "seconds, joint program", "joint"),
        ("stagewise_seconds", "seconds, stagewise", "stagewise"),
    ):
        y = table[name].to_numpy().astype(float)
        lines.append(Line(label, x, y / y[0], learner))
    return Panel("time, relative", tuple(lines), log=True)


TIMES = Contrast(
    "running times",
    "the paper's count: cutting planes (Jiang et al. 2020) around linear programs (Cohen, Lee and "
    "Song 2021)",
    "times",
    judge_times,
    times_panel,
    "Operations by both counts and seconds measured, each relative to its smallest size.",
)


STEPS = 5
CONTRASTS = (ELUDER, BELLMAN, BLOCKS, ACTIONS, TIMES)
SUMMARY = "contrasts"


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """Variables of each model; for a gridworld its lanes."""

    bits: Sequence[int]
    small: Sequence[int]
    lanes: Sequence[int]
    rings: Sequence[int]
    timed: Sequence[int]
    repeats: int


SIZES = {
    Form.TINY: Sizes(range(2, 7), (2, 4), (1, 2), (20, 140), (4, 8), 1),
    Form.SMALL: Sizes(range(2, 13), (2, 3, 4, 5), (1, 2), (10, 20, 40, 80, 160), (4, 8, 16, 32), 3),
    Form.FULL: Sizes(
        range(2, 13), (2, 3, 4, 5, 6), (1, 2, 3), (10, 20, 40, 80, 160), (4, 8, 16, 32, 64), 3
    ),
}


def models(sizes: Sizes, seed: int) -> dict[str, list[FactoredMDP]]:
    """Domains small enough to be enumerated, each in several sizes."""
    return {
        "random": [
            random_model(
                seed, n, horizon=STEPS, largest_size=2, latents=0, deterministic=False, noise=False
            )
            for n in sizes.small
        ],
        "ring": [sysadmin(n, horizon=STEPS) for n in sizes.small],
        "proposition 1": [proposition_one(n, seed, horizon=STEPS) for n in sizes.small],
        "influence": [influence(n, campaigns=2, horizon=STEPS, seed=seed) for n in sizes.small],
        "gridworld": [gridworld(n, 2, horizon=STEPS) for n in sizes.lanes],
    }


def run(form: Form, seed: int, callback: Callback) -> Evidence:
    """The five measurements."""
    sizes = SIZES[form]
    small = models(sizes, seed)
    callback("subsumed: Eluder dimension")
    tables = {ELUDER.table: measure_eluder(sizes.bits, seed)}
    callback("subsumed: Bellman rank")
    tables[BELLMAN.table] = measure_bellman(small, seed)
    callback("subsumed: blocks")
    tables[BLOCKS.table] = measure_blocks(small)
    callback("subsumed: actions")
    tables[ACTIONS.table] = measure_actions(sizes.rings)
    timed = {TIMES.table: measure_times(sizes.timed, sizes.repeats, callback)}
    return Evidence(tables, {**timed, SUMMARY: summary(Evidence(tables, timed))})


def summary(evidence: Evidence) -> polars.DataFrame:
    """A row for each contrast, as the page shows them."""
    rows = []
    for one in CONTRASTS:
        judged = one.judge(evidence[one.table])
        rows.append(
            {
                "contrast": one.name,
                "assumed_elsewhere": one.others,
                "measured": judged.measured,
                "verdict": str(judged.verdict),
            }
        )
    return polars.DataFrame(rows)


def judge(evidence: Evidence) -> Judgement:
    """As the worst of the five."""
    found = {one.name: one.judge(evidence[one.table]).verdict for one in CONTRASTS}
    verdicts = list(found.values())
    reason = "; ".join(
        f"{verdict}: {', '.join(name for name in found if found[name] is verdict)} "
        f"({verdicts.count(verdict)} of {len(found)})"
        for verdict in Verdict
        if verdict in verdicts
    )
    for worst in (Verdict.FAILS, Verdict.CORRECTED):
        if worst in verdicts:
            return Judgement(worst, reason)
    return Judgement(Verdict.HOLDS, reason)


def draw(evidence: Evidence) -> tuple[Chart, ...]:
    """A chart for each contrast."""
    return tuple(one.chart(evidence[one.table]) for one in CONTRASTS)


CLAIM = Claim(
    name="subsumed",
    title="Not subsumed: what other assumptions would make of these problems",
    statement="Other lines of work learn in large state spaces, too, under assumptions of their "
    "own: a small Eluder dimension, a low Bellman rank, few blocks. The paper argues that its "
    "problems meet none of them, that a known lower bound for linear Q-functions does not apply "
    "since it takes exponentially many actions, and counts the time of a plan by cutting planes "
    "around linear programs.",
    what_was_run="Five measurements on models that can be enumerated or counted: sequences of "
    "states and actions of Proposition 1, each of which members of the family disagree about "
    "although they agree on all before it; the rank of the matrix of average Bellman errors of "
    "random value functions (sums over the cells of our basis) under one another's greedy "
    "policies; the fewest blocks that describe a model; the sizes of action sets; and both counts "
    "of operations beside measured seconds.",
    rule="Eluder dimension: does not hold if the bound from below grows less than "
    f"{GROWS:g} times with each bit, with a correction if our own reward cells grow so, too. "
    f"Bellman rank and blocks: hold if they grow {GROWS:g} times or more with each variable in all "
    "models, with a correction if in some. Lower bound: does not hold if rings have as many "
    "actions as it at the largest size, with a correction if they have as many as a later bound "
    "asks for. Running times: do not hold if seconds grow faster than the paper's count, with a "
    "correction if a single linear program has a smaller count, within which seconds stay. All "
    "together: as the worst of the five.",
    run=run,
    judge=judge,
    draw=draw,
    tables={SUMMARY: ("contrast", "assumed_elsewhere", "measured", "verdict")},
)
