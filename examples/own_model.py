"""A model of one's own: a pumping station, from tables to a policy with a certified gap.

Two pumps wear out and fill a tank, from which a village draws at random. A crew can repair one pump
at a time. How should it act, and how far can that be from the best?

Run: python examples/own_model.py
"""

import numpy as np

import fsmdp

LEVELS = 4


def pump(name: str) -> fsmdp.Conditional:
    """Up (1) or down (0): wears out by itself, comes back when it is repaired."""
    wears = [[1.0, 0.0], [0.15, 0.85]]
    return fsmdp.Conditional(
        name,
        cases=[
            fsmdp.Case([f"repair {name}"], parents=[], table=[0.1, 0.9]),
            fsmdp.Case(fsmdp.ANY, parents=[name], table=wears),
        ],
    )


def tank() -> fsmdp.Conditional:
    """Each pump that is up brings a unit; the village draws none, one or two."""
    draw = (0.2, 0.5, 0.3)
    table = np.zeros((LEVELS, 2, 2, LEVELS))  # level, first pump, second pump, next level
    for level, first, second in np.ndindex(LEVELS, 2, 2):
        for taken, chance in enumerate(draw):
            following = min(LEVELS - 1, max(0, level + first + second - taken))
            table[level, first, second, following] += chance
    parents = ["tank", "first pump", "second pump"]
    return fsmdp.Conditional("tank", cases=[fsmdp.Case(fsmdp.ANY, parents=parents, table=table)])


def station(horizon: int = 30) -> fsmdp.FactoredMDP:
    """The whole model; an empty tank costs 1 a step, a repair 0.1."""
    repairs = ["repair first pump", "repair second pump"]
    return fsmdp.FactoredMDP(
        variables=[
            fsmdp.Variable("first pump", 2),
            fsmdp.Variable("second pump", 2),
            fsmdp.Variable("tank", LEVELS),
        ],
        actions=["wait", *repairs],
        conditionals=[pump("first pump"), pump("second pump"), tank()],
        rewards=[
            fsmdp.Reward(
                "dry",
                cases=[
                    fsmdp.Case(fsmdp.ANY, parents=["tank"], table=[-1.0] + [0.0] * (LEVELS - 1))
                ],
                low=-1,
                high=0,
            ),
            fsmdp.Reward(
                "work",
                cases=[
                    fsmdp.Case(repairs, parents=[], table=-0.1),
                    fsmdp.Case(fsmdp.ANY, parents=[], table=0.0),
                ],
                low=-0.1,
                high=0,
            ),
        ],
        horizon=horizon,
        initial={"first pump": 1, "second pump": 1, "tank": 2},
    )


def main() -> None:
    """Plan, look at the gap, and ask for an action."""
    model = station()
    print(model)
    plan = fsmdp.plan(model)
    print(plan)
    print(plan.gap.statement())
    for first, second, level in ((0, 1, 3), (0, 0, 1)):
        state = {"first pump": first, "second pump": second, "tank": level}
        print(state, "->", plan.action(state))
    print("doing nothing earns", fsmdp.rollout(model, "wait").mean)


if __name__ == "__main__":
    main()
