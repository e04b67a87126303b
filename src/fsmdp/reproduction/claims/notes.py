"""Notes and corrections: where the paper has to be read with care, each with its numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product

import networkx
import numpy as np
import polars
from scipy.stats import binom, binomtest

from fsmdp.bounds.bellman import (
    BellmanNetwork,
    constant_value,
    network_of_model,
    network_of_structure,
)
from fsmdp.bounds.bound import value_of
from fsmdp.bounds.joint import solve_joint
from fsmdp.bounds.plan import Plan
from fsmdp.domains.influence import influence
from fsmdp.domains.sysadmin import sysadmin
from fsmdp.elimination import Network, build
from fsmdp.exact.solve import solve_exactly
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.learning.learners.learner import Learner
from fsmdp.learning.learners.ucrl import UCRLFactored
from fsmdp.learning.theory import regret_bound, symmetric_regret_bound
from fsmdp.model.basis import Basis
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats, Table
from fsmdp.model.variables import Variable
from fsmdp.report.charts import Chart, Line, Panel
from fsmdp.reproduction.claim import (
    CONFIRMED,
    NOT_REPAIRED,
    NOT_SEEN,
    Callback,
    Claim,
    Evidence,
    Finding,
    Form,
    Judgement,
    Repeats,
    Verdict,
    band_model,
    fitted_exponent,
    note_verdict,
)
from fsmdp.reproduction.losses import EnumeratedOptimum, Optimum, Trial, measure_all, thinned
from fsmdp.solver.plan import plan as make_plan

EXACT = 1e-9
LINEAR = 1.1


def scopes(draws: int, seed: int) -> Finding:
    """Note 1: the largest excess of random weights, with and without the functions' own scopes."""
    rng = generator(seed, Purpose.REPRODUCTION, "networks")
    network, intervals = network_of_model(_swap(rng), Basis([Table(["x"], [0.0, 1.0])]))
    states = np.array(list(product(range(2), repeat=2)))
    without, remaining, wrong = [], 0.0, 0
    for _ in range(draws):
        weights, following = rng.normal(size=(2, len(network.basis)))
        entries = network.excess(weights, following, intervals)
        truth = float(network.elimination.network.value(entries, states, 0).max())
        error = truth - _maximum_of_parents(network, entries)
        without.append(error)
        wrong += error > EXACT
        remaining = max(remaining, abs(truth - network.elimination.maximise(entries).value))
    return Finding(
        note=1,
        says="the network has the scopes of the rewards and the parents of the basis functions",
        truth="it needs the scopes of the basis functions as well, since V(s) is subtracted",
        measured=f"two variables that swap values: without these scopes the largest excess is "
        f"missed for {wrong} of {draws} random weights, by up to {max(without):.2f}; with them "
        f"it agrees with enumeration to {remaining:.0e}",
        wrong=max(without),
        wrong_above=EXACT,
        remaining=remaining,
        remaining_up_to=EXACT,
    )


def _swap(rng: np.random.Generator) -> FactoredMDP:
    """x is drawn from y, and y from x."""
    return FactoredMDP(
        [Variable("x", 2), Variable("y", 2)],
        ["wait"],
        [
            Conditional(child, [Case(ANY, [parent], rng.dirichlet([1.0, 1.0], size=2))])
            for child, parent in (("x", "y"), ("y", "x"))
        ],
        [],
        horizon=2,
        initial=[0, 0],
    )


def _maximum_of_parents(network: BellmanNetwork, entries: Floats) -> float:
    """The maximum over the variables of rewards and parents, the others staying at 0."""
    whole, n_values = network.elimination.network, len(network.values)
    narrow = Network(whole.sizes, whole.n_actions, whole.factors[len(network.basis) :])
    values = entries.copy()
    values[n_values:] = 0.0
    at_zero = whole.value(values, np.zeros(whole.n_variables, dtype=np.int64), 0)
    return float(build(narrow).maximise(entries[n_values:]).value + at_zero)


def widths(chains: Sequence[int], cliques: Sequence[int], seed: int) -> Finding:
    """Note 2: table entries of chains and of cliques, whose longest paths say nothing of them."""
    chain_entries, ratio, chain_width = [], 0.0, 0
    for n in chains:
        path, width, entries = _measures(n, 1, seed)
        chain_entries.append(entries)
        ratio, chain_width = max(ratio, path / width), width
    exponent = fitted_exponent(chains, chain_entries)
    distance, clique_width, clique_entries = _measures(cliques[-1], cliques[-1] - 1, seed)
    return Finding(
        note=2,
        says="the width of the network is its longest path between two variables",
        truth="cost is exponential in the induced width of the elimination order",
        measured=f"a chain of {chains[-1]} variables: path {chains[-1] - 1}, induced width "
        f"{chain_width}, {chain_entries[-1]:,} table entries, which grow with exponent "
        f"{exponent:z.2f}; {cliques[-1]} variables that all touch: distance {distance}, induced "
        f"width {clique_width}, {clique_entries:,} entries",
        wrong=ratio,
        wrong_above=1.0,
        remaining=exponent,
        remaining_up_to=LINEAR,
    )


def _measures(n: int, reach: int, seed: int) -> tuple[int, int, int]:
    """Largest distance in the network, induced width, and table entries."""
    model = band_model(n, reach=reach, seed=seed)
    network, _ = network_of_model(model, Basis.singles(model))
    graph = networkx.Graph()
    for scope in network.elimination.network.all_scopes:
        graph.add_nodes_from(scope)
        graph.add_edges_from(combinations(scope, 2))
    elimination = network.elimination
    return networkx.diameter(graph), elimination.induced_width, elimination.n_rows


CHANCE = 0.05
CONFIDENCE = 0.99
STEPS_AN_EPISODE = 10
ONE, ALL, PAPER = "one number of visits", "all numbers of visits", "the paper's, by episodes"


def radii(visits: Floats) -> dict[str, Floats]:
    """Radii on the chance of one side of a coin, after each number of visits.

    An L1 ball of two values has twice this radius. The paper's has k^2 in its logarithm, k the
    episode, which is at least the number of visits over the steps of an episode.
    """
    episode = np.ceil(visits / STEPS_AN_EPISODE)
    ball = 4 * math.log(2)
    return {
        ONE: np.sqrt((ball - 2 * math.log(CHANCE)) / visits) / 2,
        PAPER: np.sqrt((ball - 2 * np.log(CHANCE / (2 * episode**2))) / visits) / 2,
        ALL: np.sqrt(np.log(2 * math.pi**2 * visits**2 / (6 * CHANCE)) / (2 * visits)),
    }


def coverage(most: int, runs: int, seed: int) -> polars.DataFrame:
    """The fraction of runs that have left a radius after some number of visits so far.

    Whoever stops visiting when the mean is off leaves a set that does not hold the truth, and
    the number of visits may depend on what was seen.
    """
    rng = generator(seed, Purpose.REPRODUCTION, "deviations")
    visits = np.arange(1, most + 1, dtype=np.float64)
    limits = radii(visits)
    first = {name: np.full(runs, most + 1) for name in limits}
    at_the_end = dict.fromkeys(limits, 0)
    for run in range(runs):
        deviation = np.abs(np.cumsum(rng.integers(2, size=most)) / visits - 0.5)
        for name, radius in limits.items():
            outside = deviation > radius
            at_the_end[name] += int(outside[-1])
            if outside.any():
                first[name][run] = int(outside.argmax()) + 1
    rows = []
    for name, left in first.items():
        failures = int((left <= most).sum())
        interval = binomtest(failures, runs).proportion_ci(CONFIDENCE)
        rows.append(
            {
                "radius": name,
                "visits": most,
                "runs": runs,
                "at_the_end": at_the_end[name] / runs,
                "at_some_time": failures / runs,
                "low": float(interval.low),
                "high": float(interval.high),
            }
        )
    return polars.DataFrame(rows)


def random_visits(table: polars.DataFrame) -> Finding:
    """Note 3: a radius for one number of visits is left too often when the number is random."""
    by_name = {row["radius"]: row for row in table.iter_rows(named=True)}
    one, every, paper = by_name[ONE], by_name[ALL], by_name[PAPER]
    return Finding(
        note=3,
        says="a deviation inequality for a fixed number of visits and a union over episodes cover "
        "the random number of visits at the start of an episode",
        truth="the union has to run over the numbers of visits",
        measured=f"a fair coin and chance {CHANCE:g}: a radius for one number of visits fails for "
        f"{one['at_the_end']:.1%} of {one['runs']:,} runs after {one['visits']:,} visits, but "
        f"for {one['at_some_time']:.1%} at some time (interval {one['low']:.1%} to "
        f"{one['high']:.1%}); a union over all numbers fails for {every['at_some_time']:.1%}, "
        f"and the paper's own radius, which is loose, for {paper['at_some_time']:.1%}",
        wrong=one["low"],
        wrong_above=CHANCE,
        remaining=every["low"],
        remaining_up_to=CHANCE,
    )


def osband_radius(sizes: Sequence[int], chances: Sequence[float]) -> Finding:
    """Note 6: squared radii of Osband and Van Roy over the paper's, times the visits."""
    ratios = {
        (size, chance): (2 * size * math.log(2 / chance))
        / (2 * size * math.log(2) - 2 * math.log(chance))
        for size in sizes
        for chance in chances
    }
    least = min(ratio for (size, _), ratio in ratios.items() if size > 1)
    for_one = max(abs(ratios[1, chance] - 1) for chance in chances)
    left = max(
        chance_of_leaving(visits, chance) / chance
        for visits in (10, 100, 1000)
        for chance in chances
    )
    return Finding(
        note=6,
        says="Osband and Van Roy's radius √(2 S log(2/δ')/n) is too tight, since "
        "exp(S log δ') is more than δ'",
        truth="exp(S log δ') is at most δ', so theirs is valid and looser; the paper's is better",
        measured=f"their squared radius is {least:.2f} to {max(ratios.values()):.2f} times the "
        f"paper's for S from 2 to {max(sizes)} and the same for S = 1 (to {for_one:.0e}); the "
        f"paper's is left with at most {left:.2f} of its chance by a coin, computed exactly",
        wrong=least,
        wrong_above=1.0,
        remaining=left,
        remaining_up_to=1.0,
    )


def chance_of_leaving(visits: int, chance: float) -> float:
    """Exact chance that a fair coin leaves the paper's ball after a number of visits."""
    radius = math.sqrt((4 * math.log(2) - 2 * math.log(chance)) / visits) / 2
    counts = np.arange(visits + 1)
    outside = np.abs(counts / visits - 0.5) >= radius
    return float(binom.pmf(counts[outside], visits, 0.5).sum())


REALIZABLE, OTHER = "influence", "ring"
STAGEWISE, JOINT = "practical", "paper"
TIGHT = 1e-6
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Runs(Repeats):
    """How many seeds and episodes, and episodes of the paper's learner."""

    paper_episodes: int


def build_model(name: str) -> FactoredMDP:
    """A model whose V* is linear in singles, or one whose V* is not."""
    return influence(6, 2, horizon=5) if name == REALIZABLE else sysadmin(5, horizon=5)


def _prepare(name: str) -> tuple[FactoredMDP, Optimum]:
    model = build_model(name)
    return model, EnumeratedOptimum.of(model)


def _learner(preset: str, model: FactoredMDP, seed: int) -> Learner:
    structure = model.structure(Basis.singles(model))
    return UCRLFactored(
        structure, preset, seed=seed, known_rewards=model.rewards, empirical_weight=0
    )


def run_learners(runs: Runs, seed: int, callback: Callback) -> polars.DataFrame:
    """Regret, slack, widths and norms, an episode a row."""
    trials = [
        Trial(
            {"model": name, "preset": preset},
            partial(_prepare, name),
            partial(_learner, preset),
            runs.paper_episodes if preset == JOINT else runs.episodes,
            seed + number,
        )
        for preset in (JOINT, STAGEWISE)
        for name in (REALIZABLE, OTHER)
        for number in range(runs.seeds)
    ]
    return measure_all(trials, runs.workers, callback)


def slack_in_the_limit(model: FactoredMDP) -> float:
    """Expected slack of an episode when the model is known, planned step by step.

    sum_l E[V_l(s_l) - max_a Q_l(s_l, a)], s_l as the plan's policy meets it. By enumeration.
    """
    plan = _plan(model, "initial")
    exact = solve_exactly(model)
    flat, every = exact.flat, np.arange(len(exact.flat.states))
    occupied, total = flat.initial(), 0.0
    assert model.horizon is not None
    for step in range(1, model.horizon + 1):
        values, q_values = _values(plan, flat.states.tolist(), step)
        total += float(occupied @ (values - q_values.max(axis=1)))
        occupied = occupied @ flat.transitions[q_values.argmax(axis=1), every]
    return total


def _plan(model: FactoredMDP, weights: str) -> Plan:
    return make_plan(model, Basis.singles(model), method="stagewise", weights=weights)


def _values(plan: Plan, states: list[list[int]], step: int) -> tuple[np.ndarray, np.ndarray]:
    return (
        # Of the policy's own weights: the plan's bound may be a tighter one.
        np.array([value_of(plan.basis, plan.weights, state, step) for state in states]),
        np.array([plan.q_values(state, step) for state in states]),
    )


def slacks(learning: polars.DataFrame) -> polars.DataFrame:
    """By model and preset: slack of an episode relative to V*, early, late and in the limit.

    `covered` is the regret over the sum of slack and widths, which bounds it in the mean.
    """
    rows = []
    for (name, preset), part in learning.group_by(["model", "preset"], maintain_order=True):
        model = build_model(str(name))
        value = solve_exactly(model).start_value
        last = int(part["episode"].max())  # type: ignore[arg-type]
        relative = part.group_by("episode").agg(polars.col("slack").mean() / value).sort("episode")
        regret = float(part.filter(polars.col("episode") == last)["regret"].sum())
        logged = float(part["slack"].sum()) + float(part["width"].sum())
        rows.append(
            {
                "model": name,
                "preset": preset,
                "episodes": last,
                "early": float(relative["slack"][: last // 4].mean()),  # type: ignore[arg-type]
                "late": float(relative["slack"][-(last // 4) :].mean()),  # type: ignore[arg-type]
                "limit": slack_in_the_limit(model) / value,
                "covered": regret / logged,
            }
        )
    return polars.DataFrame(rows)


def tightness(table: polars.DataFrame) -> Finding:
    """Note 4: the slack along trajectories."""
    parts = [
        f"{row['model']}, {row['preset']}: {row['early']:.3g} V* early, {row['late']:.3g} V* late"
        for row in table.iter_rows(named=True)
    ]
    limits = {row["model"]: row["limit"] for row in table.iter_rows(named=True)}
    covered = float(table["covered"].max())  # type: ignore[arg-type]
    return Finding(
        note=4,
        says="the program is tight at every state of the trajectory, so V_1 is the value of the "
        "policy in the optimistic model",
        truth="an optimum is tight at some states only; the difference is at least 0 and a term "
        "of its own in the bound",
        measured=f"slack of an episode: {'; '.join(parts)}; with a known model "
        f"{limits[REALIZABLE]:.3f} V* where V* is linear and {limits[OTHER]:.3f} V* on the ring; "
        f"with slack as a term, regret is at most {covered:.2f} of the bound by slack and widths",
        wrong=float(table["early"].max()),  # type: ignore[arg-type]
        wrong_above=TIGHT,
        remaining=covered,
        remaining_up_to=1.0,
    )


def norms(learning: polars.DataFrame) -> Finding:
    """Note 5: norms of the weights that learners had, against that of V*."""
    model = build_model(REALIZABLE)
    plan = _plan(model, "uniform")
    true_norm = float(np.abs(plan.weights).sum(axis=1).max())
    used = float(learning.filter(polars.col("model") == REALIZABLE)["w_norm"].max())  # type: ignore[arg-type]
    allowed, found = _norm_with_rows(model)
    return Finding(
        note=5,
        says="weights have a 1-norm of at most W",
        truth="nothing in the program keeps them below the norm of V*; rows can, for a W that "
        "leaves a solution",
        measured=f"influence: V* has weights of norm {true_norm:.2f}, learners used up to "
        f"{used:.2f}; before anything is seen, rows for W = {allowed:.2f}, the largest reward at "
        f"every step, leave a solution with norm {found:.2f}",
        wrong=used / true_norm,
        wrong_above=1.0,
        remaining=found / allowed,
        remaining_up_to=1.0 + ROUNDING,
    )


def _norm_with_rows(model: FactoredMDP) -> tuple[float, float]:
    """W by the largest reward at every step, and the norm found with rows for it."""
    structure = model.structure(Basis.singles(model))
    network = network_of_structure(structure)
    intervals = UCRLFactored(structure, JOINT, known_rewards=model.rewards).bounds()
    allowed = constant_value(network, intervals)
    means = np.array([table.values.mean() for table in network.basis])
    weights = solve_joint(network, intervals, means, w_norm=allowed).weights
    return allowed, float(np.abs(weights).sum(axis=1).max())


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
    model = build_model(REALIZABLE)
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
    model = build_model(REALIZABLE)
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


LINES = {
    (REALIZABLE, STAGEWISE): "V* linear, stagewise program",
    (REALIZABLE, JOINT): "V* linear, joint program",
    (OTHER, STAGEWISE): "V* not linear, stagewise program",
    (OTHER, JOINT): "V* not linear, joint program",
}
LEAST_SHOWN = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """How much is drawn, counted and learnt."""

    draws: int
    chains: Sequence[int]
    cliques: Sequence[int]
    visits: int
    coverage_runs: int
    runs: Runs


SIZES = {
    Form.TINY: Sizes(50, (8, 32), (4,), 10_000, 2000, Runs(1, 60, 12, workers=1)),
    Form.SMALL: Sizes(1000, (16, 64, 256), (12,), 10_000, 10_000, Runs(2, 1500, 300)),
    Form.FULL: Sizes(10_000, (16, 64, 256, 1024), (16,), 100_000, 10_000, Runs(5, 10_000, 2000)),
}


def run(form: Form, seed: int, callback: Callback) -> Evidence:
    """The run or the computation of each note."""
    sizes = SIZES[form]
    callback("notes: networks")
    found = [
        scopes(sizes.draws, seed),
        widths(sizes.chains, sizes.cliques, seed),
    ]
    callback("notes: deviations")
    left = coverage(sizes.visits, sizes.coverage_runs, seed)
    found.append(random_visits(left))
    learning = run_learners(sizes.runs, seed, lambda text: callback(f"notes: {text}"))
    tight = slacks(learning)
    found += [tightness(tight), norms(learning)]
    found.append(osband_radius((1, 2, 4, 8, 16), (0.5, 0.05, 1e-3, 1e-6)))
    theorem, compared = bounds(learning, (2, 3, 4), (1, 100, 10_000))
    found.append(theorem)
    return Evidence(
        {
            "notes": polars.DataFrame([finding.row() for finding in found]),
            "coverage": left,
            "slacks": tight,
            "bounds": compared,
            "learning": _running_means(learning),
        }
    )


def _running_means(learning: polars.DataFrame) -> polars.DataFrame:
    """Slack of an episode, mean over all episodes so far and over seeds, relative to V*."""
    parts = []
    for (name, preset), part in learning.group_by(["model", "preset"], maintain_order=True):
        value = solve_exactly(build_model(str(name))).start_value
        mean = part.group_by("episode").agg(polars.col("slack").mean()).sort("episode")
        parts.append(
            thinned(
                mean.select(
                    polars.lit(name).alias("model"),
                    polars.lit(preset).alias("preset"),
                    "episode",
                    relative_slack=polars.col("slack").cum_sum() / polars.col("episode") / value,
                )
            )
        )
    return polars.concat(parts)


def judge(evidence: Evidence) -> Judgement:
    """Which notes the numbers bear out, and whether what they put in place holds."""
    rows = evidence["notes"].sort("note").to_dicts()
    verdicts = [note_verdict(row) for row in rows]
    words = ", ".join(
        f"{row['note']} {verdict}" for row, verdict in zip(rows, verdicts, strict=True)
    )
    seen = verdicts.count(CONFIRMED)
    reason = f"{seen} of {len(rows)} notes confirmed ({words})"
    if NOT_REPAIRED in verdicts:
        return Judgement(Verdict.FAILS, reason)
    return Judgement(Verdict.CORRECTED if seen else Verdict.HOLDS, reason)


def draw(evidence: Evidence) -> Chart:
    """Slack of an episode relative to V*."""
    lines = []
    for (name, preset), label in LINES.items():
        part = evidence["learning"].filter(
            (polars.col("model") == name) & (polars.col("preset") == preset)
        )
        x = part["episode"].to_numpy().astype(float)
        y = part.select(
            polars.when(polars.col("relative_slack") >= LEAST_SHOWN).then("relative_slack")
        )
        lines.append(Line(label, x, y.to_series().to_numpy(), f"{name} {preset}"))
    return Chart(
        name="notes",
        title="Note 4: how far the program is from tight where the learner goes",
        caption="Slack of an episode over V*, mean over episodes so far and over seeds: the "
        "regret proof takes it to be 0. Influence, whose V* is linear in the basis, and a ring "
        "of 5 machines, whose V* is not; transitions are learnt, rewards known.",
        panels=(Panel("slack / V*", tuple(lines), log=True, least=LEAST_SHOWN),),
        log=True,
    )


CLAIM = Claim(
    name="notes",
    title="Notes and corrections",
    statement="Seven places of the paper have to be read with care: the scopes of the cost "
    "network, its width, the union bound over episodes, tightness of the program along the "
    "trajectory, the norm of the weights, the remark on another radius, and constants of the "
    "theorems.",
    what_was_run="For each note a run or a computation: elimination with and without some scopes, "
    "chains and cliques, a coin watched for a long time, learners on a model whose V* is linear "
    "and on one whose V* is not, radii and bounds evaluated.",
    rule="Each note has two numbers: one that is above its limit if the text is wrong, and one "
    f"that stays within its limit if the repair holds. A note is “{CONFIRMED}” if both are as "
    f"expected, “{NOT_SEEN}” if the text is not found wrong, “{NOT_REPAIRED}” otherwise. The "
    "paper holds as written if no note is seen, with corrections if some are and all repairs "
    "hold, and not as stated if a repair fails.",
    run=run,
    judge=judge,
    draw=draw,
    tables={"notes": ("note", "says", "truth", "measured", "verdict")},
)
