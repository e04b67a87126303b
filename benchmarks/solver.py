"""What the solver's parts cost: a greedy step against a random one, and `plan.action`; how long it
takes to come within 5 % of V*; episodes a second against pyRDDLGym's simulator; how fitted values
grow with a ring; exact values of 2^20 states.

Prints ratios measured in this run. Run: python benchmarks/solver.py
"""

import resource
import time
import warnings
from dataclasses import replace

import numpy as np
from _timing import best_time
from rich.console import Console
from rich.table import Table

import fsmdp
from fsmdp.bounds.bellman import network_of_structure
from fsmdp.bounds.finish import greedy_lookup
from fsmdp.exact.flat import enumerate_states, solve_flat
from fsmdp.policies.arrays import BY_CHANCE, GREEDILY, no_strides, policy_arrays
from fsmdp.policies.greedy import BestActions, Greedy
from fsmdp.policies.resolve import actions_in, resolve
from fsmdp.simulation.simulate import compile_model, new_record, simulate
from fsmdp.solver.fitting import Choices, Fitting
from fsmdp.solver.judge import arena_of

EPISODES = 300
MANY_EPISODES = 20_000
POOL = 4000


def problems():
    """Name, model, basis, and the target: greedy steps in random steps."""
    elevators = fsmdp.rddl.load("Elevators_MDP_ippc2011", 5)
    yield "Elevators 5, pairs", elevators, fsmdp.Basis.pairs(elevators), 9
    recon = fsmdp.rddl.load("CooperativeRecon_MDP_ippc2011", 5, join=True)
    yield "CooperativeRecon 5 joined, pairs", recon, fsmdp.Basis.pairs(recon), 22
    life = fsmdp.rddl.load("GameOfLife_MDP_ippc2011", 10)
    yield "GameOfLife 10, pairs", life, fsmdp.Basis.pairs(life), None
    for machines in (8, 200, 1000):
        ring = fsmdp.domains.sysadmin(machines, horizon=40)
        yield f"ring {machines}, singles", ring, fsmdp.Basis.singles(ring), None


def any_policy(model, basis):
    """A greedy policy of the model's own terms; what their numbers are makes no difference."""
    lookup = greedy_lookup(network_of_structure(model.structure(basis)))
    entries = np.random.default_rng(0).normal(size=(model.horizon, int(lookup.offset[-1])))
    return Greedy(model.variables, model.actions, model.horizon, lookup, entries)


def step_time(model, arrays):
    """Microseconds of a simulated step."""
    compiled, returns = compile_model(model), np.zeros(EPISODES)
    values, unrecorded = np.zeros(compiled.n_slots, dtype=np.int64), new_record(compiled, 0, 0)

    def run():
        rng = np.random.default_rng(0)
        simulate(compiled, arrays, rng, 1.0, True, 0, model.horizon, values, returns, unrecorded)

    return 1e6 * best_time(run) / (EPISODES * model.horizon)


def greedy_steps(console):
    """A greedy step, folded and not, against a random one; then what folding costs and gives."""
    steps = Table(title="A greedy step, microseconds")
    for heading in ("", "random", "term by term", "folded", "folded / random", "target"):
        steps.add_column(heading, justify="right")
    others = Table(title="Acting through Python, and pools of states")
    for heading in (
        "",
        "fold a step, ms",
        "numbers / entries",
        "action, µs",
        "actions, µs a state",
        f"pool of {POOL:,}, ms",
        "with folding, ms",
    ):
        others.add_column(heading, justify="right")
    for name, model, basis, target in problems():
        policy, nothing = any_policy(model, basis), no_strides(len(model.variables))
        chance = step_time(model, policy_arrays(BY_CHANCE, nothing))
        plain = policy_arrays(GREEDILY, nothing, lookup=policy.lookup, entries=policy.entries)
        arrays = policy.compiled()
        folding = best_time(lambda p=policy: replace(p).compiled(), 3) / model.horizon
        by_term, folded = step_time(model, plain), step_time(model, arrays)
        steps.add_row(
            name,
            f"{chance:.2f}",
            f"{by_term:.2f}",
            f"{folded:.2f}",
            f"{folded / chance:.1f}",
            "" if target is None else f"{target}",
        )
        states = np.random.default_rng(1).integers(0, model.sizes, (POOL, len(model.sizes)))
        state, entries = tuple(states[0].tolist()), policy.entries[0]
        acting = best_time(lambda p=policy, s=state: [p.action(s, 1) for _ in range(1000)]) / 1000
        many = np.tile(states, (25, 1))
        bulk = best_time(lambda p=policy, s=many: actions_in(p, p, s), 3) / len(many)
        always, never = (BestActions(policy.lookup, model.sizes, limit) for limit in (2**24, -1))
        pools = [best_time(lambda b=b, e=entries, s=states: b(e, s), 3) for b in (never, always)]
        others.add_row(
            name,
            f"{1e3 * folding:.2f}",
            f"{arrays.entries.size / policy.entries.size:.2f}",
            f"{1e6 * acting:.0f}",
            f"{1e6 * bulk:.2f}",
            *(f"{1e3 * seconds:.1f}" for seconds in pools),
        )
    console.print(steps)
    console.print(others)


CLOSE = 0.05
SOLVED = (
    ("SysAdmin_MDP_ippc2011", 1),
    ("Elevators_MDP_ippc2011", 1),
    ("SkillTeaching_MDP_ippc2011", 1),
    ("Tamarisk_MDP_ippc2014", 1),
)


def seconds_to_come_close(model, best):
    """When the solver, without exact values, had a policy within 5 % of V*; and what it earns."""
    enough, when = best - CLOSE * abs(best), []

    def callback(line):
        if line.incumbent is not None and line.incumbent >= enough:
            when.append(line.seconds)

    plan = fsmdp.plan(model, exact=False, time_limit=30, callback=callback)
    return (when[0] if when else None), plan.incumbent.mean


def coming_close(console):
    """Seconds to within 5 % of V*, against a stagewise plan and transition matrices."""
    table = Table(title=f"Seconds to a policy within {100 * CLOSE:g} % of V*")
    for heading in ("", "V*", "solver", "earns", "stagewise, pairs", "earns", "enumeration"):
        table.add_column(heading, justify="right")
    for name, instance in SOLVED:
        model = fsmdp.rddl.load(name, instance)
        best = fsmdp.solve_exactly(model).start_value
        seconds, mean = seconds_to_come_close(model, best)
        began = time.perf_counter()
        stages = fsmdp.plan(model, fsmdp.Basis.pairs(model), method="stagewise", time_limit=120)
        staged = time.perf_counter() - began
        earned = fsmdp.rollout(model, stages).mean
        began = time.perf_counter()
        try:
            solve_flat(enumerate_states(model))
            written_out = f"{time.perf_counter() - began:.1f}"
        except fsmdp.SizeError:
            written_out = "refused"
        table.add_row(
            f"{name.partition('_')[0]} {instance}",
            f"{best:.2f}",
            "not in 30 s" if seconds is None else f"{seconds:.1f}",
            f"{mean:.2f}",
            f"{staged:.1f}",
            f"{earned:.2f}",
            written_out,
        )
    console.print(table)


def against_pyrddlgym(console):
    """Episodes a second, ours on one core and on all, and those of pyRDDLGym's simulator."""
    import pyRDDLGym

    table = Table(title="Episodes a second of 40 steps, doing nothing")
    for heading in ("", "ours", "all cores", "pyRDDLGym", "ratio", "all cores", "target"):
        table.add_column(heading, justify="right")
    for name, instance in SOLVED:
        model = fsmdp.rddl.load(name, instance)
        idle, arena = resolve(model, model.actions[0]).arrays, arena_of(model)
        ours = 1e6 / (step_time(model, idle) * model.horizon)
        seconds = best_time(lambda a=arena, i=idle: a.returns(i, MANY_EPISODES, 0))
        on_all = MANY_EPISODES / seconds
        world = pyRDDLGym.make(name, str(instance))

        def episode(world=world):
            world.reset(seed=0)
            for _ in range(world.horizon):
                world.step({})

        theirs = 1 / best_time(episode, 3)
        table.add_row(
            f"{name.partition('_')[0]} {instance}",
            f"{ours:,.0f}",
            f"{on_all:,.0f}",
            f"{theirs:.1f}",
            f"{ours / theirs:,.0f}",
            f"{on_all / theirs:,.0f}",
            "1,000",
        )
    console.print(table)


def fitted_growth(console, sizes=(250, 500, 1000), pool=500):
    """One fit of all steps on a fixed pool, by machines; the exponent is of the last doubling."""
    table = Table(title=f"Fitted values on a ring, singles, horizon 10, {pool} states a step")
    for heading in ("machines", "seconds", "exponent", "target"):
        table.add_column(heading, justify="right")
    before = None
    for machines in sizes:
        model = fsmdp.domains.sysadmin(machines, horizon=10)
        basis = fsmdp.Basis.singles(model)
        fitting = Fitting(model, basis, Choices(pool=pool), lambda: None)
        states = np.random.default_rng(0).integers(0, 2, (pool, model.horizon, machines))
        fitting.add_states(states)
        seconds = best_time(lambda f=fitting: f.fit(lambda: None), 3)
        exponent = "" if before is None else f"{np.log2(seconds / before):.2f}"
        table.add_row(f"{machines:,}", f"{seconds:.2f}", exponent, "1.30")
        before = seconds
    console.print(table)


def exact_values(console):
    """SysAdmin 3 of IPPC 2011: 2^20 states, 21 actions, 40 steps."""
    model = fsmdp.rddl.load("SysAdmin_MDP_ippc2011", 3)
    began = time.perf_counter()
    value = fsmdp.solve_exactly(model).start_value
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    console.print(
        f"SysAdmin 3 exactly: {value:.4f} in {seconds:.0f} s (target 180), at most "
        f"{memory:.1f} GB in this process (target 4)"
    )


def main():
    warnings.simplefilter("ignore")
    console = Console(highlight=False)
    greedy_steps(console)
    against_pyrddlgym(console)
    fitted_growth(console)
    exact_values(console)
    coming_close(console)


if __name__ == "__main__":
    main()
