"""Many decisions at once: turbines in a row, and a crew that may mend three of them at a time.

A turbine that is down slows the next one, which wears out sooner. With 20 turbines there are 1,351
ways to send the crew; they are not listed, since each turbine has a decision of its own.

Run: python examples/factored_actions.py
"""

import numpy as np

import fsmdp

TURBINES = 20
CREW = 3


def wear() -> np.ndarray:
    """Chances of being down or up next, by repair, own state, and that of the one before."""
    law = np.zeros((2, 2, 2, 2))  # repair, own, before, next
    law[0, 0, :, 0] = 1.0  # what is down stays down
    law[0, 1, :, 1] = [0.8, 0.95]  # the one before is down, or up
    law[0, 1, :, 0] = 1 - law[0, 1, :, 1]
    law[1, ..., 1] = 1.0
    return law


def farm(horizon: int = 20) -> fsmdp.FactoredMDP:
    """The model: a turbine that is up earns 1 a step, a repair costs 0.5."""
    names = [f"turbine-{i}" for i in range(TURBINES)]
    repairs = [f"repair-{i}" for i in range(TURBINES)]
    return fsmdp.FactoredMDP(
        variables=[fsmdp.Variable(name, 2) for name in names],
        actions=fsmdp.Actions([fsmdp.Variable(name, 2) for name in repairs], at_most=CREW),
        conditionals=[
            fsmdp.Conditional(name, fsmdp.Case(fsmdp.ANY, [repairs[i], name, names[i - 1]], wear()))
            for i, name in enumerate(names)
        ],
        rewards=[
            fsmdp.Reward(
                f"power-{i}",
                fsmdp.Case(fsmdp.ANY, [name, repairs[i]], [[0, -0.5], [1, 0.5]]),
                low=-0.5,
                high=1,
            )
            for i, name in enumerate(names)
        ],
        horizon=horizon,
        initial=dict.fromkeys(names, 1),
    )


def main() -> None:
    """Plan, see what the crew does, and compare with never mending anything."""
    model = farm()
    print(model)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="programs")
    state = [1] * TURBINES
    for broken in (3, 4, 11, 12, 13):
        state[broken] = 0
    print("3, 4, 11, 12 and 13 are down: the crew does", plan.action(state))
    gap = fsmdp.certified_gap(model, plan, episodes=1000)
    print(f"the policy earns {gap.runs.mean:.1f}, no policy more than {gap.upper_bound:.1f}")
    print(f"never mending earns {fsmdp.rollout(model, 'noop').mean:.1f}")


if __name__ == "__main__":
    main()
