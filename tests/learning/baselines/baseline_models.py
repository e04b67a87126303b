"""Small models and what tests ask of learners that enumerate."""

import numpy as np
from tests.learning.learning_models import record_plans

import fsmdp
from fsmdp.policies.arrays import unpacked_table


def structure_of(model):
    return model.structure(fsmdp.Basis.singles(model))


def switch(horizon=4):
    """One switch: `push` turns it on four times in five, at `rest` it falls off half the time.

    Pushing costs a tenth; being on pays.
    """
    return fsmdp.FactoredMDP(
        variables=[fsmdp.Variable("light", 2)],
        actions=["rest", "push"],
        conditionals=[
            fsmdp.Conditional(
                "light",
                [
                    fsmdp.Case(["rest"], parents=["light"], table=[[1, 0], [0.5, 0.5]]),
                    fsmdp.Case(["push"], parents=[], table=[0.2, 0.8]),
                ],
            )
        ],
        rewards=[
            fsmdp.Reward("on", [fsmdp.Case(fsmdp.ANY, parents=["light"], table=[0, 1])]),
            fsmdp.Reward(
                "cost",
                [fsmdp.Case(["push"], table=-0.1), fsmdp.Case(fsmdp.ANY, table=0)],
                low=-0.1,
                high=0,
            ),
        ],
        horizon=horizon,
        initial={"light": 0},
    )


def policy_value(exact, planned):
    """Expected return of a policy in a table, from the start, by backward induction."""
    flat, every = exact.flat, np.arange(len(exact.flat.states))
    following = np.zeros(len(every))
    for actions in reversed(unpacked_table(planned.acting.policy.table)):
        following = flat.rewards[actions, every] + flat.transitions[actions, every] @ following
    return float(flat.initial() @ following)


def expected_regret(model, learner, episodes, seed=0):
    """V* less the expected return of the policy followed, by episode."""
    exact, plans = fsmdp.solve_exactly(model), record_plans(learner)
    history = fsmdp.learn(model, learner, episodes=episodes, seed=seed)
    values = np.array([policy_value(exact, planned) for planned in plans])
    return exact.start_value - values[np.cumsum(history.replans) - 1]


def planned_values(learner, planned):
    """V_l of every step and state."""
    return planned.acting.values[:, -learner.n_states :]


def twins(horizon=4):
    """Two parts that fail together: `run` leaves both up half the time, and else neither.

    Both up pays 1 and left alone, which is what `rest` leaves, 0.4: running earns 0.5 a step and is
    best. Were the parts independent, both would be up a quarter of the time and running would earn
    0.35.
    """
    names = ["left", "right"]
    return fsmdp.FactoredMDP(
        variables=[fsmdp.Variable(name, 2) for name in names],
        actions=["rest", "run"],
        conditionals=[
            fsmdp.Conditional(
                names,
                [
                    fsmdp.Case(["rest"], table=[[0, 0], [1, 0]]),
                    fsmdp.Case(["run"], table=[[0.5, 0], [0, 0.5]]),
                ],
            )
        ],
        rewards=[
            fsmdp.Reward("work", [fsmdp.Case(fsmdp.ANY, parents=names, table=[[0, 0], [0.4, 1]])])
        ],
        horizon=horizon,
        initial={"left": 0, "right": 0},
    )
