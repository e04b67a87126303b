"""Small models whose truth is known by enumeration, and what tests ask of learners."""

from contextlib import contextmanager
from itertools import product

import numpy as np

import fsmdp
from fsmdp.compiled import compiled
from fsmdp.learning.cells import confidence
from fsmdp.learning.cells.kernel import Logs, PlannedValues, count_episode, counts_of
from fsmdp.learning.learners import registry
from fsmdp.policies.arrays import BY_CHANCE, BY_TABLE, act, unpacked_table


def coins(sigma=0.0, horizon=3):
    """Two coins near one half that are correlated given (state, action), and a reward for each."""
    variables = [fsmdp.Variable("left", 2), fsmdp.Variable("right", 2)]
    joint = [
        [[[0.3, 0.2], [0.2, 0.3]], [[0.25, 0.25], [0.2, 0.3]]],
        [[[0.2, 0.3], [0.3, 0.2]], [[0.3, 0.2], [0.25, 0.25]]],
    ]
    return fsmdp.FactoredMDP(
        variables=variables,
        actions=["toss", "flip"],
        conditionals=[
            fsmdp.Conditional(
                ["left", "right"],
                cases=[
                    fsmdp.Case(["toss"], parents=["left", "right"], table=joint),
                    fsmdp.Case(["flip"], parents=["left"], table=joint[0]),
                ],
            )
        ],
        rewards=[
            fsmdp.Reward(
                name, [fsmdp.Case(fsmdp.ANY, parents=[name], table=[0.2, 0.7])], 0, 1, sigma
            )
            for name in ("left", "right")
        ],
        horizon=horizon,
        initial={"left": [0.5, 0.5], "right": 1},
    )


def true_means(model, structure):
    """Mean of every function at every cell, and of every reward cell, from enumeration."""
    flat = fsmdp.solve_exactly(model).flat
    means, rewards = [], []
    for table, cases in zip(structure.basis, structure.parents, strict=True):
        h = np.array([table.value(state) for state in flat.states])
        for action, state in _representatives(structure, cases):
            means.append(flat.transitions[action, flat.index(state)] @ h)
    for term, known in zip(structure.rewards, model.reward_means, strict=True):
        for action, state in _representatives(structure, term.parents):
            rewards.append(known.at(action).value(state))
    return np.array(means), np.array(rewards)


def _representatives(structure, cases):
    """An action and a state for each group and parent assignment."""
    for group, scope in enumerate(cases):
        # The default group may have no action left; its cells are never visited.
        action = next((a for a in range(len(structure.actions)) if cases.group(a) == group), 0)
        sizes = [structure.variables[position].size for position in scope]
        for assignment in product(*map(range, sizes)):
            state = [0] * len(structure.variables)
            for position, value in zip(scope, assignment, strict=True):
                state[position] = value
            yield action, state


@contextmanager
def own_registrations():
    """What is registered meanwhile is forgotten afterwards."""
    kept = [
        (names, dict(names))
        for names in (confidence.CONFIDENCE._entries, registry.LEARNERS._entries)
    ]
    try:
        yield
    finally:
        for names, before in kept:
            names.clear()
            names.update(before)


def contains(intervals, means, reward_means, slack=1e-9):
    """Whether given means lie in all intervals, up to rounding."""
    lowest = intervals.with_lowest_rewards().rewards
    return bool(
        (means >= intervals.low - slack).all()
        and (means <= intervals.high + slack).all()
        and (reward_means >= lowest - slack).all()
        and (reward_means <= intervals.rewards + slack).all()
    )


def count_into(cells, statistics, record):
    """Add a recorded episode, with nothing planned and all rewards to be learnt."""
    layout, steps = cells.layout, record.actions.shape[1]
    nothing = np.zeros((steps, len(statistics.visits)))
    count_episode(
        layout,
        PlannedValues(
            np.zeros((steps, layout.value_start[-1])),
            nothing,
            nothing,
            np.zeros(len(statistics.visits), dtype=np.int64),
        ),
        counts_of(statistics),
        np.zeros(layout.n_terms, dtype=np.bool_),
        layout.lookup.defaults.copy(),
        record,
        steps,
        Logs(*np.zeros((4, 1))),
        0,
    )
    statistics.episodes += 1


def shop(horizon=4):
    """A season and two stocks of four levels, of which one can be filled at a time."""
    levels = 4
    demand = np.array([[0.7, 0.3, 0.0], [0.2, 0.5, 0.3]])  # by season

    def moves(delivered):
        table = np.zeros((2, levels, levels))
        for season in range(2):
            for level in range(levels):
                full = min(levels - 1, level + delivered)
                for sold, chance in enumerate(demand[season]):
                    table[season, level, max(0, full - sold)] += chance
        return table

    stocks = ("tea", "salt")
    return fsmdp.FactoredMDP(
        variables=[fsmdp.Variable("season", 2), *(fsmdp.Variable(s, levels) for s in stocks)],
        actions=["wait", *(f"order-{s}" for s in stocks)],
        conditionals=[
            fsmdp.Conditional(
                "season", [fsmdp.Case(fsmdp.ANY, ["season"], [[0.8, 0.2], [0.3, 0.7]])]
            ),
            *(
                fsmdp.Conditional(
                    s,
                    [
                        fsmdp.Case([f"order-{s}"], ["season", s], moves(2)),
                        fsmdp.Case(fsmdp.ANY, ["season", s], moves(0)),
                    ],
                )
                for s in stocks
            ),
        ],
        rewards=[
            fsmdp.Reward(s, [fsmdp.Case(fsmdp.ANY, [s], [0.0, 0.5, 0.5, 0.3])], 0, 0.5)
            for s in stocks
        ],
        horizon=horizon,
        initial={"tea": 1, "salt": 1},
    )


def planned_values(learner, planned, states, step=1):
    """V_step at the given states, by plain sums over the basis."""
    layout, total = learner.cells.layout, np.zeros(len(states))
    for function, table in enumerate(learner.structure.basis):
        shape = table.values.shape
        for row, state in enumerate(states):
            index = tuple(state[position] for position in table.scope)
            at = int(np.ravel_multi_index(index, shape)) if shape else 0
            total[row] += planned.acting.values[step - 1, layout.value_start[function] + at]
    return total


def record_plans(learner):
    """Every plan that the learner makes from now on."""
    plans, replan = [], learner.replan

    def recorded():
        plans.append(replan())
        return plans[-1]

    learner.replan = recorded
    return plans


@compiled()
def actions_in(policy, states, n_actions, rng):
    """What a policy of one step does in each state."""
    actions = np.zeros(len(states), dtype=np.int64)
    for row in range(len(states)):
        actions[row] = act(policy, states[row], 0, n_actions, rng)
    return actions


def policy_value(exact, planned):
    """Expected return of a learner's policy from the start, by backward induction."""
    flat, policy = exact.flat, planned.acting.policy
    if policy.kind == BY_CHANCE:
        return float(flat.initial() @ fsmdp.evaluate_exactly(exact.model, "random"))
    if policy.kind == BY_TABLE:
        return float(
            flat.initial() @ fsmdp.evaluate_exactly(exact.model, unpacked_table(policy.table))
        )
    states, every = np.ascontiguousarray(flat.states, dtype=np.int64), np.arange(len(flat.states))
    following, rng = np.zeros(len(every)), np.random.default_rng(0)
    for entries in reversed(policy.entries):
        actions = actions_in(
            policy._replace(entries=entries[None]), states.copy(), len(flat.rewards), rng
        )
        following = flat.rewards[actions, every] + flat.transitions[actions, every] @ following
    return float(flat.initial() @ following)


def expected_regret(model, exact, learner, episodes, seed):
    """History, and V* less the expected return of the policy followed, by episode."""
    plans = record_plans(learner)
    history = fsmdp.learn(model, learner, episodes=episodes, seed=seed)
    values = np.array([policy_value(exact, planned) for planned in plans])
    losses = exact.start_value - values[np.cumsum(history.replans) - 1]
    if isinstance(learner, fsmdp.UCRLFactored) and not learner.heuristic:
        assert_below_the_theorems(learner, history, np.cumsum(losses))
    return history, losses


def assert_below_the_theorems(learner, history, regret):
    """Every bound that applies to the learner, with and without the slack that was measured."""
    structure, episodes = learner.structure, len(history)
    assert (regret <= history.observable_regret_bound(learner.optimism.delta)).all()
    for k in sorted({1, min(10, episodes), episodes}):
        facts = {
            "episodes": k,
            "w_norm": history.w_norms[:k].max(),
            "delta": learner.optimism.delta,
        }
        slack = history.slacks[:k].sum()
        bounds = [
            fsmdp.regret_bound(structure, **facts),
            fsmdp.regret_bound(structure, **facts, slack=slack),
            fsmdp.symmetric_regret_bound(structure, **facts),
        ]
        if learner.confidence != "weissman":
            bounds.append(
                fsmdp.hoeffding_regret_bound(structure, **facts, slack=slack, growth=learner.growth)
            )
        for bound in bounds:
            assert regret[k - 1] <= bound.total, f"{learner}: {regret[k - 1]} after {k}: {bound}"


WITHOUT_SECONDS = [
    "returns",
    "optimistic_values",
    "slacks",
    "widths",
    "replans",
    "lifts",
    "w_norms",
]


def learners(structure, known=None):
    return {
        "practical": lambda: fsmdp.UCRLFactored(structure, known_rewards=known),
        "paper": lambda: fsmdp.UCRLFactored(structure, "paper", known_rewards=known),
        "psrl": lambda: fsmdp.PSRLFactored(structure, known_rewards=known),
        "psrl, by growth": lambda: fsmdp.PSRLFactored(structure, replan=50.0, known_rewards=known),
    }


NAMES = list(learners(None))


def assert_same_history(one, other, exact=True):
    for name in WITHOUT_SECONDS:
        if exact:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
        else:
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), 1e-12, 1e-12, name)


def assert_same_counts(one, other):
    for name, array in one.statistics.arrays().items():
        np.testing.assert_array_equal(array, other.statistics.arrays()[name], name)
